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

    /// Stops us as `^Z` does by default; returns when we go on.
    pub(crate) fn stop_self(&mut self) {
        // While it is blocked, this is one with what the keeper may have passed on meanwhile: two
        // would stop us twice.
        os::signals::raise(Signal::TSTP);
        os::signals::reset(&[Signal::TSTP]);
        // Blocks it again, and keeps it blocked.
        let _ = SignalFd::new(&[Signal::TSTP]);
        self.twice.forget(Signal::TSTP);
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

/// The signals that came one way of late, whose copies may come the other way.
#[derive(Debug, Default)]
struct Twice {
    last: Vec<(Time, Signal, bool)>,
}

impl Twice {
    /// Whether this signal has just come the other way. It is the copy of one, not of two.
    fn is_known(&mut self, now: Time, signal: Signal, is_passed_on: bool) -> bool {
        self.last.retain(|(at, ..)| now.since(*at) < TWICE_MAX);
        let known = self.last.iter().position(|(_, s, on)| *s == signal && *on != is_passed_on);
        match known {
            Some(i) => drop(self.last.remove(i)),
            None if signal == Signal::CHLD => {}
            None => self.last.push((now, signal, is_passed_on)),
        }
        known.is_some()
    }

    /// What comes from now on is no copy of what came before: one that was on its way when we were
    /// stopped is gone, since the kernel drops it when we are continued.
    fn forget(&mut self, signal: Signal) {
        self.last.retain(|(_, it, _)| *it != signal);
    }
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

    /// Whether each signal counts that comes at `ms`, from the keeper or not.
    fn counts(twice: &mut Twice, signal: Signal, comes: &[(u64, bool)]) -> Vec<bool> {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        comes.iter().map(|&(ms, passed_on)| !twice.is_known(at(ms), signal, passed_on)).collect()
    }

    #[test]
    fn a_signal_that_comes_both_ways_is_one_and_two_that_come_one_way_are_two() {
        let (direct, passed_on) = (false, true);
        for (comes, expected) in [
            (vec![(0, direct), (1, passed_on)], vec![true, false]),
            (vec![(0, passed_on), (1, direct)], vec![true, false]),
            (vec![(0, direct), (1, direct)], vec![true, true]),
            (vec![(0, passed_on), (1, passed_on), (2, direct)], vec![true, true, false]),
            (
                vec![(0, direct), (1, passed_on), (2, direct), (3, passed_on)],
                vec![true, false, true, false],
            ),
            (vec![(0, direct), (1_000, passed_on)], vec![true, true]),
        ] {
            let counted = counts(&mut Twice::default(), Signal::TERM, &comes);
            assert_eq!(counted, expected, "{comes:?}");
        }
    }

    /// The keeper's copy of the first may be lost, and so may the second but for its copy: a signal
    /// to go on takes those to stop away that wait, and the keeper's may be late.
    #[test]
    fn what_comes_after_a_stop_is_no_copy_of_what_came_before() {
        let mut twice = Twice::default();
        assert_eq!(counts(&mut twice, Signal::TSTP, &[(0, false)]), [true]);
        twice.forget(Signal::TSTP);
        assert_eq!(counts(&mut twice, Signal::TSTP, &[(50, true), (51, false)]), [true, false]);
    }
}
