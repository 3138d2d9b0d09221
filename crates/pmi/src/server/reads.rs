//! Reads of pairs that may have stayed where they were put. Otherwise all that was exchanged is here, and a read never
//! waits.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::{PairName, Rank};

use super::pmi2::answer_found;
use super::{Effect, Server};
use crate::PairError;
use crate::asker::Asker;
use crate::pmi1::reply;

/// The reads of the clients here.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Who waits for which pair. Each is fetched once.
    waiting: BTreeMap<PairName, Vec<(Rank, Asker)>>,
    /// Reads of pairs that may have been elsewhere, and were here or on their way.
    found_here: u64,
}

impl Server {
    /// Answers a client that reads a pair, or has it fetched.
    pub(super) fn read(&mut self, index: usize, asker: Asker, space: &[u8], key: &[u8]) {
        let value_max = self.clients[index].limits(&asker).value;
        if !self.spaces.may_be_elsewhere(key) {
            let value = self.spaces.here(space, key);
            return answer(&mut self.replies, &asker, key, value, value_max);
        }
        let name = self.spaces.name_of(space, key);
        if let Some(value) = self.spaces.find(&name) {
            self.reads.found_here += 1;
            return answer(&mut self.replies, &asker, key, Some(value), value_max);
        }
        let rank = self.clients[index].rank;
        self.flush_replies(rank);
        if let Some(waiting) = self.reads.waiting.get_mut(&name) {
            self.reads.found_here += 1;
            return waiting.push((rank, asker));
        }
        self.reads.waiting.insert(name.clone(), [(rank, asker)].into());
        self.effects.push_back(Effect::Fetch(name));
    }

    /// Handles that a pair was fetched, or that nobody has put it: whoever waits for it is answered.
    pub fn on_fetched(&mut self, name: &PairName, value: Option<&Bytes>) {
        if let Some(value) = value {
            self.spaces.keep_fetched(name, value);
        }
        let waiting = self.reads.waiting.remove(name).unwrap_or_default();
        for (rank, asker) in waiting {
            let value = value.map(|value| &value[..]);
            self.answer_read(self.index(rank), &asker, &name.key, value);
        }
    }

    /// Sends a client what others have found for it.
    pub(super) fn answer_read(
        &mut self,
        index: usize,
        asker: &Asker,
        key: &[u8],
        value: Option<&[u8]>,
    ) {
        let value_max = self.clients[index].limits(asker).value;
        self.answer_late(index, |out| answer(out, asker, key, value, value_max));
    }

    /// The value of a pair, if it is here, for another agent or job.
    pub fn find(&mut self, name: &PairName) -> Option<Bytes> {
        self.spaces.read_kept();
        self.spaces.find(name).map(Bytes::copy_from_slice)
    }

    /// Keeps the pairs of all agents, where everybody keeps what came to it, as the one who can tell whether some had
    /// another value: then it says so.
    pub fn hold_all(&mut self, pairs: &[Bytes]) -> Result<bool, PairError> {
        self.spaces.hold(pairs)
    }

    /// How many reads of pairs that may have been elsewhere have been served here since this was asked last.
    pub fn take_found_here(&mut self) -> u64 {
        mem::take(&mut self.reads.found_here)
    }
}

/// A value of more than `value_max` bytes, for which the client makes no room, is not found.
fn answer(out: &mut BytesMut, asker: &Asker, key: &[u8], value: Option<&[u8]>, value_max: usize) {
    match asker {
        Asker::Line => reply::got(out, key, value, value_max),
        Asker::Frame { thread } => {
            let value = value.filter(|value| value.len() <= value_max);
            answer_found(out, b"kvs-get", thread.as_deref(), value);
        }
    }
}
