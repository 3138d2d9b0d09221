//! Rings of tasks: stretches go up the tree, and where each is in the ring comes down.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;

use model::{AgentId, RingPlace, RingStretch};
use proto::RingEffect;
use wire::Message;

use crate::engine::Engine;

impl Engine {
    pub(crate) fn on_child_ring(&mut self, agent: AgentId, ring: u32, stretch: RingStretch) {
        let Some(job) = &mut self.job else { return };
        match job.ring().on_child_enter(agent, ring, stretch) {
            Ok(()) => self.drain_ring(),
            Err(error) => self.job_child_misbehaved(agent, &error.to_string()),
        }
    }

    pub(crate) fn on_ring_place(&mut self, ring: u32, place: &RingPlace) {
        let Some(job) = &mut self.job else { return };
        match job.ring().on_place(ring, place) {
            Ok(()) => self.drain_ring(),
            Err(error) => self.abandon(format!("its parent broke the protocol: {error}")),
        }
    }

    pub(super) fn drain_ring(&mut self) {
        while let Some(job) = &mut self.job
            && let Some(effect) = job.ring.as_mut().and_then(|ring| ring.poll_effect())
        {
            let id = job.id();
            match effect {
                RingEffect::Enter(ring, stretch) => {
                    self.up_job(Message::RingEnter(id, ring, Box::new(stretch)));
                }
                RingEffect::Tell(child, ring, place) => {
                    self.tell_some([child], Message::RingPlace(id, ring, Box::new(place)));
                }
                RingEffect::Release(place) => {
                    job.pmi.on_ring_closed(&place);
                    self.drain_pmi();
                }
            }
        }
    }
}
