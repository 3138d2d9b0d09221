//! Names under which tasks tell each other where they can be reached (`MPI_Publish_name`).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What a task asks of its session's name service.
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
}

/// The answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum NameReply {
    /// It is published, or no longer is.
    Done,
    /// What was published.
    Port(Vec<u8>),
    /// Nothing is published under that name.
    NotFound,
    /// Something is published under that name already.
    Taken,
    /// Nobody could be told a port of that length.
    TooLong,
}
