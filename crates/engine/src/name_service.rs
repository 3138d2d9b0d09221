//! The name service of a session, at the head: tasks of any node ask it through their agents.
//!
//! What is published stays until somebody takes it back, or the session ends.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use model::{NameReply, NameRequest};

/// What is published.
#[derive(Debug, Default)]
pub(crate) struct NameService {
    ports: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl NameService {
    /// Does what a task asks, in the order in which requests come.
    pub(crate) fn answer(&mut self, request: NameRequest) -> NameReply {
        match request {
            NameRequest::Publish { service, port } => match self.ports.entry(service) {
                Entry::Occupied(_) => NameReply::Taken,
                Entry::Vacant(entry) => {
                    entry.insert(port);
                    NameReply::Done
                }
            },
            NameRequest::Lookup(service) => {
                self.ports.get(&service).cloned().map_or(NameReply::NotFound, NameReply::Port)
            }
            NameRequest::Unpublish(service) => match self.ports.remove(&service) {
                Some(_) => NameReply::Done,
                None => NameReply::NotFound,
            },
        }
    }
}
