//! The exchange of what tasks put: local puts go up the tree with the fence, everybody's come down with its release.
//! Above a limit they stay where they came by on their way up, and are fetched by those who read them (`fetch.rs`).
//!
//! An agent with children hands a release on before it does anything with it itself: the messages of a turn leave at
//! the turn's end, so its own tasks are let out in the next. Else every level of the tree would wait until the one
//! above has taken in all pairs and has answered all its tasks.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use model::{AgentId, JobId, Rank, Time};
use pmi::Pairs;
use proto::{Event, FenceEffect};
use wire::{Collective, JobFault, Message};

use crate::Effect;
use crate::engine::Engine;

use super::EXIT_FOLLOWS_MAX;
use super::parts::{PART_BYTES, last_release};

/// How far an exchange has come that the tasks here wait for, which brings a `B`.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Exchange<B> {
    /// They wait for none.
    None,
    /// It is under way.
    Waiting,
    /// It has brought this, at that time.
    Released(Time, B),
}

/// What the release of a fence brings.
#[derive(Clone, Debug)]
pub(super) enum Brought {
    /// The pairs of all tasks.
    All(Vec<Bytes>),
    /// Nothing: these stay here, which have come from here and below.
    Held {
        pairs: Vec<Bytes>,
        /// Of some pair there is another value, here or elsewhere.
        is_stale: bool,
    },
}

/// Whether a message is about what tasks tell each other, and is counted as that. Nobody looks into one that is on its
/// way through others.
pub(crate) fn is_exchange(message: &Message) -> bool {
    matches!(
        message,
        Message::Enter { .. }
            | Message::Release { .. }
            | Message::EnterPart(..)
            | Message::ReleasePart(..)
            | Message::Held(..)
            | Message::Fetch(..)
            | Message::Fetched(..)
            | Message::GroupEnter { .. }
            | Message::GroupRelease { .. }
            | Message::GroupAwaited(..)
            | Message::RingEnter(..)
            | Message::RingPlace(..)
            | Message::AllgatherEnter(..)
            | Message::AllgatherRelease(..)
    )
}

impl<B> Exchange<B> {
    /// When the tasks here are to be let out: at once, but in another turn.
    pub(super) fn due_at(&self) -> Option<Time> {
        match self {
            Exchange::None | Exchange::Waiting => None,
            Exchange::Released(at, _) => Some(*at),
        }
    }

    /// What it has brought is here. Tasks that have ended let others pass, and wait for nothing themselves.
    pub(super) fn release(&mut self, now: Time, brought: B) {
        if matches!(self, Exchange::Waiting) {
            *self = Exchange::Released(now, brought);
        }
    }

    /// What it has brought, once.
    pub(super) fn take(&mut self) -> Option<B> {
        self.due_at()?;
        match mem::replace(self, Exchange::None) {
            Exchange::Released(_, brought) => Some(brought),
            Exchange::None | Exchange::Waiting => None,
        }
    }
}

