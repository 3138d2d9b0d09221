//! One key-value space on one agent: what its own tasks put, and what came from the other nodes.
//!
//! Entries stand in the order in which they came, so that `getbyidx` is an array access, and a map from keys
//! to positions finds them. A pair is stored once: a local one in a chunk shared with its neighbours, a remote
//! one inside the bytes of the exchange that brought it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use crate::Pairs;

/// A key-value space.
#[derive(Debug, Default)]
pub struct Kvs {
    entries: Vec<Entry>,
    index_by_key: BTreeMap<Bytes, usize>,
    /// Entries that local tasks have put since the last exchange, in order of their first put.
    pending: Vec<usize>,
    chunk: BytesMut,
}

#[derive(Debug)]
struct Entry {
    key_value: Bytes,
    key_bytes: usize,
    pending: bool,
}

/// Why a put is refused. The text goes to the client, so it has no blanks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PutError {
    /// The key has no bytes.
    #[error("key_is_empty")]
    KeyEmpty,
    /// The key does not fit the announced limit.
    #[error("key_too_long")]
    KeyTooLong,
    /// The value does not fit the announced limit.
    #[error("value_too_long")]
    ValueTooLong,
    /// Keys with the prefix `PMI_` are the server's.
    #[error("key_is_reserved")]
    KeyReserved,
    /// There is no space of that name.
    #[error("kvs_not_found")]
    NoSuchKvs,
}

/// Local pairs share chunks of this size: some thirty cards.
const CHUNK_BYTES: usize = 4096;

impl Kvs {
    /// Puts a pair of a local task: readable here at once, elsewhere after the next exchange. The last
    /// put of a key wins.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let key_value = self.store(key, value);
        let index = self.insert(key_value, key.len());
        let entry = &mut self.entries[index];
        if !entry.pending {
            entry.pending = true;
            self.pending.push(index);
        }
    }

    /// Sets a pair that every agent knows by itself.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        let key_value = self.store(key, value);
        self.insert(key_value, key.len());
    }

    /// Adds a pair that an exchange brought. One that a local task has put again since stays as it is:
    /// the next exchange brings it to everybody.
    pub fn merge(&mut self, key_value: Bytes, key_bytes: usize) {
        let newer_put = |index: &usize| self.entries[*index].pending;
        if !self.index_by_key.get(&key_value[..key_bytes]).is_some_and(newer_put) {
            self.insert(key_value, key_bytes);
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.index_by_key.get(key).map(|index| self.entries[*index].value())
    }

    /// The pair at `index`, in order of arrival on this agent.
    pub fn by_index(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(index).map(|entry| (entry.key(), entry.value()))
    }

    /// Appends what local tasks have put since the last call to `out`, as pairs of `space`.
    pub fn take_pending(&mut self, space: &[u8], out: &mut BytesMut) {
        for index in self.pending.drain(..) {
            let entry = &mut self.entries[index];
            entry.pending = false;
            Pairs::append(out, space, entry.key(), entry.value());
        }
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Bytes {
        let bytes = key.len() + value.len();
        if self.chunk.capacity() < bytes {
            self.chunk = BytesMut::with_capacity(bytes.max(CHUNK_BYTES));
        }
        self.chunk.extend_from_slice(key);
        self.chunk.extend_from_slice(value);
        self.chunk.split().freeze()
    }

    fn insert(&mut self, key_value: Bytes, key_bytes: usize) -> usize {
        if let Some(&index) = self.index_by_key.get(&key_value[..key_bytes]) {
            let entry = &mut self.entries[index];
            if entry.key_value != key_value {
                entry.key_value = key_value;
            }
            return index;
        }
        let index = self.entries.len();
        self.index_by_key.insert(key_value.slice(..key_bytes), index);
        self.entries.push(Entry { key_value, key_bytes, pending: false });
        index
    }
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.key_value[..self.key_bytes]
    }

    fn value(&self) -> &[u8] {
        &self.key_value[self.key_bytes..]
    }
}
