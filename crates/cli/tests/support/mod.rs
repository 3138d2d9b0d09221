//! What the tests of the real command share: running it with a deadline, and proving that nothing
//! is left afterwards.
//!
//! Every wait is bounded, and none is a sleep: a test waits for a process or for bytes.

pub mod convoke;
pub mod lines;
pub mod pty;
pub mod redact;
pub mod stand;
pub mod watch;
