//! The barriers of groups in which tasks of this node are (`reference/pmi1.md` §6).
//!
//! A group meets once everybody who can come is in: its tasks here by what is known here, the others by the tree.
//! Several may be under way at once, and a task may be in several. A task is let out with all others of its group on
//! this node, so it is never in a group's next barrier before the others have left the last.

use alloc::collections::BTreeMap;

use model::{IdSet, Rank, RankGroup};

use crate::ClientError;

/// All barriers of groups that are under way.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    open: BTreeMap<RankGroup, Meeting>,
    /// How many puts a group was told of; only those that not everybody has matter.
    told: BTreeMap<RankGroup, u64>,
}

#[derive(Debug)]
struct Meeting {
    /// Tasks here that are to come.
    awaited: IdSet,
    entered: IdSet,
    /// The other nodes' have been asked for.
    is_exchanging: bool,
}

impl Meetings {
    /// Takes a task into the barrier of its group. Of all tasks here, `here` says who can still come.
    pub(crate) fn enter(
        &mut self,
        group: &RankGroup,
        rank: Rank,
        here: impl FnOnce() -> IdSet,
    ) -> Result<(), ClientError> {
        let meeting = self.open(group, here);
        if !meeting.awaited.remove(rank.0) {
            return Err(ClientError::BarrierTwice);
        }
        meeting.entered.insert(rank.0);
        Ok(())
    }

    /// Waits for the tasks of the group here, since others of it wait. `here` says who can still come.
    pub(crate) fn ask(&mut self, group: &RankGroup, here: impl FnOnce() -> IdSet) {
        self.open(group, here);
    }

    /// A task can come to no barrier any more.
    pub(crate) fn leave(&mut self, rank: Rank) {
        for meeting in self.open.values_mut() {
            meeting.awaited.remove(rank.0);
        }
    }

    /// The groups of which everybody here is in, and no other node was asked.
    pub(crate) fn complete(&self) -> impl Iterator<Item = &RankGroup> {
        let is_complete = |meeting: &Meeting| !meeting.is_exchanging && meeting.awaited.is_empty();
        self.open.iter().filter(move |(_, meeting)| is_complete(meeting)).map(|(group, _)| group)
    }

    /// Begins the exchange of a group's puts, of which there are `puts`. Returns how many of them it was told of.
    pub(crate) fn exchange(&mut self, group: &RankGroup, puts: u64) -> u64 {
        if let Some(meeting) = self.open.get_mut(group) {
            meeting.is_exchanging = true;
        }
        self.told.insert(group.clone(), puts).unwrap_or(0)
    }

    /// Ends a group's barrier. Returns who was in it.
    pub(crate) fn end(&mut self, group: &RankGroup) -> IdSet {
        self.open.remove(group).map(|meeting| meeting.entered).unwrap_or_default()
    }

    /// Whether an exchange of this group is under way.
    pub(crate) fn is_exchanging(&self, group: &RankGroup) -> bool {
        self.open.get(group).is_some_and(|meeting| meeting.is_exchanging)
    }

    /// What was pending has come to everybody: groups need not be told of it.
    pub(crate) fn on_exchange_of_all(&mut self) {
        self.told.clear();
    }

    fn open(&mut self, group: &RankGroup, here: impl FnOnce() -> IdSet) -> &mut Meeting {
        self.open.entry(group.clone()).or_insert_with(|| {
            let here = here();
            let awaited = here.intersection(&group.ranks);
            Meeting { awaited, entered: IdSet::new(), is_exchanging: false }
        })
    }
}
