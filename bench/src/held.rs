//! A job whose tasks all wait: it tells start and teardown apart, and stands still to be looked at.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::fs::{CWD, Mode};
use testbed::clock;

use crate::run::Running;
use crate::tools::Tools;

/// Tasks that end when the FIFO's writer does.
pub(crate) struct Held {
    running: Running,
    writer: File,
    start: Duration,
}

/// How long it took until all tasks ran, and from their end to the command's.
pub(crate) struct Phases {
    /// Start to all tasks running.
    pub(crate) start: Duration,
    /// Tasks told to end, to the end of the command.
    pub(crate) teardown: Duration,
}

/// The program for a held job.
pub(crate) fn program(tools: &Tools) -> anyhow::Result<[String; 3]> {
    let fifo = fifo(tools);
    if !fifo.exists() {
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).context("make a FIFO")?;
    }
    let task = tools.floor("task").display().to_string();
    Ok([task, "hold".to_owned(), fifo.display().to_string()])
}

impl Held {
    /// Runs `command`, whose program is [`program`], until its `tasks` tasks run.
    pub(crate) fn start(
        tools: &Tools,
        command: &mut Command,
        tasks: usize,
        limit: Duration,
    ) -> anyhow::Result<Held> {
        let fifo = fifo(tools);
        // Opened for both, a FIFO does not wait for another side.
        let writer = File::options().read(true).write(true).open(&fifo).context("open the FIFO")?;
        let mut running = Running::start(command, Stdio::piped(), limit)?;
        let mut lines = 0;
        running.read_while(|part| {
            lines += part.iter().filter(|byte| **byte == b'\n').count();
            lines < tasks
        })?;
        let start = running.begun().elapsed();
        anyhow::ensure!(lines == tasks, "{lines} of {tasks} tasks ran");
        Ok(Held { running, writer, start })
    }

    /// The command's process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Lets the tasks end.
    pub(crate) fn release(self) -> anyhow::Result<Phases> {
        let released = clock::now();
        drop(self.writer);
        let begun = self.running.begun();
        let elapsed = self.running.finish()?;
        let teardown = (begun + elapsed).saturating_duration_since(released);
        Ok(Phases { start: self.start, teardown })
    }
}

fn fifo(tools: &Tools) -> PathBuf {
    tools.file("fifo")
}
