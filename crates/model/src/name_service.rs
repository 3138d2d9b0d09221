//! What tasks ask by a name: where others can be reached (`MPI_Publish_name`), and what other jobs have put.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What a task asks of its session's name service, which knows the jobs, too.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum NameRequest {
    /// Let others find `port` under the name `service`.
    Publish {
        /// The name: any bytes.
        service: Vec<u8>,
        /// What they find: any bytes.
        port: Vec<u8>,
    },
    /// What was published under this name?
    Lookup(Vec<u8>),
    /// Forget what was published under this name.
    Unpublish(Vec<u8>),
    /// What have all tasks of another job exchanged under this key?
    Value {
        /// The name of that job's key-value space.
        job: Vec<u8>,
        /// The key.
        key: Vec<u8>,
    },
    /// Is there a job whose key-value space has this name?
    Job(Vec<u8>),
}

/// The answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum NameReply {
    /// It is published, or no longer is, or it is there.
    Done,
    /// What was published, or exchanged.
    Found(Vec<u8>),
    /// Nothing is there of that name.
    NotFound,
    /// Something is published under that name already.
    Taken,
    /// Nobody could be told a port of that length.
    TooLong,
}

impl NameReply {
    /// What was published, or exchanged, if anything was.
    pub fn found(&self) -> Option<&[u8]> {
        match self {
            NameReply::Found(value) => Some(value),
            NameReply::Done | NameReply::NotFound | NameReply::Taken | NameReply::TooLong => None,
        }
    }
}
