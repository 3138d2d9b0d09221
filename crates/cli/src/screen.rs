//! What the user sees while a job runs.

use std::io;

use agent::FrontEnd;
use bytes::Bytes;
use model::{AgentId, JobId, Rank, Time};
use observe::{Progress, Timeline, agent_name};
use proto::Event;
use wire::Stream;

use crate::label::Labels;
use crate::report::Program;
use crate::warnings::Warnings;

/// The front end's side of a running job.
#[derive(Debug)]
pub(crate) struct Screen {
    names: Vec<String>,
    labels: Option<Labels>,
    progress: Option<Progress>,
    is_verbose: bool,
    pub(crate) warnings: Warnings,
    /// When what happened.
    pub(crate) timeline: Timeline,
}

/// What to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenOptions {
    /// Labels before lines.
    pub(crate) label: bool,
    /// A line for each event.
    pub(crate) verbose: bool,
    /// No progress line.
    pub(crate) quiet: bool,
}

/// When the terminal does not say how wide it is.
const COLUMNS_DEFAULT: u16 = 80;

impl Screen {
    /// A screen for agents on `names`, of which the session begins with the first `begun`, and the job of `program`.
    pub(crate) fn new(
        names: Vec<String>,
        begun: usize,
        program: Program,
        options: ScreenOptions,
    ) -> Screen {
        let shows_progress = !options.quiet && os::tty::is_terminal(io::stderr());
        let columns = os::tty::columns(io::stderr()).unwrap_or(COLUMNS_DEFAULT);
        Screen {
            labels: options.label.then(Labels::default),
            progress: shows_progress
                .then(|| Progress::new(names[..begun].to_vec(), columns.into())),
            is_verbose: options.verbose,
            warnings: Warnings::of(program),
            names,
            timeline: Timeline::default(),
        }
    }

    fn verbose_line(&self, now: Time, event: &Event) -> Option<String> {
        let name = |agent: &AgentId| agent_name(&self.names, *agent);
        let text = match event {
            Event::AgentStarted { agent, attempt: 0 } => format!("start {}", name(agent)),
            Event::AgentStarted { agent, attempt } => {
                format!("start {}, try {attempt}", name(agent))
            }
            Event::StartRetried { agent, cause: _, words } => {
                format!("{} did not start and is tried again: {}", name(agent), words.trim_end())
            }
            Event::LinkOverShell(agent) => {
                format!("{} reaches no address here: its link runs over its shell", name(agent))
            }
            Event::AgentsJoined(ids) => format!("agents {ids} joined"),
            Event::AllJoined(members) => format!("the job runs on agents {members}"),
            Event::Launched(JobId::FIRST) => "tasks are launched".to_owned(),
            Event::Launched(job) => format!("tasks of job {} are launched", job.0),
            Event::FenceReleased { fence, .. } => format!("fence {fence} released"),
            Event::Stopping(JobId::FIRST) => "the job is being ended".to_owned(),
            Event::Stopping(job) => format!("job {} is being ended", job.0),
            Event::JobDone(JobId::FIRST) => "all tasks have ended".to_owned(),
            Event::JobDone(job) => format!("all tasks of job {} have ended", job.0),
            Event::Over => "all agents have left".to_owned(),
            Event::PeerMisbehaved { agent, words } => {
                format!("{} misbehaved: {words}", name(agent))
            }
            // Shown at the end, with their causes.
            Event::StartFailed(_) | Event::JobFault(..) | Event::AgentLost(_) => return None,
            // Too many, and not known to the head.
            Event::TaskStarted { .. } | Event::TaskEnded { .. } => return None,
            // Shown in any case.
            Event::JobWarning(..) => return None,
            // For the timeline.
            Event::Marked(_) => return None,
        };
        Some(format!("convoke: {:.3} s: {text}\n", now.since(Time::ZERO).as_secs_f64()))
    }
}

impl FrontEnd for Screen {
    fn on_event(&mut self, now: Time, event: &Event) -> Bytes {
        self.timeline.on_event(now, event);
        let mut text = self.progress.as_mut().map(|it| it.on_event(event)).unwrap_or_default();
        let line = if let Event::JobWarning(_, warning) = event {
            self.warnings.line(&self.names, warning)
        } else {
            self.is_verbose.then(|| self.verbose_line(now, event)).flatten()
        };
        if let Some(line) = line {
            text += &self.progress.as_mut().map(Progress::clear).unwrap_or_default();
            text += &line;
        }
        text.into()
    }

    fn on_output(&mut self, job: JobId, rank: Rank, stream: Stream, data: Bytes) -> Bytes {
        match &mut self.labels {
            Some(labels) => labels.apply((job, rank), stream, &data),
            None => data,
        }
    }

    fn on_time(&mut self, now: Time) -> Bytes {
        self.progress.as_mut().map(|it| it.on_time(now)).unwrap_or_default().into()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.progress.as_ref().and_then(Progress::poll_timeout)
    }
}
