//! Standard input: from the head down to the task that reads it.

use alloc::vec;

use bytes::Bytes;
use model::{AgentId, JobId, Rank};
use wire::Message;

use crate::Effect;
use crate::child::Child;
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
        } else if let Some(link) = self.link_towards(rank) {
            self.send(vec![link], Message::Input { job, rank, offset, data });
        }
    }

    pub(crate) fn on_input_end(&mut self, job: JobId, rank: Rank) {
        let Some(own) = self.job.as_ref().filter(|own| own.id() == job) else { return };
        if own.tasks.contains_key(&rank) {
            self.effects.push_back(Effect::CloseTaskInput { job, rank });
        } else if let Some(link) = self.link_towards(rank) {
            self.send(vec![link], Message::InputEnd(job, rank));
        }
    }

    /// The link of the child that has this task below it, unless that child is being lost and has
    /// missed orders that came before.
    fn link_towards(&self, rank: Rank) -> Option<crate::LinkId> {
        let agent = self.job.as_ref()?.spec.map.node_of(rank)?.agent();
        self.child_towards(agent).filter(|child| child.is_up()).and_then(|child| child.link)
    }

    /// The child that this agent is, or is below.
    pub(super) fn child_towards(&self, agent: AgentId) -> Option<&Child> {
        let below = self.children.range(..=agent).next_back();
        let owner = |child: &&Child| child.agent == agent || child.below.contains(agent.0);
        let child = below.map(|(_, child)| child).filter(owner);
        child.or_else(|| self.children.values().find(owner))
    }

    pub(crate) fn on_task_input_written(&mut self, bytes: u32) {
        let Some(job) = &mut self.job else { return };
        let id = job.id();
        if let Some(grant) = job.input.on_passed(bytes as usize) {
            self.up(Message::InputCredit(id, grant));
        }
    }
}
