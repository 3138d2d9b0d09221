//! The PMI-1.2 server of one job on one agent (`reference/pmi1.md`).
//!
//! Bytes of the local clients and answers of the tree go in, replies and fences come out; this crate
//! knows neither descriptors nor the tree. Spawn and name publishing are refused in the way that
//! clients understand.
#![no_std]

extern crate alloc;

mod server;

mod call;
mod client_error;
mod group;
mod job_info;
mod kvs;
mod line_buffer;
mod meetings;
mod pairs;
mod reply;
mod request;
mod spaces;
mod task_env;

pub use call::Call;
pub use client_error::{ClientError, Excerpt};
pub use group::GroupFault;
pub use job_info::{JobInfo, LocalTask};
pub use kvs::{Kvs, PutError};
pub use line_buffer::LineBuffer;
pub use pairs::{Pair, PairError, Pairs};
pub use request::{Request, SpawnBlock};
pub use server::{ClientState, Effect, Server};
pub use task_env::{TaskEnv, Transport, is_of_outer_job};
