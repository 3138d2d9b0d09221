//! Exit statuses of an agent, and of a driver whose engine did not come to decide one.

/// Something that should not happen did: out of memory or descriptors where there is no way on.
pub use engine::exit_code::INTERNAL;

/// No usable boot payload came.
pub const NO_BOOT: u8 = 254;

/// As if killed by SIGKILL: our keeper was.
pub const KILLED: u8 = 137;
