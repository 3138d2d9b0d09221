//! What is worth telling: the one source of logs, progress, traces and checkers.

use alloc::string::String;
use alloc::vec::Vec;

use model::{AgentId, ExitStatus, IdSet, JobId, Rank};
use wire::{AgentLoss, JobFault, JobWarning, Mark, StartCause, StartFailure};

/// Something that happened, as one agent or the head saw it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// An agent was started, for the n-th time from 0.
    AgentStarted {
        /// Which.
        agent: AgentId,
        /// Which try.
        attempt: u32,
    },
    /// A start failed and will be tried again.
    StartRetried {
        /// Which agent.
        agent: AgentId,
        /// Why.
        cause: StartCause,
        /// What its shell said.
        words: String,
    },
    /// A child's link runs over the streams of its remote shell: no address of ours has answered it.
    LinkOverShell(AgentId),
    /// Agents joined, as far as the one who tells knows.
    AgentsJoined(IdSet),
    /// Agents will not join.
    StartFailed(StartFailure),
    /// Head: these are the members of the job, and all of them have joined.
    AllJoined(IdSet),
    /// The job's tasks were told to start.
    Launched(JobId),
    /// A task was created.
    TaskStarted {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// Its process number.
        pid: u32,
    },
    /// A task ended.
    TaskEnded {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// How.
        status: ExitStatus,
    },
    /// A fence was released.
    FenceReleased {
        /// The job.
        job: JobId,
        /// The fence's number.
        fence: u32,
    },
    /// The job can't run, or can't run on.
    JobFault(JobId, JobFault),
    /// Something about the job is not as the user may think.
    JobWarning(JobId, JobWarning),
    /// The job is being ended.
    Stopping(JobId),
    /// Agents were lost.
    AgentLost(AgentLoss),
    /// A peer broke the protocol; its link is closed.
    PeerMisbehaved {
        /// Who.
        agent: AgentId,
        /// What it did.
        words: String,
    },
    /// Every task of the job has ended.
    JobDone(JobId),
    /// Head, where the session keeps marks: what happened when, by the head's clock.
    Marked(Vec<Mark>),
    /// The session is over on this agent.
    Over,
}
