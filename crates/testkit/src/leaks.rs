//! Finds the processes that a test has left behind, whoever adopted them.
//!
//! Everything that a test starts inherits a marker in its environment; whatever still has it afterwards is a
//! survivor, however often it has forked or changed its session. A process that cleans its own environment
//! before `exec` escapes; the fixtures here do not.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A variable with a value that no other test has.
#[derive(Clone, Debug)]
pub struct Marker {
    value: String,
}

/// A process that has the marker.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// Its command line, blanks between the arguments.
    pub command: String,
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
        let entry = format!("{}={}", Self::VARIABLE, self.value).into_bytes();
        let has_marker = |dir: &Path| {
            let environ = fs::read(dir.join("environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == entry)
        };
        let pids: BTreeSet<u32> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        let own_pid = std::process::id();
        pids.into_iter()
            .filter(|pid| *pid != own_pid)
            .map(|pid| (pid, Path::new("/proc").join(pid.to_string())))
            .filter(|(_, dir)| has_marker(dir))
            .map(|(pid, dir)| Survivor { pid, command: command_line(&dir) })
            .collect()
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

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}

fn command_line(dir: &Path) -> String {
    let bytes = fs::read(dir.join("cmdline")).unwrap_or_default();
    let spaced = bytes.into_iter().map(|byte| if byte == 0 { b' ' } else { byte }).collect();
    OsString::from_vec(spaced).to_string_lossy().trim_end().to_owned()
}
