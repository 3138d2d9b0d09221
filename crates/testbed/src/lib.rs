//! Many hosts on one machine: for tests, demonstrations and measurements, never shipped.
//!
//! [`Testbed`] makes hosts of namespaces with a real sshd each, and hurts them on demand; it needs
//! root. [`Loopback`] makes do with names and addresses of this host, for everybody. The program
//! `testbed` does both from a terminal. The program `testbed-shell` models a remote
//! shell with a latency and a gap, for trees larger than a machine has room for sshds. [`Slurm`] is
//! a cluster whose daemons all run here.

pub mod clock;
pub mod command;
pub mod control;
mod delay;
mod error;
mod faults;
pub mod loopback;
mod network;
mod oddities;
mod ordinary_user;
mod processes;
mod slurm;
mod ssh;
mod sys;
mod testbed;
mod world;

pub use error::TestbedError;
pub use loopback::Loopback;
pub use oddities::Family;
pub use ordinary_user::as_ordinary_user;
pub use processes::HostProcess;
pub use slurm::Slurm;
pub use ssh::Sshd;
pub use sys::take_private_hostname;
pub use testbed::{HEAD, Options, RUN_DIR, Testbed};
