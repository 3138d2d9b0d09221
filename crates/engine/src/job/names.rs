//! What tasks ask of the session's name service goes up to the head (`name_service.rs`); answers come down.

use alloc::boxed::Box;

use model::{JobId, NameReply, NodeId, Rank};
use wire::Message;

use crate::engine::Engine;

impl Engine {
    /// Hands an answer of the name service on to the node of the task that asked.
    pub(crate) fn on_name_reply(&mut self, id: JobId, rank: Rank, reply: Box<NameReply>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.tasks.contains_key(&rank) {
            job.pmi.on_name_reply(rank, &reply);
            return self.drain_pmi(id);
        }
        let agent = job.spec.map.node_of(rank).map(NodeId::agent);
        let child = agent.and_then(|agent| self.job_child_towards(agent));
        self.tell_some(child, Message::NameReply(id, rank, reply));
    }
}
