//! The user's standard output and error, written as their readers take it.
//!
//! The loop must not block on a slow reader, but the open files are not ours alone: `O_NONBLOCK`
//! set on them would be seen by the shell and by every other process of the pipeline. So a pipe or
//! terminal is opened once more through `/proc`, which gives an open file of our own that need not
//! block. Where that is not allowed (another user's pipe, a socket), the poller is asked before each
//! write, and a write is so short that what is ready takes it whole.
//! Regular files do not make us wait long enough to matter.
//!
//! When both go to the same place, they share one queue, so that no line is torn by the other
//! stream's.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use engine::Input;
use os::poller::PollError;
use os::{Interest, Poller};
use rustix::fs::{FileType, Mode, OFlags};
use wire::Stream;

use crate::byte_queue::{ByteQueue, FlushEnd, Flushed};
use crate::pipe_room::PipeRoom;
use crate::reactor::Reactor;
use crate::source::Source;

/// What a descriptor that is ready takes without blocking: a pipe that is ready has a page free.
const SURE_BYTES: usize = 4096;

/// Both outputs.
#[derive(Debug)]
pub(crate) struct UserOutput {
    lanes: [Lane; 2],
    /// Whether both streams go through the first lane.
    is_shared: bool,
}

/// One place that output goes to.
#[derive(Debug)]
struct Lane {
    stream: Stream,
    door: Door,
    queue: ByteQueue,
    /// Bytes that were ever queued, and bytes that were written or dropped.
    pushed: u64,
    done: u64,
    /// Up to where output stands for how many bytes of tasks' output.
    credits: VecDeque<(u64, u32)>,
    is_watched: bool,
    room: PipeRoom,
    /// Set when the reader is gone: what comes is dropped.
    has_failed: bool,
}

/// How bytes leave.
#[derive(Debug)]
enum Door {
    /// An open file of our own, which does not block.
    Own(OwnedFd),
    /// A regular file.
    File,
    /// Anything else: ask, then write little.
    Careful,
}

impl UserOutput {
    /// Looks at what the two descriptors are.
    pub(crate) fn new() -> UserOutput {
        UserOutput {
            lanes: [Lane::new(Stream::Stdout), Lane::new(Stream::Stderr)],
            is_shared: same_file(),
        }
    }

    /// Queues a piece that stands for `credit` bytes of a task's output. Flush afterwards.
    pub(crate) fn push(&mut self, stream: Stream, data: Bytes, credit: u32) {
        self.lane(stream).push(data, credit);
    }

    /// Writes what can be written of both.
    pub(crate) fn flush(&mut self, reactor: &mut Reactor) {
        for lane in &mut self.lanes {
            if !lane.is_watched {
                lane.flush(reactor, false);
            }
        }
    }

    /// Handles a descriptor that takes bytes again.
    pub(crate) fn on_ready(&mut self, reactor: &mut Reactor, stream: Stream) {
        self.lane(stream).flush(reactor, true);
    }

    /// Whether all is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.queue.is_empty())
    }

    /// Whether something was queued since the last flush.
    pub(crate) fn is_unflushed(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.queue.is_empty() && !lane.is_watched)
    }

    fn lane(&mut self, stream: Stream) -> &mut Lane {
        match stream {
            Stream::Stderr if !self.is_shared => &mut self.lanes[1],
            Stream::Stdout | Stream::Stderr => &mut self.lanes[0],
        }
    }
}

impl Lane {
    fn new(stream: Stream) -> Lane {
        Lane {
            stream,
            door: Door::of(stream),
            queue: ByteQueue::default(),
            pushed: 0,
            done: 0,
            credits: VecDeque::new(),
            is_watched: false,
            room: PipeRoom::default(),
            has_failed: false,
        }
    }

    fn push(&mut self, data: Bytes, credit: u32) {
        self.pushed += data.len() as u64;
        self.queue.push(data);
        if credit > 0 {
            self.credits.push_back((self.pushed, credit));
        }
    }

