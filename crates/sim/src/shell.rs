//! One run of a remote shell: it takes the gap, then the latency, then its agents exist.

use std::time::Duration;

use engine::StartId;
use model::AgentId;

use crate::fault::ShellPlan;
use crate::process::ProcessId;

/// How long an agent may outlive its shell before its keeper kills it: `HUNG_MAX` of `os::keeper`.
pub(crate) const HUNG_MAX: Duration = Duration::from_secs(1);

/// How long an agent waits for its parent's welcome at least. Its driver lets it wait for the
/// session's `start_timeout_ms`. Where that is shorter than this, one whose call met a full queue, so
/// that it is sent again seconds later (`Accept::retransmits_s`), gives up, and is told of as lost with
/// no fault to blame.
pub(crate) const WELCOME_TIMEOUT_MIN: Duration = Duration::from_secs(10);

/// How long a shell that reaches nobody takes until it tries again.
pub(crate) const CALL_AGAIN: Duration = Duration::from_secs(1);

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
    /// How it gets the program, where its host lacks it.
    pub(crate) program: ShellProgram,
    /// It has ended, or its end is on its way.
    pub(crate) is_over: bool,
    /// The two ends do not hear of each other any more.
    pub(crate) is_cut: bool,
}

/// What a shell has come to that looks for the agent's program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ShellProgram {
    /// It has asked for nothing.
    Unasked,
    /// It has asked for it.
    Asked,
    /// It is sent it, and so many bytes are still to come.
    Sending(u64),
    /// It has got it.
    Stored,
}
