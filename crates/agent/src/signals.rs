//! Signals that are read like any other input, and the children whose ends they announce.
//!
//! The front end is two processes of one process group, so a signal to the group comes twice: once to
//! us, and once from our keeper, which cannot know that we have it. It is one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use model::Time;
use os::{Pid, Signal, SignalFd};

use crate::convert;

/// What the head takes besides the signals that programs give a meaning: what means to end, to stop
/// or to go on, and the ends of children.
const HEAD: [Signal; 7] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::TSTP,
    Signal::CONT,
    Signal::CHLD,
];

/// What ends an agent, and the ends of its children.
const AGENT: [Signal; 5] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::CHLD];

/// Within this time, a signal that came to us and one that the keeper passed on are the same.
const TWICE_MAX: Duration = Duration::from_millis(200);

/// Where signals arrive.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: SignalFd,
    /// Ignored when we were started, as `nohup` does: blocking a signal would bring it back.
    ignored: Vec<Signal>,
    /// Who passes on what it is sent.
    keeper: Pid,
    twice: Twice,
}

impl Signals {
    /// What the user may send to the head. What it does with them is not decided here.
    pub(crate) fn of_head(keeper: Pid) -> io::Result<Signals> {
        let programs = (1..=64).map(model::Signal).filter(|it| it.is_for_programs());
        let programs = programs.map(convert::os_signal);
        Signals::new(HEAD.into_iter().chain(programs).collect(), keeper)
    }

    /// What may end an agent.
    pub(crate) fn of_agent(keeper: Pid) -> io::Result<Signals> {
        Signals::new(AGENT.to_vec(), keeper)
    }

    fn new(signals: Vec<Signal>, keeper: Pid) -> io::Result<Signals> {
        let is_ignored =
            |signal: &Signal| *signal != Signal::CHLD && os::signals::is_ignored(*signal);
        let ignored = signals.iter().copied().filter(is_ignored).collect();
        let fd = SignalFd::new(&signals)?;
        Ok(Signals { fd, ignored, keeper, twice: Twice::default() })
    }

    /// The next signal that is not ignored. Call until `None`.
    pub(crate) fn next(&mut self, now: Time) -> Option<Signal> {
        // An error is not expected, and would be as if nothing had come.
        while let Ok(Some(received)) = self.fd.read() {
            let signal = received.signal;
            let is_passed_on = received.sender == self.keeper;
            if !self.ignored.contains(&signal) && !self.twice.is_known(now, signal, is_passed_on) {
                return Some(signal);
            }
        }
        None
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The signals that came last, to know those that come twice.
#[derive(Debug, Default)]
struct Twice {
    last: Vec<(Time, Signal, bool)>,
}

impl Twice {
    /// Whether this signal has just come the other way.
    fn is_known(&mut self, now: Time, signal: Signal, is_passed_on: bool) -> bool {
        self.last.retain(|(at, ..)| now.since(*at) < TWICE_MAX);
        let is_known = self.last.iter().any(|(_, s, on)| *s == signal && *on != is_passed_on);
        if signal != Signal::CHLD {
            self.last.push((now, signal, is_passed_on));
        }
        is_known
    }
}

/// Stops us as `^Z` does by default; returns when we go on.
pub(crate) fn stop_self() {
    // While it is blocked, this is one with what the keeper may have passed on meanwhile: two would stop us twice.
    os::signals::raise(Signal::TSTP);
    os::signals::reset(&[Signal::TSTP]);
    // Blocks it again, and keeps it blocked.
    let _ = SignalFd::new(&[Signal::TSTP]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keeper_passes_on_what_programs_give_a_meaning() {
        for number in 1..=64 {
            let signal = model::Signal(number);
            let is_passed_on = os::signals::is_for_programs(convert::os_signal(signal));
            assert_eq!(signal.is_for_programs(), is_passed_on, "{signal}");
        }
    }

    #[test]
    fn a_signal_that_comes_both_ways_is_one_and_two_that_come_one_way_are_two() {
        let mut twice = Twice::default();
        let mut comes = |ms: u64, is_passed_on: bool| {
            let now = Time::ZERO + Duration::from_millis(ms);
            !twice.is_known(now, Signal::TERM, is_passed_on)
        };
        assert!(comes(0, false));
        assert!(!comes(1, true), "the keeper's copy");
        assert!(comes(1_000, true));
        assert!(comes(1_010, true), "again, from the keeper alone");
        assert!(!comes(1_020, false));
        assert!(comes(3_000, false));
        assert!(comes(3_001, false), "twice at the terminal");
    }
}
