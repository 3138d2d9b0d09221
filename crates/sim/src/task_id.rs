//! Which task of which job.

use std::fmt;

use model::{JobId, Rank};

/// A task of a session.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TaskId {
    pub(crate) job: JobId,
    pub(crate) rank: Rank,
}

impl TaskId {
    /// A task of the first job.
    pub(crate) fn first(rank: Rank) -> TaskId {
        TaskId { job: JobId::FIRST, rank }
    }

    /// A number that no other task has.
    pub(crate) fn number(self) -> u64 {
        (u64::from(self.job.0) << 32) + u64::from(self.rank.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rank)?;
        if self.job == JobId::FIRST { Ok(()) } else { write!(f, " of job {}", self.job.0) }
    }
}
