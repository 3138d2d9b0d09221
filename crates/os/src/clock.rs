//! The driver's clock: nanoseconds since it was made.
//!
//! CLOCK_MONOTONIC, not CLOCK_BOOTTIME: a laptop or a virtual machine that was suspended for an
//! hour did not miss an hour of heartbeats, and no deadline should fire for it.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock whose origin is its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock that shows 0.
    #[expect(clippy::new_without_default, reason = "a clock's origin should be seen to be chosen")]
    pub fn new() -> Clock {
        Clock { origin: monotonic() }
    }

    /// Nanoseconds since the clock was made.
    pub fn now(&self) -> u64 {
        monotonic().saturating_sub(self.origin)
    }
}

fn monotonic() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec.cast_unsigned() * 1_000_000_000 + tv_nsec.cast_unsigned()
}
