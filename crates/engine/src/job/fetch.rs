//! Reads of pairs that a fence has left where they came by.
//!
//! An agent keeps the pairs that came from below it, and the head has all. So a read that misses goes up to the first
//! agent that has the pair, or to the head, which knows that nobody has put it; the answer comes down the same edges, and is kept
//! on the way (S3-13, S3-15). An agent that waits for an answer asks nobody again, but answers all who have asked it.
//!
//! A link carries an answer and the end of the next fence in the order in which they were sent, so no answer that is older than
//! a fence is taken for newer.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;

use bytes::Bytes;
use model::{AgentId, JobId, PairName};
use wire::Message;

use crate::engine::Engine;

/// What was asked of the parent, and which children wait for it.
#[derive(Debug, Default)]
pub(super) struct Fetches(BTreeMap<PairName, BTreeSet<AgentId>>);

impl Engine {
    pub(crate) fn on_child_fetch(&mut self, id: JobId, child: AgentId, name: Box<PairName>) {
        // The child may have heard of the end of a fence that this agent has only handed on.
        self.finish_exchange(id);
        let is_head = self.is_head();
        let Some(job) = self.jobs.get_mut(id) else { return };
        let value = job.pmi.find(&name);
        let reads = &mut self.stats.reads;
        if value.is_none() && !is_head {
            return self.fetch(id, Some(child), name);
        }
        let count = match (is_head, &value) {
            (false, _) => &mut reads.way,
            (true, Some(_)) => &mut reads.head,
            (true, None) => &mut reads.missing,
        };
        *count += 1;
        self.tell_some([child], Message::Fetched(id, name, value));
    }

    /// Asks the parent for a pair on behalf of a child, or of tasks here.
    pub(super) fn fetch(&mut self, id: JobId, child: Option<AgentId>, name: Box<PairName>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let is_asked = job.fetches.0.contains_key(&*name);
        job.fetches.0.entry((*name).clone()).or_default().extend(child);
        if is_asked {
            match child {
                Some(_) => self.stats.reads.way += 1,
                None => self.stats.reads.own += 1,
            }
        } else {
            self.up_job(Message::Fetch(id, name));
        }
    }

    pub(crate) fn on_fetched(&mut self, id: JobId, name: Box<PairName>, value: Option<Bytes>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(children) = job.fetches.0.remove(&*name) else {
            return self.abandon("its parent broke the protocol: nobody had asked".to_string());
        };
        job.pmi.on_fetched(&name, value.as_ref());
        if !children.is_empty() {
            self.tell_some(children, Message::Fetched(id, name, value));
        }
        self.drain_pmi(id);
    }
}
