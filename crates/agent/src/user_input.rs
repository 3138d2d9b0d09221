//! The user's standard input: a terminal, a pipe, a file, `/dev/null`.
//!
//! Only as many bytes are read as were asked for, and only while a task wants them: what is left
//! belongs to whoever reads after us, such as the shell whose script we are a line of.
//!
//! A terminal is not read in the background, where reading would stop us. Shells need not tell a
//! running job that it was brought to the foreground, so that is looked at every second, as long as
//! somebody waits for input.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use engine::Input;
use model::Time;
use os::poller::PollError;
use os::{Interest, tty};

use crate::reactor::{Chunk, READ_BYTES, Reactor};
use crate::source::Source;

/// How often to look whether we are in the foreground.
const FOREGROUND_CHECK: Duration = Duration::from_secs(1);

/// Standard input.
#[derive(Debug)]
pub(crate) struct UserInput {
    /// Bytes that may still be read.
    granted: u64,
    state: State,
    is_terminal: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nobody wants input.
    Idle,
    /// The poller says when there is some.
    Waiting,
    /// It never blocks: a part of it is read in every turn of the loop.
    Always,
    /// We are in the background of its terminal; when to look again.
    Background(Time),
    /// All was read, or nobody wants the rest.
    Over,
}

impl UserInput {
    /// Reads nothing yet.
    pub(crate) fn new() -> UserInput {
        let is_terminal = tty::is_terminal(io::stdin());
        UserInput { granted: 0, state: State::Idle, is_terminal }
    }

    /// Lets `bytes` more be read.
    pub(crate) fn grant(&mut self, now: Time, reactor: &mut Reactor, bytes: u32) {
        self.granted += u64::from(bytes);
        if self.state == State::Idle {
            self.resume(now, reactor);
        }
    }

    /// Reads no more.
    pub(crate) fn stop(&mut self, reactor: &mut Reactor) {
        self.pause(reactor);
        self.state = State::Over;
    }

    /// Whether something can be read without waiting.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Always
    }

    /// When to call [`UserInput::on_time`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            State::Background(at) => Some(at),
            State::Idle | State::Waiting | State::Always | State::Over => None,
        }
    }

    /// Looks whether we are in the foreground, when it is time to.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &mut Reactor) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.resume(now, reactor);
        }
    }

    /// Handles our going on after a stop, perhaps in the foreground.
    pub(crate) fn on_continued(&mut self, now: Time, reactor: &mut Reactor) {
        if self.poll_timeout().is_some() {
            self.resume(now, reactor);
        }
    }

    /// Reads a piece.
    pub(crate) fn on_ready(&mut self, now: Time, reactor: &mut Reactor) {
        if !matches!(self.state, State::Waiting | State::Always) {
            return;
        }
        if self.is_terminal && !tty::is_ours(io::stdin()) {
            self.pause(reactor);
            self.state = State::Background(now + FOREGROUND_CHECK);
            return;
        }
        let bytes_max = usize::try_from(self.granted).unwrap_or(READ_BYTES);
        match reactor.read_at_most(io::stdin(), bytes_max) {
            Ok(Chunk::Data(data)) => {
                self.granted = self.granted.saturating_sub(data.len() as u64);
                reactor.report(Input::UserInput(data));
                if self.granted == 0 {
                    self.pause(reactor);
                }
            }
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => {
                self.stop(reactor);
                reactor.report(Input::UserInputEnd);
            }
        }
    }

    fn resume(&mut self, now: Time, reactor: &mut Reactor) {
        if self.is_terminal && !tty::is_ours(io::stdin()) {
            self.state = State::Background(now + FOREGROUND_CHECK);
            return;
        }
        let token = Source::UserInput.token();
        self.state = match reactor.poller.add(io::stdin().as_fd(), token, Interest::READ) {
            Ok(()) => State::Waiting,
            // What cannot be waited for, or not at all, shows in the read.
            Err(PollError::AlwaysReady | PollError::Os(_)) => State::Always,
        };
    }

    fn pause(&mut self, reactor: &mut Reactor) {
        if self.state == State::Waiting {
            let _ = reactor.poller.remove(io::stdin().as_fd()); // it was added
        }
        self.state = State::Idle;
    }
}
