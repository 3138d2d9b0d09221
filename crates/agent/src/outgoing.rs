//! A descriptor that we write to as it takes it, and close when all is written.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use os::{Interest, Poller};

use crate::byte_queue::{ByteQueue, FlushEnd, Flushed};
use crate::reactor::Watched;
use crate::source::Source;

/// A writer's end. Drop it to close it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    watched: Watched,
    queue: ByteQueue,
    /// What to wait for besides room.
    interest: Interest,
    close_when_empty: bool,
}

impl Outgoing {
    /// Takes `fd`, which must not block, and waits for `interest` besides.
    pub(crate) fn new(
        poller: &Poller,
        fd: OwnedFd,
        source: Source,
        interest: Interest,
    ) -> io::Result<Outgoing> {
        let mut outgoing = Outgoing {
            watched: Watched::new(fd, source),
            queue: ByteQueue::default(),
            interest,
            close_when_empty: false,
        };
        outgoing.update_interest(poller)?;
        Ok(outgoing)
    }

    /// The descriptor.
    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Queues a piece. Flush afterwards.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.queue.push(piece);
    }

    /// Queues a piece and waits for room for it.
    pub(crate) fn push_later(&mut self, poller: &Poller, piece: Bytes) -> io::Result<()> {
        self.queue.push(piece);
        self.update_interest(poller)
    }

    /// Marks the end. Flush afterwards.
    pub(crate) fn close_when_empty(&mut self) {
        self.close_when_empty = true;
    }

    /// Whether the end is marked and reached: time to drop it.
    pub(crate) fn is_done(&self) -> bool {
        self.close_when_empty && self.queue.is_empty()
    }

    /// Whether all is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Waits for `interest` besides, from here on.
    pub(crate) fn set_interest(&mut self, poller: &Poller, interest: Interest) -> io::Result<()> {
        self.interest = interest;
        self.update_interest(poller)
    }

    /// The descriptor, which is waited for no more. What is not written is dropped.
    pub(crate) fn into_fd(self, poller: &Poller) -> io::Result<OwnedFd> {
        self.watched.into_fd(poller)
    }

    /// Writes what can be written, and waits for room for the rest.
    pub(crate) fn flush(&mut self, poller: &Poller) -> io::Result<Flushed> {
        let flushed = self.queue.flush(&self.watched)?;
        if flushed.end != FlushEnd::Closed {
            self.update_interest(poller)?;
        }
        Ok(flushed)
    }

    fn update_interest(&mut self, poller: &Poller) -> io::Result<()> {
        let interest = Interest { write: !self.queue.is_empty(), ..self.interest };
        self.watched.wait_for(poller, Some(interest))
    }
}
