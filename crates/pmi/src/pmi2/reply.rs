//! The frames that clients get: `cmd=NAME-response;` with the union of what all known clients look for.

use alloc::format;
use core::fmt::{Display, Write};

use bytes::BytesMut;

use crate::MessageBuffer;

/// How a request ended (`reference/pmi2.md` §7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReturnCode {
    Fail = -1,
    Success = 0,
    InvalidArgument = 3,
    InvalidKey = 4,
    InvalidKeyLength = 5,
    InvalidValueLength = 7,
    Other = 14,
}

/// A frame that is being written behind others. Its length is written when it ends.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    out: &'a mut BytesMut,
    start: usize,
}

impl<'a> Reply<'a> {
    /// Begins the answer to a request called `name` of this thread, if it said which it is.
    pub(crate) fn to(
        out: &'a mut BytesMut,
        name: &[u8],
        thread: Option<&[u8]>,
        code: ReturnCode,
    ) -> Reply<'a> {
        let start = out.len();
        out.extend_from_slice(&[b' '; MessageBuffer::PREFIX_BYTES]);
        out.extend_from_slice(b"cmd=");
        out.extend_from_slice(name);
        out.extend_from_slice(b"-response;");
        let reply = Reply { out, start };
        let reply = match thread {
            Some(thread) => reply.bytes("thrid", thread),
            None => reply,
        };
        reply.field("rc", code as i32)
    }

    /// Adds a field whose text has no semicolon.
    pub(crate) fn field(self, key: &str, value: impl Display) -> Reply<'a> {
        // Only memory bounds a `BytesMut`, so it never reports an error.
        let _ = write!(self.out, "{key}={value};");
        self
    }

    /// Adds a field with any bytes. A semicolon is written twice.
    pub(crate) fn bytes(self, key: &str, value: &[u8]) -> Reply<'a> {
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
    pub(crate) fn end(self) {
        let body = self.out.len() - self.start - MessageBuffer::PREFIX_BYTES;
        assert!(body <= MessageBuffer::FRAME_BYTES_MAX, "a reply of {body} bytes");
        let length = format!("{body:<width$}", width = MessageBuffer::PREFIX_BYTES);
        let prefix = &mut self.out[self.start..self.start + MessageBuffer::PREFIX_BYTES];
        prefix.copy_from_slice(length.as_bytes());
    }
}
