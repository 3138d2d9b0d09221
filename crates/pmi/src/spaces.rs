//! The key-value spaces of a job: its own, and those that legacy clients create (`reference/pmi1.md` §3).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::{PairName, Rank};

use crate::cache::Cache;
use crate::pairs::Extent;
use crate::{JobInfo, Kvs, PairError, Pairs, PutError};

/// All spaces, looked up by name.
#[derive(Debug)]
pub(crate) struct Spaces {
    own_name: String,
    own: Kvs,
    created: BTreeMap<Bytes, Kvs>,
    created_count: u64,
    /// What exchanges have brought that nobody has asked for.
    unread: Vec<Vec<Bytes>>,
    /// What was fetched, once some pairs have stayed where they were put: then a pair that is not here may be elsewhere.
    fetched: Option<Box<Cache>>,
}

/// What an agent keeps of the answers that pass it: a quarter of a million cards.
const CACHE_BYTES_MAX: usize = 32 << 20;

/// The longest key and value that a client may put, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) key: usize,
    pub(crate) value: usize,
}

impl Limits {
    /// What a client is told, less the final NUL of its buffer.
    pub(crate) const PMI1: Limits =
        Limits { key: JobInfo::KEYLEN_MAX - 1, value: JobInfo::VALLEN_MAX - 1 };
    /// Clients write a message into a buffer of 64 KiB (`reference/pmi2.md` §1), so none can put more.
    pub(crate) const PMI2: Limits = Limits { key: 64, value: 1 << 16 };
    /// Our own library has no buffers of a size of their own. With every semicolon twice, a value still fits a frame.
    pub(crate) const LIBRARY: Limits = Limits { key: JobInfo::KEYLEN_MAX - 1, value: 1 << 18 };

    pub(crate) fn check(self, key: &[u8], value: &[u8]) -> Result<(), PutError> {
        if key.is_empty() {
            return Err(PutError::KeyEmpty);
        }
        if key.len() > self.key {
            return Err(PutError::KeyTooLong);
        }
        if key.starts_with(b"PMI_") {
            return Err(PutError::KeyReserved);
        }
        if value.len() > self.value {
            return Err(PutError::ValueTooLong);
        }
        Ok(())
    }
}

/// Whether a server of ours takes this pair into the job's own space, whoever puts it: then nobody need wait for the answer.
pub fn is_surely_taken(key: &[u8], value: &[u8]) -> bool {
    Limits::PMI1.check(key, value).is_ok()
}

/// Exchanges that are kept as they came.
const UNREAD_MAX: usize = 8;

impl Spaces {
    /// The job's own space, with the attributes that clients read from it (§5).
    pub(crate) fn new(info: &JobInfo) -> Spaces {
        let mut own = Kvs::default();
        if let Some(mapping) = &info.process_mapping
            && mapping.len() < JobInfo::VALLEN_MAX
        {
            own.set(b"PMI_process_mapping", mapping.as_bytes());
        }
        info.preput.iter().for_each(|(key, value)| own.set(key, value));
        Spaces {
            own_name: info.kvsname.clone(),
            own,
            created: BTreeMap::new(),
            created_count: 0,
            unread: Vec::new(),
            fetched: None,
        }
    }

