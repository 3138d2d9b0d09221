//! What tests of real processes and of text formats share. Never part of a shipped binary.

mod datadriven;
mod environment;
mod fixture;
mod flood;
mod leaks;
mod pmi_connection;
mod raw;

pub use datadriven::{Case, run_datadriven};
pub use environment::from_environment;
pub use fixture::fixture;
pub use flood::{FloodLine, Fnv};
pub use leaks::{Marker, Survivor};
pub use pmi_connection::PmiConnection;
pub use raw::{die_of_signal, ignore_signal, send_signal};
