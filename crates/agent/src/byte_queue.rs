//! Bytes on their way out through one descriptor, as far as it takes them.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use bytes::{Buf, Bytes};
use os::stream::{self, WriteOutcome};

/// Pieces in one call of writev: the most that Linux takes.
const PIECES_MAX: usize = 1024;

/// Bytes that wait. Takes no memory while empty.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    pieces: VecDeque<Bytes>,
}

/// How far a flush came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Flushed {
    /// How many bytes were taken.
    pub(crate) bytes: usize,
    /// Why it ended.
    pub(crate) end: FlushEnd,
}

/// Why a flush ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FlushEnd {
    /// All is written.
    Empty,
    /// The descriptor takes no more for the moment.
    Full,
    /// Nobody reads any more.
    Closed,
}

impl ByteQueue {
    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes until all is written or the descriptor, which must not block, takes no more.
    pub(crate) fn flush(&mut self, fd: impl AsFd) -> io::Result<Flushed> {
        let mut bytes = 0;
        while !self.pieces.is_empty() {
            match self.write_some(&fd)? {
                WriteOutcome::Data(n) => {
                    bytes += n;
                    self.advance(n);
                }
                WriteOutcome::WouldBlock => return Ok(Flushed { bytes, end: FlushEnd::Full }),
                WriteOutcome::Closed => return Ok(Flushed { bytes, end: FlushEnd::Closed }),
            }
        }
        Ok(Flushed { bytes, end: FlushEnd::Empty })
    }

    /// Writes once, at most `bytes_max` bytes of the first piece.
    pub(crate) fn write_little(&mut self, fd: impl AsFd, bytes_max: usize) -> io::Result<Flushed> {
        let Some(front) = self.pieces.front() else {
            return Ok(Flushed { bytes: 0, end: FlushEnd::Empty });
        };
        let (bytes, end) = match stream::write(fd, &front[..front.len().min(bytes_max)])? {
            WriteOutcome::Data(n) => {
                self.advance(n);
                (n, if self.is_empty() { FlushEnd::Empty } else { FlushEnd::Full })
            }
            WriteOutcome::WouldBlock => (0, FlushEnd::Full),
            WriteOutcome::Closed => (0, FlushEnd::Closed),
        };
        Ok(Flushed { bytes, end })
    }

    /// Drops all that waits; returns how many bytes that was.
    pub(crate) fn clear(&mut self) -> usize {
        let bytes = self.pieces.iter().map(Bytes::len).sum();
        self.pieces.clear();
        bytes
    }

    fn write_some(&self, fd: impl AsFd) -> io::Result<WriteOutcome> {
        match self.pieces.front() {
            Some(only) if self.pieces.len() == 1 => stream::write(fd, only),
            Some(_) | None => {
                let slices: Vec<_> =
                    self.pieces.iter().take(PIECES_MAX).map(|piece| IoSlice::new(piece)).collect();
                stream::write_vectored(fd, &slices)
            }
        }
    }

    fn advance(&mut self, mut n: usize) {
        while let Some(front) = self.pieces.front_mut() {
            if n < front.len() {
                front.advance(n);
                return;
            }
            n -= front.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_takes_the_rest_later_and_in_order() {
        let pipe = stream::pipe().unwrap();
        stream::set_nonblocking(&pipe.write).unwrap();
        let room = stream::set_pipe_bytes(&pipe.write, 4096).unwrap();
        let mut queue = ByteQueue::default();
        queue.push(Bytes::from(vec![b'a'; room - 1]));
        queue.push(Bytes::from_static(b"bcd"));
        let first = queue.flush(&pipe.write).unwrap();
        assert_eq!(first.end, FlushEnd::Full);

        let mut buffer = vec![0; 2 * room];
        stream::read(&pipe.read, &mut buffer).unwrap();
        let second = queue.flush(&pipe.write).unwrap();
        assert_eq!(second.end, FlushEnd::Empty);
        assert_eq!(first.bytes + second.bytes, room + 2);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_reader_that_is_gone_is_told() {
        let pipe = stream::pipe().unwrap();
        drop(pipe.read);
        let mut queue = ByteQueue::default();
        queue.push(Bytes::from_static(b"x"));
        assert_eq!(queue.flush(&pipe.write).unwrap().end, FlushEnd::Closed);
    }
}
