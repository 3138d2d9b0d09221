//! What all sources share: the poller, one read buffer, and the inputs that wait for the engine.
//!
//! One buffer for the whole process: a read lands there and is copied out in its true size, which
//! costs less than a fresh large buffer for every read, whose pages the kernel would have to clear.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use engine::Input;
use os::poller::PollError;
use os::stream::{self, ReadOutcome};
use os::{Interest, Poller};

use crate::source::Source;

/// Bytes in one read: several of a link's records, or all that a task's pipe holds once it is made
/// larger.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// The most that is read at once until a read has found more.
const FIRST_READ_BYTES: usize = 16 * 1024;

/// The poller, the buffer and the inputs.
#[derive(Debug)]
pub(crate) struct Reactor {
    /// What is waited for.
    pub(crate) poller: Poller,
    inputs: VecDeque<Input>,
    buffer: Vec<u8>,
    /// Whether the last read may have left something.
    was_filled: bool,
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

/// What a read into the shared buffer found.
#[derive(Debug)]
pub(crate) enum Shared<'a> {
    /// Bytes.
    Data(&'a [u8]),
    /// The other side closed.
    Eof,
    /// Nothing yet.
    WouldBlock,
}

impl Reactor {
    /// Waits for nothing yet.
    pub(crate) fn new() -> io::Result<Reactor> {
        let (poller, inputs, buffer) = (Poller::new()?, VecDeque::new(), Vec::new());
        Ok(Reactor { poller, inputs, buffer, was_filled: false })
    }

    /// Keeps an input for the engine.
    pub(crate) fn report(&mut self, input: Input) {
        self.inputs.push_back(input);
    }

    /// The next input for the engine.
    pub(crate) fn next_input(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    /// Reads once into the shared buffer; the bytes are there until the next read.
    pub(crate) fn read_shared(&mut self, fd: impl AsFd) -> io::Result<Shared<'_>> {
        self.make_buffer();
        Ok(match stream::read(fd, &mut self.buffer)? {
            ReadOutcome::Data(n) => {
                self.was_filled = n == self.buffer.len();
                Shared::Data(&self.buffer[..n])
            }
            ReadOutcome::Eof => Shared::Eof,
            ReadOutcome::WouldBlock => Shared::WouldBlock,
        })
    }

    /// Reads once, at most [`READ_BYTES`].
    pub(crate) fn read(&mut self, fd: impl AsFd) -> io::Result<Chunk> {
        self.read_at_most(fd, READ_BYTES)
    }

    /// Reads once, at most `bytes_max` and [`READ_BYTES`].
    pub(crate) fn read_at_most(&mut self, fd: impl AsFd, bytes_max: usize) -> io::Result<Chunk> {
        self.make_buffer();
        let bytes_max = bytes_max.min(self.buffer.len());
        let room = &mut self.buffer[..bytes_max];
        Ok(match stream::read(fd, room)? {
            ReadOutcome::Data(n) => {
                let data = Bytes::copy_from_slice(&room[..n]);
                self.was_filled = n == self.buffer.len();
                Chunk::Data(data)
            }
            ReadOutcome::Eof => Chunk::Eof,
            ReadOutcome::WouldBlock => Chunk::WouldBlock,
        })
    }

    /// Makes a small buffer at the first read, and a larger one after each read that filled it: most
    /// agents never see much at once, and the kernel's pages for it cost them start-up time.
    fn make_buffer(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; FIRST_READ_BYTES];
        } else if self.was_filled {
            self.buffer.resize((4 * self.buffer.len()).min(READ_BYTES), 0);
        }
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
