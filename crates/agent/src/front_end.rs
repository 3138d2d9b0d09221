//! What the head's driver asks of whoever talks to the user.

use bytes::Bytes;
use model::{JobId, Rank, Time};
use proto::Event;
use wire::Stream;

/// Formats what the user sees while a job runs. It writes nothing by itself: a full pipe behind
/// standard error must not stop the head.
pub trait FrontEnd {
    /// Something has happened. Returns what to put on standard error for it, empty for nothing.
    fn on_event(&mut self, now: Time, event: &Event) -> Bytes;

    /// A piece of output has come. Returns what to write in its place.
    fn on_output(&mut self, job: JobId, rank: Rank, stream: Stream, data: Bytes) -> Bytes;

    /// The time that [`FrontEnd::poll_timeout`] asked for has come. Returns what to put on
    /// standard error.
    fn on_time(&mut self, now: Time) -> Bytes;

    /// When to call [`FrontEnd::on_time`] at the latest.
    fn poll_timeout(&self) -> Option<Time>;
}
