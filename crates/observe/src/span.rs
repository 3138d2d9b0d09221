//! One agent's life, from the start that its parent began to its farewell.

use model::{AgentId, Time};
use wire::{Mark, MarkKind};

/// When what happened to one agent, by the head's clock. What is not known is absent.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Who started it.
    pub parent: Option<AgentId>,
    /// When its parent began each try to start it.
    pub started: Vec<Time>,
    /// When its parent had a link to it.
    pub link_up: Option<Time>,
    /// When its parent welcomed it.
    pub welcomed: Option<Time>,
    /// When it had found its program and had joined.
    pub joined: Option<Time>,
    /// When its parent heard that it had joined.
    pub join_heard: Option<Time>,
    /// When it was told to launch.
    pub launched: Option<Time>,
    /// When its tasks were created.
    pub spawned: Option<Time>,
    /// When its tasks had ended.
    pub tasks_ended: Option<Time>,
    /// When it was told to leave.
    pub leaving: Option<Time>,
    /// When its parent heard its farewell.
    pub left: Option<Time>,
    /// When its parent gave it up.
    pub given_up: Option<Time>,
}

/// What an agent was busy with.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// A start that failed, and the pause before the next.
    FailedStart,
    /// From the start to the link: the shell, the network, the agent's own start.
    Shell,
    /// Hello and welcome.
    Handshake,
    /// The program and its directory are looked up.
    Program,
    /// The others join.
    Others,
    /// The tasks are created.
    Launch,
    /// The tasks run.
    Run,
    /// The tasks of others run, or what they wrote is on its way.
    Drain,
    /// The agent and all below it leave.
    Teardown,
}

impl Phase {
    /// All of them, in the order of a life.
    pub const ALL: [Phase; 9] = [
        Phase::FailedStart,
        Phase::Shell,
        Phase::Handshake,
        Phase::Program,
        Phase::Others,
        Phase::Launch,
        Phase::Run,
        Phase::Drain,
        Phase::Teardown,
    ];

    /// Its name in traces and legends.
    pub fn name(self) -> &'static str {
        match self {
            Phase::FailedStart => "failed start",
            Phase::Shell => "shell",
            Phase::Handshake => "handshake",
            Phase::Program => "look up program",
            Phase::Others => "wait for others to join",
            Phase::Launch => "launch",
            Phase::Run => "run",
            Phase::Drain => "wait for others to end",
            Phase::Teardown => "teardown",
        }
    }
}

impl Span {
    /// Takes a mark in. Marks of one observer come in their order.
    pub(crate) fn on_mark(&mut self, mark: &Mark) {
        let at = Time::from_nanos(mark.at_us.saturating_mul(1_000));
        match mark.kind {
            MarkKind::Started => {
                self.parent = Some(mark.by);
                self.started.push(at);
            }
            // A twin of the link that comes later was turned away.
            MarkKind::LinkUp if self.welcomed.is_none() => self.link_up = Some(at),
            MarkKind::LinkUp => {}
            MarkKind::Welcomed => self.welcomed = Some(at),
            MarkKind::Joined => self.joined = Some(at),
            MarkKind::JoinHeard => self.join_heard = self.join_heard.or(Some(at)),
            MarkKind::Launched => self.launched = Some(at),
            MarkKind::Spawned => self.spawned = Some(at),
            MarkKind::TasksEnded => self.tasks_ended = Some(at),
            MarkKind::Leaving => self.leaving = Some(at),
            MarkKind::Left => self.left = Some(at),
            MarkKind::GivenUp => self.given_up = Some(at),
        }
    }

    /// What it was busy with, one after the other, where both ends are known. `end` is the end of
    /// what did not end.
    pub fn phases(&self, end: Time) -> Vec<(Phase, Time, Time)> {
        let mut phases = Vec::new();
        for tries in self.started.windows(2) {
            phases.push((Phase::FailedStart, tries[0], tries[1]));
        }
        let steps = [
            (Phase::Shell, self.started.last().copied(), self.link_up),
            (Phase::Handshake, self.link_up, self.welcomed),
            (Phase::Program, self.welcomed, self.joined),
            (Phase::Others, self.joined, self.launched),
            (Phase::Launch, self.launched, self.spawned),
            (Phase::Run, self.spawned, self.tasks_ended),
            (Phase::Drain, self.tasks_ended.or(self.spawned), self.leaving),
            (Phase::Teardown, self.leaving, self.left),
        ];
        let last = steps.iter().rposition(|(_, from, _)| from.is_some());
        for (index, (phase, from, to)) in steps.into_iter().enumerate() {
            let to = if Some(index) == last { to.or(self.given_up).or(Some(end)) } else { to };
            if let (Some(from), Some(to)) = (from, to)
                && from < to
            {
                phases.push((phase, from, to));
            }
        }
        phases
    }

    /// When it joined, as far as is known.
    pub(crate) fn joined_at(&self) -> Option<Time> {
        self.joined.or(self.join_heard)
    }
}
