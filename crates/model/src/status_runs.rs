//! The statuses of many tasks, folded: neighbours in rank with equal statuses are one entry.
//!
//! This is what travels up the tree when a job ends. A job that succeeds is one entry however
//! large it is; the worst case, every status different from the next, is one entry a task.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{ExitStatus, IdSet, Rank};

/// Consecutive ranks that ended alike.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct StatusRun {
    /// The first rank.
    pub first: Rank,
    /// The last rank.
    pub last: Rank,
    /// How each of them ended.
    pub status: ExitStatus,
}

/// Ranks and how they ended, in ascending order, in as few runs as possible.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<StatusRun>", into = "Vec<StatusRun>")]
pub struct StatusRuns {
    runs: Vec<StatusRun>,
}

impl StatusRuns {
    /// No statuses.
    pub const fn new() -> StatusRuns {
        StatusRuns { runs: Vec::new() }
    }

    /// Notes how `rank` ended. What was noted first stays; returns whether this was.
    pub fn insert(&mut self, rank: Rank, status: ExitStatus) -> bool {
        let at = self.position(rank);
        if self.runs.get(at).is_some_and(|run| run.first <= rank) {
            return false;
        }
        let mut run = StatusRun { first: rank, last: rank, status };
        let mut replaced = at..at;
        if let Some(before) = at.checked_sub(1).map(|index| self.runs[index])
            && before.continues_with(&run)
        {
            run.first = before.first;
            replaced.start -= 1;
        }
        if let Some(after) = self.runs.get(at)
            && run.continues_with(after)
        {
            run.last = after.last;
            replaced.end += 1;
        }
        self.runs.splice(replaced, [run]);
        true
    }

    /// Adds the ranks of `other`. Where both know a rank, this one's status stays.
    pub fn merge(&mut self, other: &StatusRuns) {
        let known = self.ranks();
        for run in &other.runs {
            let fresh = IdSet::range(run.first.0, run.last.0).difference(&known);
            let runs = fresh.ranges().iter();
            self.runs.extend(runs.map(|&(first, last)| StatusRun {
                first: Rank(first),
                last: Rank(last),
                status: run.status,
            }));
        }
        self.runs.sort_unstable_by_key(|run| run.first);
        self.join_equal_neighbours();
    }

    /// How `rank` ended, if that is known.
    pub fn get(&self, rank: Rank) -> Option<ExitStatus> {
        let run = self.runs.get(self.position(rank))?;
        (run.first <= rank).then_some(run.status)
    }

    /// How many ranks have a status.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.last.0 - run.first.0) + 1).sum()
    }

    /// Whether no rank has a status.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs in ascending order.
    pub fn runs(&self) -> &[StatusRun] {
        &self.runs
    }

    /// The ranks that have a status.
    pub fn ranks(&self) -> IdSet {
        let mut ranks = IdSet::new();
        for run in &self.runs {
            ranks.insert_range(run.first.0, run.last.0);
        }
        ranks
    }

    /// Each rank with its status, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Rank, ExitStatus)> + '_ {
        let ranks = |run: &StatusRun| (run.first.0..=run.last.0).map(Rank);
        self.runs.iter().flat_map(move |run| ranks(run).map(|rank| (rank, run.status)))
    }

    /// The first run that ends at `rank` or later.
    fn position(&self, rank: Rank) -> usize {
        self.runs.partition_point(|run| run.last < rank)
    }

    fn join_equal_neighbours(&mut self) {
        self.runs.dedup_by(|next, kept| {
            let is_joined = kept.continues_with(next);
            if is_joined {
                kept.last = next.last;
            }
            is_joined
        });
    }
}

impl StatusRun {
    fn continues_with(&self, next: &StatusRun) -> bool {
        self.status == next.status && self.last.0.checked_add(1) == Some(next.first.0)
    }
}

impl FromIterator<(Rank, ExitStatus)> for StatusRuns {
    fn from_iter<I: IntoIterator<Item = (Rank, ExitStatus)>>(statuses: I) -> StatusRuns {
        let mut runs = StatusRuns::new();
        for (rank, status) in statuses {
            runs.insert(rank, status);
        }
        runs
    }
}

impl From<Vec<StatusRun>> for StatusRuns {
    /// Restores order and disjointness whatever the sender wrote. Where runs overlap, the one that
    /// starts first counts.
    fn from(mut runs: Vec<StatusRun>) -> StatusRuns {
        runs.retain(|run| run.first <= run.last);
        runs.sort_by_key(|run| run.first);
        let mut end = None;
        runs.retain_mut(|run| {
            let fresh = end.map_or(Some(0), |end: u32| end.checked_add(1));
            let Some(fresh) = fresh.filter(|&fresh| fresh <= run.last.0) else { return false };
            run.first = run.first.max(Rank(fresh));
            end = Some(run.last.0);
            true
        });
        let mut statuses = StatusRuns { runs };
        statuses.join_equal_neighbours();
        statuses
    }
}

impl From<StatusRuns> for Vec<StatusRun> {
    fn from(statuses: StatusRuns) -> Vec<StatusRun> {
        statuses.runs
    }
}
