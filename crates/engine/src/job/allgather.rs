//! Allgathers of tasks: the values of a subtree go up each edge, and those of all come down as they are.
//!
//! It is a fence that carries no pairs: agents wait for the same parts, and what parts bring is joined by rank
//! meanwhile (S4-17). As there, an agent with children hands the whole on before its own tasks get it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;

use bytes::Bytes;
use model::{AgentId, JobId};
use pmi::Values;
use proto::{Fence, FenceEffect};
use wire::Message;

use crate::engine::Engine;

use super::Job;
use super::exchange::Exchange;

/// The allgathers of a job on one member, one after the other.
#[derive(Debug)]
pub(super) struct Allgather {
    pub(super) fence: Fence,
    /// What has been brought into this one, here and below.
    values: Values,
    pub(super) exchange: Exchange<Bytes>,
}

impl Job {
    /// The allgathers of those who enter fences too.
    fn allgather(&mut self) -> &mut Allgather {
        self.allgather.get_or_insert_with(|| {
            Box::new(Allgather {
                fence: self.fence.beside(),
                values: Values::of(self.spec.map.len()),
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
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.allgather().fence.on_release(number, values) {
            Ok(()) => self.drain_allgather(id),
            Err(error) => self.abandon(format!("its parent broke the protocol: {error}")),
        }
    }

    pub(super) fn drain_allgather(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(allgather) = &mut job.allgather
            && let Some(effect) = allgather.fence.poll_effect()
        {
            match effect {
                FenceEffect::Enter(number, _) => {
                    let none = Values::of(job.spec.map.len());
                    let values = core::mem::replace(&mut allgather.values, none).encode();
                    self.up_job(Message::AllgatherEnter(id, number, values));
                }
                FenceEffect::Release(number, values) => {
                    allgather.exchange.release(self.now, values.clone());
                    let is_leaf = job.children.is_empty();
                    self.tell_job(id, Message::AllgatherRelease(id, number, values));
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
            return self.abandon(format!("its parent broke the protocol: {error}"));
        }
        self.drain_pmi(id);
    }
}
