//! The nouns of Convoke: identities, host lists, placements. Parse, format, map; no policy.
#![no_std]

extern crate alloc;

mod ids;
mod time;

pub use ids::{AgentId, JobId, NodeId, Rank};
pub use time::Time;
