//! The machine that an agent or the head *is*: every decision of a session, and no I/O.
//!
//! A driver reports what happened ([`Input`]) and performs what comes out ([`Effect`]). Time is
//! an argument, randomness a seed, so a session of a million agents is an ordinary test.
#![no_std]

extern crate alloc;

mod config;
mod effect;
mod input;

mod engine;
mod head;
mod orders;
mod outcome;
mod parent;
mod roll_call;

mod children;
mod delivery;
mod ending;
mod handout;
mod job;
mod jobs;
mod joining;
mod late;
mod marks;
mod name_service;
mod second_try;
mod set;
mod slow;
mod spawned_jobs;
mod spawner;
mod suspension;
mod takeover;

mod contacts;
mod detour;
mod edge;
mod routing;

pub mod exit_code;
pub mod route;
pub mod tree;

mod child;
mod child_table;
mod names;
mod pace;
mod rng;

pub use config::{AgentConfig, CallerId, HeadConfig, LinkId, StartId};
pub use contacts::CONTACTS_PUSHED_MAX;
pub use delivery::Delivery;
pub use effect::{Effect, HOST_SILENT_MAX, PMI_FD, Spawn, Start};
pub use engine::Engine;
pub use input::{Input, LinkEnd, PmiPort};
pub use job::JOB_VARIABLE;
pub use late::LATE_MAX;
pub use outcome::{Outcome, SpawnedFault};
pub use spawned_jobs::{SpawnedJob, SpawnedJobs};
