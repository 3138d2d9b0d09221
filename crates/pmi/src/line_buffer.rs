//! Cuts the bytes of one client into messages (`reference/pmi1.md` §1, §7).
//!
//! A message is a line, or the block of lines from `mcmd=` to `endcmd`. Messages that arrive whole,
//! which is nearly always, are handed on where they lie; only the front of an unfinished one is kept.
//! No byte is searched twice, however small the pieces.

use alloc::vec::Vec;
use core::mem;
use core::ops::ControlFlow;

use crate::{ClientError, Excerpt};

/// The unfinished message of one client.
#[derive(Debug, Default)]
pub struct LineBuffer {
    unfinished: Vec<u8>,
    /// Bytes of the unfinished message in which no further line end is.
    searched: usize,
    /// Where its last line begins.
    line_start: usize,
}

enum Scan {
    Complete { message_end: usize, next_start: usize },
    Incomplete,
    Bad(ClientError),
}

impl LineBuffer {
    /// Longest message accepted: a hundred times what the longest spawn request seen needs.
    pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

    /// Takes the next bytes of the client, and calls `each` with every message that they complete,
    /// without its final line end, until `each` breaks. An error is the last thing that `each` sees.
    pub fn feed(
        &mut self,
        data: &[u8],
        mut each: impl FnMut(Result<&[u8], ClientError>) -> ControlFlow<()>,
    ) {
        if self.unfinished.is_empty() {
            let consumed = self.cut(data, &mut each);
            self.unfinished.extend_from_slice(&data[consumed..]);
        } else {
            let mut bytes = mem::take(&mut self.unfinished);
            bytes.extend_from_slice(data);
            let consumed = self.cut(&bytes, &mut each);
            bytes.drain(..consumed);
            if !bytes.is_empty() {
                self.unfinished = bytes;
            }
        }
    }

    /// The front of the message that has not come whole; empty between messages.
    pub fn unfinished(&self) -> &[u8] {
        &self.unfinished
    }

    /// Returns how many bytes of `data` are done with.
    fn cut(
        &mut self,
        data: &[u8],
        each: &mut impl FnMut(Result<&[u8], ClientError>) -> ControlFlow<()>,
    ) -> usize {
        let mut start = 0;
        while start < data.len() {
            let (message, next_start) = match self.scan(&data[start..]) {
                Scan::Complete { message_end, next_start } => {
                    (Ok(&data[start..start + message_end]), start + next_start)
                }
                Scan::Incomplete => return start,
                Scan::Bad(error) => (Err(error), data.len()),
            };
            (self.searched, self.line_start) = (0, 0);
            start = next_start;
            if each(message).is_break() {
                return data.len();
            }
        }
        start
    }

    /// Looks for the end of the message that `bytes` begins with.
    fn scan(&mut self, bytes: &[u8]) -> Scan {
        if self.line_start == 0 && is_pmi2_prefix(bytes) {
            return Scan::Bad(ClientError::Pmi2Framing(Excerpt::new(&bytes[..PMI2_PREFIX_BYTES])));
        }
        while let Some(offset) = memchr::memchr(b'\n', &bytes[self.searched..]) {
            let line_end = self.searched + offset;
            if line_end > Self::MESSAGE_BYTES_MAX {
                return too_long();
            }
            self.searched = line_end + 1;
            let line = &bytes[self.line_start..line_end];
            if self.line_start == 0 && !line.starts_with(b"mcmd=") {
                return Scan::Complete { message_end: line_end, next_start: self.searched };
            }
            if line == b"endcmd" {
                return Scan::Complete { message_end: self.line_start, next_start: self.searched };
            }
            self.line_start = self.searched;
        }
        self.searched = bytes.len();
        if bytes.len() > Self::MESSAGE_BYTES_MAX { too_long() } else { Scan::Incomplete }
    }
}

fn too_long() -> Scan {
    Scan::Bad(ClientError::TooLong { bytes_max: LineBuffer::MESSAGE_BYTES_MAX })
}

const PMI2_PREFIX_BYTES: usize = 6;

/// Whether a message begins with the length that PMI-2 frames have: six digits and blanks.
fn is_pmi2_prefix(message: &[u8]) -> bool {
    message.get(..PMI2_PREFIX_BYTES).is_some_and(|prefix| {
        prefix.iter().all(|b| b.is_ascii_digit() || *b == b' ')
            && prefix.iter().any(u8::is_ascii_digit)
    })
}
