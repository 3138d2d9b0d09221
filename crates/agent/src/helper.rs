//! One bootstrap command that runs.

use std::io;
use std::time::Duration;

use bootstrap::{Bootstrapper, Tail, diagnose};
use bytes::Bytes;
use engine::{Input, StartId};
use model::Time;
use os::{ExitStatus, Interest, Pid, Ready, Signal, process};

use crate::convert;
use crate::outgoing::Outgoing;
use crate::reactor::{Chunk, Reactor, Watched};
use crate::source::{HelperPart, Source};

/// How long a helper may take to end in good order, with an agent below it when it is local.
const TERM_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads of its last words, once it has ended.
const LAST_READS_MAX: usize = 16;

/// A helper that runs.
#[derive(Debug)]
pub(crate) struct Helper {
    start: StartId,
    pid: Pid,
    bootstrapper: Bootstrapper,
    /// Open as long as the agent shall live.
    stdin: Option<Outgoing>,
    stderr: Option<Watched>,
    tail: Tail,
    /// Set once it was told to end: when to kill it.
    kill_at: Option<Time>,
}

impl Helper {
    /// Waits for what `helper` says.
    pub(crate) fn new(
        reactor: &Reactor,
        start: StartId,
        bootstrapper: Bootstrapper,
        helper: bootstrap::Helper,
    ) -> io::Result<Helper> {
        let source = |part| Source::Helper(start, part);
        let mut stderr = Watched::new(helper.stderr, source(HelperPart::Stderr));
        stderr.wait_for(&reactor.poller, Some(Interest::READ))?;
        let stdin = match helper.stdin {
            Some(fd) => {
                let mut stdin =
                    Outgoing::new(&reactor.poller, fd, source(HelperPart::Stdin), Interest::NONE)?;
                stdin.push(Bytes::from(helper.unsent));
                stdin.flush(&reactor.poller)?;
                Some(stdin)
            }
            None => None,
        };
        let pid = helper.pid;
        let tail = Tail::default();
        let stderr = Some(stderr);
        Ok(Helper { start, pid, bootstrapper, stdin, stderr, tail, kill_at: None })
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Tells it to end, and its process group with it.
    pub(crate) fn end(&mut self, now: Time) {
        self.stdin = None;
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

    /// Handles a descriptor that is ready.
    pub(crate) fn on_ready(&mut self, reactor: &mut Reactor, part: HelperPart, ready: Ready) {
        match part {
            HelperPart::Stdin => self.on_stdin(reactor, ready),
            HelperPart::Stderr => {
                self.on_stderr(reactor);
            }
        }
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

    fn on_stdin(&mut self, reactor: &Reactor, ready: Ready) {
        let Some(stdin) = &mut self.stdin else { return };
        if ready.hangup || stdin.flush(&reactor.poller).is_err() {
            self.stdin = None;
        }
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
