//! What comes down with an exchange, packed where that pays: the head packs a byte once, and sends it to each of its children.
//!
//! Cards of one MPI library are much alike: LZ4 makes a third of them (docs/pmi.md, "Large fences"). Whoever passes a part
//! on does so as it is.

use alloc::vec::Vec;

use bytes::Bytes;
use lz4_flex::block::{compress, decompress};
use wire::Part;

/// With fewer, the head has sent all bytes to all of them before it could have packed them.
const CHILDREN_MIN: usize = 6;

/// A sequence of LZ4 has a byte more for each 255 that it stands for.
const RATIO_MAX: usize = 255;

/// A packed part does not hold what it says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a part is not {bytes} bytes once it is unpacked")]
pub(super) struct PackingError {
    bytes: u32,
}

/// Packs these parts, which go to so many children, until one does not get smaller by a quarter: the others are no better.
pub(super) fn pack(parts: &mut [Part], children: usize) {
    if children < CHILDREN_MIN {
        return;
    }
    for part in parts {
        let packed = compress(&part.payload);
        let Ok(bytes) = u32::try_from(part.payload.len()) else { return };
        if packed.len() > part.payload.len() / 4 * 3 {
            return;
        }
        (part.payload, part.packed) = (packed.into_boxed_slice().into(), Some(bytes));
    }
}

/// What a part carries.
pub(super) fn unpack(part: &Part) -> Result<Bytes, PackingError> {
    let Some(bytes) = part.packed else { return Ok(part.payload.clone()) };
    let length = bytes as usize;
    let is_possible = length <= part.payload.len().saturating_mul(RATIO_MAX);
    let unpacked: Option<Vec<u8>> =
        if is_possible { decompress(&part.payload, length).ok() } else { None };
    let unpacked = unpacked.filter(|unpacked| unpacked.len() == length);
    unpacked.map(Bytes::from).ok_or(PackingError { bytes })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use wire::Collective;

    use super::*;

    fn part(payload: impl Into<Bytes>, packed: Option<u32>) -> Part {
        let payload = payload.into();
        Part { of: Collective::Fence, number: 0, is_last: false, payload, packed }
    }

    /// No byte tells the next.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..bytes).map(&mut next).collect()
    }

    #[test]
    fn what_is_alike_is_packed_for_many_children_and_is_itself_again() {
        for children in 0..20 {
            let mut parts = [part(vec![7; 70_000], None), part(vec![8; 64_000], None)];
            let before = parts.clone();
            pack(&mut parts, children);
            for (part, before) in parts.iter().zip(&before) {
                assert_eq!(part.packed.is_some(), children >= CHILDREN_MIN);
                assert!(part.packed.is_none() || part.payload.len() < 1_000);
                assert_eq!(unpack(part).as_ref(), Ok(&before.payload));
            }
        }
    }

    #[test]
    fn behind_a_part_that_does_not_get_smaller_none_is_tried() {
        let mut parts =
            [part(vec![7; 64_000], None), part(noise(64_000), None), part(vec![7; 64_000], None)];
        pack(&mut parts, CHILDREN_MIN);
        assert_eq!(parts.map(|part| part.packed.is_some()), [true, false, false]);
    }

    #[test]
    fn what_is_garbled_or_longer_or_shorter_than_it_says_is_an_error_and_takes_no_memory() {
        let mut parts = [part(vec![7; 70_000], None)];
        pack(&mut parts, CHILDREN_MIN);
        let [packed] = parts;
        for bytes in [0, 1, 69_999, 70_001, u32::MAX] {
            let wrong = Part { packed: Some(bytes), ..packed.clone() };
            assert_eq!(unpack(&wrong), Err(PackingError { bytes }));
        }
        for end in 0..packed.payload.len() {
            let cut = Part { payload: packed.payload.slice(..end), ..packed.clone() };
            assert!(unpack(&cut).is_err(), "{end}");
        }
        for payload in [noise(0), noise(10), noise(1_000), vec![255; 1_000]] {
            assert!(unpack(&part(payload, Some(2_000))).is_err());
        }
    }
}
