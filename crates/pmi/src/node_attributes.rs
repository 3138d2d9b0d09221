//! What the tasks of a node tell each other, at once and without a fence (`reference/pmi2.md` §4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use model::Rank;

/// The attributes of one node, within one job.
#[derive(Debug, Default)]
pub(crate) struct NodeAttributes {
    values: BTreeMap<Bytes, Bytes>,
    waiting: BTreeMap<Bytes, Vec<Waiter>>,
}

/// Who waits for an attribute.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) rank: Rank,
    /// Which thread of it asked, if it said so.
    pub(crate) thread: Option<Bytes>,
}

impl NodeAttributes {
    /// Sets an attribute; the last value counts. Returns who has waited for it, in the order in which they asked.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Vec<Waiter> {
        self.values.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        self.waiting.remove(key).unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.values.get(key).map(|value| &value[..])
    }

    /// Has somebody wait until it is put.
    pub(crate) fn wait(&mut self, key: &[u8], waiter: Waiter) {
        self.waiting.entry(Bytes::copy_from_slice(key)).or_default().push(waiter);
    }

    /// Whoever has left waits for nothing.
    pub(crate) fn leave(&mut self, rank: Rank) {
        self.waiting.retain(|_, waiters| {
            waiters.retain(|waiter| waiter.rank != rank);
            !waiters.is_empty()
        });
    }
}
