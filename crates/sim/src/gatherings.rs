//! What must hold where the tasks of a job meet: in fences, rings, allgathers and barriers of groups.

use std::collections::{BTreeMap, BTreeSet};

use model::Rank;

use crate::task::Meeting;

/// Who of a job has been where.
#[derive(Default)]
pub(crate) struct Gatherings {
    pub(crate) n_tasks: u32,
    /// How many tasks have entered the fence of each number.
    entered: Vec<u32>,
    /// How many tasks have ended after so many fences, so that later ones do not wait for them.
    excused: BTreeMap<usize, u32>,
    /// Who has entered the barrier of a group.
    meetings: BTreeMap<Meeting, BTreeSet<u32>>,
    /// Of each ring who has which number in it, and who is on either side.
    rings: BTreeMap<(usize, u32), [u32; 3]>,
    /// Tasks that have ended, and for which nobody waits.
    excused_ranks: BTreeSet<u32>,
}

/// Something that must not be, in words.
type Wrong = Option<String>;

impl Gatherings {
    pub(crate) fn on_fence_entered(&mut self, fence: usize) -> Wrong {
        if self.entered.len() <= fence {
            self.entered.resize(fence + 1, 0);
        }
        self.entered[fence] += 1;
        None
    }

    /// A task that has entered so many fences has ended, and the others may go on without it.
    pub(crate) fn excuse_from_fences(&mut self, rank: Rank, fences: usize) -> Wrong {
        self.excused_ranks.insert(rank.0);
        *self.excused.entry(fences).or_default() += 1;
        None
    }

    pub(crate) fn has_excused(&self) -> bool {
        !self.excused.is_empty()
    }

    /// A fence is never released before all tasks have entered it, but for those that are excused.
    pub(crate) fn on_fence_left(&mut self, fence: usize) -> Wrong {
        let entered = self.entered.get(fence).copied().unwrap_or(0);
        let excused: u32 = self.excused.range(..=fence).map(|(_, count)| count).sum();
        let n_tasks = self.n_tasks;
        (entered + excused != n_tasks)
            .then(|| format!("fence {fence} released when {entered} of {n_tasks} had entered"))
    }

    /// Who stand side by side in a ring know of each other, and in a whole ring the last and the first do.
    pub(crate) fn on_ring(
        &mut self,
        ring: usize,
        rank: Rank,
        [number, left, right]: [u32; 3],
    ) -> Wrong {
        let other = self.rings.insert((ring, number), [left, rank.0, right]);
        let before = number.checked_sub(1).unwrap_or(self.n_tasks - 1);
        let behind = (number + 1) % self.n_tasks;
        let is_right = |side: u32, theirs: usize, of: u32| {
            let place = self.rings.get(&(ring, side));
            place.is_none_or(|place| place[1] == of && place[theirs] == rank.0)
        };
        let is_wrong = other.is_some() || !is_right(before, 2, left) || !is_right(behind, 0, right);
        is_wrong.then(|| format!("rank {rank} is number {number} of a ring, {left} to {right}"))
    }

    /// Only those that are excused bring nothing into an allgather.
    pub(crate) fn on_gathered(&mut self, rank: Rank, missing: &[u32]) -> Wrong {
        let other = missing.iter().find(|other| !self.excused_ranks.contains(other))?;
        Some(format!("rank {rank} has not got what rank {other} brought"))
    }

    pub(crate) fn on_meeting_entered(&mut self, meeting: Meeting, rank: Rank) -> Wrong {
        self.meetings.entry(meeting).or_default().insert(rank.0);
        None
    }

    /// A group's barrier ends when all its members have entered it, but for those that are excused.
    pub(crate) fn on_meeting_left(&mut self, meeting: Meeting, members: &[u32]) -> Wrong {
        let entered = self.meetings.entry(meeting).or_default();
        let has_come = |rank| entered.contains(rank) || self.excused_ranks.contains(rank);
        let missing = members.iter().find(|rank| !has_come(rank))?;
        Some(format!("{meeting:?} ended before rank {missing} had entered"))
    }
}
