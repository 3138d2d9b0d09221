//! The machine that an agent or the head *is*: every decision of a session, and no I/O.
//!
//! A driver reports what happened ([`Input`]) and performs what comes out ([`Effect`]). Time is
//! an argument, randomness a seed, so a session of a million agents is an ordinary test.
#![no_std]

extern crate alloc;

pub mod tree;

mod effect;
mod engine;
mod input;

pub use effect::{Effect, PMI_FD, Spawn, Start};
pub use engine::{AgentConfig, Engine, HeadConfig, LinkId, Outcome, StartId};
pub use input::Input;
