//! Standard input: from the head down to the task that reads it.

use alloc::vec;

use bytes::Bytes;
use model::{JobId, Rank};
use wire::Message;

use crate::Effect;
use crate::engine::Engine;

/// Standard input that may be on its way to a task, in bytes.
pub(crate) const INPUT_BYTES: u32 = 256 << 10;

impl Engine {
    pub(crate) fn on_user_input(&mut self, data: Bytes) {
        self.govern(|head, orders| head.on_user_input(data, orders));
    }

    pub(crate) fn on_user_input_end(&mut self) {
        self.govern(|head, orders| head.on_user_input_end(orders));
    }

    /// Handles a piece of standard input: for a task here, or for one below.
    pub(crate) fn on_input(&mut self, job: JobId, rank: Rank, offset: u64, data: Bytes) {
        let Some(own) = self.job.as_ref().filter(|own| own.id() == job) else { return };
        if own.tasks.contains_key(&rank) {
            self.effects.push_back(Effect::WriteTask { job, rank, data });
        } else {
            self.send_towards(rank, Message::Input { job, rank, offset, data });
        }
    }

    pub(crate) fn on_input_end(&mut self, job: JobId, rank: Rank) {
        let Some(own) = self.job.as_ref().filter(|own| own.id() == job) else { return };
        if own.tasks.contains_key(&rank) {
            self.effects.push_back(Effect::CloseTaskInput { job, rank });
        } else {
            self.send_towards(rank, Message::InputEnd(job, rank));
        }
    }

    /// Sends a message on its way to a task that is below. A child that is being lost gets nothing: it
    /// has missed orders that came before.
    fn send_towards(&mut self, rank: Rank, message: Message) {
        let node = self.job.as_ref().and_then(|job| job.spec.map.node_of(rank));
        let Some(agent) = node.map(|node| node.agent()) else { return };
        if let Some(place) = &self.place {
            if let Some(child) = place.tree.child_towards(self.id, agent) {
                self.send_to(&[child], message);
            }
        } else if let Some(link) = self.spawn_child_towards(agent).flatten() {
            self.send(vec![link], message);
        }
    }

    pub(crate) fn on_task_input_written(&mut self, bytes: u32) {
        let Some(job) = &mut self.job else { return };
        let id = job.id();
        if let Some(grant) = job.input.on_passed(bytes as usize) {
            self.up_job(Message::InputCredit(id, grant));
        }
    }
}
