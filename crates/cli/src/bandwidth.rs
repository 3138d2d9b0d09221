//! What a link carries: one task writes a flood, and the head counts what comes.

use bytes::Bytes;
use model::{JobId, Rank, Time};
use os::Clock;
use proto::Event;
use wire::Stream;

/// What the task writes.
pub(crate) const FLOOD_BYTES: u64 = 64 << 20;

/// A front end that shows nothing.
pub(crate) struct Counter {
    clock: Clock,
    /// When the first piece was there; it is not counted.
    first: Option<u64>,
    last: u64,
    bytes: u64,
}

impl Counter {
    pub(crate) fn new() -> Counter {
        Counter { clock: Clock::new(), first: None, last: 0, bytes: 0 }
    }

    /// Bytes a second between the first piece and the last, if it has been a flood.
    pub(crate) fn bytes_per_s(&self) -> Option<u64> {
        let ns = self.last - self.first?;
        let is_flood = self.bytes >= FLOOD_BYTES / 2 && ns > 0;
        is_flood.then(|| (self.bytes as f64 / ns as f64 * 1e9) as u64)
    }
}

impl agent::FrontEnd for Counter {
    fn on_event(&mut self, _: Time, _: &Event) -> Bytes {
        Bytes::new()
    }

    fn on_output(&mut self, _: JobId, _: Rank, stream: Stream, data: Bytes) -> Bytes {
        if stream == Stream::Stdout {
            self.last = self.clock.now();
            if self.first.replace(self.first.unwrap_or(self.last)).is_some() {
                self.bytes += data.len() as u64;
            }
        }
        Bytes::new()
    }

    fn on_time(&mut self, _: Time) -> Bytes {
        Bytes::new()
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
