//! One key-value space on one agent: what its own tasks put, and what came from the other nodes.
//!
//! Entries stand in the order in which they came, so that `getbyidx` is an array access, and a hash table of
//! positions finds them: with 16,384 entries it merges and looks up several times as fast as a B-tree of keys, and
//! takes five bytes an entry. It is never iterated, so its order is no source of differences between runs.
//!
//! A pair is stored once, encoded as it travels: a local one in a chunk shared with its neighbours, a remote one
//! inside the bytes of the exchange that brought it. An entry is eight bytes that say where its pair is, and
//! reads the lengths there: every agent has an entry for every card of the job, so this is what a large job costs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::mem;

use bytes::{Bytes, BytesMut};
use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::pairs::Extent;
use crate::{Pairs, Snapshot};

/// A key-value space.
#[derive(Debug, Default)]
pub struct Kvs {
    entries: Vec<Entry>,
    index_by_key: HashTable<u32>,
    sources: Vec<Source>,
    /// Sources that no entry points to, to be used again.
    free: Vec<u32>,
    /// The source made last for an exchange.
    exchange: u32,
    /// What local tasks have put and not everybody has, in order.
    pending: Vec<Put>,
    /// Local puts so far. Each has its number, from 1.
    puts: u64,
    /// The last put that the exchange under way takes to everybody.
    taken: u64,
    /// What is not as in the last snapshot.
    changes: Changes,
    chunk: BytesMut,
}

/// What has changed since the last snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Keys that came anew.
    added: usize,
    /// Whether a value has taken the place of another, or is known no longer.
    is_replaced: bool,
}

/// Where a pair is.
#[derive(Clone, Copy, Debug)]
struct Entry {
    source: u32,
    at: u32,
}

/// Bytes that hold pairs: one that was put here, or all that an exchange brought.
#[derive(Debug)]
struct Source {
    pairs: Bytes,
    /// Entries that point here. At none, the bytes are given back.
    used: u32,
    /// The number of the local put that it holds, while not everybody has that; else 0.
    put: u64,
    /// Whether every agent knows it by itself.
    is_set: bool,
}