    fn flush(&mut self, reactor: &mut Reactor, is_ready: bool) {
        if !self.has_failed {
            match self.door.flush(self.stream, &mut self.queue, is_ready) {
                Ok(flushed) => {
                    self.done += flushed.bytes as u64;
                    if flushed.end == FlushEnd::Closed {
                        self.fail(reactor, io::ErrorKind::BrokenPipe.into());
                    }
                }
                Err(error) => self.fail(reactor, error),
            }
        }
        if self.has_failed {
            self.done += self.queue.clear() as u64;
        }
        self.report_written(reactor);
        self.watch(&reactor.poller);
    }

    fn report_written(&mut self, reactor: &mut Reactor) {
        let mut written = 0;
        while let Some((_, credit)) = self.credits.pop_front_if(|(end, _)| *end <= self.done) {
            written += credit;
        }
        if written > 0 {
            reactor.report(Input::OutputWritten(written));
        }
    }

    fn fail(&mut self, reactor: &mut Reactor, error: io::Error) {
        reactor.report(if error.kind() == io::ErrorKind::BrokenPipe {
            Input::OutputClosed(self.stream)
        } else {
            let errno = error.raw_os_error().unwrap_or_default();
            Input::NotWritten { errno, words: name(self.stream).to_owned() }
        });
        self.has_failed = true;
    }

    /// Waits for room exactly while something is queued.
    fn watch(&mut self, poller: &Poller) {
        let wanted = !self.queue.is_empty();
        if wanted == self.is_watched {
            return;
        }
        let fd = self.door.fd(self.stream);
        if wanted {
            self.room.on_full(fd);
        }
        let done = if wanted {
            let token = Source::UserOutput(self.stream).token();
            poller.add(fd, token, Interest::WRITE)
        } else {
            poller.remove(fd).map_err(PollError::Os)
        };
        self.is_watched = wanted && done.is_ok();
    }
}

impl Door {
    fn of(stream: Stream) -> Door {
        match file_type(stream) {
            Some(FileType::RegularFile | FileType::Directory) => Door::File,
            Some(FileType::Fifo | FileType::CharacterDevice) => {
                reopen(stream).map_or(Door::Careful, Door::Own)
            }
            Some(_) | None => Door::Careful,
        }
    }

    /// Writes what can be written. `is_ready` when the poller has just said that something can.
    ///
    /// What fails half-way has written something; how much does not matter, since all that follows
    /// is dropped.
    fn flush(&self, stream: Stream, queue: &mut ByteQueue, is_ready: bool) -> io::Result<Flushed> {
        match self {
            Door::Own(fd) => queue.flush(fd),
            Door::File => queue.flush(standard(stream)),
            Door::Careful if is_ready || takes_bytes(standard(stream)) => {
                queue.write_little(standard(stream), SURE_BYTES)
            }
            Door::Careful => Ok(Flushed { bytes: 0, end: FlushEnd::Full }),
        }
    }

    fn fd(&self, stream: Stream) -> BorrowedFd<'_> {
        match self {
            Door::Own(fd) => fd.as_fd(),
            Door::File | Door::Careful => standard(stream),
        }
    }
}

fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "standard output",
        Stream::Stderr => "standard error",
    }
}

fn standard(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Stdout => rustix::stdio::stdout(),
        Stream::Stderr => rustix::stdio::stderr(),
    }
}

fn file_type(stream: Stream) -> Option<FileType> {
    let stat = rustix::fs::fstat(standard(stream)).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

fn same_file() -> bool {
    let identity =
        |stream| rustix::fs::fstat(standard(stream)).map(|stat| (stat.st_dev, stat.st_ino));
    let (stdout, stderr) = (identity(Stream::Stdout), identity(Stream::Stderr));
    stdout.is_ok() && stdout == stderr
}

fn reopen(stream: Stream) -> Option<OwnedFd> {
    let path = match stream {
        Stream::Stdout => "/proc/self/fd/1",
        Stream::Stderr => "/proc/self/fd/2",
    };
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn takes_bytes(fd: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok_and(|n| n > 0)
}
