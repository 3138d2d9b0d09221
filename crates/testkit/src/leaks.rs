//! Finds the processes that a test has left behind, whoever adopted them.
//!
//! Everything that a test starts inherits a marker in its environment; whatever still has it afterwards is a
//! survivor, however often it has forked or changed its session. A process that cleans its own environment
//! before `exec` escapes; the fixtures here do not.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use os::Pid;

/// How long a process may take from one program to the next: a few hundred microseconds on a processor of its own.
const BETWEEN_PROGRAMS: Duration = Duration::from_secs(1);

/// A variable with a value that no other test has.
#[derive(Clone, Debug)]
pub struct Marker {
    value: String,
}

/// A process that has the marker.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// Its command line, blanks between the arguments.
    pub command: String,
    environment: Vec<u8>,
}

impl Survivor {
    /// The value of a variable that its program was started with.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = String::from_utf8_lossy(&self.environment);
        let mut variables = environment.split('\0').filter_map(|variable| variable.split_once('='));
        variables.find(|(its_name, _)| *its_name == name).map(|(_, value)| value.to_owned())
    }
}

impl Marker {
    /// The variable to give to everything that the test starts.
    pub const VARIABLE: &str = "CONVOKE_TEST_ID";

    /// A marker that belongs to this process and `test`.
    pub fn new(test: &str) -> Marker {
        Marker { value: format!("{test}-{}", std::process::id()) }
    }

    /// The variable's value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The processes on this machine that have the marker and are not zombies, in order of their ids.
    /// Processes of other users cannot be looked into, and are left out.
    pub fn survivors(&self) -> Vec<Survivor> {
        let pids: BTreeSet<Pid> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        let own_pid = os::process::own_pid();
        pids.into_iter()
            .filter(|pid| *pid != own_pid)
            .filter_map(|pid| self.survivor(pid))
            .collect()
    }

    /// While a process starts another program, neither its environment nor its command can be told: this looks again.
    #[expect(clippy::disallowed_methods, reason = "a test waits for a process of any kind")]
    fn survivor(&self, pid: Pid) -> Option<Survivor> {
        let deadline = Instant::now() + BETWEEN_PROGRAMS;
        loop {
            let is_last = Instant::now() >= deadline;
            match os::process::environment_of(pid) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && !is_last => (),
                Err(_) => return None,
                Ok(environment) => {
                    let mut survivor =
                        Survivor { pid: pid.unsigned_abs(), command: String::new(), environment };
                    if survivor.variable(Self::VARIABLE).as_ref() != Some(&self.value) {
                        return None;
                    }
                    survivor.command = command_line(pid);
                    let command = &survivor.command;
                    let is_whole = !command.is_empty() && *command == command_line(pid);
                    if is_whole || is_last {
                        return Some(survivor);
                    }
                }
            }
            std::thread::yield_now();
        }
    }

    /// Waits until no process has the marker, and returns those that still have it at the deadline.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test waits for processes that are not its children"
    )]
    pub fn wait_until_gone(&self, patience: Duration) -> Vec<Survivor> {
        let deadline = Instant::now() + patience;
        loop {
            let survivors = self.survivors();
            if survivors.is_empty() || Instant::now() >= deadline {
                return survivors;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl fmt::Debug for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}

fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let spaced = bytes.into_iter().map(|byte| if byte == 0 { b' ' } else { byte }).collect();
    OsString::from_vec(spaced).to_string_lossy().trim_end().to_owned()
}
