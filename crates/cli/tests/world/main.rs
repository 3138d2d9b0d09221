//! The world as users have it: their login shells, their networks, their file systems. Hosts with a
//! network and a real sshd each, made odd in one way for each test, and the same oddity in a
//! variant that cannot work: then the cause is named in bounded time, and nothing is left.
//!
//! `cargo xtask test world` runs all of it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod delivery;
mod disks;
mod missing;
mod reach;
mod routes;
mod shells;
mod takeover;

#[expect(dead_code, reason = "each file of tests uses its own part")]
#[path = "../support/mod.rs"]
mod support;

use support::world::World;
