//! Pairs that were fetched from another agent, kept for whoever reads them next on this one or below.

use alloc::collections::BTreeMap;

use bytes::Bytes;
use model::PairName;

/// Values that were fetched, by name. Their memory is bounded: when it is used up, all are forgotten, and those that
/// are still wanted are fetched again.
#[derive(Debug)]
pub(crate) struct Cache {
    values: BTreeMap<PairName, Bytes>,
    bytes: usize,
    bytes_max: usize,
}

/// What an entry takes beside its bytes, about.
const ENTRY_BYTES: usize = size_of::<(PairName, Bytes)>() + 2 * size_of::<usize>();

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { values: BTreeMap::new(), bytes: 0, bytes_max }
    }

    pub(crate) fn get(&self, name: &PairName) -> Option<&[u8]> {
        self.values.get(name).map(|value| &value[..])
    }

    /// Keeps a value that is not here yet. One that would not fit an empty cache is not kept.
    pub(crate) fn keep(&mut self, name: &PairName, value: &Bytes) {
        let bytes = ENTRY_BYTES + name.space.len() + name.key.len() + value.len();
        if bytes > self.bytes_max || self.values.contains_key(name) {
            return;
        }
        if self.bytes + bytes > self.bytes_max {
            self.clear();
        }
        self.bytes += bytes;
        self.values.insert(name.clone(), value.clone());
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn name(number: u32) -> PairName {
        PairName { space: [].into(), key: format!("card-{number:05}").into_bytes() }
    }

    #[test]
    fn a_million_values_take_no_more_memory_than_is_allowed_and_the_last_is_there() {
        let mut cache = Cache::new(10_000);
        for number in 0..1_000_000 {
            cache.keep(&name(number), &Bytes::from_static(&[7; 51]));
            assert!(cache.bytes <= 10_000 && cache.values.len() <= 10_000 / 51);
            assert_eq!(cache.get(&name(number)), Some(&[7; 51][..]));
        }
    }

    #[test]
    fn a_value_that_does_not_fit_drives_no_other_out() {
        let mut cache = Cache::new(1_000);
        cache.keep(&name(1), &Bytes::from_static(b"small"));
        cache.keep(&name(2), &Bytes::from_static(&[7; 1_000]));
        assert_eq!((cache.get(&name(1)), cache.get(&name(2))), (Some(&b"small"[..]), None));
    }
}
