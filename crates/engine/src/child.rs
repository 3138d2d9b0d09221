//! What a parent knows about one of its spawn children.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, ExitStatus, IdSet, Time, Tree};
use proto::{Grants, Silence};
use wire::{LossCause, ShellFailureKind, StartCause, StartFailure, Work};

use crate::child_table::Noted;
use crate::rng::Rng;
use crate::{LinkId, StartId};

/// One spawn child and its part of the tree.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) agent: AgentId,
    pub(crate) name: String,
    /// The agents that it must start, and their names in order, until it joins.
    pub(crate) below: IdSet,
    pub(crate) names: Vec<String>,
    /// What it was given to start when it joined and later. Kept until the launch: if it is lost
    /// before, others start them.
    pub(crate) given: Vec<Work>,
    pub(crate) tree: Tree,
    pub(crate) state: ChildState,
    /// The helper that runs its latest start, while that helper lives.
    pub(crate) shell: Option<StartId>,
    /// Its link, once it has proved itself on it and until the link is down.
    pub(crate) link: Option<LinkId>,
    pub(crate) attempts: u32,
    /// Why another parent could not start it, before this one does.
    pub(crate) elsewhere: Option<Box<StartFailure>>,
    /// When its latest start was made.
    pub(crate) started_at: Time,
    pub(crate) first_start: Time,
    /// When it said hello.
    pub(crate) up_at: Option<Time>,
    /// Whether it joins while the session runs, and takes no part in the first job.
    pub(crate) is_late: bool,
    /// Whether its latest start was one of a set of leaves.
    pub(crate) in_set: bool,
    pub(crate) silence: Silence,
    pub(crate) grants: Grants,
    /// The table's own.
    pub(crate) noted: Noted,
}

/// How far a child has come.
#[derive(Debug)]
pub(crate) enum ChildState {
    /// It has not been started.
    Waiting,
    /// A start is in flight.
    Starting { give_up_at: Time },
    /// A start is being ended because of this; its shell's last words are awaited.
    GivingUp(StartCause),
    /// A start failed, and is tried again at this time.
    BackingOff { until: Time, last: Failure },
    /// It has joined.
    Up,
    /// Its link or its shell has ended: it is lost unless it says at once that it was to be so.
    Losing { cause: LossCause, words: String, report_at: Time },
    /// It has left, failed or been lost. What remains of its shell is ended at this time.
    Gone { kill_shell_at: Option<Time> },
}

/// Why a start failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) cause: StartCause,
    pub(crate) words: String,
}

impl Child {
    pub(crate) fn new(
        now: Time,
        agent: AgentId,
        name: String,
        below: IdSet,
        names: Vec<String>,
        tree: Tree,
    ) -> Child {
        Child {
            agent,
            name,
            below,
            names,
            given: Vec::new(),
            tree,
            state: ChildState::Waiting,
            shell: None,
            link: None,
            attempts: 0,
            elsewhere: None,
            started_at: now,
            first_start: now,
            up_at: None,
            is_late: false,
            in_set: false,
            silence: Silence::new(now),
            grants: Grants::new(0),
            noted: Noted::default(),
        }
    }

    /// The child and all below it.
    pub(crate) fn subtree(&self) -> IdSet {
        let mut subtree = self.below.clone();
        subtree.insert(self.agent.0);
        subtree
    }

    /// Whether it has nobody to start, as far as is known before it joins.
    pub(crate) fn is_leaf(&self) -> bool {
        self.below.is_empty()
    }

    /// Since when those wait that it is to start, while it is on its way.
    pub(crate) fn awaited_since(&self) -> Option<Time> {
        let is_on_its_way = match self.state {
            ChildState::Waiting => self.attempts > 0,
            ChildState::Starting { .. }
            | ChildState::GivingUp(_)
            | ChildState::BackingOff { .. } => true,
            ChildState::Up | ChildState::Losing { .. } | ChildState::Gone { .. } => false,
        };
        (is_on_its_way && !self.is_leaf()).then_some(self.first_start)
    }

    /// Whether a start of it is in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        matches!(self.state, ChildState::Starting { .. } | ChildState::GivingUp(_))
    }

    /// Whether it may be sent messages.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, ChildState::Up)
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.state, ChildState::Gone { .. })
    }

    /// When something has to be done about it though nothing happens.
    pub(crate) fn timeout(&self) -> Option<Time> {
        match &self.state {
            ChildState::Waiting | ChildState::GivingUp(_) => None,
            ChildState::Starting { give_up_at } => Some(*give_up_at),
            ChildState::BackingOff { until, .. } => Some(*until),
            ChildState::Up => self.silence.lost_at(),
            ChildState::Losing { report_at, .. } => Some(*report_at),
            ChildState::Gone { kill_shell_at } => self.shell.and(*kill_shell_at),
        }
    }
}

/// The longest time between two tries.
const BACK_OFF_MAX: Duration = Duration::from_secs(8);

/// How long to wait before a start that failed like this is tried again; `None`: it is final.
///
/// A busy sshd (MaxStartups) lets in some of those that knock, so it is asked again and again, at
/// growing distances. Failures that may pass but rarely do so are tried once more. What a person
/// must mend is final at once.
pub(crate) fn back_off(
    cause: StartCause,
    attempts: u32,
    retries_max: u32,
    rng: &mut Rng,
) -> Option<Duration> {
    let retries = match cause {
        StartCause::Shell(kind, status) => retries_of(kind, status),
        StartCause::NoShell(_) => 1,
        StartCause::Silent | StartCause::Deadline => 0,
    };
    if attempts > retries.min(retries_max) {
        return None;
    }
    let mean = Duration::from_millis(125) * 2_u32.saturating_pow(attempts.saturating_sub(1).min(8));
    Some(rng.jitter(mean.min(BACK_OFF_MAX)))
}

/// How long a start may take with all its tries and the pauses between them.
pub(crate) fn patience(start_timeout: Duration, retries_max: u32) -> Duration {
    let tries = start_timeout.saturating_mul(retries_max.saturating_add(1));
    tries.saturating_add(BACK_OFF_MAX.saturating_mul(retries_max) * 3 / 2)
}

fn retries_of(kind: ShellFailureKind, status: ExitStatus) -> u32 {
    match kind {
        ShellFailureKind::Busy => u32::MAX,
        ShellFailureKind::Refused
        | ShellFailureKind::Unreachable
        | ShellFailureKind::AgentKilled(_) => 1,
        // ssh's own failures end with 255; another status is the remote command's.
        ShellFailureKind::Other if status == ExitStatus::Exited(255) => 1,
        ShellFailureKind::Other
        | ShellFailureKind::UnknownHost
        | ShellFailureKind::Auth
        | ShellFailureKind::HostKey
        | ShellFailureKind::NoBinary
        | ShellFailureKind::NotExecutable => 0,
    }
}
