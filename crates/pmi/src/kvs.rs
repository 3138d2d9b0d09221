//! One key-value space on one agent: what its own tasks put, and what came from the other nodes.
//!
//! Entries stand in the order in which they came, so that `getbyidx` is an array access, and a hash table of
//! positions finds them: with 16,384 entries it merges and looks up several times as fast as a B-tree of keys, and
//! takes five bytes an entry. It is never iterated, so its order is no source of differences between runs. A pair is stored once: a local one in a chunk shared with its neighbours, a remote
//! one inside the bytes of the exchange that brought it.

use alloc::vec::Vec;
use core::hash::Hasher;

use bytes::{Bytes, BytesMut};
use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::Pairs;

/// A key-value space.
#[derive(Debug, Default)]
pub struct Kvs {
    entries: Vec<Entry>,
    index_by_key: HashTable<u32>,
    /// Entries that local tasks have put since the last exchange, in order of their first put.
    pending: Vec<u32>,
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
        let entry = self.entry_mut(index);
        if !entry.pending {
            entry.pending = true;
            self.pending.push(index);
        }
    }

    /// Sets a pair that every agent knows by itself. It gets no chunk, since many jobs put nothing.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        self.insert([key, value].concat().into(), key.len());
    }

    /// Adds a pair that an exchange brought. One that a local task has put again since stays as it is:
    /// the next exchange brings it to everybody.
    pub fn merge(&mut self, key_value: Bytes, key_bytes: usize) {
        let entry = self.find(&key_value[..key_bytes]).map(|index| &self.entries[position(index)]);
        if !entry.is_some_and(|entry| entry.pending) {
            self.insert(key_value, key_bytes);
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|index| self.entries[position(index)].value())
    }

    /// The pair at `index`, in order of arrival on this agent.
    pub fn by_index(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(index).map(|entry| (entry.key(), entry.value()))
    }

    /// Appends what local tasks have put since the last call to `out`, as pairs of `space`.
    pub fn take_pending(&mut self, space: &[u8], out: &mut BytesMut) {
        for index in self.pending.drain(..) {
            let entry = &mut self.entries[position(index)];
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

    fn insert(&mut self, key_value: Bytes, key_bytes: usize) -> u32 {
        if let Some(index) = self.find(&key_value[..key_bytes]) {
            let entry = self.entry_mut(index);
            if entry.key_value != key_value {
                entry.key_value = key_value;
            }
            return index;
        }
        let index = u32::try_from(self.entries.len()).expect("memory ends before 2^32 pairs");
        self.entries.push(Entry { key_value, key_bytes, pending: false });
        let entries = &self.entries;
        let hash_of = |index: &u32| hash(entries[position(*index)].key());
        self.index_by_key.insert_unique(hash_of(&index), index, hash_of);
        index
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let is_key = |index: &u32| self.entries[position(*index)].key() == key;
        self.index_by_key.find(hash(key), is_key).copied()
    }

    fn entry_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[position(index)]
    }
}

/// The hash of a key. A task that makes keys collide only slows down its own job.
fn hash(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

fn position(index: u32) -> usize {
    usize::try_from(index).expect("an index fits the memory it indexes")
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.key_value[..self.key_bytes]
    }

    fn value(&self) -> &[u8] {
        &self.key_value[self.key_bytes..]
    }
}
