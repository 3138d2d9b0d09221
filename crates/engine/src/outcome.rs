//! How a session ended.

use alloc::vec::Vec;

use model::{IdSet, JobId, NodeId, PlacementError, Signal, StatusRuns, TaskMap};
use wire::{AgentLoss, JobFault, StartFailure, Stats, TaskRecord};

use crate::SpawnedJobs;

/// What went wrong with a job that a task has spawned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpawnedFault {
    /// The job.
    pub job: JobId,
    /// The node of the task whose fault it is.
    pub node: Option<NodeId>,
    /// The fault.
    pub fault: JobFault,
}

/// How a session ended, as the head saw it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The exit status by the documented rule, see [`crate::exit_code`].
    pub code: u8,
    /// The agents that the job ran on; none if it was not launched. What happened to others is told, and
    /// has not changed the status.
    pub members: IdSet,
    /// Which task ran where, if not as was planned, since somebody was missing.
    pub map: Option<TaskMap>,
    /// Why the job could not be placed on those who were there.
    pub shortage: Option<PlacementError>,
    /// Agents that did not join.
    pub start_failures: Vec<StartFailure>,
    /// Agents that were lost.
    pub losses: Vec<AgentLoss>,
    /// Agents whose tasks may have written what did not arrive: lost, or given up.
    pub incomplete: IdSet,
    /// What went wrong with the first job, in the order in which it was heard of.
    pub faults: Vec<JobFault>,
    /// The same of jobs that tasks have spawned.
    pub spawned_faults: Vec<SpawnedFault>,
    /// How the tasks of the first job ended, folded.
    pub statuses: StatusRuns,
    /// What is known of each of them that has ended, in no order, where it was asked for.
    pub records: Vec<TaskRecord>,
    /// Jobs that tasks have spawned, where records were asked for.
    pub spawned: SpawnedJobs,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Whether it ended because nobody reads its output.
    pub output_closed: bool,
    /// The signal from the user that was to end it.
    pub signal: Option<Signal>,
    /// Counts of the whole tree.
    pub stats: Stats,
}
