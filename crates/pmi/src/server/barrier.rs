//! The barrier of all, which is PMI-2's fence, and those of groups.

use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::{IdSet, Rank, RankGroup};

use super::{Client, Effect, Server};
use crate::ClientError;
use crate::pmi1::reply;
use crate::pmi2::{Reply, ReturnCode};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Barrier {
    Gathering,
    Exchanging,
}

/// How a client has entered the barrier, which says how it is let out.
#[derive(Clone, Debug)]
pub(super) enum Entered {
    /// By `barrier_in` of PMI-1.
    Line,
    /// By `kvs-fence` of PMI-2; one of several threads said which it is.
    Frame { thread: Option<Bytes> },
}

impl Entered {
    fn reply(&self) -> Bytes {
        match self {
            Entered::Line => Bytes::from_static(reply::BARRIER_OUT),
            Entered::Frame { thread } => {
                let mut out = BytesMut::new();
                Reply::to(&mut out, b"kvs-fence", thread.as_deref(), ReturnCode::Success).end();
                out.freeze()
            }
        }
    }
}

/// The barrier.
impl Server {
    /// Takes a client into the barrier of all.
    pub(super) fn enter(&mut self, index: usize, entered: Entered) -> Result<(), ClientError> {
        let client = &mut self.clients[index];
        if client.entered.is_some() {
            return Err(ClientError::BarrierTwice);
        }
        client.entered = Some(entered);
        self.barrier_waits_for -= 1;
        self.exchange_if_complete(index);
        Ok(())
    }

    /// Starts the exchange when `index` was the last that the barrier waited for.
    pub(super) fn exchange_if_complete(&mut self, index: usize) {
        let complete = self.barrier_waits_for == 0 && self.barrier == Barrier::Gathering;
        if complete && self.clients.iter().any(|client| client.entered.is_some()) {
            self.barrier = Barrier::Exchanging;
            self.flush_replies(self.clients[index].rank);
            let pairs = self.spaces.take_pending();
            self.effects.push_back(Effect::Exchange { pairs });
        }
    }

    /// Lets everybody out, in order of rank.
    pub(super) fn release(&mut self) {
        for client in &mut self.clients {
            let Some(entered) = mem::take(&mut client.entered) else { continue };
            if !client.left {
                self.barrier_waits_for += 1;
            }
            self.effects.push_back(Effect::Reply { rank: client.rank, bytes: entered.reply() });
        }
    }

    pub(super) fn leave_if_all_left(&mut self) {
        let idle = self.barrier_waits_for == 0 && self.barrier == Barrier::Gathering;
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

/// Those for which the barriers of groups wait.
pub(super) fn present(clients: &[Client]) -> IdSet {
    let present = clients.iter().filter(|client| !client.left || client.is_missed);
    present.map(|client| client.rank.0).collect()
}
