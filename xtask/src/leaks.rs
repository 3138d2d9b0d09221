//! Nothing may be left: no process, no mount, no named namespace, no temporary file.
//!
//! A process is recognised by a variable that every descendant of the tests inherits, whoever its
//! parent is by then. Temporary files go to a directory of their own, which must be empty at the
//! end.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use os::Pid;

/// Marks the descendants of a test run; its value is the run.
const MARK: &str = "CONVOKE_TEST_RUN";

/// How long the last processes may take to end: the promise is two seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often to look at a process that starts another program, which takes some hundred microseconds.
const LOOKS: u32 = 10_000;

/// What the machine looked like before the tests.
#[derive(Debug)]
pub(crate) struct LeakCheck {
    run: String,
    temp_dir: PathBuf,
    mounts: BTreeSet<String>,
}

impl LeakCheck {
    /// Takes stock.
    pub(crate) fn begin() -> anyhow::Result<LeakCheck> {
        let run = std::process::id().to_string();
        let temp_dir = std::env::temp_dir().join(format!("convoke-test-{run}"));
        fs::create_dir(&temp_dir).with_context(|| format!("make `{}`", temp_dir.display()))?;
        Ok(LeakCheck { run, temp_dir, mounts: mounts()? })
    }

    /// The environment in which the tests must run.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        [(MARK, self.run.clone()), ("TMPDIR", self.temp_dir.display().to_string())]
    }

    /// Says what is there that was not, a line each, and clears temporary files away.
    pub(crate) fn end(self) -> anyhow::Result<Vec<String>> {
        let mut leaks = self.processes()?;
        if !leaks.is_empty() {
            #[expect(clippy::disallowed_methods, reason = "the promise under test is a time")]
            thread::sleep(PATIENCE);
            leaks = self.processes()?;
        }
        for entry in fs::read_dir(&self.temp_dir)? {
            leaks.push(format!("temporary file {}", entry?.path().display()));
        }
        let new_mounts = mounts()?;
        leaks.extend(new_mounts.difference(&self.mounts).map(|line| format!("mount {line}")));
        fs::remove_dir_all(&self.temp_dir)?;
        Ok(leaks)
    }

    fn processes(&self) -> anyhow::Result<Vec<String>> {
        let mark = format!("{MARK}={}", self.run);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let dir = entry?.path();
            let pid = dir.file_name().and_then(|name| name.to_str()?.parse().ok());
            let environment = pid.map(environment_of).unwrap_or_default();
            if environment.split(|&byte| byte == 0).any(|pair| pair == mark.as_bytes()) {
                let arguments = fs::read(dir.join("cmdline")).unwrap_or_default();
                let command = String::from_utf8_lossy(&arguments).replace('\0', " ");
                found.push(format!("process {}: {command}", dir.display()));
            }
        }
        Ok(found)
    }
}

/// Looks again while the process starts another program. What ends meanwhile is no leak, and has none.
fn environment_of(pid: Pid) -> Vec<u8> {
    for _ in 0..LOOKS {
        match os::process::environment_of(pid) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
            environment => return environment.unwrap_or_default(),
        }
    }
    Vec::new()
}

/// The mounts that this process sees; `ip netns` names its namespaces by mounts, too.
fn mounts() -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string("/proc/self/mounts").context("read the mounts")?;
    Ok(text.lines().map(str::to_owned).collect())
}
