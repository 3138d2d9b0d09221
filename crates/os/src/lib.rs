//! Linux as the drivers need it: processes, descriptors, sockets, time. The one crate with `unsafe`.
//!
//! Callers are single-threaded; nothing here takes a lock. Every descriptor made here is
//! close-on-exec, so a task gets exactly the ones that [`SpawnSpec`] names.

mod signal;
mod spawn;
mod tcp_users;
mod which;

pub mod calls;
pub mod clock;
pub mod keeper;
pub mod machine;
pub mod memory;
pub mod net;
pub mod poller;
pub mod process;
pub mod signals;
pub mod stream;
pub mod tty;

pub use clock::Clock;
pub use keeper::{AgentGroup, KeeperOptions, fork_keeper};
pub use poller::{Interest, Poller, Ready};
pub use process::{ExitStatus, Pid};
pub use signal::Signal;
pub use signals::SignalFd;
pub use spawn::{SpawnError, SpawnSpec, Spawning, spawn};
pub use tcp_users::TcpUsers;
pub use which::{ResolveError, which};
