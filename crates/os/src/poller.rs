//! Waits for descriptors: epoll.
//!
//! Level-triggered, so what is not read stays ready, and a reader may stop wherever its budget
//! ends; unless [`Interest::news`] says otherwise.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// A set of descriptors to wait for. A closed descriptor leaves by itself, unless it has copies.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

/// What to wait for. Hang-up and errors are always reported.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Interest {
    /// Bytes, a connection or the end can be read.
    pub read: bool,
    /// Bytes can be written, or a connection attempt has ended.
    pub write: bool,
    /// Report only what is new since the last report, or since [`Poller::modify`] (edge-triggered).
    pub news: bool,
}

impl Interest {
    /// Only hang-up and errors.
    pub const NONE: Interest = Interest { read: false, write: false, news: false };
    /// Reading.
    pub const READ: Interest = Interest { read: true, ..Interest::NONE };
    /// Writing.
    pub const WRITE: Interest = Interest { write: true, ..Interest::NONE };
    /// Both.
    pub const BOTH: Interest = Interest { read: true, write: true, news: false };
}

/// One descriptor that is ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ready {
    /// As given to [`Poller::add`].
    pub token: u64,
    /// A read will not block; true after a hang-up too, since the end can be read.
    pub readable: bool,
    /// A write will not block; true after an error too, since the error can be had.
    pub writable: bool,
    /// The other side is gone, or there is an error. Bytes may be left to read.
    pub hangup: bool,
    /// It writes no more, or is gone: behind what is left to read comes the end.
    pub ended: bool,
}

/// Why a descriptor cannot be waited for.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// A regular file, a directory or `/dev/null`: it never blocks, so use it whenever there is
    /// room.
    #[error("this file is always ready")]
    AlwaysReady,
    /// Anything else.
    #[error("wait for a descriptor")]
    Os(#[source] io::Error),
}

/// Descriptors reported by one wait; the rest stay ready for the next.
const EVENTS_MAX: usize = 256;

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When descriptors or memory have run out.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Waits for `fd` too. Remove it before closing it when it has copies elsewhere.
    ///
    /// # Errors
    /// [`PollError::AlwaysReady`] when there is nothing to wait for.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<(), PollError> {
        let added = epoll::add(&self.epoll, fd, EventData::new_u64(token), flags(interest));
        added.map_err(|errno| match errno {
            Errno::PERM => PollError::AlwaysReady,
            other => PollError::Os(other.into()),
        })
    }

    /// Waits for something else of a descriptor that was added. One that hung up is reported
    /// whatever the interest, again and again: remove it.
    ///
    /// # Errors
    /// When it was not added.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }

    /// Waits for `fd` no more.
    ///
    /// # Errors
    /// When it was not added.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Replaces the contents of `ready` with what is ready, waiting at most `timeout` for it.
    ///
    /// Returns early, with nothing, when a signal handler ran or the process was stopped: look at
    /// the clock, not at the emptiness.
    ///
    /// # Errors
    /// When out of memory; nothing else is expected.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        let timeout = timeout.map(rounded_up);
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        ready.extend(self.events.iter().map(Ready::of));
        Ok(())
    }
}

impl Ready {
    fn of(event: &Event) -> Ready {
        let Event { flags, data } = *event;
        let has = |any| flags.intersects(any);
        let broken = EventFlags::HUP | EventFlags::ERR;
        Ready {
            token: data.u64(),
            readable: has(EventFlags::IN | EventFlags::RDHUP | broken),
            writable: has(EventFlags::OUT | EventFlags::ERR),
            hangup: has(broken),
            ended: has(EventFlags::RDHUP | broken),
        }
    }
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN | EventFlags::RDHUP, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags.set(EventFlags::ET, interest.news);
    flags
}

/// Whole milliseconds, upwards, since older kernels have no finer timeout: a wait that ended early
/// would find its deadline still ahead and spin. A day at most, to stay within their range.
fn rounded_up(timeout: Duration) -> Timespec {
    let millis = timeout.as_nanos().div_ceil(1_000_000).min(86_400_000);
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 }
}
