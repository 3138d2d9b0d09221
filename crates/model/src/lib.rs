//! The nouns of Convoke: identities, host lists, placements. Parse, format, map; no policy.
#![no_std]

extern crate alloc;

mod id_set;
mod ids;
mod stub;
mod time;
mod tree;

pub use id_set::{IdSet, IdSetError, Parts};
pub use ids::{AgentId, JobId, NodeId, Rank};
pub use stub::*;
pub use time::Time;
pub use tree::{Tree, TreeError};