impl Engine {
    pub(crate) fn on_task_pmi(&mut self, id: JobId, rank: Rank, data: &[u8]) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.pmi.on_bytes(rank, data);
        self.stats.reads.own += job.pmi.take_found_here();
        if job.look.is_none() && job.pmi.waits_apart(rank) {
            self.expect_apart(id);
        }
        self.drain_pmi(id);
    }

    pub(crate) fn on_task_pmi_closed(&mut self, id: JobId, rank: Rank) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(task) = job.tasks.get_mut(&rank).filter(|task| task.is_connected) {
            task.is_connected = false;
            job.pmi.on_call_ended(rank);
        } else {
            job.pmi.on_closed(rank);
        }
        self.drain_pmi(id);
    }

    pub(super) fn drain_pmi(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(effect) = job.pmi.poll_effect()
        {
            match effect {
                pmi::Effect::Reply { rank, bytes } => {
                    self.effects.push_back(Effect::PmiSend { job: id, rank, data: bytes });
                }
                pmi::Effect::KeepSnapshot(data) => {
                    self.effects.push_back(Effect::KeepSnapshot { job: id, data });
                }
                pmi::Effect::ReplyWithSnapshot { rank, bytes } => {
                    let send = Effect::PmiSendSnapshot { job: id, rank, data: bytes };
                    self.effects.push_back(send);
                }
                pmi::Effect::ReplyInMemory { replies, bytes } => {
                    let send = Effect::PmiSendInMemory { job: id, replies, data: bytes };
                    self.effects.push_back(send);
                }
                pmi::Effect::Exchange { pairs } => {
                    job.exchange = Exchange::Waiting;
                    self.on_local_pairs(id, &pairs);
                }
                pmi::Effect::ExchangeGroup { group, pairs } => {
                    self.on_group_exchange(id, &group, pairs);
                }
                pmi::Effect::Ring(stretch) => {
                    job.ring().on_local_enter(stretch);
                    self.drain_ring(id);
                }
                pmi::Effect::Allgather(values) => self.on_local_allgather(id, &values),
                pmi::Effect::Ask { rank, request } => {
                    self.up_job(Message::NameRequest(id, rank, Box::new(request)));
                }
                pmi::Effect::Fetch(name) => self.fetch(id, None, Box::new(name)),
                pmi::Effect::Spawn { rank, request } => {
                    self.up_job(Message::SpawnRequest(id, rank, Box::new(request)));
                }
                pmi::Effect::Leave => {
                    job.end_collectives();
                    self.drain_collectives(id);
                }
                pmi::Effect::Abort { rank, code, message } => {
                    let message = message.as_str().to_string();
                    if let Some(task) = job.tasks.get_mut(&rank) {
                        task.keep_fault();
                    }
                    self.fault(id, JobFault::Abort { rank, code, message });
                }
                pmi::Effect::Violation { rank, error } => {
                    let words = error.to_string();
                    if let Some(task) = job.tasks.get_mut(&rank) {
                        task.broke_pmi = true;
                    }
                    self.task_fault(id, JobFault::Pmi { rank, words });
                }
                pmi::Effect::ClosedActive { rank } => {
                    if let Some(task) = job.tasks.get_mut(&rank).filter(|t| t.ended.is_none()) {
                        let deserted_at = self.now + EXIT_FOLLOWS_MAX;
                        task.deserted_at = Some(deserted_at);
                        job.check_at =
                            Some(job.check_at.map_or(deserted_at, |at| at.min(deserted_at)));
                    }
                }
            }
        }
    }

    pub(crate) fn on_child_enter(&mut self, id: JobId, agent: AgentId, fence: u32, payload: Bytes) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.fence.on_child_enter(agent, fence, payload) {
            Ok(()) => self.drain_fence(id),
            Err(error) => self.job_child_misbehaved(agent, &error.to_string()),
        }
    }

    pub(crate) fn on_release(&mut self, id: JobId, fence: u32, payload: Bytes) {
        self.finish_exchange(id); // where no task waits for it, the last one may still be due
        self.end_fence(id, fence, Brought::All([payload].into()));
    }

    pub(crate) fn on_held(&mut self, id: JobId, fence: u32, is_stale: bool) {
        self.finish_exchange(id);
        let is_head = self.is_head();
        let Some(job) = self.jobs.get_mut(id) else { return };
        let pairs = mem::take(&mut job.brought_up);
        // The head has all pairs, so that it knows whether some of them have changed.
        let is_stale = if is_head { job.pmi.hold_all(&pairs) } else { Ok(is_stale) };
        match is_stale {
            Ok(is_stale) => self.end_fence(id, fence, Brought::Held { pairs, is_stale }),
            Err(error) => self.abandon(format!("a child broke the protocol: {error}")),
        }
    }

    pub(super) fn end_fence(&mut self, id: JobId, fence: u32, brought: Brought) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.fence.on_release(fence, brought) {
            Ok(()) => self.drain_fence(id),
            Err(error) => self.parent_misbehaved(error),
        }
    }

    /// Goes on with fences, rings and allgathers.
    pub(super) fn drain_collectives(&mut self, id: JobId) {
        self.drain_fence(id);
        self.drain_ring(id);
        self.drain_allgather(id);
    }

    pub(super) fn drain_fence(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(effect) = job.fence.poll_effect()
        {
            match effect {
                FenceEffect::Enter(fence, payload) => {
                    let is_begun = !job.brought_up.is_empty();
                    let parts = Pairs::cut(&payload, PART_BYTES);
                    job.brought_up.extend_from_slice(&parts);
                    self.enter(id, Collective::Fence, fence, parts, is_begun);
                }
                FenceEffect::Release(fence, brought) => {
                    self.events.push_back(Event::FenceReleased { job: id, fence });
                    self.on_fence_released(id, fence, brought);
                }
            }
        }
    }

    fn on_fence_released(&mut self, id: JobId, fence: u32, brought: Brought) {
        let is_head = self.is_head();
        let Some(job) = self.jobs.get_mut(id) else { return };
        let message = match &brought {
            Brought::All(pairs) => {
                job.brought_up = Vec::new();
                if is_head {
                    job.pmi.on_exchange_elsewhere(pairs.clone());
                }
                last_release(id, Collective::Fence, fence, pairs)
            }
            Brought::Held { is_stale, .. } => {
                // What is kept for others is taken in whether or not tasks here wait for it. The head has it.
                if !is_head {
                    job.exchange = Exchange::Waiting;
                }
                Message::Held(id, fence, *is_stale)
            }
        };
        job.exchange.release(self.now, brought);
        let is_leaf = job.children.is_empty();
        self.tell_job(id, message);
        if is_leaf {
            self.finish_exchange(id);
        }
    }

    /// Lets the tasks here have what an exchange has brought, if it has been released.
    pub(super) fn finish_exchange(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(brought) = job.exchange.take() else { return };
        let ended = match brought {
            Brought::All(pairs) => job.pmi.on_exchange_complete(&pairs),
            Brought::Held { pairs, is_stale } => job.pmi.on_exchange_held(&pairs, is_stale),
        };
        if let Err(error) = ended {
            return self.parent_misbehaved(error);
        }
        self.drain_pmi(id);
    }
}
