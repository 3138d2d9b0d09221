//! Cuts one task's output stream into pieces that are whole lines wherever possible.
//!
//! A line goes out whole up to [`PIECE_BYTES_MAX`]; an unfinished one when nothing has followed it
//! for [`QUIET`], or at the end. So lines of different tasks mix only where a task leaves a line
//! unfinished. Lines are passed on without a copy, but for those that come in parts.

use core::mem;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use model::Time;

/// The largest piece, in bytes: one frame.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Where several lines are cut into pieces: such a piece and its header fill one record of the
/// channel, and are opened and passed on without a copy.
const PIECE_BYTES_BEST: usize = 65_000 - 21;

/// What to read of a task at once, or a multiple of it: where lines are shorter than some hundred
/// bytes, each such part and the rest of the line before it make one piece. More would make a second
/// one of a few bytes, which costs every agent on its way as much as a large one.
pub const READ_BYTES_BEST: usize = 64_000;

/// Up to so much that follows an unfinished line is copied behind it. More is not copied: the line's
/// beginning then goes before it as a part of its own.
const JOINED_BYTES_MAX: usize = 4 * 1024;

/// How long an unfinished line is held back, hoping for its rest: longer than a program pauses
/// within a line that it prints in parts, also when it shares a core with thirty others, and no
/// longer than a person at a prompt puts up with.
pub const QUIET: Duration = Duration::from_millis(200);

/// One stream of one task.
#[derive(Debug, Default)]
pub struct Lines {
    offset: u64,
    rest: BytesMut,
    flush_at: Option<Time>,
}

impl Lines {
    /// Handles more output; `emit` gets the number of bytes that went before each piece, and the piece
    /// in two parts, of which the first may be empty.
    pub fn on_data(&mut self, now: Time, data: Bytes, mut emit: impl FnMut(u64, Bytes, Bytes)) {
        let whole = match memchr::memrchr(b'\n', &data) {
            Some(newline) => newline + 1,
            None => 0,
        };
        let tail = data.slice(whole..);
        if whole > 0 {
            self.emit_whole(data.slice(..whole), &mut emit);
        }
        self.rest.extend_from_slice(&tail);
        while self.rest.len() >= PIECE_BYTES_MAX {
            let piece = self.rest.split_to(PIECE_BYTES_MAX).freeze();
            self.emit(Bytes::new(), piece, &mut emit);
        }
        self.flush_at = (!self.rest.is_empty()).then(|| now + QUIET);
    }

    /// Gives out an unfinished line: the stream was quiet, has ended, or memory is short.
    pub fn flush(&mut self, mut emit: impl FnMut(u64, Bytes, Bytes)) {
        self.flush_at = None;
        if !self.rest.is_empty() {
            let piece = self.rest.split().freeze();
            self.emit(Bytes::new(), piece, &mut emit);
        }
    }

    /// Handles that the stream is read again after a time in which it was not: only from here on
    /// does its silence mean something.
    pub fn on_resumed(&mut self, now: Time) {
        self.flush_at = self.flush_at.map(|_| now + QUIET);
    }

    /// When to call [`Lines::flush`].
    pub fn flush_at(&self) -> Option<Time> {
        self.flush_at
    }

    /// Bytes held back.
    pub fn held(&self) -> usize {
        self.rest.len()
    }

    fn emit_whole(&mut self, lines: Bytes, emit: &mut impl FnMut(u64, Bytes, Bytes)) {
        if lines.len() > JOINED_BYTES_MAX || self.rest.is_empty() {
            let lead = self.rest.split().freeze();
            self.emit_pieces(lead, lines, emit);
        } else {
            self.rest.extend_from_slice(&lines);
            let joined = self.rest.split().freeze();
            self.emit_pieces(Bytes::new(), joined, emit);
        }
    }

