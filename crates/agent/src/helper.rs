//! One bootstrap command that runs.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bootstrap::deliver::Program;
use bootstrap::{Asked, Bootstrapper, Request, RequestReader, Tail, Transfer, diagnose};
use bytes::Bytes;
use engine::{Delivery, Input, StartId};
use model::Time;
use os::{ExitStatus, Interest, Pid, Ready, Signal, calls, process};

use crate::byte_queue::{FlushEnd, Flushed};
use crate::convert;
use crate::outgoing::Outgoing;
use crate::reactor::{Chunk, Reactor, Watched};
use crate::source::{HelperPart, Source};

/// How long a helper may take to end in good order, with an agent below it when it is local.
const TERM_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads of its last words, once it has ended.
const LAST_READS_MAX: usize = 16;

/// What is said of one that is told to end and has no connection yet.
const UNANSWERED: &[u8] = b"convoke: the connection has not been answered";

/// A shell's streams, on which an agent wants its link.
#[derive(Debug)]
pub(crate) struct ShellStreams {
    /// Both ways.
    pub(crate) fd: OwnedFd,
    /// What has come of the link already.
    pub(crate) begin: Vec<u8>,
}

/// A helper that runs.
#[derive(Debug)]
pub(crate) struct Helper {
    start: StartId,
    pid: Pid,
    bootstrapper: Bootstrapper,
    /// Open as long as the agent shall live, unless they are its link.
    streams: Option<Outgoing>,
    requests: RequestReader,
    delivery: Progress,
    /// What to write once its host has the program.
    after_delivery: Option<Vec<u8>>,
    stderr: Option<Watched>,
    tail: Tail,
    /// Set once it was told to end: when to kill it.
    kill_at: Option<Time>,
}

/// What has become of the program for a host that lacks it. Each request counts once.
#[derive(Debug)]
enum Progress {
    /// It has not asked.
    Unasked,
    /// It waits for it.
    Asked,
    /// It is sent what it asks for.
    Sending(Transfer),
    /// All has been sent.
    Sent,
}

impl Helper {
    /// Waits for what `helper` says.
    pub(crate) fn new(
        reactor: &Reactor,
        start: StartId,
        bootstrapper: Bootstrapper,
        helper: bootstrap::Helper,
        after_delivery: Option<Vec<u8>>,
    ) -> io::Result<Helper> {
        let source = |part| Source::Helper(start, part);
        let mut stderr = Watched::new(helper.stderr, source(HelperPart::Stderr));
        stderr.wait_for(&reactor.poller, Some(Interest::READ))?;
        let streams = match helper.streams {
            Some(fd) => {
                let source = source(HelperPart::Streams);
                let mut streams = Outgoing::new(&reactor.poller, fd, source, Interest::READ)?;
                streams.push(Bytes::from(helper.unsent));
                streams.flush(&reactor.poller)?;
                Some(streams)
            }
            None => None,
        };
        Ok(Helper {
            start,
            pid: helper.pid,
            bootstrapper,
            streams,
            requests: RequestReader::default(),
            delivery: Progress::Unasked,
            after_delivery,
            stderr: Some(stderr),
            tail: Tail::default(),
            kill_at: None,
        })
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends it the program that it waits for.
    pub(crate) fn send_program(&mut self, now: Time, reactor: &Reactor, program: &Rc<Program>) {
        if matches!(self.delivery, Progress::Asked) {
            let (transfer, announcement) = Transfer::begin(Rc::clone(program), now);
            self.delivery = Progress::Sending(transfer);
            self.write(reactor, announcement);
        }
    }

    /// Gives it no more input, and these words of ours for its own.
    pub(crate) fn hang_up(&mut self, words: &str) {
        self.streams = None;
        self.tail.push(words.as_bytes());
    }

    /// Tells it to end, and its process group with it. A shell that waits for its host does not say so.
    pub(crate) fn end(&mut self, now: Time) {
        if self.kill_at.is_none() && calls::is_unanswered(self.pid) {
            self.tail.push(UNANSWERED);
        }
        self.streams = None;
        let _ = process::kill_group(self.pid, Signal::TERM); // gone is fine
        self.kill_at = Some(now + TERM_TIMEOUT);
    }

    /// When to call [`Helper::on_time`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.kill_at
    }

