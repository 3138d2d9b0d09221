//! How a task ended.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// The names of Linux signals on x86-64 and most others, from 1.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The first real-time signal that programs may use; glibc keeps two below it.
const RTMIN: u8 = 34;

/// The largest signal.
const SIGNAL_MAX: u8 = 64;

/// A signal's number.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Signal(pub u8);

impl Signal {
    /// The terminal is gone.
    pub const HUP: Signal = Signal(1);
    /// ^C.
    pub const INT: Signal = Signal(2);
    /// A call of `abort`.
    pub const ABRT: Signal = Signal(6);
    /// Ends a process at once.
    pub const KILL: Signal = Signal(9);
    /// For the program to define.
    pub const USR1: Signal = Signal(10);
    /// An invalid memory access.
    pub const SEGV: Signal = Signal(11);
    /// For the program to define.
    pub const USR2: Signal = Signal(12);
    /// Asks a process to end.
    pub const TERM: Signal = Signal(15);
    /// Resumes a stopped process.
    pub const CONT: Signal = Signal(18);
    /// Stops a process, whatever it thinks of it.
    pub const STOP: Signal = Signal(19);
    /// Quits with a core dump: ^\.
    pub const QUIT: Signal = Signal(3);
    /// Nobody reads a pipe.
    pub const PIPE: Signal = Signal(13);
    /// ^Z.
    pub const TSTP: Signal = Signal(20);
}

impl Signal {
    /// Whether it means only what a program makes of it, so that it can be passed on to tasks: nothing
    /// about the process itself, its terminal, its end or its children.
    pub fn is_for_programs(self) -> bool {
        const NAMED: [&str; 9] =
            ["USR1", "USR2", "ALRM", "VTALRM", "PROF", "WINCH", "URG", "IO", "PWR"];
        self.name().is_some_and(|name| NAMED.contains(&name))
            || (RTMIN..=SIGNAL_MAX).contains(&self.0)
    }

    fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0).checked_sub(1)?).copied()
    }
}

impl fmt::Display for Signal {
    /// Writes `SIGTERM`, `SIGRTMIN+3`, or for a number that is no signal `signal 99`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.0) {
            (Some(name), _) => write!(f, "SIG{name}"),
            (None, RTMIN) => f.write_str("SIGRTMIN"),
            (None, RTMIN..=SIGNAL_MAX) => write!(f, "SIGRTMIN+{}", self.0 - RTMIN),
            (None, number) => write!(f, "signal {number}"),
        }
    }
}

/// A text that names no signal.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is neither a signal's name nor a number from 1 to {SIGNAL_MAX}")]
pub struct SignalError(pub String);

impl FromStr for Signal {
    type Err = SignalError;

    /// Reads `TERM`, `SIGTERM`, `sigterm`, `15`, `RTMIN+3` or `RTMAX-1`.
    fn from_str(text: &str) -> Result<Signal, SignalError> {
        if let Ok(number @ 1..=SIGNAL_MAX) = text.parse() {
            return Ok(Signal(number));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = (1..).zip(NAMES).find(|(_, known)| *known == name);
        let named = named.map(|(number, _)| number).or_else(|| real_time(name));
        named.map(Signal).ok_or_else(|| SignalError(text.into()))
    }
}

/// The number of `RTMIN`, `RTMIN+3`, `RTMAX` or `RTMAX-1`.
fn real_time(name: &str) -> Option<u8> {
    let distance = |text: &str, sign| match text.strip_prefix(sign) {
        Some(digits) => digits.parse::<u8>().ok(),
        None => text.is_empty().then_some(0),
    };
    let number = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(rest), _) => RTMIN.checked_add(distance(rest, '+')?)?,
        (None, Some(rest)) => SIGNAL_MAX.checked_sub(distance(rest, '-')?)?,
        (None, None) => return None,
    };
    (RTMIN..=SIGNAL_MAX).contains(&number).then_some(number)
}

/// How one task ended.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It called `exit` with this status.
    Exited(u8),
    /// A signal ended it.
    Signaled {
        /// Which one.
        signal: Signal,
        /// Whether it left a core dump.
        core: bool,
    },
}

impl ExitStatus {
    /// The status of a task that did what it should.
    pub const SUCCESS: ExitStatus = ExitStatus::Exited(0);

    /// The status as a shell would report it: the task's own, or 128 and the signal's number.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Exited(code) => code,
            ExitStatus::Signaled { signal, core: _ } => signal.0.saturating_add(128),
        }
    }

    /// Whether the task exited with status 0.
    pub fn is_success(self) -> bool {
        self == ExitStatus::SUCCESS
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Exited(code) => write!(f, "exited with status {code}"),
            ExitStatus::Signaled { signal, core: false } => write!(f, "killed by {signal}"),
            ExitStatus::Signaled { signal, core: true } => {
                write!(f, "killed by {signal} (core dumped)")
            }
        }
    }
}
