//! Formats events and counts: the progress line, the spawn tree, the table of statistics.
//!
//! It adds no facts: whatever is shown was told by the engine.

mod progress;
mod spawn_tree;
mod stats;
mod timeline;

pub use progress::Progress;
pub use spawn_tree::draw_tree;
pub use stats::stats_table;
pub use timeline::Timeline;

use std::time::Duration;

/// A duration as people say it: `0.42 s`, `85 ms`.
pub fn seconds(duration: Duration) -> String {
    if duration < Duration::from_millis(100) {
        format!("{:.1} ms", duration.as_secs_f64() * 1e3)
    } else {
        format!("{:.2} s", duration.as_secs_f64())
    }
}
