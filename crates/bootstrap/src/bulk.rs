//! The local bulk launcher: one command that starts many agents without standard input.
//!
//! It stands for `srun` and its kind. Each agent learns its index from one environment variable,
//! and the boot line, the same for all, from another (`/proc/PID/environ` is only the user's to
//! read).

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;

use os::process::{self, ExitStatus, Reaped};
use os::{Interest, Pid, Poller, Signal, SignalFd, SpawnError, SpawnSpec};

use crate::bootstrapper::AGENT_SUBCOMMAND;
use crate::start::{StartError, c_strings, environment};

/// The hidden subcommand; its argument is the number of agents.
pub const SUBCOMMAND: &str = "__bulk";

/// Holds the boot line. An agent that has it does not read its standard input.
pub const BOOT_VARIABLE: &str = "CONVOKE_BOOT";

/// Holds the agent's index among those of its command, from 0.
pub const INDEX_VARIABLE: &str = "CONVOKE_BULK_INDEX";

/// Why not all agents were started. Those that were are told to end.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// A program or variable cannot be passed on.
    #[error("prepare agents")]
    Prepare(#[source] StartError),
    /// Signals or descriptors are not to be had.
    #[error("wait for agents")]
    Wait(#[source] io::Error),
    /// One did not start.
    #[error("start agent {index}")]
    Spawn {
        /// Which.
        index: usize,
        /// Why.
        #[source]
        source: SpawnError,
    },
}

/// Passed on to every agent.
const FORWARDED: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

/// Starts `count` agents of `program`, passes signals on to them, and returns when all have ended:
/// the first status that was no success, or else success.
///
/// # Errors
/// See [`BulkError`].
pub fn run(program: &OsStr, count: usize) -> Result<ExitStatus, BulkError> {
    let signals =
        SignalFd::new(&[&FORWARDED[..], &[Signal::CHLD]].concat()).map_err(BulkError::Wait)?;
    let mut agents = Vec::new();
    for index in 0..count {
        match spawn_agent(program, index) {
            Ok(pid) => agents.push(pid),
            Err(error) => {
                signal_all(&agents, Signal::TERM);
                return Err(error);
            }
        }
    }
    wait_for_all(&signals, &mut agents).map_err(BulkError::Wait)
}

fn spawn_agent(program: &OsStr, index: usize) -> Result<Pid, BulkError> {
    let argv = [program.to_owned(), OsString::from(AGENT_SUBCOMMAND)];
    let argv = c_strings(&argv).map_err(BulkError::Prepare)?;
    let env = environment(&[(INDEX_VARIABLE.into(), index.to_string().into())]);
    let env = c_strings(&env).map_err(BulkError::Prepare)?;
    let null = std::fs::File::open("/dev/null").map_err(BulkError::Wait)?;
    let mut spec = SpawnSpec::new(
        &argv[0],
        argv.iter().map(CString::as_c_str).collect(),
        env.iter().map(CString::as_c_str).collect(),
    );
    spec.fds = [Some(null.as_fd()), None, None];
    spec.parent_death_signal = Some(Signal::TERM);
    os::spawn(&spec).map_err(|source| BulkError::Spawn { index, source })
}

fn wait_for_all(signals: &SignalFd, agents: &mut Vec<Pid>) -> io::Result<ExitStatus> {
    let mut poller = Poller::new()?;
    poller.add(signals, 0, Interest::READ).map_err(io::Error::other)?;
    let mut ready = Vec::new();
    let mut worst = ExitStatus::Exited(0);
    loop {
        // Before waiting: an agent may have ended before there was a poller.
        loop {
            match process::reap_any()? {
                Reaped::Ended(pid, status, _) => {
                    agents.retain(|agent| *agent != pid);
                    worst = if worst.success() { status } else { worst };
                }
                Reaped::Running => break,
                Reaped::NoChildren => return Ok(worst),
            }
        }
        poller.wait(None, &mut ready)?;
        while let Some(received) = signals.read()? {
            if received.signal != Signal::CHLD {
                signal_all(agents, received.signal);
            }
        }
    }
}

fn signal_all(agents: &[Pid], signal: Signal) {
    for agent in agents {
        let _ = process::kill(*agent, signal); // not reaped, so the number is still its own
    }
}
