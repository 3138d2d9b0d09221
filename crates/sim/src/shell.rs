//! One run of a remote shell: it takes the gap, then the latency, then its agents exist.

use std::time::Duration;

use engine::StartId;
use model::AgentId;

use crate::fault::ShellPlan;
use crate::process::ProcessId;

/// How long an agent may outlive its shell before its keeper kills it.
pub(crate) const HUNG_MAX: Duration = Duration::from_secs(6);

/// How long an agent waits for its parent's welcome.
pub(crate) const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// A shell's index in the world.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ShellId(pub(crate) usize);

/// A run of a remote shell.
pub(crate) struct Shell {
    /// The number that its engine gave it.
    pub(crate) start: StartId,
    /// Who runs it.
    pub(crate) by: ProcessId,
    /// Whom it starts.
    pub(crate) agents: Vec<AgentId>,
    /// Which try it is.
    pub(crate) attempt: u32,
    /// How it goes.
    pub(crate) plan: ShellPlan,
    /// The agents that it has started.
    pub(crate) started: Vec<ProcessId>,
    /// It has ended, or its end is on its way.
    pub(crate) is_over: bool,
    /// The two ends do not hear of each other any more.
    pub(crate) is_cut: bool,
}
