//! What an engine is made from.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, Muster, Signal, Slots, Tree};
use wire::{JobSpec, SessionSpec};

/// A driver's number for a link; never used twice by one driver.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u64);

/// The number of one run of the bootstrapper; never used twice by one engine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StartId(pub u64);

/// A driver's number for a connection to `PMI_PORT`; later ones have higher numbers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallerId(pub u64);

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
    /// Which nodes it needs; movable if the job is.
    pub muster: Muster,
    /// Hosts that get an agent when a job that a task asks for needs them, [`crate::LATE_MAX`] at most; their
    /// numbers follow those of the nodes.
    pub later: Vec<(String, Slots)>,
    /// Other hosts that the user gave, which get none.
    pub unused: Vec<(String, Slots)>,
    /// How long all agents may take to join. `None`: as long as some join every now and then.
    pub join_timeout: Option<Duration>,
    /// The most children in an adaptive tree, where fewer than usual are all that the head's limits
    /// allow; at least one.
    pub children_max: u32,
    /// Whether the driver will report [`crate::Input::Started`] for every start: in an adaptive tree, starts
    /// are then made as the host is free for them, and otherwise as what was measured lets expect.
    pub reports_started: bool,
    /// How many bytes of pairs the release of a fence takes to everybody. Of a fence that brings more they stay where
    /// they came by, and are fetched.
    pub push_bytes_max: u64,
    /// The user's signals that are passed on to the tasks, besides those that mean to end, to stop or to
    /// go on.
    pub forward_signals: Vec<Signal>,
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// Seeds the jitter of retries.
    pub seed: u64,
}

impl HeadConfig {
    /// The host names of the nodes, and of those that may get an agent later.
    pub fn all_names(&self) -> Vec<String> {
        let later = self.later.iter().map(|(name, _)| name);
        self.names.iter().chain(later).cloned().collect()
    }
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
    /// The most children in an adaptive tree, as for the head.
    pub children_max: u32,
    /// Whether the driver will report [`crate::Input::Started`], as for the head.
    pub reports_started: bool,
    /// How long it may wait for its parent's welcome.
    pub welcome_timeout: Duration,
}
