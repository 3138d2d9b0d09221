//! The driver: the event loop that binds an engine to the operating system.
//!
//! One process is an agent ([`run_agent`]) or the head ([`run_head`]); both are the same loop. It
//! reports what happens and performs what the engine decides. What a message means, and what
//! happens next, is not known here.

mod agent;
mod head;

mod driver;

mod front_end;
mod output_files;
mod user_input;
mod user_output;

mod door;
mod duplex;
mod identity;
mod link;
mod links;
mod parent;
mod pipe_room;

mod helper;
mod helpers;
mod start_plan;

mod callers;
mod command;
mod elf;
mod exec_room;
mod interpreter;
mod open_mpi;
mod strays;
mod task;
mod task_output;
mod task_pmi;
mod tasks;

mod byte_queue;
mod convert;
mod error_chain;
mod outgoing;
mod reactor;
mod signals;
mod source;

pub mod exit;

pub use agent::run_agent;
pub use error_chain::error_chain;
pub use front_end::FrontEnd;
pub use head::{HeadError, HeadReport, run_head};
pub use output_files::{Hosts, OutputFileError, OutputFiles};
pub use start_plan::{Launcher, LinkChoice, PlanError, StartPlan};
