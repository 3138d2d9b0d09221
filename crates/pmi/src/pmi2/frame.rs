//! Writes the frames of either side: a length, then `cmd=NAME;` and further fields (`reference/pmi2.md` §1).

use alloc::format;
use core::fmt::{Display, Write};

use bytes::BytesMut;

use crate::MessageBuffer;

/// A frame that is being written behind others. Its length is written when it ends.
#[derive(Debug)]
pub struct Frame<'a> {
    out: &'a mut BytesMut,
    start: usize,
}

impl<'a> Frame<'a> {
    /// Begins the frame of a command whose name is made of these parts.
    pub fn begin(out: &'a mut BytesMut, name: &[&[u8]]) -> Frame<'a> {
        let start = out.len();
        out.extend_from_slice(&[b' '; MessageBuffer::PREFIX_BYTES]);
        out.extend_from_slice(b"cmd=");
        for part in name {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(b";");
        Frame { out, start }
    }

    /// Adds a field whose text has no semicolon.
    pub fn field(self, key: &str, value: impl Display) -> Frame<'a> {
        // Only memory bounds a `BytesMut`, so it never reports an error.
        let _ = write!(self.out, "{key}={value};");
        self
    }

    /// Adds a field with any bytes. A semicolon is written twice.
    pub fn bytes(self, key: &str, value: &[u8]) -> Frame<'a> {
        let _ = write!(self.out, "{key}=");
        for piece in value.split_inclusive(|byte| *byte == b';') {
            self.out.extend_from_slice(piece);
            if piece.ends_with(b";") {
                self.out.extend_from_slice(b";");
            }
        }
        self.out.extend_from_slice(b";");
        self
    }

    /// Ends it.
    ///
    /// # Panics
    /// When it is longer than its length has digits for.
    pub fn end(self) {
        let body = self.out.len() - self.start - MessageBuffer::PREFIX_BYTES;
        assert!(body <= MessageBuffer::FRAME_BYTES_MAX, "a frame of {body} bytes");
        let length = format!("{body:<width$}", width = MessageBuffer::PREFIX_BYTES);
        let prefix = &mut self.out[self.start..self.start + MessageBuffer::PREFIX_BYTES];
        prefix.copy_from_slice(length.as_bytes());
    }
}
