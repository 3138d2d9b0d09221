//! What all sources share: the poller, how they read, and the inputs that wait for the engine.
//!
//! A large read is handed on as a part of its buffer. A small one is copied out in its true size, so
//! that nothing small keeps much memory, and its place in the buffer serves the next.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::{Bytes, BytesMut};
use engine::Input;
use os::poller::PollError;
use os::stream::{self, ReadOutcome};
use os::{Interest, Poller};

use crate::source::Source;

/// Bytes in one read, at most: two of a link's records. More would save system calls, and cost more in
/// pages that are new to the process.
pub(crate) const READ_BYTES: usize = 128 * 1024;

/// The most that is read at once until a read has found more.
const FIRST_READ_BYTES: usize = 16 * 1024;

/// Bytes in one look at a socket, at most.
pub(crate) const PEEK_BYTES: usize = 4096;

/// The poller, the buffer and the inputs.
#[derive(Debug)]
pub(crate) struct Reactor {
    /// What is waited for.
    pub(crate) poller: Poller,
    inputs: VecDeque<Input>,
    /// What tasks write is read into. Links have their own.
    buffer: BytesMut,
    /// How much is read at once, for now.
    read_bytes: usize,
}

/// What a read found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Chunk {
    /// Bytes.
    Data(Bytes),
    /// The other side closed.
    Eof,
    /// Nothing yet.
    WouldBlock,
}

impl Reactor {
    /// Waits for nothing yet.
    pub(crate) fn new() -> io::Result<Reactor> {
        let (poller, inputs, buffer) = (Poller::new()?, VecDeque::new(), BytesMut::new());
        Ok(Reactor { poller, inputs, buffer, read_bytes: FIRST_READ_BYTES })
    }

    /// Keeps an input for the engine.
    pub(crate) fn report(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    /// The next input for the engine.
    pub(crate) fn next_input(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    /// Reads once, at most [`READ_BYTES`].
    pub(crate) fn read(&mut self, fd: impl AsFd) -> io::Result<Chunk> {
        self.read_at_most(fd, READ_BYTES)
    }

    /// Reads once, at most `bytes_max` and [`READ_BYTES`].
    pub(crate) fn read_at_most(&mut self, fd: impl AsFd, bytes_max: usize) -> io::Result<Chunk> {
        let mut buffer = mem::take(&mut self.buffer);
        let outcome = self.read_onto(fd, &mut buffer, bytes_max);
        let data = if buffer.len() >= FIRST_READ_BYTES {
            buffer.split().freeze()
        } else {
            let data = Bytes::copy_from_slice(&buffer);
            buffer.clear();
            data
        };
        self.buffer = buffer;
        Ok(chunk(outcome?, data))
    }

    /// Reads once, at most [`PEEK_BYTES`], and leaves it in the socket.
    pub(crate) fn peek(&mut self, fd: impl AsFd) -> io::Result<Chunk> {
        let outcome = stream::peek_onto(fd, &mut self.buffer, PEEK_BYTES);
        let data = Bytes::copy_from_slice(&self.buffer);
        self.buffer.clear();
        Ok(chunk(outcome?, data))
    }

    /// Reads once to the end of `buffer`, at most `bytes_max` and [`READ_BYTES`].
    ///
    /// Little until a read finds that much, and then more: most agents never see much at once, and
    /// the kernel's pages for it cost them start-up time.
    pub(crate) fn read_onto(
        &mut self,
        fd: impl AsFd,
        buffer: &mut BytesMut,
        bytes_max: usize,
    ) -> io::Result<ReadOutcome> {
        let wanted = bytes_max.min(self.read_bytes);
        // Half of it in pages that are there already costs less than all of it in new ones.
        let spare = buffer.capacity() - buffer.len();
        let wanted = if spare >= wanted / 2 { wanted.min(spare) } else { wanted };
        let outcome = stream::read_onto(fd, buffer, wanted)?;
        if outcome == ReadOutcome::Data(self.read_bytes) {
            self.read_bytes = (4 * self.read_bytes).min(READ_BYTES);
        }
        Ok(outcome)
    }
}

fn chunk(outcome: ReadOutcome, data: Bytes) -> Chunk {
    match outcome {
        ReadOutcome::Data(_) => Chunk::Data(data),
        ReadOutcome::Eof => Chunk::Eof,
        ReadOutcome::WouldBlock => Chunk::WouldBlock,
    }
}

/// A descriptor of ours and what the poller waits for on it.
#[derive(Debug)]
pub(crate) struct Watched {
    fd: OwnedFd,
    source: Source,
    interest: Option<Interest>,
}

impl Watched {
    /// Takes a descriptor that is not waited for yet.
    pub(crate) fn new(fd: OwnedFd, source: Source) -> Watched {
        Watched { fd, source, interest: None }
    }

    /// Waits for `interest`, or for nothing at all, not even a hang-up. Costs nothing when it is so.
    pub(crate) fn wait_for(
        &mut self,
        poller: &Poller,
        interest: Option<Interest>,
    ) -> io::Result<()> {
        if self.interest == interest {
            return Ok(());
        }
        let token = self.source.token();
        match (self.interest, interest) {
            (None, Some(interest)) => {
                poller.add(&self.fd, token, interest).map_err(io_error)?;
            }
            (Some(_), Some(interest)) => poller.modify(&self.fd, token, interest)?,
            (Some(_), None) => poller.remove(&self.fd)?,
            (None, None) => {}
        }
        self.interest = interest;
        Ok(())
    }

    /// The descriptor, which is waited for no more.
    pub(crate) fn into_fd(mut self, poller: &Poller) -> io::Result<OwnedFd> {
        self.wait_for(poller, None)?;
        Ok(self.fd)
    }

    /// Has what is ready reported once more, where only news is.
    pub(crate) fn report_again(&self, poller: &Poller) -> io::Result<()> {
        let Some(interest) = self.interest else { return Ok(()) };
        poller.modify(&self.fd, self.source.token(), interest)
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Why a descriptor cannot be waited for, where regular files do not occur.
pub(crate) fn io_error(error: PollError) -> io::Error {
    match error {
        PollError::Os(source) => source,
        PollError::AlwaysReady => io::ErrorKind::InvalidInput.into(),
    }
}
