//! Formats events and counts: the progress line, the spawn tree, the table of statistics.
//!
//! It adds no facts: whatever is shown was told by the engine.

mod progress;
mod seconds;
mod spawn_tree;
mod stats;
mod timeline;

pub use progress::Progress;
pub use seconds::seconds;
pub use spawn_tree::draw_tree;
pub use stats::stats_table;
pub use timeline::Timeline;