    /// Kills it and all that it started, when it had its time to end.
    pub(crate) fn on_time(&mut self, now: Time) {
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = Some(now + TERM_TIMEOUT);
            self.kill_session();
        }
    }

    /// Handles a descriptor that is ready. Returns the streams if they are to be the agent's link.
    pub(crate) fn on_ready(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        part: HelperPart,
        ready: Ready,
    ) -> Option<ShellStreams> {
        match part {
            HelperPart::Streams => return self.on_streams(now, reactor, ready),
            HelperPart::Stderr => self.on_stderr(reactor),
        };
        None
    }

    /// Handles its end.
    pub(crate) fn on_reaped(mut self, reactor: &mut Reactor, status: ExitStatus) {
        let mut reads = 0;
        while reads < LAST_READS_MAX && self.on_stderr(reactor) {
            reads += 1;
        }
        if self.kill_at.is_some() {
            self.kill_session();
        }
        let failure = diagnose(&self.bootstrapper, status, self.tail.bytes());
        reactor.report(Input::ShellEnded {
            start: self.start,
            kind: convert::failure_kind(failure.kind),
            status: convert::status(status),
            words: failure.words,
        });
    }

    /// It leads a session, whose number stays taken while anything of it is left.
    fn kill_session(&self) {
        let _ = process::kill_session_descendants(self.pid, Signal::KILL); // gone is fine
    }

    fn on_streams(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        ready: Ready,
    ) -> Option<ShellStreams> {
        let mut asked = if ready.readable { self.on_printed(reactor, ready.hangup) } else { None };
        if ready.writable {
            self.on_room(reactor);
        }
        while let Some(Asked { request, rest }) = asked {
            match request {
                Request::Link => return self.take_streams(reactor, rest),
                Request::Program => self.on_program_wanted(now, reactor),
                Request::Boot => self.on_program_stored(reactor),
            }
            asked = self.requests.push(&rest);
        }
        None
    }

    /// The streams for a link. Nobody can mean it who has not got the whole boot line.
    fn take_streams(&mut self, reactor: &Reactor, begin: Vec<u8>) -> Option<ShellStreams> {
        let streams = self.streams.take_if(|streams| streams.is_empty())?;
        let fd = streams.into_fd(&reactor.poller).ok()?;
        Some(ShellStreams { fd, begin })
    }

    fn on_program_wanted(&mut self, now: Time, reactor: &mut Reactor) {
        match &mut self.delivery {
            Progress::Unasked if self.after_delivery.is_some() => {
                self.delivery = Progress::Asked;
                reactor.report(Input::Delivery(self.start, Delivery::Wanted));
            }
            Progress::Sending(transfer) => {
                if let Some(announcement) = transfer.on_request(now) {
                    self.write(reactor, announcement);
                }
            }
            // It repeats itself.
            Progress::Unasked | Progress::Asked | Progress::Sent => {}
        }
    }

    fn on_program_stored(&mut self, reactor: &Reactor) {
        if matches!(self.delivery, Progress::Sent) {
            let line = self.after_delivery.take().unwrap_or_default();
            self.write(reactor, line);
        }
    }

    /// Writes what waits; behind it, what is read of the program in a turn.
    fn on_room(&mut self, reactor: &mut Reactor) {
        let Some(streams) = &mut self.streams else { return };
        let Ok(Flushed { bytes, end }) = streams.flush(&reactor.poller) else {
            self.streams = None;
            return;
        };
        if bytes > 0 && matches!(self.delivery, Progress::Sending(_)) {
            reactor.report(Input::Delivery(self.start, Delivery::Moved));
        }
        if end == FlushEnd::Empty {
            self.read_program(reactor);
        }
    }

    fn read_program(&mut self, reactor: &mut Reactor) {
        let Progress::Sending(transfer) = &mut self.delivery else { return };
        if transfer.is_complete() {
            self.delivery = Progress::Sent;
            return reactor.report(Input::Delivery(self.start, Delivery::Sent));
        }
        match transfer.read() {
            Ok(bytes) if bytes.is_empty() => {} // the next piece has to be asked for
            Ok(bytes) => self.write(reactor, bytes),
            Err(error) => self.hang_up(&format!("convoke: read the own program: {error}")),
        }
    }

    /// Queues bytes, to be written once there is room.
    fn write(&mut self, reactor: &Reactor, piece: Vec<u8>) {
        let Some(streams) = &mut self.streams else { return };
        if streams.push_later(&reactor.poller, Bytes::from(piece)).is_err() {
            self.streams = None;
        }
    }

    fn on_printed(&mut self, reactor: &mut Reactor, is_gone: bool) -> Option<Asked> {
        let streams = self.streams.as_mut()?;
        match reactor.read(streams.watched()) {
            Ok(Chunk::Data(bytes)) => return self.requests.push(&bytes),
            Ok(Chunk::WouldBlock) => {}
            // It says no more, and may listen yet.
            Ok(Chunk::Eof) if !is_gone => {
                let _ = streams.set_interest(&reactor.poller, Interest::NONE); // it was added
            }
            Ok(Chunk::Eof) | Err(_) => self.streams = None,
        }
        None
    }

    /// Returns whether there was something.
    fn on_stderr(&mut self, reactor: &mut Reactor) -> bool {
        let Some(stderr) = &self.stderr else { return false };
        match reactor.read(stderr) {
            Ok(Chunk::Data(bytes)) => {
                self.tail.push(&bytes);
                return true;
            }
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => self.stderr = None,
        }
        false
    }
}
