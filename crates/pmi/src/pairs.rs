//! Key-value pairs on their way through the tree.
//!
//! A pair is three lengths (seven bits a byte, low bits first), then the name of its space, its key and its
//! value; the job's own space has the empty name. Nothing stands before the first pair or after the last,
//! so that the tree only has to concatenate what several nodes send.

use alloc::vec::Vec;

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
    bytes: Bytes,
    /// Where the next pair begins.
    at: usize,
}

/// Four bytes a length, so no part is 256 MiB or more; a client's message is at most 1 MiB.
const NUMBER_BITS: u32 = 28;

impl Pairs {
    /// What the lengths of a pair take at most.
    pub(crate) const LENGTHS_BYTES_MAX: usize = 3 * 4;

    /// Reads the pairs in `bytes`.
    pub fn new(bytes: Bytes) -> Pairs {
        Pairs { bytes, at: 0 }
    }

    /// Counts the pairs in `bytes`, which must be pairs from the first to the last.
    pub fn check(bytes: &[u8]) -> Result<usize, PairError> {
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            at = Extent::read(bytes, at).ok_or(PairError)?.end;
            count += 1;
        }
        Ok(count)
    }

    /// Cuts pairs into parts, each of which ends with the pair that fills so many bytes, but for the last; nothing is one
    /// empty part. What is garbled stays together.
    pub fn cut(pairs: &Bytes, part_bytes: usize) -> Vec<Bytes> {
        let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
        while pairs.len() - start > part_bytes
            && let Some(extent) = Extent::read(pairs, at)
        {
            at = extent.end;
            if at - start >= part_bytes && at < pairs.len() {
                parts.push(pairs.slice(start..at));
                start = at;
            }
        }
        parts.push(pairs.slice(start..));
        parts
    }

    /// Appends one pair to `out`.
    pub fn append(out: &mut BytesMut, space: &[u8], key: &[u8], value: &[u8]) {
        let parts = [space, key, value];
        parts.iter().for_each(|part| append_number(out, part.len()));
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }
}

impl Iterator for Pairs {
    type Item = Result<Pair, PairError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let Some(extent) = Extent::read(&self.bytes, self.at) else {
            self.at = self.bytes.len();
            return Some(Err(PairError));
        };
        self.at = extent.end;
        Some(Ok(Pair {
            space: self.bytes.slice(extent.space..extent.key),
            key_value: self.bytes.slice(extent.key..extent.end),
            key_bytes: extent.value - extent.key,
        }))
    }
}

/// Where the parts of a pair begin, and where the last of them ends.
pub(crate) struct Extent {
    pub(crate) space: usize,
    pub(crate) key: usize,
    pub(crate) value: usize,
    pub(crate) end: usize,
}

impl Extent {
    /// Finds the parts of the pair that begins at `at`, all of which must be there.
    pub(crate) fn read(bytes: &[u8], mut at: usize) -> Option<Extent> {
        let space_bytes = read_number(bytes, &mut at)?;
        let key_bytes = read_number(bytes, &mut at)?;
        let value_bytes = read_number(bytes, &mut at)?;
        let key = at.checked_add(space_bytes)?;
        let value = key.checked_add(key_bytes)?;
        let end = value.checked_add(value_bytes)?;
        (end <= bytes.len()).then_some(Extent { space: at, key, value, end })
    }
}

/// Reads a number at `at`, and goes on behind it: seven bits a byte, low bits first.
pub(crate) fn read_number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut number = 0;
    for shift in (0..NUMBER_BITS).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends a number as [`read_number`] reads it.
pub(crate) fn append_number(out: &mut BytesMut, mut number: usize) {
    assert!(number >> NUMBER_BITS == 0, "lengths and ranks have no more bits");
    while number >= 0x80 {
        out.put_u8(0x80 | low_seven_bits(number));
        number >>= 7;
    }
    out.put_u8(low_seven_bits(number));
}

fn low_seven_bits(number: usize) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_pairs_of_several_nodes_are_concatenated_as_they_are() {
        let long = vec![b'v'; 20_000];
        let mut one = BytesMut::new();
        Pairs::append(&mut one, b"", b"card-0", b"zero");
        Pairs::append(&mut one, b"kvs.0", b"k", b"");
        let mut other = BytesMut::new();
        Pairs::append(&mut other, b"", b"card-1", &long);

        let all = Bytes::from([one, other].concat());
        assert_eq!(Pairs::check(&all), Ok(3));
        let pairs: Vec<Pair> = Pairs::new(all).map(Result::unwrap).collect();
        let read: Vec<_> = pairs.iter().map(parts).collect();
        let expected: [(&[u8], &[u8], &[u8]); 3] =
            [(b"", b"card-0", b"zero"), (b"kvs.0", b"k", b""), (b"", b"card-1", &long)];
        assert_eq!(read, expected);
    }

    #[test]
    fn pairs_cut_anywhere_are_an_error() {
        let mut one = BytesMut::new();
        Pairs::append(&mut one, b"", b"card-0", b"zero");
        for bytes in 1..one.len() {
            assert_eq!(Pairs::check(&one[..bytes]), Err(PairError), "{bytes} bytes");
        }
    }

    #[test]
    fn parts_are_whole_pairs_and_all_but_the_last_are_full_and_not_a_pair_more() {
        for lengths in [&[][..], &[5], &[300], &[9; 40], &[1, 200, 3, 0, 99, 400, 2]] {
            let mut all = BytesMut::new();
            lengths.iter().for_each(|&length| {
                Pairs::append(&mut all, b"", b"key", &vec![b'v'; length]);
            });
            let all = all.freeze();
            for part_bytes in 1..all.len() + 2 {
                let parts = Pairs::cut(&all, part_bytes);
                assert_eq!(parts.concat(), all);
                for part in &parts[..parts.len() - 1] {
                    let pairs: Vec<Pair> = Pairs::new(part.clone()).map(Result::unwrap).collect();
                    let last = pairs.last().map(|pair| pair.key_value.len()).unwrap();
                    assert!(part.len() >= part_bytes && part.len() < part_bytes + last + 4);
                }
                assert!(Pairs::check(parts.last().unwrap()).is_ok());
            }
        }
        let garbled = Bytes::from_static(&[0, 1, 0, b'k', 0xff, 0, 0]);
        assert_eq!(Pairs::cut(&garbled, 1), [garbled.slice(..4), garbled.slice(4..)]);
    }

    #[test]
    fn a_length_that_never_ends_is_an_error() {
        assert_eq!(Pairs::check(&[0xff; 40]), Err(PairError));
    }

    fn parts(pair: &Pair) -> (&[u8], &[u8], &[u8]) {
        let (key, value) = pair.key_value.split_at(pair.key_bytes);
        (&pair.space, key, value)
    }
}
