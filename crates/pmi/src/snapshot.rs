//! All pairs of a space as one string of bytes, in which a reader finds a value without reading the rest.
//!
//! First eight bytes that name the format, and the number of places in the table, a power of two. The table follows:
//! each place has where in the string a pair begins, or 0. The pairs come last, as they travel ([`Pairs`]), in order of
//! arrival. A pair stands at the place that the hash of its key names, or at the next free one behind it. Numbers have
//! four bytes, the lowest first.
//!
//! A reader believes nothing: whatever the bytes are, it finds a value in them, none, or that they are damaged.

use alloc::vec;

use bytes::{Bytes, BytesMut};

use crate::pairs::Extent;
use crate::{Kvs, Pairs};

/// The format and its version.
const FORMAT: &[u8; 8] = b"convoke1";
const NUMBER_BYTES: usize = size_of::<u32>();
const TABLE_AT: usize = FORMAT.len() + NUMBER_BYTES;

/// Pairs to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    bytes: &'a [u8],
    /// One less than the places in the table, which are in the bytes.
    mask: usize,
}

/// Bytes that are no snapshot, or damaged.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the snapshot of the key-value space is damaged")]
pub struct SnapshotError;

impl Snapshot<'_> {
    /// The longest that is made, in bytes. A job that has more to say is asked for each value.
    pub const BYTES_MAX: usize = 1 << 28;

    /// The version of the format, by which clients ask for it.
    pub const VERSION: u32 = 1;

    /// Makes that of a space, unless it would be longer than [`Snapshot::BYTES_MAX`].
    pub fn make(space: &Kvs) -> Option<Bytes> {
        let pairs = || (0..).map_while(|index| space.by_index(index));
        let places = (2 * pairs().count()).next_power_of_two();
        let lengths = pairs().map(|(key, value)| key.len() + value.len());
        let bytes = lengths.map(|length| length + Pairs::LENGTHS_BYTES_MAX).sum::<usize>();
        let pairs_at = TABLE_AT + places * NUMBER_BYTES;
        if pairs_at + bytes > Self::BYTES_MAX {
            return None;
        }
        let mut out = BytesMut::with_capacity(pairs_at + bytes);
        out.resize(pairs_at, 0);
        let mut table = vec![0_u32; places];
        for (key, value) in pairs() {
            let free = probes(key, places - 1).find(|place| table[*place] == 0);
            let free = free.expect("half of the table is free");
            table[free] = u32::try_from(out.len()).expect("it is no longer than its limit");
            Pairs::append(&mut out, b"", key, value);
        }
        out[..FORMAT.len()].copy_from_slice(FORMAT);
        let places = u32::try_from(places).expect("it is no longer than its limit");
        let numbers = [places].into_iter().chain(table);
        for (at, number) in out[FORMAT.len()..pairs_at].chunks_exact_mut(NUMBER_BYTES).zip(numbers)
        {
            at.copy_from_slice(&number.to_le_bytes());
        }
        Some(out.freeze())
    }
}

impl<'a> Snapshot<'a> {
    /// Reads one.
    ///
    /// # Errors
    /// When it is none, or its table does not fit.
    pub fn new(bytes: &'a [u8]) -> Result<Snapshot<'a>, SnapshotError> {
        if !bytes.starts_with(FORMAT) {
            return Err(SnapshotError);
        }
        let places = number(bytes, FORMAT.len()).ok_or(SnapshotError)?;
        let fits = places.is_power_of_two() && places <= (bytes.len() - TABLE_AT) / NUMBER_BYTES;
        if fits { Ok(Snapshot { bytes, mask: places - 1 }) } else { Err(SnapshotError) }
    }

    /// The value of `key`, if it has one.
    ///
    /// # Errors
    /// When what is to be read on the way is damaged.
    pub fn get(self, key: &[u8]) -> Result<Option<&'a [u8]>, SnapshotError> {
        for place in probes(key, self.mask) {
            let at = number(self.bytes, TABLE_AT + place * NUMBER_BYTES).ok_or(SnapshotError)?;
            if at == 0 {
                return Ok(None);
            }
            let pair = Extent::read(self.bytes, at).ok_or(SnapshotError)?;
            if &self.bytes[pair.key..pair.value] == key {
                return Ok(Some(&self.bytes[pair.value..pair.end]));
            }
        }
        Err(SnapshotError) // no table is full
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<NUMBER_BYTES>()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

/// The places at which a key may stand, each once.
fn probes(key: &[u8], mask: usize) -> impl Iterator<Item = usize> {
    let first = usize::try_from(hash(key)).expect("a hash is four bytes");
    (0..=mask).map(move |step| (first + step) & mask)
}

/// FNV-1a, which agents and clients of every build have in common. A task that makes keys collide only slows down its
/// own job.
fn hash(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn key(number: usize) -> String {
        format!("card-{number}")
    }

    fn space(pairs: usize) -> Kvs {
        let mut space = Kvs::default();
        (0..pairs).for_each(|number| space.put(key(number).as_bytes(), &vec![b'v'; number % 300]));
        space
    }

    #[test]
    fn every_pair_is_found_and_no_other_key() {
        for pairs in [0, 1, 2, 3, 1000] {
            let bytes = Snapshot::make(&space(pairs)).unwrap();
            let snapshot = Snapshot::new(&bytes).unwrap();
            for number in 0..pairs {
                let expected = vec![b'v'; number % 300];
                assert_eq!(snapshot.get(key(number).as_bytes()), Ok(Some(&expected[..])));
            }
            for other in [key(pairs), key(pairs + 1), String::new()] {
                assert_eq!(snapshot.get(other.as_bytes()), Ok(None), "of {pairs} pairs: {other}");
            }
        }
    }

    #[test]
    fn one_that_is_cut_anywhere_has_a_value_or_is_damaged() {
        let bytes = Snapshot::make(&space(5)).unwrap();
        for end in 0..bytes.len() {
            let Ok(snapshot) = Snapshot::new(&bytes[..end]) else { continue };
            let mut damaged = 0;
            for number in 0..5 {
                match snapshot.get(key(number).as_bytes()) {
                    Ok(value) => assert_eq!(value.unwrap().len(), number, "cut at {end}"),
                    Err(SnapshotError) => damaged += 1,
                }
            }
            assert!(damaged > 0, "cut at {end}");
        }
    }

    #[test]
    fn one_with_a_wrong_byte_never_fails_otherwise_than_by_an_error() {
        let bytes = Snapshot::make(&space(5)).unwrap();
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes[at] = byte;
                let Ok(snapshot) = Snapshot::new(&bytes) else { continue };
                (0..6).for_each(|number| {
                    let _ = snapshot.get(key(number).as_bytes());
                });
            }
        }
    }

    #[test]
    fn a_table_without_a_free_place_is_damaged() {
        let mut bytes = Snapshot::make(&space(1)).unwrap().to_vec();
        let pair = bytes[TABLE_AT..TABLE_AT + 2 * NUMBER_BYTES]
            .chunks_exact(NUMBER_BYTES)
            .find(|place| *place != [0; NUMBER_BYTES])
            .unwrap()
            .to_vec();
        bytes[TABLE_AT..TABLE_AT + 2 * NUMBER_BYTES].copy_from_slice(&[&pair[..], &pair].concat());
        let snapshot = Snapshot::new(&bytes).unwrap();
        assert_eq!(snapshot.get(b"card-0"), Ok(Some(&b""[..])));
        assert_eq!(snapshot.get(b"card-1"), Err(SnapshotError));
    }
}