/// A local put.
#[derive(Clone, Copy, Debug)]
struct Put {
    index: u32,
    number: u64,
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
        let found = self.find(key);
        let pairs = self.store(key, value);
        self.puts += 1;
        let source = self.add_source(Source { pairs, used: 0, put: self.puts, is_set: false });
        let index = self.point(found, Entry { source, at: 0 });
        self.pending.push(Put { index, number: self.puts });
        if self.pending.len() > 2 * self.entries.len() {
            let (entries, sources) = (&self.entries, &self.sources);
            self.pending.retain(|put| is_latest(entries, sources, *put));
        }
    }

    /// Sets a pair that every agent knows by itself. It gets no chunk, since many jobs put nothing.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        let mut pairs = BytesMut::new();
        Pairs::append(&mut pairs, b"", key, value);
        let source = Source { pairs: pairs.freeze(), used: 0, put: 0, is_set: true };
        let source = self.add_source(source);
        self.point(self.find(key), Entry { source, at: 0 });
    }

    /// Makes room for as many pairs of an exchange, where they are all new, and for no more.
    pub fn reserve(&mut self, pairs: usize) {
        let more = pairs.saturating_sub(self.entries.len());
        self.entries.reserve_exact(more);
        let entries = &self.entries;
        let sources = &self.sources;
        self.index_by_key.reserve(more, |index| hash(key_of(entries, sources, *index)));
    }

    /// Adds the pair that begins at `at` in the bytes of an exchange, whose pairs have been checked. One that a
    /// local task has put again since stays as it is: the next exchange brings it to everybody. Returns whether there
    /// was another value.
    pub fn merge(&mut self, pairs: &Bytes, at: usize) -> bool {
        let extent = Extent::read(pairs, at).expect("pairs are checked before they are merged");
        let found = self.find(&pairs[extent.key..extent.value]);
        let stays = |index| {
            self.source(index).put > 0 || self.value(index) == &pairs[extent.value..extent.end]
        };
        if !found.is_some_and(stays) {
            let source = self.exchange_source(pairs);
            let at = u32::try_from(at).expect("a message is less than 4 GiB");
            self.point(found, Entry { source, at });
            return found.is_some();
        }
        false
    }

    /// Forgets all pairs but those that every agent knows by itself, and those that local tasks have put and no
    /// exchange has taken.
    pub fn forget(&mut self) {
        let entries = mem::take(&mut self.entries);
        self.index_by_key = HashTable::new();
        self.changes.is_replaced = true;
        let mut index_after = BTreeMap::new();
        for (before, entry) in (0..).zip(entries) {
            let source = &self.sources[position(entry.source)];
            if source.put > 0 || source.is_set {
                index_after.insert(before, self.insert(entry));
            } else {
                self.release(entry.source);
            }
        }
        for put in &mut self.pending {
            put.index = index_after[&put.index];
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(key).map(|index| self.value(index))
    }

    /// The pair at `index`, in order of arrival on this agent.
    pub fn by_index(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = u32::try_from(index).ok().filter(|_| index < self.entries.len())?;
        Some((key_of(&self.entries, &self.sources, index), self.value(index)))
    }

    /// Whether the last snapshot says what does not hold, or lacks an eighth of the keys. To make one whenever a key
    /// came would copy the same pairs again and again.
    pub fn outdates_snapshot(&self) -> bool {
        let Changes { added, is_replaced } = self.changes;
        is_replaced || added > 0 && 8 * added >= self.entries.len()
    }

    /// Makes a snapshot of all pairs, unless it would be too long.
    pub fn take_snapshot(&mut self) -> Option<Bytes> {
        self.changes = Changes::default();
        Snapshot::make(self)
    }

    /// How many puts local tasks have made.
    pub fn puts(&self) -> u64 {
        self.puts
    }

    /// Appends what local tasks have put after their put of this number to `out`, as pairs of `space`, but for what
    /// everybody has.
    pub fn append_after(&self, number: u64, space: &[u8], out: &mut BytesMut) {
        let first = self.pending.partition_point(|put| put.number <= number);
        for put in &self.pending[first..] {
            if is_latest(&self.entries, &self.sources, *put) {
                let entry = self.entries[position(put.index)];
                let (key, value) = parts(&self.source(put.index).pairs, entry.at);
                Pairs::append(out, space, key, value);
            }
        }
    }

    /// Appends what not everybody has, for an exchange of all.
    pub fn take_pending(&mut self, space: &[u8], out: &mut BytesMut) {
        self.append_after(0, space, out);
        self.taken = self.puts;
    }

    /// Takes note that everybody gets what the last `take_pending` took.
    pub fn on_exchanged(&mut self) {
        let taken = self.pending.partition_point(|put| put.number <= self.taken);
        for put in self.pending.drain(..taken) {
            if is_latest(&self.entries, &self.sources, put) {
                self.sources[position(self.entries[position(put.index)].source)].put = 0;
            }
        }
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Bytes {
        let bytes = key.len() + value.len() + Pairs::LENGTHS_BYTES_MAX;
        if self.chunk.capacity() < bytes {
            self.chunk = BytesMut::with_capacity(bytes.max(CHUNK_BYTES));
        }
        Pairs::append(&mut self.chunk, b"", key, value);
        self.chunk.split().freeze()
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let is_key = |index: &u32| key_of(&self.entries, &self.sources, *index) == key;
        self.index_by_key.find(hash(key), is_key).copied()
    }

    fn source(&self, index: u32) -> &Source {
        &self.sources[position(self.entries[position(index)].source)]
    }

    fn value(&self, index: u32) -> &[u8] {
        parts(&self.source(index).pairs, self.entries[position(index)].at).1
    }

    /// Has the entry that was found, or a new one, point to a pair.
    fn point(&mut self, found: Option<u32>, to: Entry) -> u32 {
        self.sources[position(to.source)].used += 1;
        match found {
            Some(index) => {
                let before = mem::replace(&mut self.entries[position(index)], to);
                self.changes.is_replaced = true;
                self.release(before.source);
                index
            }
            None => self.insert(to),
        }
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        let index = u32::try_from(self.entries.len()).expect("memory ends before 2^32 pairs");
        self.entries.push(entry);
        self.changes.added += 1;
        let (entries, sources) = (&self.entries, &self.sources);
        let hash_of = |index: &u32| hash(key_of(entries, sources, *index));
        self.index_by_key.insert_unique(hash_of(&index), index, hash_of);
        index
    }

    /// The source of an exchange: the same for all its pairs.
    fn exchange_source(&mut self, pairs: &Bytes) -> u32 {
        let last = self.sources.get(position(self.exchange)).map(|source| &source.pairs);
        // The bytes of a source that is used are still there, so no others have their address.
        if !last.is_some_and(|last| last.as_ptr() == pairs.as_ptr() && last.len() == pairs.len()) {
            let pairs = pairs.clone();
            self.exchange = self.add_source(Source { pairs, used: 0, put: 0, is_set: false });
        }
        self.exchange
    }

    fn add_source(&mut self, source: Source) -> u32 {
        if let Some(index) = self.free.pop() {
            self.sources[position(index)] = source;
            return index;
        }
        self.sources.push(source);
        u32::try_from(self.sources.len() - 1).expect("memory ends before 2^32 pairs")
    }

    fn release(&mut self, index: u32) {
        let source = &mut self.sources[position(index)];
        source.used -= 1;
        if source.used == 0 {
            source.pairs = Bytes::new();
            self.free.push(index);
        }
    }
}

/// Whether the key of this put was not put again since.
fn is_latest(entries: &[Entry], sources: &[Source], put: Put) -> bool {
    sources[position(entries[position(put.index)].source)].put == put.number
}

fn key_of<'a>(entries: &[Entry], sources: &'a [Source], index: u32) -> &'a [u8] {
    let entry = entries[position(index)];
    parts(&sources[position(entry.source)].pairs, entry.at).0
}

