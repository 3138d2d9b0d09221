//! Snapshots of the job's key-value space, in which clients of our own library look up what they get (`docs/pmi.md`,
//! "Local channel").
//!
//! One is made when a barrier ends and some client here reads them, so that others pay nothing for them. A client gets
//! it with the answer that lets it out, and reads it until it is given another; so what it finds there must hold, and
//! what it does not find it asks for.

use bytes::Bytes;

use super::{Effect, Server};

/// The one that is kept.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// Its number, from 1; 0 for none.
    number: u32,
    bytes: usize,
    /// The last number that was given.
    given: u32,
    /// Clients that read them.
    readers: usize,
}

impl Snapshots {
    /// The length of the snapshot where it is another one than the client has, who `has` it from here on.
    pub(super) fn news(&self, has: &mut Option<u32>) -> Option<usize> {
        let has = has.as_mut().filter(|number| **number != self.number)?;
        *has = self.number;
        Some(self.bytes)
    }

    fn keep(&mut self, snapshot: Option<Bytes>) -> Option<Effect> {
        let had_none = self.number == 0;
        let snapshot = snapshot.unwrap_or_default();
        self.bytes = snapshot.len();
        if snapshot.is_empty() {
            self.number = 0;
            return (!had_none).then_some(Effect::KeepSnapshot(snapshot));
        }
        self.given += 1;
        self.number = self.given;
        Some(Effect::KeepSnapshot(snapshot))
    }
}

impl Server {
    /// Takes note of whether a client reads snapshots. It has none yet. Behind the last reader none is kept.
    pub(super) fn read_snapshots(&mut self, index: usize, reads: bool) {
        let client = &mut self.clients[index];
        let read = client.snapshot.is_some();
        client.snapshot = reads.then_some(0);
        self.snapshots.readers += usize::from(reads);
        self.snapshots.readers -= usize::from(read);
        if read && self.snapshots.readers == 0 {
            self.effects.extend(self.snapshots.keep(None));
        }
    }

    /// Makes a snapshot where somebody reads it and the last one will not do.
    pub(super) fn renew_snapshot(&mut self) {
        let space = self.spaces.own_mut();
        if self.snapshots.readers > 0 && (self.snapshots.number == 0 || space.outdates_snapshot()) {
            self.effects.extend(self.snapshots.keep(space.take_snapshot()));
        }
    }
}
