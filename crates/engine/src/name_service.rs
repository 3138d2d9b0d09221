//! The name service of a session, at the head: tasks of any node ask it through their agents.
//!
//! What is published stays until somebody takes it back, or the session ends. What the tasks of a job exchange passes the
//! head, which keeps it while the job runs: those of others may read it.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use model::{NameReply, NameRequest};

use crate::jobs::Jobs;

/// What is published.
#[derive(Debug, Default)]
pub(crate) struct NameService {
    ports: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl NameService {
    /// Does what a task asks, in the order in which requests come.
    pub(crate) fn answer(&mut self, request: NameRequest, jobs: &mut Jobs) -> NameReply {
        match request {
            NameRequest::Publish { service, port } => match self.ports.entry(service) {
                Entry::Occupied(_) => NameReply::Taken,
                Entry::Vacant(entry) => {
                    entry.insert(port);
                    NameReply::Done
                }
            },
            NameRequest::Lookup(service) => {
                self.ports.get(&service).cloned().map_or(NameReply::NotFound, NameReply::Found)
            }
            NameRequest::Unpublish(service) => match self.ports.remove(&service) {
                Some(_) => NameReply::Done,
                None => NameReply::NotFound,
            },
            NameRequest::Value { job, key } => {
                let value = jobs.named(&job).and_then(|job| job.exchanged(key));
                value.map_or(NameReply::NotFound, |value| NameReply::Found(value.into()))
            }
            NameRequest::Job(name) => {
                jobs.named(&name).map_or(NameReply::NotFound, |_| NameReply::Done)
            }
        }
    }
}
