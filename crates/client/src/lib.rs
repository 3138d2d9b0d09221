//! PMI as a program sees it: who am I, how many are we, and what have the others put (`reference/pmi1.md`,
//! `reference/pmi2.md`).
//!
//! [`Pmi1`] and [`Pmi2`] speak to the agent that launched the program over what its environment names: `PMI_FD`, or
//! `PMI_PORT` with `PMI_ID`. A program that was started alone is a job of one, served by the same server within itself.
//! All calls block, and may come from several threads; every error is a value.

mod collective;
mod connection;
mod endpoint;
mod error;
mod link;
mod mailbox;
mod mapping;
mod own_server;
mod pmi1;
mod pmi2;
mod snapshots;
mod spawn;

pub use endpoint::Endpoint;
pub use error::Error;
pub use mapping::neighbours;
pub use pmi1::{Maxes, Pmi1};
pub use pmi2::{Neighbours, Outcome, Place, Pmi2, Request};
pub use spawn::{Pair, Spawn, SpawnCommand};
