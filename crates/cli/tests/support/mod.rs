//! What the tests of the real command share: running it with a deadline, and proving that nothing
//! is left afterwards.
//!
//! Every wait is bounded, and none is a sleep: a test waits for a process or for bytes.

pub(crate) mod convoke;
pub(crate) mod lines;
pub(crate) mod pty;
pub(crate) mod redact;
pub(crate) mod ring;
pub(crate) mod stand;
pub(crate) mod tap;
pub(crate) mod watch;
pub(crate) mod world;