    /// The space called `name`.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Kvs> {
        if name == self.own_name.as_bytes() { Some(&self.own) } else { self.created.get(name) }
    }

    /// The pair of this key in the space called `name`, as agents call it between them.
    pub(crate) fn name_of(&self, name: &[u8], key: &[u8]) -> PairName {
        let is_own = name == self.own_name.as_bytes();
        PairName { space: if is_own { Vec::new() } else { name.to_vec() }, key: key.to_vec() }
    }

    /// The value of a pair that was put or exchanged here. The job's own space may go without a name.
    pub(crate) fn here(&self, name: &[u8], key: &[u8]) -> Option<&[u8]> {
        let space = if name.is_empty() { Some(&self.own) } else { self.get(name) };
        space.and_then(|space| space.get(key))
    }

    /// The value of a pair that is here or was fetched.
    pub(crate) fn find(&self, name: &PairName) -> Option<&[u8]> {
        let here = self.here(&name.space, &name.key);
        here.or_else(|| self.fetched.as_ref()?.get(name))
    }

    /// Whether a space of this name is of this job, as far as is known here.
    pub(crate) fn may_have(&self, name: &[u8]) -> bool {
        let created = name.strip_prefix(self.own_name.as_bytes());
        let may_be_elsewhere = created.is_some_and(|rest| rest.starts_with(b"."));
        self.get(name).is_some() || self.are_held() && may_be_elsewhere
    }

    /// Whether pairs have stayed where they were put.
    pub(crate) fn are_held(&self) -> bool {
        self.fetched.is_some()
    }

    /// Whether a pair of this key, which is not here, may be on another agent: nobody can have put what the limits
    /// forbid.
    pub(crate) fn may_be_elsewhere(&self, key: &[u8]) -> bool {
        self.are_held() && Limits::PMI2.check(key, &[]).is_ok()
    }

    /// Keeps what was fetched.
    pub(crate) fn keep_fetched(&mut self, name: &PairName, value: &Bytes) {
        if let Some(fetched) = &mut self.fetched {
            fetched.keep(name, value);
        }
    }

    /// Puts a pair into the space called `name`, within a dialect's limits.
    pub(crate) fn put(
        &mut self,
        name: &[u8],
        key: &[u8],
        value: &[u8],
        limits: Limits,
    ) -> Result<(), PutError> {
        limits.check(key, value)?;
        let space = if name == self.own_name.as_bytes() {
            &mut self.own
        } else {
            self.created.get_mut(name).ok_or(PutError::NoSuchKvs)?
        };
        space.put(key, value);
        Ok(())
    }

    /// The job's own space.
    pub(crate) fn own(&self) -> &Kvs {
        &self.own
    }

    /// The same, to take a snapshot of.
    pub(crate) fn own_mut(&mut self) -> &mut Kvs {
        &mut self.own
    }

    /// Creates an empty space for `rank`, with a name that no other rank can get, and returns the name.
    pub(crate) fn create(&mut self, rank: Rank) -> String {
        let name = format!("{}.{rank}.{}", self.own_name, self.created_count);
        self.created_count += 1;
        self.created.insert(Bytes::copy_from_slice(name.as_bytes()), Kvs::default());
        name
    }

    /// Forgets a created space on this agent; false when there is none of that name.
    pub(crate) fn destroy(&mut self, name: &[u8]) -> bool {
        self.created.remove(name).is_some()
    }

    /// What the local tasks have put and not everybody has, for an exchange of all.
    pub(crate) fn take_pending(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.own.take_pending(&[], &mut out);
        for (name, space) in &mut self.created {
            space.take_pending(name, &mut out);
        }
        out.freeze()
    }

    /// How many puts local tasks have made into the job's own space.
    pub(crate) fn puts(&self) -> u64 {
        self.own.puts()
    }

    /// What of the job's own space they have put after so many puts and not everybody has. Clients that create
    /// spaces know no exchange of fewer than all.
    pub(crate) fn put_after(&self, puts: u64) -> Bytes {
        let mut out = BytesMut::new();
        self.own.append_after(puts, &[], &mut out);
        out.freeze()
    }

    /// Takes note that everybody gets what the last `take_pending` took.
    pub(crate) fn on_exchanged(&mut self) {
        self.own.on_exchanged();
        self.created.values_mut().for_each(Kvs::on_exchanged);
    }

    /// Adds all pairs that an exchange brought, or none when they are garbled. Returns whether some had another value.
    pub(crate) fn merge(&mut self, parts: &[Bytes]) -> Result<bool, PairError> {
        let counts: Result<Vec<usize>, PairError> =
            parts.iter().map(|pairs| Pairs::check(pairs)).collect();
        self.own.reserve(counts?.into_iter().sum());
        let mut is_changed = false;
        for pairs in parts {
            let mut at = 0;
            while at < pairs.len() {
                let extent = Extent::read(pairs, at).ok_or(PairError)?;
                let space = self.space_mut(&pairs.slice(extent.space..extent.key));
                is_changed |= space.merge(pairs, at);
                at = extent.end;
            }
        }
        Ok(is_changed)
    }

    /// Takes note that everybody has kept what an exchange has brought up to them, which is this here. Returns whether
    /// some of it had another value.
    pub(crate) fn hold(&mut self, pairs: &[Bytes]) -> Result<bool, PairError> {
        self.read_kept();
        self.fetched.get_or_insert_with(|| Box::new(Cache::new(CACHE_BYTES_MAX)));
        self.merge(pairs)
    }

    /// Takes note that pairs here may have another value elsewhere.
    pub(crate) fn forget(&mut self) {
        self.own.forget();
        self.created.values_mut().for_each(Kvs::forget);
        if let Some(fetched) = &mut self.fetched {
            fetched.clear();
        }
    }

    /// Keeps what an exchange brought, to be added once somebody asks, or when there is much of it.
    pub(crate) fn keep(&mut self, pairs: Vec<Bytes>) {
        if pairs.iter().all(Bytes::is_empty) {
            return;
        }
        self.unread.push(pairs);
        if self.unread.len() > UNREAD_MAX {
            self.read_kept();
        }
    }

    /// Adds what was kept. What is garbled is another's to complain about: those whose tasks wait for it read it, too.
    pub(crate) fn read_kept(&mut self) {
        for pairs in mem::take(&mut self.unread) {
            let _ = self.merge(&pairs);
        }
    }

    /// The space that an exchange names: the job's own, or one that a task somewhere has created.
    fn space_mut(&mut self, name: &Bytes) -> &mut Kvs {
        if name.is_empty() {
            return &mut self.own;
        }
        self.created.entry(name.clone()).or_default()
    }
}
