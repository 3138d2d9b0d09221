//! Durations for people.

use std::time::Duration;

/// A duration as people say it: `0.42 s`, `85 ms`.
pub fn seconds(duration: Duration) -> String {
    if duration < Duration::from_millis(100) {
        format!("{:.1} ms", duration.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", duration.as_secs_f64())
    }
}
