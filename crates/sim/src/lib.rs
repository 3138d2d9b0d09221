//! Whole sessions of the real engine in virtual time: agents, links, shells, tasks and faults.
//!
//! See [`Session`]: describe a session, run it, read the [`Report`]. The same seed is the same
//! run, event by event.

mod checker;
mod fault;
mod holders;
mod link;
mod pattern;
mod process;
mod queue;
mod random;
mod random_session;
mod report;
mod script;
mod session;
mod shell;
mod task;
mod world;

pub use fault::{Fault, ShellPlan, When};
pub use random::Random;
pub use report::{Failure, Report};
pub use script::{Script, Step};
pub use session::{Costs, Session};
