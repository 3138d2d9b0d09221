//! PMI as its users have it: every client that we know of, unmodified, in each version and over each interface, on 1, 2
//! and 16 hosts with a network and a real sshd each. All exchange data that cross hosts, and check them.
//!
//! `cargo xtask test pmi` runs all of it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod bad_input;
mod libraries;
mod matrix;
mod mpi;
mod spawn;
mod volume;

#[expect(dead_code, reason = "each file of tests uses its own part")]
#[path = "../support/mod.rs"]
mod support;

use support::world::World;
