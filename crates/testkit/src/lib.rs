//! What tests of real processes and of text formats share. Never part of a shipped binary.

mod datadriven;
mod leaks;

pub use datadriven::{Case, run_datadriven};
pub use leaks::{Marker, Survivor};
