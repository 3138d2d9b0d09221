//! The only place of the testbed that asks for the time or sleeps.

use std::thread;
use std::time::{Duration, Instant};

/// How often a condition that nothing announces is looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The time.
#[expect(clippy::disallowed_methods, reason = "a driver of real machines, not protocol code")]
pub fn now() -> Instant {
    Instant::now()
}

/// Sleeps for `time`. For models of slow things, not for waiting on a condition.
#[expect(clippy::disallowed_methods, reason = "the modelled shell is a sleeper")]
pub fn sleep(time: Duration) {
    thread::sleep(time);
}

/// Waits until `condition` holds. Returns whether it did within `limit`.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = now() + limit;
    while !condition() {
        if now() >= deadline {
            return false;
        }
        sleep(POLL_INTERVAL);
    }
    true
}
