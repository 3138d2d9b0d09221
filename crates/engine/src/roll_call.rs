//! Who is there: the head's roll while agents join, and when that is enough for the job.
//!
//! A job whose planned nodes are all there runs at once, whether its spares have joined or not. Where some
//! are missing it runs when everybody has joined or failed. One that hangs must not hold up what a spare
//! can do: once as many nodes are there as were planned, the others may take as long again as those
//! took. So the wait follows from the number of nodes and from how fast they come up. Where the tasks
//! do not fit on those who are there, it goes on.

use model::{IdSet, Muster, PlacementError, TaskMap, Time};

/// The roll.
#[derive(Debug)]
pub(crate) struct RollCall {
    muster: Muster,
    all: IdSet,
    /// Whom the job was planned for.
    planned: IdSet,
    joined: IdSet,
    failed: IdSet,
    began: Time,
    /// Until when others are waited for, once as many are there as were planned.
    spares_at: Option<Time>,
    /// They have had that time.
    is_late: bool,
}

impl RollCall {
    pub(crate) fn new(now: Time, n: u32, muster: Muster) -> RollCall {
        RollCall {
            all: IdSet::range(1, n),
            planned: IdSet::range(1, muster.planned()),
            muster,
            joined: IdSet::new(),
            failed: IdSet::new(),
            began: now,
            spares_at: None,
            is_late: false,
        }
    }

    pub(crate) fn on_joined(&mut self, now: Time, agents: &IdSet) {
        self.joined = self.joined.union(agents);
        let is_enough = self.there().len() >= self.planned.len();
        if self.muster.spares > 0 && is_enough && self.spares_at.is_none() && !self.is_late {
            self.spares_at = Some(now + now.since(self.began));
        }
    }

    /// Handles that agents will not join, or are lost.
    pub(crate) fn on_missing(&mut self, agents: &IdSet) {
        self.failed = self.failed.union(agents);
    }

    /// Handles that agents are started again.
    pub(crate) fn on_again(&mut self, agents: &IdSet) {
        self.joined = self.joined.difference(agents);
    }

    /// Those of the agents that nobody has told of as missing.
    pub(crate) fn without_failed(&self, agents: &IdSet) -> IdSet {
        agents.difference(&self.failed)
    }

    /// When it may be time to go on though nothing happens.
    pub(crate) fn timeout(&self) -> Option<Time> {
        self.spares_at
    }

    pub(crate) fn on_time(&mut self, now: Time) {
        self.is_late |= self.spares_at.take_if(|at| *at <= now).is_some();
    }

    /// Those who will not join, or are lost.
    pub(crate) fn failed(&self) -> &IdSet {
        &self.failed
    }

    /// Those of whom nothing is known yet.
    pub(crate) fn undecided(&self) -> IdSet {
        self.all.difference(&self.joined).difference(&self.failed)
    }

    /// Whether too few can still be there.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.all.difference(&self.failed).len() < u64::from(self.muster.nodes_min())
    }

    /// Whether the job can be launched, and nobody is to be waited for.
    pub(crate) fn is_complete(&self, now: Time) -> bool {
        let there = self.there();
        let are_late = self.is_late || self.spares_at.is_some_and(|at| at <= now);
        let can_do = || there.len() >= self.planned.len() && self.place(&there).is_ok();
        self.planned.difference(&there).is_empty()
            || self.undecided().is_empty()
            || are_late && can_do()
    }

    /// Whom the job was planned for and of whom nothing is known yet.
    pub(crate) fn late(&self) -> IdSet {
        self.planned.difference(&self.joined).difference(&self.failed)
    }

    /// The agents that run the job, and which task runs where, if not as it was planned.
    pub(crate) fn members(&self) -> Result<(IdSet, Option<TaskMap>), PlacementError> {
        let there = self.there();
        if self.planned.difference(&there).is_empty() {
            return Ok((self.planned.clone(), None));
        }
        let map = self.place(&there)?;
        let members = map.nodes().iter().map(|node| node + 1).collect();
        Ok((members, Some(map)))
    }

    /// Which task runs where if only these agents are there.
    fn place(&self, there: &IdSet) -> Result<TaskMap, PlacementError> {
        self.muster.place(&there.iter().map(|agent| agent - 1).collect())
    }

    /// Those who have joined and were not lost.
    pub(crate) fn there(&self) -> IdSet {
        self.joined.difference(&self.failed)
    }
}