/// Key and value of the pair at `at`.
fn parts(pairs: &[u8], at: u32) -> (&[u8], &[u8]) {
    let extent = Extent::read(pairs, position(at)).expect("only whole pairs are pointed to");
    (&pairs[extent.key..extent.value], &pairs[extent.value..extent.end])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_eight_bytes() {
        assert_eq!(size_of::<Entry>(), 8);
    }

    #[test]
    fn bytes_that_no_entry_needs_are_given_back() {
        let mut kvs = Kvs::default();
        for round in 0..100_u8 {
            kvs.put(b"local", &[round]);
            let mut pairs = BytesMut::new();
            Pairs::append(&mut pairs, b"", b"remote", &[round]);
            kvs.merge(&pairs.freeze(), 0);
        }
        assert_eq!(kvs.get(b"local"), Some(&[99][..]));
        assert_eq!(kvs.by_index(1), Some((&b"remote"[..], &[99][..])));
        assert!(kvs.sources.len() <= 3, "{} sources", kvs.sources.len());
    }

    #[test]
    fn a_snapshot_is_outdated_by_a_value_that_changed_or_by_an_eighth_of_the_keys() {
        let mut kvs = Kvs::default();
        assert!(!kvs.outdates_snapshot());
        let put = |kvs: &mut Kvs, keys: core::ops::Range<u32>| {
            keys.for_each(|key| kvs.put(&key.to_le_bytes(), b"value"));
        };
        put(&mut kvs, 0..80);
        assert!(kvs.outdates_snapshot());
        kvs.take_snapshot().unwrap();
        put(&mut kvs, 80..91);
        assert!(!kvs.outdates_snapshot());
        put(&mut kvs, 91..92);
        assert!(kvs.outdates_snapshot());
        kvs.take_snapshot().unwrap();
        put(&mut kvs, 0..1);
        assert!(kvs.outdates_snapshot());
    }

    #[test]
    fn a_pair_put_again_during_an_exchange_outlives_it() {
        let mut kvs = Kvs::default();
        kvs.put(b"key", b"old");
        let mut exchanged = BytesMut::new();
        kvs.take_pending(b"", &mut exchanged);
        kvs.put(b"key", b"new");
        kvs.on_exchanged();
        kvs.merge(&exchanged.freeze(), 0);
        assert_eq!(kvs.get(b"key"), Some(&b"new"[..]));
    }

    #[test]
    fn a_key_that_is_put_again_and_again_is_pending_once() {
        let mut kvs = Kvs::default();
        (0..1000_u32).for_each(|value| kvs.put(b"key", &value.to_le_bytes()));
        assert!(kvs.pending.len() <= 2, "{} puts", kvs.pending.len());
        let mut pairs = BytesMut::new();
        kvs.append_after(0, b"", &mut pairs);
        assert_eq!(Pairs::check(&pairs), Ok(1));
    }

    #[test]
    fn what_was_put_stays_pending_until_everybody_has_it() {
        let mut kvs = Kvs::default();
        let count = |kvs: &Kvs, after| {
            let mut pairs = BytesMut::new();
            kvs.append_after(after, b"", &mut pairs);
            Pairs::check(&pairs).unwrap()
        };
        kvs.put(b"a", b"1");
        let after = kvs.puts();
        kvs.put(b"b", b"2");
        assert_eq!((count(&kvs, 0), count(&kvs, after)), (2, 1));
        kvs.take_pending(b"", &mut BytesMut::new());
        kvs.put(b"a", b"3");
        assert_eq!((count(&kvs, 0), count(&kvs, after)), (2, 2));
        kvs.on_exchanged();
        assert_eq!(count(&kvs, 0), 1);
    }
}
