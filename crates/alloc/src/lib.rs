//! Which nodes there are: from a list, from a host file, or just this host. Starts nothing.

mod allocation;
mod text_file;
mod this_host;

pub use allocation::{AllocError, Allocation, Source, allocate, rank_file};
pub use text_file::{TextError, read_text};
pub use this_host::this_host_name;
