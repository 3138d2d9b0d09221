//! The barrier of all, which is PMI-2's fence, and those of groups.

use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::{IdSet, Rank, RankGroup};

use super::{Client, Effect, Server};
use crate::ClientError;
use crate::asker::Asker;
use crate::pmi1::reply;
use crate::pmi2::{Reply, ReturnCode};

/// How far a collective of all has come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stage {
    #[default]
    Gathering,
    /// Everybody here is in it, and the other agents are asked.
    Exchanging,
}

/// What lets a client out, with the length of the snapshot where that is news to it.
fn end_of_barrier(asker: &Asker, snapshot: Option<usize>) -> Bytes {
    let mut out = BytesMut::new();
    match (asker, snapshot) {
        (Asker::Line, None) => return Bytes::from_static(reply::BARRIER_OUT),
        (Asker::Line, Some(bytes)) => {
            reply::text(&mut out, format_args!("cmd=barrier_out tag=0 snapshot={bytes}"));
        }
        (Asker::Frame { thread }, snapshot) => {
            let reply = Reply::to(&mut out, b"kvs-fence", thread.as_deref(), ReturnCode::Success);
            match snapshot {
                None => reply.end(),
                Some(bytes) => reply.field("snapshot", bytes).end(),
            }
        }
    }
    out.freeze()
}

/// The barrier.
impl Server {
    /// Takes a client into the barrier of all.
    pub(super) fn enter(&mut self, index: usize, asker: Asker) -> Result<(), ClientError> {
        let client = &mut self.clients[index];
        if client.entered.is_some() {
            return Err(ClientError::BarrierTwice);
        }
        client.entered = Some(asker);
        self.barrier_waits_for -= 1;
        self.exchange_if_complete(index);
        Ok(())
    }

    /// Starts the exchange when `index` was the last that the barrier waited for.
    pub(super) fn exchange_if_complete(&mut self, index: usize) {
        let complete = self.barrier_waits_for == 0 && self.barrier == Stage::Gathering;
        if complete && self.clients.iter().any(|client| client.entered.is_some()) {
            self.barrier = Stage::Exchanging;
            self.flush_replies(self.clients[index].rank);
            let pairs = self.spaces.take_pending();
            self.effects.push_back(Effect::Exchange { pairs });
        }
    }

    /// Lets everybody out, in order of rank.
    pub(super) fn release(&mut self) {
        self.renew_snapshot();
        for client in &mut self.clients {
            let Some(asker) = mem::take(&mut client.entered) else { continue };
            if !client.left {
                self.barrier_waits_for += 1;
            }
            let snapshot = self.snapshots.news(&mut client.snapshot);
            let (rank, bytes) = (client.rank, end_of_barrier(&asker, snapshot));
            self.effects.push_back(if snapshot.is_some_and(|bytes| bytes > 0) {
                Effect::ReplyWithSnapshot { rank, bytes }
            } else {
                Effect::Reply { rank, bytes }
            });
        }
    }

    pub(super) fn leave_if_all_left(&mut self) {
        let idle = self.barrier_waits_for == 0 && self.barrier == Stage::Gathering;
        if idle && self.clients.iter().all(|client| client.left) {
            self.effects.push_back(Effect::Leave);
        }
    }
}

/// Barriers of groups.
impl Server {
    /// Goes on with every group of which all tasks here have entered or have left.
    pub(super) fn meet(&mut self) {
        let complete: Vec<RankGroup> = self.meetings.complete().cloned().collect();
        for group in complete {
            if group.ranks.iter().all(|rank| self.has(Rank(rank))) {
                self.release_group(&group);
            } else {
                let puts = self.spaces.puts();
                let pairs = self.spaces.put_after(self.meetings.exchange(&group, puts));
                self.effects.push_back(Effect::ExchangeGroup { group, pairs });
            }
        }
    }

    /// Lets everybody of a group out, in order of rank.
    pub(super) fn release_group(&mut self, group: &RankGroup) {
        let mut line = BytesMut::new();
        reply::text(&mut line, format_args!("cmd=barrier_out tag={}", group.tag));
        let line = line.freeze();
        for rank in self.meetings.end(group).iter().map(Rank) {
            self.effects.push_back(Effect::Reply { rank, bytes: line.clone() });
        }
    }
}

/// Which tasks here wait in which collective of all; they may be in several.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Waits {
    /// In a fence.
    pub fence: IdSet,
    /// In a ring.
    pub ring: IdSet,
    /// In an allgather.
    pub allgather: IdSet,
    /// Those that can be in one.
    pub everybody: IdSet,
}

impl Server {
    /// Who waits in what.
    pub fn waits(&self) -> Waits {
        let those = |is_in: fn(&Client) -> bool| {
            let present = self.clients.iter().filter(|client| !client.left);
            present.filter(|client| is_in(client)).map(|client| client.rank.0).collect()
        };
        Waits {
            fence: those(|client| client.entered.is_some()),
            ring: those(|client| client.ring.is_some()),
            allgather: those(|client| client.allgather.is_some()),
            everybody: those(|_| true),
        }
    }

    /// Whether a task waits in a ring or an allgather.
    pub fn waits_apart(&self, rank: Rank) -> bool {
        let client = &self.clients[self.index(rank)];
        client.ring.is_some() || client.allgather.is_some()
    }
}

/// Those for which the barriers of groups wait.
pub(super) fn present(clients: &[Client]) -> IdSet {
    let present = clients.iter().filter(|client| !client.left || client.is_missed);
    present.map(|client| client.rank.0).collect()
}
