//! The PMI server of one job on one agent: PMI-1.2 and PMI-2 (`reference/pmi1.md`, `reference/pmi2.md`).
//!
//! Bytes of the local clients and answers of the tree go in, replies and fences come out; this crate
//! knows neither descriptors nor the tree.
#![no_std]

extern crate alloc;

mod server;

mod asker;
mod cache;
mod call;
mod client_error;
mod job_info;
mod kvs;
mod meetings;
mod message_buffer;
mod node_attributes;
mod pairs;
pub mod pmi1;
pub mod pmi2;
mod snapshot;
mod spaces;
mod task_env;
mod values;

pub use call::{Call, Introduction};
pub use client_error::{ClientError, Excerpt};
pub use job_info::{JobInfo, LocalTask};
pub use kvs::{Kvs, PutError};
pub use message_buffer::{Message, MessageBuffer};
pub use pairs::{Pair, PairError, Pairs};
pub use pmi1::GroupFault;
pub use pmi2::AllgatherPiece;
pub use server::{ClientState, Effect, Server, Waits};
pub use snapshot::{Snapshot, SnapshotError};
pub use spaces::is_surely_taken;
pub use task_env::{TaskEnv, Transport, is_of_outer_job};
pub use values::{Values, ValuesError};
