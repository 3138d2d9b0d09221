//! The ring of Slurm's PMI-2 (`reference/pmi2.md` §8): each task brings two values, and learns its neighbours'.
//!
//! Tasks here stand in order of rank. All who can come are waited for, as in a barrier.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::{RingPlace, RingStretch};

use super::barrier::Stage;
use super::{Effect, Server};
use crate::ClientError;
use crate::pmi2::{Asked, Reply, ReturnCode};

/// What a client has brought into the ring.
#[derive(Clone, Debug)]
pub(super) struct InRing {
    pub(super) left: Vec<u8>,
    pub(super) right: Vec<u8>,
    pub(super) thread: Option<Bytes>,
}

impl InRing {
    pub(super) fn new(asked: &Asked<'_>, left: &[u8], right: &[u8]) -> InRing {
        InRing { left: left.to_vec(), right: right.to_vec(), thread: asked.thread() }
    }
}

impl Server {
    /// Takes a client into the ring.
    pub(super) fn enter_ring(&mut self, index: usize, entry: InRing) -> Result<(), ClientError> {
        let client = &mut self.clients[index];
        if client.ring.is_some() {
            return Err(ClientError::BarrierTwice);
        }
        client.ring = Some(Box::new(entry));
        self.flush_replies(self.clients[index].rank);
        self.close_ring_if_complete();
        Ok(())
    }

    /// Goes on once all tasks here are in the ring, or have left.
    pub(super) fn close_ring_if_complete(&mut self) {
        let is_missing = self.clients.iter().any(|client| !client.left && client.ring.is_none());
        if is_missing || self.ring == Stage::Exchanging {
            return;
        }
        let inside = || self.clients.iter().filter_map(|client| client.ring.as_ref());
        if let (Some(first), Some(last)) = (inside().next(), inside().next_back()) {
            let stretch = RingStretch {
                count: u32::try_from(inside().count()).unwrap_or(u32::MAX),
                left: first.left.clone(),
                right: last.right.clone(),
            };
            self.ring = Stage::Exchanging;
            self.effects.push_back(Effect::Ring(stretch));
        }
    }

    /// Handles that the ring is closed, in which the tasks here have this place.
    pub fn on_ring_closed(&mut self, place: &RingPlace) {
        assert_eq!(self.ring, Stage::Exchanging, "a ring is closed that was not asked for");
        self.ring = Stage::Gathering;
        let entries = self.clients.iter_mut().filter_map(|client| {
            let entry = mem::take(&mut client.ring)?;
            Some((client.rank, client.left, entry))
        });
        let entries: Vec<_> = entries.collect();
        for (index, (rank, has_left, entry)) in entries.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| entries.get(before));
            let left = before.map_or(&place.left, |(.., before)| &before.right);
            let right = entries.get(index + 1).map_or(&place.right, |(.., behind)| &behind.left);
            let number = u64::from(place.first) + index as u64;
            if !has_left {
                let mut out = BytesMut::new();
                Reply::to(&mut out, b"ring", entry.thread.as_deref(), ReturnCode::Success)
                    .field("ring-count", number)
                    .bytes("ring-left", left)
                    .bytes("ring-right", right)
                    .end();
                self.effects.push_back(Effect::Reply { rank: *rank, bytes: out.freeze() });
            }
        }
    }
}
