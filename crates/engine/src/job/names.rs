//! What tasks ask of the session's name service goes up to the head (`name_service.rs`); answers come down.

use alloc::boxed::Box;

use model::{JobId, NameReply, Rank};
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
        self.tell_some(self.job_child_with(id, rank), Message::NameReply(id, rank, reply));
    }
}
