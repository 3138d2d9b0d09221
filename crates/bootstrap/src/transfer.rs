//! The program on its way to one host, in pieces that the host asks for.
//!
//! Pieces, since what is on its way must have a bound: sshd takes from the network faster than it
//! gives to a command, keeps up to 2 MB of what it has not given yet, and copies all of that for
//! every packet. Sent at once, 4 MB took it five times as long.
//!
//! Each costs the host a process that reads it, so they are long; but nothing is heard of a piece
//! before it has arrived, so that where this takes long, they are short.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::Duration;

use model::Time;

use crate::deliver::Program;

/// Bytes of the first piece, of the shortest and of the longest.
const PIECE_BYTES: u64 = 256 * 1024;
const PIECE_BYTES_MIN: u64 = 64 * 1024;
const PIECE_BYTES_MAX: u64 = 1024 * 1024;

/// A piece that took longer is followed by a shorter one, one that took less than half of it by a
/// longer one. For the engine, a transfer of which nothing is heard for a second stands still.
const PIECE_TIME: Duration = Duration::from_millis(500);

/// As much of the program as is read at once: what a socket takes.
const READ_BYTES: u64 = 64 * 1024;

/// What a host has asked for and is sent.
#[derive(Debug)]
pub struct Transfer {
    program: Rc<Program>,
    /// What of the piece that was asked for last is to be read yet.
    piece: Range<u64>,
    piece_bytes: u64,
    /// When that was.
    asked_at: Time,
}

impl Transfer {
    /// A transfer that begins, and what to send before its first piece.
    pub fn begin(program: Rc<Program>, now: Time) -> (Transfer, Vec<u8>) {
        let mut transfer =
            Transfer { program, piece: 0..0, piece_bytes: PIECE_BYTES, asked_at: now };
        let announcement = transfer.announce();
        (transfer, announcement)
    }

    /// Takes a request for the next piece. Returns what to send before that; nothing where there is
    /// none, or where the last is on its way yet.
    pub fn on_request(&mut self, now: Time) -> Option<Vec<u8>> {
        if !self.piece.is_empty() || self.is_complete() {
            return None;
        }
        let took = now.since(self.asked_at);
        if took > PIECE_TIME {
            self.piece_bytes = PIECE_BYTES_MIN.max(self.piece_bytes / 2);
        } else if took < PIECE_TIME / 2 {
            self.piece_bytes = PIECE_BYTES_MAX.min(self.piece_bytes * 2);
        }
        self.asked_at = now;
        Some(self.announce())
    }

    /// Reads more of the piece, to be sent: nothing at its end.
    ///
    /// # Errors
    /// When the file cannot be read, or is shorter than it was.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let Range { start, end } = self.piece;
        let end = end.min(start + READ_BYTES);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or_default()];
        self.program.file.read_exact_at(&mut bytes, start)?;
        self.piece.start = end;
        Ok(bytes)
    }

    /// Whether all has been read.
    pub fn is_complete(&self) -> bool {
        self.piece.start == self.program.bytes
    }

    fn announce(&mut self) -> Vec<u8> {
        let begin = self.piece.end;
        self.piece = begin..self.program.bytes.min(begin + self.piece_bytes);
        self.program.announcement(&self.piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(bytes: u64) -> Rc<Program> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        Rc::new(Program::of(file).unwrap())
    }

    /// The lengths of all pieces, as they are announced, when each takes that long.
    fn pieces(bytes: u64, took: Duration) -> Vec<u64> {
        let mut now = Time::ZERO;
        let (mut transfer, first) = Transfer::begin(program(bytes), now);
        let (mut announced, mut lengths, mut sent) = (Some(first), Vec::new(), 0);
        while let Some(words) = announced {
            let words = String::from_utf8(words).unwrap();
            let numbers = words.split(' ').map_while(|word| word.parse().ok());
            let [length, left] = numbers.collect::<Vec<u64>>()[..] else { panic!("{words}") };
            assert_eq!(sent + length + left, bytes);
            while sent < bytes - left {
                assert_eq!(transfer.on_request(now), None);
                sent += transfer.read().unwrap().len() as u64;
            }
            assert_eq!((sent, transfer.read().unwrap()), (bytes - left, Vec::new()));
            lengths.push(length);
            now = now + took;
            announced = transfer.on_request(now);
        }
        assert!(transfer.is_complete());
        lengths
    }

    #[test]
    fn pieces_are_the_whole_program_one_after_the_other() {
        for bytes in [1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES_MAX] {
            assert_eq!(pieces(bytes, PIECE_TIME).iter().sum::<u64>(), bytes);
        }
    }

    #[test]
    fn pieces_become_longer_where_they_come_fast_and_shorter_where_they_come_slowly() {
        let (kib, mib) = (1024, 1024 * 1024);
        let fast = pieces(3 * mib, Duration::from_millis(5));
        assert_eq!(fast, [256 * kib, 512 * kib, mib, mib, 256 * kib]);
        assert_eq!(pieces(mib, PIECE_TIME), [256 * kib; 4]);
        let slow = pieces(mib / 2, Duration::from_secs(4));
        assert_eq!(slow, [256 * kib, 128 * kib, 64 * kib, 64 * kib]);
    }
}
