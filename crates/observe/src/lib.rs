//! Formats events and counts: the progress line, the spawn tree, the table of statistics, the record of
//! a job.
//!
//! It adds no facts: whatever is shown was told by the engine.

mod progress;
mod spawn_tree;
mod stats;

mod span;
mod timeline;

mod chrome_trace;
mod critical_path;
mod page;
mod timeline_file;

mod job_record;

mod names;
mod seconds;

pub use critical_path::{Wait, WaitKind, critical_path};
pub use job_record::{RecordedJob, job_record};
pub use names::agent_name;
pub use progress::Progress;
pub use seconds::seconds;
pub use span::{Phase, Span};
pub use spawn_tree::draw_tree;
pub use stats::stats_table;
pub use timeline::Timeline;
pub use timeline_file::{TimelineFormat, TimelineFormatError};
