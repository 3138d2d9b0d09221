//! Whole sessions of the real engine in virtual time: agents, links, shells, tasks and faults.
//!
//! See [`Session`]: describe a session, run it, read the [`Report`]. The same seed is the same
//! run, event by event.

mod barrier;
mod calibration;
mod calibration_error;
mod checker;
mod distribution;
mod fault;
mod gatherings;
mod holders;
mod launch;
mod link;
mod log;
mod log_file;
mod machines;
mod memory;
mod missing;
mod pattern;
mod pmi_words;
mod process;
mod queue;
mod random;
mod random_faults;
mod random_session;
mod ranking;
mod reference;
mod report;
mod routes;
mod rulebook;
mod script;
mod session;
mod sets;
mod shell;
mod sshd;
mod task;
mod task_id;
mod world;

pub use calibration::{Accept, Calibration, Cpu, HostCosts, LinkCosts, SlowHosts};
pub use calibration_error::CalibrationError;
pub use distribution::Distribution;
pub use fault::{Fault, ShellPlan, TwinOf, Way, When};
pub use launch::Launch;
pub use log_file::{LogError, LogFile, LogHeader, LogWriter};
pub use memory::{BYTES_PER_AGENT, BYTES_PER_TASK, bytes_needed};
pub use random::Random;
pub use report::{Failure, Report};
pub use script::{Grouping, Script, Spawned, Step};
pub use session::{Costs, Session};
pub use sshd::Sshd;
