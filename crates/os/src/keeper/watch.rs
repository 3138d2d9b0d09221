//! A keeper's wait for an agent that a remote shell started: standard input is the shell's other
//! sign of life.
//!
//! An agent ends by itself when its shell is gone. One that hangs does not, be it stopped or stuck,
//! and nobody else is left on its host who could end it. So the keeper sees the end of standard input
//! too, without reading it, and kills an agent that outlives it by more than an agent needs to end.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use super::FORWARDED;
use crate::process::{self, ExitStatus, State};
use crate::{Clock, Pid, Signal, SignalFd};

/// How long an agent may outlive its shell. All that it has left to do is to kill what is below it, and
/// what it is killed over the keeper goes on to kill; with a session everything is gone in two seconds.
const HUNG_MAX: Duration = Duration::from_secs(1);

/// The wait.
pub(super) struct Watch {
    agent: Pid,
    signals: SignalFd,
    clock: Clock,
    /// When the agent is killed, once the shell is gone.
    kill_at: Option<Duration>,
}

impl Watch {
    /// Watches over `agent`. All signals are blocked.
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub(super) fn new(agent: Pid) -> io::Result<Watch> {
        let signals = SignalFd::new(&[&FORWARDED[..], &[Signal::CHLD]].concat())?;
        Ok(Watch { agent, signals, clock: Clock::new(), kill_at: None })
    }

    /// Passes signals on until the agent has ended.
    pub(super) fn wait(mut self) -> io::Result<ExitStatus> {
        loop {
            let ended = process::wait_for(libc::P_PID, self.agent.cast_unsigned(), libc::WEXITED)?;
            if let Some((_, State::Ended(status))) = ended {
                return Ok(status);
            }
            self.sleep()?;
            self.forward()?;
            if self.kill_at.is_some_and(|at| at <= self.now()) {
                self.kill_at = None;
                let _ = process::kill(self.agent, Signal::KILL); // it may have ended meanwhile
            }
        }
    }

    /// Waits for a signal, the shell's end, or the time to kill.
    fn sleep(&mut self) -> io::Result<()> {
        let is_told = self.kill_at.is_some();
        let signals = self.signals.as_fd().as_raw_fd();
        let mut polls = [
            libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
            // Nothing is asked for: only the end shows.
            libc::pollfd { fd: libc::STDIN_FILENO, events: 0, revents: 0 },
        ];
        let n = if is_told { 1 } else { 2 };
        // SAFETY: the array has at least `n` entries.
        let ready = unsafe { libc::poll(polls.as_mut_ptr(), n, self.timeout_ms()) };
        if ready == -1 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(io::Error::last_os_error());
        }
        if polls[1].revents & (libc::POLLHUP | libc::POLLERR) != 0 {
            self.kill_at = Some(self.now() + HUNG_MAX);
        }
        Ok(())
    }

    /// -1, for ever, while the shell lives or once the agent was killed.
    fn timeout_ms(&self) -> i32 {
        let left = self.kill_at.map(|at| at.saturating_sub(self.now()).as_millis() + 1);
        left.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX))
    }

    fn forward(&self) -> io::Result<()> {
        while let Some(received) = self.signals.read()? {
            if FORWARDED.contains(&received.signal) {
                let _ = process::kill(self.agent, received.signal); // it may have ended meanwhile
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.now())
    }
}
