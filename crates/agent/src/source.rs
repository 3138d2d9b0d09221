//! What a descriptor in the poller belongs to, as the number that the poller carries.
//!
//! The number is the identity itself, not an index into a table of registrations: a stale one names
//! something that is gone, and is dropped where it is looked up.

use engine::{CallerId, LinkId, StartId};
use model::{JobId, Rank};
use wire::Stream;

/// Whose descriptor is ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// The socket that children connect to.
    Listener,
    /// The boot channel: its end is the death of the shell that started us.
    Boot,
    /// The pipe that the keeper holds.
    Keeper,
    /// Signals.
    Signals,
    /// The user's standard input.
    UserInput,
    /// One of the user's outputs.
    UserOutput(Stream),
    /// A link, or a connection that may become one.
    Link(LinkId),
    /// A helper.
    Helper(StartId, HelperPart),
    /// The socket that a job's tasks connect to.
    PmiPort(JobId),
    /// Who has connected to it.
    PmiCaller(CallerId),
    /// A task. Job numbers beyond 24 bits do not occur.
    Task(JobId, Rank, TaskPart),
}

/// Which descriptor of a helper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HelperPart {
    /// It takes its boot line, and asks for what the agent needs.
    Streams,
    /// Its complaints.
    Stderr,
}

/// Which descriptor of a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TaskPart {
    /// It reads standard input.
    Stdin,
    /// It writes.
    Output(Stream),
    /// It speaks PMI.
    Pmi,
}

const KIND_SHIFT: u32 = 56;
const JOB_SHIFT: u32 = 32;
const ID_MASK: u64 = (1 << KIND_SHIFT) - 1;

impl Source {
    /// The number for the poller.
    pub(crate) fn token(self) -> u64 {
        let (kind, id) = match self {
            Source::Listener => (0, 0),
            Source::Boot => (1, 0),
            Source::Keeper => (2, 0),
            Source::Signals => (3, 0),
            Source::UserInput => (4, 0),
            Source::UserOutput(Stream::Stdout) => (5, 0),
            Source::UserOutput(Stream::Stderr) => (6, 0),
            Source::Link(link) => (7, link.0),
            Source::Helper(start, HelperPart::Streams) => (9, start.0),
            Source::Helper(start, HelperPart::Stderr) => (11, start.0),
            Source::Task(job, rank, TaskPart::Stdin) => (13, task_id(job, rank)),
            Source::Task(job, rank, TaskPart::Output(Stream::Stdout)) => (14, task_id(job, rank)),
            Source::Task(job, rank, TaskPart::Output(Stream::Stderr)) => (15, task_id(job, rank)),
            Source::Task(job, rank, TaskPart::Pmi) => (16, task_id(job, rank)),
            Source::PmiPort(job) => (17, job.0.into()),
            Source::PmiCaller(caller) => (18, caller.0),
        };
        kind << KIND_SHIFT | id & ID_MASK
    }

    /// The source of a number that [`Source::token`] made.
    pub(crate) fn of(token: u64) -> Option<Source> {
        let id = token & ID_MASK;
        let helper = |part| Source::Helper(StartId(id), part);
        let task = |part| Source::Task(JobId((id >> JOB_SHIFT) as u32), Rank(id as u32), part);
        Some(match token >> KIND_SHIFT {
            0 => Source::Listener,
            1 => Source::Boot,
            2 => Source::Keeper,
            3 => Source::Signals,
            4 => Source::UserInput,
            5 => Source::UserOutput(Stream::Stdout),
            6 => Source::UserOutput(Stream::Stderr),
            7 => Source::Link(LinkId(id)),
            9 => helper(HelperPart::Streams),
            11 => helper(HelperPart::Stderr),
            13 => task(TaskPart::Stdin),
            14 => task(TaskPart::Output(Stream::Stdout)),
            15 => task(TaskPart::Output(Stream::Stderr)),
            16 => task(TaskPart::Pmi),
            17 => Source::PmiPort(JobId(id as u32)),
            18 => Source::PmiCaller(CallerId(id)),
            _ => return None,
        })
    }
}

fn task_id(job: JobId, rank: Rank) -> u64 {
    u64::from(job.0) << JOB_SHIFT | u64::from(rank.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_comes_back_from_its_token() {
        let (job, rank) = (JobId(0xff_ffff), Rank(u32::MAX));
        for source in [
            Source::Listener,
            Source::Boot,
            Source::Keeper,
            Source::Signals,
            Source::UserInput,
            Source::UserOutput(Stream::Stderr),
            Source::Link(LinkId(ID_MASK)),
            Source::Helper(StartId(1), HelperPart::Stderr),
            Source::Helper(StartId(2), HelperPart::Streams),
            Source::Task(job, rank, TaskPart::Output(Stream::Stdout)),
            Source::Task(job, rank, TaskPart::Pmi),
            Source::PmiPort(job),
            Source::PmiCaller(CallerId(3)),
        ] {
            assert_eq!(Source::of(source.token()), Some(source));
        }
        assert_eq!(Source::of(u64::MAX), None);
    }
}
