//! Exchanges that are too large for one message: they go over each edge in parts, up as they come, and down once the
//! head has all.
//!
//! So no level of the tree waits for the whole before it passes something on, and what is urgent waits for a part and
//! not for the whole, since parts are data. An exchange is entered, and ends, with its last part: what came before
//! is kept until then, so that no task sees a half. Each part is whole pairs or values, so that nobody has to copy them
//! together. What comes down is packed where that pays: the head packs a byte once, and sends it to each of its children.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use model::{AgentId, JobId};
use pmi::Pairs;
use wire::{Collective, Message, Part};

use super::Job;
use super::exchange::Brought;
use crate::engine::Engine;

/// What goes over an edge in one message, and how long a part is: less than twice this, or one pair. Shorter ones cost
/// more than they let others begin earlier.
pub(super) const PART_BYTES: usize = 64 << 10;

/// With fewer, the head has sent all bytes to all of them before it could have packed them.
const CHILDREN_TO_PACK_FOR: usize = 6;

impl Job {
    /// Head: what ends a fence that all have entered.
    pub(crate) fn end_of_fence(&self, fence: u32, push_bytes_max: u64) -> Vec<Message> {
        let (id, of) = (self.id(), Collective::Fence);
        let bytes: u64 = self.brought_up.iter().map(|part| part.len() as u64).sum();
        if bytes > push_bytes_max {
            return vec![Message::Held(id, fence, false)];
        }
        let before = &self.brought_up[..self.brought_up.len().saturating_sub(1)];
        let part = |payload: &Bytes| {
            let payload = payload.clone().into();
            Message::ReleasePart(id, Part { of, number: fence, is_last: false, payload })
        };
        let last = last_release(id, of, fence, &self.brought_up);
        before.iter().map(part).chain([last]).collect()
    }
}

/// What ends an exchange that has brought these, of which all but the last have been passed on.
pub(super) fn last_release(job: JobId, of: Collective, number: u32, brought: &[Bytes]) -> Message {
    let payload = brought.last().cloned().unwrap_or_default();
    match of {
        _ if brought.len() > 1 => {
            Message::ReleasePart(job, Part { of, number, is_last: true, payload: payload.into() })
        }
        Collective::Fence => Message::Release { job, fence: number, payload },
        Collective::Allgather => Message::AllgatherRelease(job, number, payload),
    }
}

impl Engine {
    /// Tells the parent that all below have entered, with these: in one message, unless there are several or some have
    /// gone up before.
    pub(super) fn enter(
        &mut self,
        job: JobId,
        of: Collective,
        number: u32,
        parts: Vec<Bytes>,
        is_begun: bool,
    ) {
        let n_parts = parts.len();
        for (index, payload) in (1..).zip(parts) {
            self.up_job(match of {
                _ if is_begun || n_parts > 1 => {
                    let is_last = index == n_parts;
                    Message::EnterPart(job, Part { of, number, is_last, payload: payload.into() })
                }
                Collective::Fence => Message::Enter { job, fence: number, payload },
                Collective::Allgather => Message::AllgatherEnter(job, number, payload),
            });
        }
    }

    /// Handles that all tasks here have entered a fence: what is large goes up at once.
    pub(super) fn on_local_pairs(&mut self, id: JobId, pairs: &Bytes) {
        let mut parts = Pairs::cut(pairs, PART_BYTES);
        let rest = parts.pop().unwrap_or_default();
        for part in parts {
            self.pass_up(id, part);
        }
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.fence.on_local_enter(rest);
        self.drain_fence(id);
    }

    /// Passes a part of a fence's pairs on, and keeps it, for those who may have to fetch it.
    fn pass_up(&mut self, id: JobId, payload: Bytes) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.brought_up.push(payload.clone());
        let (of, number) = (Collective::Fence, job.fence.number());
        let part = Part { of, number, is_last: false, payload: payload.into() };
        self.up_job(Message::EnterPart(id, part));
    }

    pub(crate) fn on_child_part(&mut self, id: JobId, agent: AgentId, part: Part) {
        let (number, payload) = (part.number, part.payload.plain());
        match part.of {
            Collective::Fence if part.is_last => {
                self.on_child_enter(id, agent, number, payload.clone());
            }
            Collective::Fence => self.on_child_pairs(id, agent, number, payload.clone()),
            Collective::Allgather if part.is_last => {
                self.on_child_allgather(id, agent, number, payload);
            }
            Collective::Allgather => self.on_child_values(id, agent, part),
        }
    }

    fn on_child_pairs(&mut self, id: JobId, agent: AgentId, fence: u32, pairs: Bytes) {
        let Some(job) = self.jobs.get(id) else { return };
        match job.fence.check_part(agent, fence) {
            Ok(()) => self.pass_up(id, pairs),
            Err(error) => self.job_child_misbehaved(agent, &error.to_string()),
        }
    }

    pub(crate) fn on_release_part(&mut self, id: JobId, mut part: Part) {
        let children = self.jobs.get(id).map_or(0, |job| job.children.len());
        if self.is_head() && !part.is_last && children >= CHILDREN_TO_PACK_FOR {
            part.payload.pack();
        }
        match part.of {
            Collective::Fence => self.on_released_pairs(id, part),
            Collective::Allgather => self.on_released_values(id, part),
        }
    }

    fn on_released_pairs(&mut self, id: JobId, part: Part) {
        self.finish_exchange(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.fence.awaits_release(part.number) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.parent_misbehaved(error),
        }
        job.brought_down.push(part.payload.plain().clone());
        if part.is_last {
            let brought = mem::take(&mut job.brought_down);
            self.end_fence(id, part.number, Brought::All(brought));
        } else {
            self.tell_job(id, Message::ReleasePart(id, part));
        }
    }
}
