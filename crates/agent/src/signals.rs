//! Signals that are read like any other input, and the children whose ends they announce.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use os::{Signal, SignalFd};

/// What the user may send to the head, to be told to the tasks or to end the job.
pub(crate) const HEAD: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::CHLD,
];

/// What ends an agent, and the ends of its children.
pub(crate) const AGENT: [Signal; 5] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::CHLD];

/// Where signals arrive.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: SignalFd,
    /// Ignored when we were started, as `nohup` does: blocking a signal would bring it back.
    ignored: Vec<Signal>,
}

impl Signals {
    /// Collects `signals`.
    pub(crate) fn new(signals: &[Signal]) -> io::Result<Signals> {
        let is_ignored =
            |signal: &Signal| *signal != Signal::CHLD && os::signals::is_ignored(*signal);
        let ignored = signals.iter().copied().filter(is_ignored).collect();
        Ok(Signals { fd: SignalFd::new(signals)?, ignored })
    }

    /// The next signal that is not ignored. Call until `None`.
    pub(crate) fn next(&self) -> Option<Signal> {
        // An error is not expected, and would be as if nothing had come.
        while let Ok(Some(received)) = self.fd.read() {
            if !self.ignored.contains(&received.signal) {
                return Some(received.signal);
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

/// Stops us as `^Z` does by default; returns when we go on.
pub(crate) fn stop_self() {
    os::signals::reset(&[Signal::TSTP]);
    os::signals::raise(Signal::TSTP);
    // Blocks it again, and keeps it blocked.
    let _ = SignalFd::new(&[Signal::TSTP]);
}
