//! A signal by number, with the name a user knows it by.
//!
//! A number rather than an enum: real-time signals have numbers only, and a peer may name any.

use std::fmt;

/// A signal's number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Signal(pub i32);

impl Signal {
    /// The terminal went away.
    pub const HUP: Signal = Signal(libc::SIGHUP);
    /// `^C`.
    pub const INT: Signal = Signal(libc::SIGINT);
    /// `^\`.
    pub const QUIT: Signal = Signal(libc::SIGQUIT);
    /// The process called `abort`.
    pub const ABRT: Signal = Signal(libc::SIGABRT);
    /// Cannot be caught.
    pub const KILL: Signal = Signal(libc::SIGKILL);
    /// A bad memory access.
    pub const SEGV: Signal = Signal(libc::SIGSEGV);
    /// Nobody reads the pipe.
    pub const PIPE: Signal = Signal(libc::SIGPIPE);
    /// A timer.
    pub const ALRM: Signal = Signal(libc::SIGALRM);
    /// A request to end.
    pub const TERM: Signal = Signal(libc::SIGTERM);
    /// For the user.
    pub const USR1: Signal = Signal(libc::SIGUSR1);
    /// For the user.
    pub const USR2: Signal = Signal(libc::SIGUSR2);
    /// A child changed its state.
    pub const CHLD: Signal = Signal(libc::SIGCHLD);
    /// Continue after a stop.
    pub const CONT: Signal = Signal(libc::SIGCONT);
    /// A stop that cannot be caught.
    pub const STOP: Signal = Signal(libc::SIGSTOP);
    /// `^Z`.
    pub const TSTP: Signal = Signal(libc::SIGTSTP);
    /// A background process read from its terminal.
    pub const TTIN: Signal = Signal(libc::SIGTTIN);
    /// A background process wrote to its terminal.
    pub const TTOU: Signal = Signal(libc::SIGTTOU);
    /// The terminal's size changed.
    pub const WINCH: Signal = Signal(libc::SIGWINCH);

    /// The name without a number, when the signal has one: `SIGSEGV`.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// The signal of this name, with or without `SIG`, or of this number; any case.
    pub fn parse(text: &str) -> Option<Signal> {
        let upper = text.to_ascii_uppercase();
        let named = |name: &str| name == upper || name.strip_prefix("SIG") == Some(&upper);
        let by_name = NAMES.iter().find(|(_, name)| named(name)).map(|(number, _)| Signal(*number));
        by_name.or_else(|| text.parse().ok().filter(|n| (1..=64).contains(n)).map(Signal))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

const NAMES: &[(i32, &str)] = &[
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGCHLD, "SIGCHLD"),
    (libc::SIGCONT, "SIGCONT"),
    (libc::SIGSTOP, "SIGSTOP"),
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGTTIN, "SIGTTIN"),
    (libc::SIGTTOU, "SIGTTOU"),
    (libc::SIGURG, "SIGURG"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGWINCH, "SIGWINCH"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (libc::SIGSYS, "SIGSYS"),
];

#[cfg(test)]
mod tests {
    use super::Signal;

    #[test]
    fn a_signal_is_parsed_by_name_or_number() {
        assert_eq!(Signal::parse("TERM"), Some(Signal::TERM));
        assert_eq!(Signal::parse("sigusr1"), Some(Signal::USR1));
        assert_eq!(Signal::parse("9"), Some(Signal::KILL));
        assert_eq!(Signal::parse("34"), Some(Signal(34)));
        assert_eq!(Signal::parse("0"), None);
        assert_eq!(Signal::parse("65"), None);
        assert_eq!(Signal(40).to_string(), "signal 40");
    }
}
