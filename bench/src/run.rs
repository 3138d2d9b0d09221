//! Starts one command, waits for it with a deadline, and leaves nothing of it behind.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use testbed::{clock, command};
use testkit::Marker;

/// How long processes of an ended command may take to end as well.
const CLEAN_UP_LIMIT: Duration = Duration::from_secs(2);

/// How much of a failed command's words an error repeats.
const WORDS_BYTES_MAX: usize = 300;

/// A command that runs. Dropping it ends all of it.
pub(crate) struct Running {
    child: Child,
    begun: Instant,
    deadline: Instant,
    errors: File,
    marker: Marker,
}

/// What a command wrote, and how long it took.
pub(crate) struct Captured {
    /// From its start to its end.
    pub(crate) elapsed: Duration,
    /// All of its standard output.
    pub(crate) output: Vec<u8>,
}

/// Runs a command that must succeed, without input and output. Returns how long it took.
pub(crate) fn time(command: &mut Command, limit: Duration) -> anyhow::Result<Duration> {
    Running::start(command, Stdio::null(), limit)?.finish()
}

/// Runs a command that must succeed, and keeps its output.
pub(crate) fn capture(command: &mut Command, limit: Duration) -> anyhow::Result<Captured> {
    let mut running = Running::start(command, Stdio::piped(), limit)?;
    let mut output = Vec::new();
    running.read_all(|part| output.extend_from_slice(part))?;
    Ok(Captured { elapsed: running.finish()?, output })
}

impl Running {
    /// Starts `command`, which is to end within `limit`.
    pub(crate) fn start(
        command: &mut Command,
        stdout: Stdio,
        limit: Duration,
    ) -> anyhow::Result<Running> {
        let marker = Marker::new("bench");
        let errors = tempfile::tempfile().context("make a temporary file")?;
        command
            .env(Marker::VARIABLE, marker.value())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(errors.try_clone().context("duplicate a descriptor")?);
        let begun = clock::now();
        let child = command::start(command)?;
        Ok(Running { child, begun, deadline: begun + limit, errors, marker })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it was started.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// What it wrote to standard error so far.
    pub(crate) fn words(&mut self) -> String {
        let mut text = Vec::new();
        // Words explain a failure; without them, it is one all the same.
        drop(self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut text)));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Hands all output to `take` until its end.
    pub(crate) fn read_all(&mut self, mut take: impl FnMut(&[u8])) -> anyhow::Result<()> {
        self.read_while(|part| {
            take(part);
            true
        })
    }

    /// Hands output to `take` until its end, or until `take` says that it is enough.
    pub(crate) fn read_while(&mut self, mut take: impl FnMut(&[u8]) -> bool) -> anyhow::Result<()> {
        let mut stdout: ChildStdout = self.child.stdout.take().context("output is not piped")?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            self.wait_for(&stdout)?;
            let bytes = stdout.read(&mut buffer).context("read the output")?;
            if bytes == 0 || !take(&buffer[..bytes]) {
                self.child.stdout = Some(stdout);
                return Ok(());
            }
        }
    }

    /// Waits for its end. It must succeed. Returns how long it took.
    pub(crate) fn finish(mut self) -> anyhow::Result<Duration> {
        let pid = Pid::from_child(&self.child);
        let pidfd =
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).context("open a pidfd")?;
        self.wait_for(&pidfd)?;
        let elapsed = self.begun.elapsed();
        let status = self.child.wait().context("wait for a command")?;
        self.check(status)?;
        Ok(elapsed)
    }

    /// Asks it to end, as a user would, and waits for that.
    pub(crate) fn interrupt(mut self) -> anyhow::Result<()> {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::INT).context("interrupt a command")?;
        let child = &mut self.child;
        clock::wait_until(CLEAN_UP_LIMIT, || !matches!(child.try_wait(), Ok(None)));
        Ok(())
    }

    fn wait_for(&mut self, source: &impl AsFd) -> anyhow::Result<()> {
        let left = self.deadline.saturating_duration_since(clock::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut ready = [PollFd::new(source, PollFlags::IN)];
        if rustix::event::poll(&mut ready, Some(&timeout)).context("poll")? == 0 {
            bail!("not done after {:.0?}: {}", self.begun.elapsed(), self.last_words());
        }
        Ok(())
    }

    fn check(&mut self, status: ExitStatus) -> anyhow::Result<()> {
        if status.success() {
            return Ok(());
        }
        bail!("{status}: {}", self.last_words())
    }

    fn last_words(&mut self) -> String {
        let words = self.words().replace('\n', " ").replace('|', "/");
        words.chars().take(WORDS_BYTES_MAX).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Both fail only if it has just ended.
            drop(self.child.kill());
            drop(self.child.wait());
        }
        for survivor in self.marker.wait_until_gone(CLEAN_UP_LIMIT) {
            if let Some(pid) = i32::try_from(survivor.pid).ok().and_then(Pid::from_raw) {
                // It fails only if the process has just ended.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}
