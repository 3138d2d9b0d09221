//! Cuts the bytes of one client into messages (`reference/pmi1.md` §1, §7; `reference/pmi2.md` §1).
//!
//! In PMI-1 a message is a line, or the block of lines from `mcmd=` to `endcmd`; in PMI-2 it is a frame with its length
//! in front. Which of them, each message tells by how it begins. Messages that arrive whole, which is nearly always,
//! are handed on where they lie; only the front of an unfinished one is kept. No byte is searched twice, however small
//! the pieces.

use alloc::vec::Vec;
use core::mem;
use core::ops::ControlFlow;

use crate::ClientError;

/// A message of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// Of PMI-1, without its final line end.
    Line(&'a [u8]),
    /// The body of a frame of PMI-2.
    Frame(&'a [u8]),
}

/// The unfinished message of one client.
#[derive(Debug, Default)]
pub struct MessageBuffer {
    unfinished: Vec<u8>,
    /// Bytes of the unfinished message in which no further line end is.
    searched: usize,
    /// Where its last line begins.
    line_start: usize,
}

enum Scan<'a> {
    Complete { message: Message<'a>, next_start: usize },
    Incomplete,
    Bad(ClientError),
}

impl MessageBuffer {
    /// Longest message of PMI-1 accepted: a hundred times what the longest spawn request seen needs.
    pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
    /// The digits and blanks before a frame that say how long it is.
    pub const PREFIX_BYTES: usize = 6;
    /// The longest frame that has a length of so many digits.
    pub const FRAME_BYTES_MAX: usize = 999_999;

    /// Takes the next bytes of the client, and calls `each` with every message that they complete,
    /// until `each` breaks. An error is the last thing that `each` sees.
    pub fn feed(
        &mut self,
        data: &[u8],
        mut each: impl FnMut(Result<Message<'_>, ClientError>) -> ControlFlow<()>,
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
        each: &mut impl FnMut(Result<Message<'_>, ClientError>) -> ControlFlow<()>,
    ) -> usize {
        let mut start = 0;
        while start < data.len() {
            let (message, next_start) = match self.scan(&data[start..]) {
                Scan::Complete { message, next_start } => (Ok(message), start + next_start),
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
    fn scan<'a>(&mut self, bytes: &'a [u8]) -> Scan<'a> {
        if self.line_start == 0
            && let Some(length) = frame_length(bytes)
        {
            return scan_frame(bytes, length);
        }
        while let Some(offset) = memchr::memchr(b'\n', &bytes[self.searched..]) {
            let line_end = self.searched + offset;
            if line_end > Self::MESSAGE_BYTES_MAX {
                return too_long();
            }
            self.searched = line_end + 1;
            let line = &bytes[self.line_start..line_end];
            if self.line_start == 0 && !line.starts_with(b"mcmd=") {
                let message = Message::Line(&bytes[..line_end]);
                return Scan::Complete { message, next_start: self.searched };
            }
            if line == b"endcmd" {
                let message = Message::Line(&bytes[..self.line_start]);
                return Scan::Complete { message, next_start: self.searched };
            }
            self.line_start = self.searched;
        }
        self.searched = bytes.len();
        if bytes.len() > Self::MESSAGE_BYTES_MAX { too_long() } else { Scan::Incomplete }
    }
}

fn scan_frame(bytes: &[u8], length: usize) -> Scan<'_> {
    let end = MessageBuffer::PREFIX_BYTES + length;
    match bytes.get(MessageBuffer::PREFIX_BYTES..end) {
        Some(body) => Scan::Complete { message: Message::Frame(body), next_start: end },
        None => Scan::Incomplete,
    }
}

fn too_long<'a>() -> Scan<'a> {
    Scan::Bad(ClientError::TooLong { bytes_max: MessageBuffer::MESSAGE_BYTES_MAX })
}

/// The length of the frame that a message begins, if it is one: a number with blanks before or behind it.
pub(crate) fn frame_length(message: &[u8]) -> Option<usize> {
    let prefix = message.get(..MessageBuffer::PREFIX_BYTES)?;
    let number = str::from_utf8(prefix).ok()?.trim_matches(' ');
    if number.starts_with('+') { None } else { number.parse().ok() }
}
