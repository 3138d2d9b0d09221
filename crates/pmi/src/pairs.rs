//! Key-value pairs on their way through the tree.
//!
//! A pair is three lengths (seven bits a byte, low bits first), then the name of its space, its key and its
//! value; the job's own space has the empty name. Nothing stands before the first pair or after the last,
//! so that the tree only has to concatenate what several nodes send.

use bytes::{BufMut, Bytes, BytesMut};

/// One pair, sharing the memory of the bytes it was read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pair {
    /// The name of the space it was put into; empty for the job's own.
    pub space: Bytes,
    /// The key and the value, one after the other.
    pub key_value: Bytes,
    /// Where the value begins.
    pub key_bytes: usize,
}

/// Bytes that are not a sequence of pairs. Only our own agents send these, so it is a fault of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("key-value pairs of an exchange are cut or garbled")]
pub struct PairError;

/// Reads pairs one after the other.
#[derive(Clone, Debug)]
pub struct Pairs {
    rest: Bytes,
}

impl Pairs {
    /// Reads the pairs in `bytes`.
    pub fn new(bytes: Bytes) -> Pairs {
        Pairs { rest: bytes }
    }

    /// Appends one pair to `out`.
    pub fn append(out: &mut BytesMut, space: &[u8], key: &[u8], value: &[u8]) {
        for part in [space, key, value] {
            append_length(out, part.len());
        }
        for part in [space, key, value] {
            out.extend_from_slice(part);
        }
    }

    fn read(&mut self) -> Option<Pair> {
        let space_bytes = self.read_length()?;
        let key_bytes = self.read_length()?;
        let value_bytes = self.read_length()?;
        let space = self.take(space_bytes)?;
        let key_value = self.take(key_bytes.checked_add(value_bytes)?)?;
        Some(Pair { space, key_value, key_bytes })
    }

    fn read_length(&mut self) -> Option<usize> {
        let mut length = 0;
        for shift in (0..LENGTH_BITS).step_by(7) {
            let byte = *self.rest.first()?;
            self.rest = self.rest.slice(1..);
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(length);
            }
        }
        None
    }

    fn take(&mut self, bytes: usize) -> Option<Bytes> {
        (bytes <= self.rest.len()).then(|| self.rest.split_to(bytes))
    }
}

/// Four bytes a length, so no part is 256 MiB or more; a client's message is at most 1 MiB.
const LENGTH_BITS: u32 = 28;

fn append_length(out: &mut BytesMut, mut length: usize) {
    assert!(length >> LENGTH_BITS == 0, "a part of a pair is no longer than a client's message");
    while length >= 0x80 {
        out.put_u8(0x80 | low_seven_bits(length));
        length >>= 7;
    }
    out.put_u8(low_seven_bits(length));
}

fn low_seven_bits(length: usize) -> u8 {
    length.to_le_bytes()[0] & 0x7f
}

impl Iterator for Pairs {
    type Item = Result<Pair, PairError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let pair = self.read().ok_or(PairError);
        if pair.is_err() {
            self.rest.clear();
        }
        Some(pair)
    }
}
