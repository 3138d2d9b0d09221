//! Allgathers of tasks: the values of a subtree go up each edge, and those of all come down as they are.
//!
//! It is a fence that carries no pairs: agents wait for the same parts, and what parts bring is joined by rank
//! meanwhile (S4-17). As there, an agent with children hands the whole on before its own tasks get it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use model::{AgentId, JobId};
use pmi::Values;
use proto::{Fence, FenceEffect};
use wire::{Collective, Message, Part};

use crate::engine::Engine;

use super::Job;
use super::exchange::Exchange;
use super::parts::{PART_BYTES, last_release};

/// The allgathers of a job on one member, one after the other.
#[derive(Debug)]
pub(super) struct Allgather {
    pub(super) fence: Fence<Vec<Bytes>>,
    /// What has been brought into this one, here and below, and has not gone up.
    values: Values,
    /// Whether some has.
    is_begun: bool,
    /// Parts of this one that have come down.
    brought_down: Vec<Bytes>,
    pub(super) exchange: Exchange<Vec<Bytes>>,
}

impl Job {
    /// The allgathers of those who enter fences too.
    fn allgather(&mut self) -> &mut Allgather {
        self.allgather.get_or_insert_with(|| {
            Box::new(Allgather {
                fence: self.fence.beside(),
                values: Values::of(self.spec.map.len()),
                is_begun: false,
                brought_down: Vec::new(),
                exchange: Exchange::None,
            })
        })
    }
}

impl Engine {
    pub(super) fn on_local_allgather(&mut self, id: JobId, values: &Bytes) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let allgather = job.allgather();
        if let Err(error) = allgather.values.merge(values) {
            return self.abandon(format!("a child has brought values of tasks here: {error}"));
        }
        allgather.exchange = Exchange::Waiting;
        allgather.fence.on_local_enter(Bytes::new());
        self.drain_allgather(id);
    }

    pub(crate) fn on_child_allgather(
        &mut self,
        id: JobId,
        agent: AgentId,
        number: u32,
        values: &Bytes,
    ) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let allgather = job.allgather();
        let entered = allgather.fence.on_child_enter(agent, number, Bytes::new());
        let entered = entered.map_err(|error| error.to_string());
        let merged = entered
            .and_then(|()| allgather.values.merge(values).map_err(|error| error.to_string()));
        match merged {
            Ok(()) => {
                self.expect_apart(id);
                self.drain_allgather(id);
            }
            Err(words) => self.job_child_misbehaved(agent, &words),
        }
    }

    pub(crate) fn on_allgather_release(&mut self, id: JobId, number: u32, values: Bytes) {
        self.end_allgather(id, number, [values].into());
    }

    fn end_allgather(&mut self, id: JobId, number: u32, brought: Vec<Bytes>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.allgather().fence.on_release(number, brought) {
            Ok(()) => self.drain_allgather(id),
            Err(error) => self.parent_misbehaved(error),
        }
    }

    /// Handles a part of what is brought below a child, but for the last. The head joins all.
    pub(super) fn on_child_values(&mut self, id: JobId, agent: AgentId, part: Part) {
        let is_head = self.is_head();
        let Some(job) = self.jobs.get_mut(id) else { return };
        let allgather = job.allgather();
        let checked = allgather.fence.check_part(agent, part.number);
        let checked = checked.map_err(|error| error.to_string());
        let taken = if is_head {
            let merged =
                |()| allgather.values.merge(part.payload.plain()).map_err(|it| it.to_string());
            checked.and_then(merged)
        } else {
            allgather.is_begun |= checked.is_ok();
            checked
        };
        match taken {
            Ok(()) if is_head => {}
            Ok(()) => self.up_job(Message::EnterPart(id, part)),
            Err(words) => self.job_child_misbehaved(agent, &words),
        }
    }

    /// Handles a part of what all have brought.
    pub(super) fn on_released_values(&mut self, id: JobId, part: Part) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let allgather = job.allgather();
        match allgather.fence.awaits_release(part.number) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.parent_misbehaved(error),
        }
        allgather.brought_down.push(part.payload.plain().clone());
        if !part.is_last {
            return self.tell_job(id, Message::ReleasePart(id, part));
        }
        let brought = mem::take(&mut allgather.brought_down);
        self.end_allgather(id, part.number, brought);
    }

    pub(super) fn drain_allgather(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(allgather) = &mut job.allgather
            && let Some(effect) = allgather.fence.poll_effect()
        {
            match effect {
                FenceEffect::Enter(number, _) => {
                    let none = Values::of(job.spec.map.len());
                    let values = mem::replace(&mut allgather.values, none);
                    let is_begun = mem::take(&mut allgather.is_begun);
                    let parts = values.encode_in_parts(PART_BYTES);
                    self.enter(id, Collective::Allgather, number, parts, is_begun);
                }
                FenceEffect::Release(number, values) => {
                    let message = last_release(id, Collective::Allgather, number, &values);
                    allgather.exchange.release(self.now, values);
                    let is_leaf = job.children.is_empty();
                    self.tell_job(id, message);
                    if is_leaf {
                        self.finish_allgather(id);
                    }
                }
            }
        }
    }

    /// Lets the tasks here have what an allgather has brought, if it has been released.
    pub(super) fn finish_allgather(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(values) = job.allgather.as_mut().and_then(|own| own.exchange.take()) else {
            return;
        };
        if let Err(error) = job.pmi.on_allgathered(&values) {
            return self.parent_misbehaved(error);
        }
        self.drain_pmi(id);
    }
}
