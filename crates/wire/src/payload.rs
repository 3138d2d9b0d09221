//! What a part of an exchange carries, packed where that pays.
//!
//! Cards of one MPI library are much alike: LZ4 makes a third of them (docs/pmi.md, "Packed"). Who packs a payload does
//! so once for all its children, and who passes it on has nothing to do.

use alloc::borrow::Cow;

use bytes::Bytes;
use lz4_flex::block::{compress, decompress};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::frame::CONTROL_BYTES_MAX;

/// A sequence of LZ4 has a byte more for each 255 that it stands for.
const RATIO_MAX: usize = 255;

/// Bytes that are packed on a link, or not. Who holds it has them as they were, and clones share both forms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Payload {
    plain: Bytes,
    packed: Option<Bytes>,
}

/// A payload on a link.
#[derive(Serialize, Deserialize)]
struct Coded<'a> {
    /// How many bytes LZ4 has made a block of, if it has.
    plain_bytes: Option<u32>,
    bytes: Cow<'a, Bytes>,
}

impl Payload {
    /// The bytes themselves.
    pub fn plain(&self) -> &Bytes {
        &self.plain
    }

    /// What is sent instead of them.
    pub fn coded(&self) -> &Bytes {
        self.packed.as_ref().unwrap_or(&self.plain)
    }

    /// Packs them, unless they hardly get shorter: by less than a quarter.
    pub fn pack(&mut self) {
        let packed = compress(&self.plain);
        if packed.len() <= self.plain.len() / 4 * 3 && self.plain.len() <= CONTROL_BYTES_MAX {
            self.packed = Some(packed.into_boxed_slice().into());
        }
    }
}

impl From<Bytes> for Payload {
    fn from(plain: Bytes) -> Payload {
        Payload { plain, packed: None }
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Within the limit of what is packed, a length fits.
        let plain_bytes =
            self.packed.is_some().then(|| u32::try_from(self.plain.len()).unwrap_or(u32::MAX));
        Coded { plain_bytes, bytes: Cow::Borrowed(self.coded()) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        let Coded { plain_bytes, bytes } = Coded::deserialize(deserializer)?;
        let bytes = bytes.into_owned();
        let Some(plain_bytes) = plain_bytes else { return Ok(bytes.into()) };
        let plain_bytes = plain_bytes as usize;
        let bytes_max = bytes.len().saturating_mul(RATIO_MAX).min(CONTROL_BYTES_MAX);
        if plain_bytes > bytes_max {
            return Err(D::Error::custom("a packed payload is longer than it can be"));
        }
        match decompress(&bytes, plain_bytes) {
            Ok(plain) if plain.len() == plain_bytes => {
                Ok(Payload { plain: plain.into(), packed: Some(bytes) })
            }
            _ => Err(D::Error::custom("a packed payload does not hold what it says")),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// No byte tells the next.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..bytes).map(&mut next).collect()
    }

    fn decoded(plain_bytes: Option<u32>, bytes: &[u8]) -> Result<Payload, postcard::Error> {
        let bytes = Bytes::copy_from_slice(bytes);
        let coded = Coded { plain_bytes, bytes: Cow::Owned(bytes) };
        postcard::from_bytes(&postcard::to_allocvec(&coded).unwrap())
    }

    #[test]
    fn what_is_alike_gets_shorter_and_is_itself_again() {
        for bytes in 0..2_000 {
            let mut payload = Payload::from(Bytes::from(vec![7; bytes]));
            payload.pack();
            assert_eq!(payload.coded().len() < bytes, bytes >= 16, "{bytes}");
            let frame = postcard::to_allocvec(&payload).unwrap();
            assert!(frame.len() <= payload.coded().len() + 5);
            assert_eq!(postcard::from_bytes(&frame), Ok(payload));
        }
    }

    #[test]
    fn what_has_nothing_alike_goes_as_it_is() {
        for bytes in [0, 1, 100, 64_000] {
            let mut payload = Payload::from(Bytes::from(noise(bytes)));
            payload.pack();
            assert_eq!(payload.coded(), payload.plain());
            assert_eq!(decoded(None, payload.plain()), Ok(payload));
        }
    }

    #[test]
    fn what_is_garbled_or_longer_or_shorter_than_it_says_is_an_error_and_takes_no_memory() {
        let packed = compress(&[7; 70_000]);
        assert!(decoded(Some(70_000), &packed).is_ok());
        for plain_bytes in [0, 1, 69_999, 70_001, u32::MAX] {
            assert!(decoded(Some(plain_bytes), &packed).is_err(), "{plain_bytes}");
        }
        for end in 0..packed.len() {
            assert!(decoded(Some(70_000), &packed[..end]).is_err(), "{end}");
        }
        for bytes in [noise(0), noise(10), noise(1_000), vec![255; 1_000]] {
            assert!(decoded(Some(2_000), &bytes).is_err());
        }
    }
}
