//! The composition. (Being written: the public surface is settled, see below.)

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, ExitStatus, IdSet, StatusRuns, Time, Tree};
use proto::Event;
use wire::{AgentLoss, JobFault, JobSpec, SessionSpec, StartFailure, Stats};

use crate::{Effect, Input};

/// A driver's number for a link; never used twice by one driver.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u64);

/// The number of one run of the bootstrapper; never used twice by one engine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StartId(pub u64);

/// What the head is given.
#[derive(Clone, Debug)]
pub struct HeadConfig {
    /// The host names of the nodes; node `i` gets agent `i + 1`.
    pub names: Vec<String>,
    /// The spawn tree.
    pub tree: Tree,
    /// The session's parameters.
    pub session: SessionSpec,
    /// The job.
    pub job: JobSpec,
    /// How long all agents may take to join. `None`: as long as some join every now and then.
    pub join_timeout: Option<Duration>,
    /// How long the job may run.
    pub timeout: Option<Duration>,
    /// Seeds the jitter of retries.
    pub seed: u64,
}

/// What an agent is given on its boot channel.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Who it is.
    pub agent: AgentId,
    /// Who started it.
    pub parent: AgentId,
    /// Which try this is, from 0.
    pub attempt: u32,
    /// Its process number.
    pub pid: u32,
    /// Seeds the jitter of retries.
    pub seed: u64,
    /// How long it may wait for its parent's welcome.
    pub welcome_timeout: Duration,
}

/// How a session ended, as the head saw it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The exit status by the documented rule.
    pub code: u8,
    /// Agents that did not join.
    pub start_failures: Vec<StartFailure>,
    /// Agents that were lost.
    pub losses: Vec<AgentLoss>,
    /// What went wrong with the job, in the order it was heard of; the first one decides.
    pub faults: Vec<JobFault>,
    /// The tasks that ended, folded.
    pub statuses: StatusRuns,
    /// Whether the job's time limit ended it.
    pub timed_out: bool,
    /// The signal from the user that ended it.
    pub signal: Option<model::Signal>,
    /// Counts of the whole tree.
    pub stats: Stats,
}

/// An agent or the head.
pub struct Engine {}

impl Engine {
    /// The head of a session. Drain effects right away.
    pub fn head(_now: Time, _config: HeadConfig) -> Engine {
        todo!()
    }

    /// An agent. Its driver connects to the parent by itself, then reports `LinkUp`.
    pub fn agent(_now: Time, _config: AgentConfig) -> Engine {
        todo!()
    }

    /// Handles something that has happened. Drain effects afterwards.
    pub fn handle(&mut self, _now: Time, _input: Input) {
        todo!()
    }

    /// Handles the passing of time. Drain effects afterwards.
    pub fn on_time(&mut self, _now: Time) {
        todo!()
    }

    /// When to call [`Engine::on_time`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        todo!()
    }

    /// The next thing to do. Call until `None` after every `handle` and `on_time`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        todo!()
    }

    /// The next thing worth telling an observer (head and agents).
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// Head: how it ended; complete once [`Effect::Exit`] came.
    pub fn outcome(&self) -> &Outcome {
        todo!()
    }
}

#[expect(unused, reason = "replaced with the composition")]
fn types(_: ExitStatus, _: IdSet) {}
