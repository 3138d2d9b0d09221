//! Rings of tasks: stretches go up the tree, and where each is in the ring comes down.

use alloc::boxed::Box;
use alloc::string::ToString;

use model::{AgentId, JobId, RingPlace, RingStretch};
use proto::RingEffect;
use wire::Message;

use crate::engine::Engine;

impl Engine {
    pub(crate) fn on_child_ring(
        &mut self,
        id: JobId,
        agent: AgentId,
        ring: u32,
        stretch: RingStretch,
    ) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.ring().on_child_enter(agent, ring, stretch) {
            Ok(()) => {
                self.expect_apart(id);
                self.drain_ring(id);
            }
            Err(error) => self.job_child_misbehaved(agent, &error.to_string()),
        }
    }

    pub(crate) fn on_ring_place(&mut self, id: JobId, ring: u32, place: &RingPlace) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        match job.ring().on_place(ring, place) {
            Ok(()) => self.drain_ring(id),
            Err(error) => self.parent_misbehaved(error),
        }
    }

    pub(super) fn drain_ring(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(effect) = job.ring.as_mut().and_then(|ring| ring.poll_effect())
        {
            match effect {
                RingEffect::Enter(ring, stretch) => {
                    self.up_job(Message::RingEnter(id, ring, Box::new(stretch)));
                }
                RingEffect::Tell(child, ring, place) => {
                    self.tell_some([child], Message::RingPlace(id, ring, Box::new(place)));
                }
                RingEffect::Release(place) => {
                    job.pmi.on_ring_closed(&place);
                    self.drain_pmi(id);
                }
            }
        }
    }
}
