//! What creating a process and executing a program cost on this host.
//!
//! A small program is run some times, one after the other. Creating is the time until it runs, for
//! which whoever creates it waits ([`os::spawn`]); executing is the rest, until it has ended. Medians,
//! so that a pause of the machine does not count.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use os::{Clock, Interest, Poller, SpawnSpec};

use crate::calibrate::median;

/// How often it is run.
const RUNS: usize = 50;

/// The program does nothing and takes longer on no machine.
const PROGRAM: &str = "true";
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// What one process costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpawnCost {
    /// Until the program runs.
    pub(crate) spawn_us: f64,
    /// From then until it has done what every program does, which is to load, and has ended.
    pub(crate) exec_us: f64,
}

impl SpawnCost {
    /// Measures it, with the `PATH` of this process. Absent where the program cannot be run.
    pub(crate) fn measured() -> Option<SpawnCost> {
        let path_list = std::env::var_os("PATH")?;
        let program = os::which(OsStr::new(PROGRAM), &path_list, Path::new("/")).ok()?;
        let program = CString::new(program.as_os_str().as_bytes()).ok()?;
        let runs: Option<Vec<SpawnCost>> = (0..RUNS).map(|_| run_once(&program).ok()).collect();
        let runs = runs?;
        Some(SpawnCost {
            spawn_us: median(runs.iter().map(|run| run.spawn_us).collect())?,
            exec_us: median(runs.iter().map(|run| run.exec_us).collect())?,
        })
    }
}

fn run_once(program: &CString) -> io::Result<SpawnCost> {
    let clock = Clock::new();
    let spec = SpawnSpec::new(program, vec![program], Vec::new());
    let pid = os::spawn(&spec).map_err(io::Error::other)?;
    let spawned = clock.now();
    let mut poller = Poller::new()?;
    let pidfd = os::process::pidfd(pid)?;
    poller.add(&pidfd, 0, Interest::READ).map_err(io::Error::other)?;
    poller.wait(Some(ENDS_WITHIN), &mut Vec::new())?;
    let ended = clock.now();
    match os::process::try_wait(&pidfd)? {
        Some(status) if status.success() => {
            Ok(SpawnCost { spawn_us: us(spawned), exec_us: us(ended - spawned) })
        }
        Some(_) | None => Err(io::Error::other("the program fails")),
    }
}

fn us(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_some_time_and_less_than_a_second() {
        let SpawnCost { spawn_us, exec_us } = SpawnCost::measured().unwrap();
        assert!((1.0..1e6).contains(&spawn_us) && (1.0..1e6).contains(&exec_us));
    }
}