    fn emit_pieces(
        &mut self,
        mut lead: Bytes,
        mut lines: Bytes,
        emit: &mut impl FnMut(u64, Bytes, Bytes),
    ) {
        while lead.len() + lines.len() > PIECE_BYTES_BEST {
            let max = lines.len().min(PIECE_BYTES_MAX - lead.len());
            let best = max.min(PIECE_BYTES_BEST.saturating_sub(lead.len()));
            let cut = memchr::memrchr(b'\n', &lines[..best])
                .or_else(|| memchr::memchr(b'\n', &lines[..max]))
                .map_or(max, |newline| newline + 1);
            let piece = lines.split_to(cut);
            self.emit(mem::take(&mut lead), piece, emit);
        }
        if !lines.is_empty() {
            self.emit(lead, lines, emit);
        }
    }

    fn emit(&mut self, lead: Bytes, data: Bytes, emit: &mut impl FnMut(u64, Bytes, Bytes)) {
        let offset = self.offset;
        self.offset += (lead.len() + data.len()) as u64;
        emit(offset, lead, data);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_line_in_two_parts_goes_out_once_and_whole() {
        let mut lines = Lines::default();
        assert_eq!(feed(&mut lines, b"one\ntw"), [(0, b"one\n".to_vec())]);
        assert_eq!(feed(&mut lines, b"o\n"), [(4, b"two\n".to_vec())]);
        assert_eq!(lines.flush_at(), None);
    }

    #[test]
    fn much_that_follows_an_unfinished_line_goes_out_with_it_and_is_not_copied() {
        let mut lines = Lines::default();
        feed(&mut lines, b"tw");
        let mut data = b"o\n".to_vec();
        data.resize(JOINED_BYTES_MAX + 1, b'x');
        data.push(b'\n');
        let data = Bytes::from(data);
        lines.on_data(Time::ZERO, data.clone(), |offset, lead, piece| {
            assert_eq!((offset, &lead[..], piece.as_ptr()), (0, &b"tw"[..], data.as_ptr()));
        });
        assert_eq!((lines.offset, lines.held()), (2 + data.len() as u64, 0));
    }

    #[test]
    fn an_unfinished_line_waits_for_quiet_and_then_goes_out() {
        let mut lines = Lines::default();
        assert_eq!(feed(&mut lines, b"name? "), []);
        assert_eq!(lines.flush_at(), Some(Time::ZERO + QUIET));
        let mut out = vec![];
        lines.flush(|offset, _, piece| out.push((offset, piece.to_vec())));
        assert_eq!(out, [(0, b"name? ".to_vec())]);
    }

    #[test]
    fn a_piece_is_never_longer_than_a_frame_and_is_cut_at_a_newline_if_there_is_one() {
        let mut line = vec![b'x'; 40_000];
        line.push(b'\n');
        let mut lines = Lines::default();
        let pieces = feed(&mut lines, &[&line[..], &line[..], b"y"].concat());
        assert_eq!(pieces.iter().map(|(_, piece)| piece.len()).collect::<Vec<_>>(), [40_001; 2]);

        let mut lines = Lines::default();
        let pieces = feed(&mut lines, &vec![b'x'; 150_000]);
        assert_eq!(pieces.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 65_536]);
        assert_eq!(lines.held(), 150_000 - 2 * 65_536);
    }

    #[test]
    fn parts_that_are_read_as_they_should_be_make_a_piece_each() {
        for line_bytes in 1..900 {
            let mut line = vec![b'x'; line_bytes - 1];
            line.push(b'\n');
            let text = line.repeat(12 * READ_BYTES_BEST / line_bytes);
            for parts in [1, 2] {
                let mut lines = Lines::default();
                for read in text.chunks(parts * READ_BYTES_BEST) {
                    let mut pieces = 0;
                    lines.on_data(Time::ZERO, Bytes::copy_from_slice(read), |_, _, _| pieces += 1);
                    let expected = read.len().div_ceil(READ_BYTES_BEST);
                    assert!(pieces <= expected, "{pieces} of {expected}, lines of {line_bytes}");
                }
            }
        }
    }

    fn feed(lines: &mut Lines, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut out = vec![];
        lines.on_data(Time::ZERO, Bytes::copy_from_slice(data), |offset, lead, piece| {
            out.push((offset, [lead, piece].concat()));
        });
        out
    }
}
