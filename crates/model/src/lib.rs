//! The nouns of Convoke: identities, host lists, placements. Parse, format, map; no policy.
#![no_std]

extern crate alloc;

mod host_list;
pub mod hostfile;
mod id_set;
mod ids;
mod time;
mod tree;

pub use host_list::{
    HOST_NAME_BYTES_MAX, HOSTS_MAX, HostList, HostListError, HostProblem, Node, SLOTS_MAX,
    fold_names,
};
pub use id_set::{IdSet, IdSetError, Parts};
pub use ids::{AgentId, JobId, NodeId, Rank};
pub use time::Time;
pub use tree::{Tree, TreeError};
