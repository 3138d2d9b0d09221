//! The children of a member: by their number, by when something is due, by their start in flight, and
//! by how long others have waited for them.
//!
//! After everything that happens a member is asked when it is next due, and whenever a child joins
//! whether it may start another. If it looked at every child to answer, a member with n children would
//! take n² steps to bring them up. So the answers are kept. Whoever changes a child need not think of
//! that: a child that was given out to be changed is looked at again before the next answer.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Index;

use model::{AgentId, Time};

use crate::StartId;
use crate::child::Child;

/// The children of a member.
#[derive(Debug, Default)]
pub(crate) struct ChildTable {
    /// Boxed, since a node of the map has room for eleven, and most members have few or none.
    children: BTreeMap<AgentId, Box<Child>>,
    /// When something is to be done about a child though nothing happens.
    due: BTreeSet<(Time, AgentId)>,
    /// Starts in flight, and how many agents of each are.
    in_flight: BTreeMap<StartId, usize>,
    /// Children on their way that are to start others, and since when these wait for them.
    awaited: BTreeSet<(Time, AgentId)>,
    /// Children that may have changed since those three were right.
    touched: Vec<AgentId>,
    all_touched: bool,
}

/// What the table has taken note of about a child.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Noted {
    due: Option<Time>,
    in_flight: Option<StartId>,
    awaited_since: Option<Time>,
}

impl ChildTable {
    pub(crate) fn insert(&mut self, agent: AgentId, child: Child) {
        self.touched.push(agent);
        self.children.insert(agent, Box::new(child));
    }

    /// A child, to be read.
    pub(crate) fn get(&self, agent: &AgentId) -> Option<&Child> {
        self.children.get(agent).map(|child| &**child)
    }

    pub(crate) fn contains_key(&self, agent: &AgentId) -> bool {
        self.children.contains_key(agent)
    }

    /// Their numbers, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &AgentId> {
        self.children.keys()
    }

    /// All children, by number.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Child> {
        self.children.values().map(|child| &**child)
    }

    /// The child of this number, or the last one before it.
    pub(crate) fn last_until(&self, agent: AgentId) -> Option<&Child> {
        self.children.range(..=agent).next_back().map(|(_, child)| &**child)
    }

    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// A child, to be changed.
    pub(crate) fn get_mut(&mut self, agent: &AgentId) -> Option<&mut Child> {
        if self.touched.last() != Some(agent) {
            self.touched.push(*agent);
        }
        self.children.get_mut(agent).map(|child| &mut **child)
    }

    /// All children, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.all_touched = true;
        self.children.values_mut().map(|child| &mut **child)
    }

    /// When something is first to be done about a child. Cheap after a [`ChildTable::refresh`].
    pub(crate) fn first_due(&self) -> Option<Time> {
        if self.all_touched || !self.touched.is_empty() {
            return self.children.values().filter_map(|child| child.timeout()).min();
        }
        self.due.first().map(|(at, _)| *at)
    }

    /// The children about whom something is to be done now, in the order of their numbers.
    pub(crate) fn due_until(&mut self, now: Time) -> BTreeSet<AgentId> {
        self.refresh();
        self.due.range(..=(now, AgentId(u32::MAX))).map(|(_, agent)| *agent).collect()
    }

    /// How many starts are in flight, those of several agents counted once.
    pub(crate) fn starts_in_flight(&mut self) -> usize {
        self.refresh();
        self.in_flight.len()
    }

    /// How many agents are being started.
    pub(crate) fn agents_in_flight(&self) -> usize {
        self.in_flight.values().sum()
    }

    /// The child that others have waited for the longest, and since when. Right after a
    /// [`ChildTable::refresh`].
    pub(crate) fn longest_awaited(&self) -> Option<(Time, AgentId)> {
        self.awaited.first().copied()
    }

    /// Looks again at all that may have changed.
    pub(crate) fn refresh(&mut self) {
        if core::mem::take(&mut self.all_touched) {
            self.touched.clear();
            self.touched.extend(self.children.keys());
        }
        while let Some(agent) = self.touched.pop() {
            let Some(child) = self.children.get_mut(&agent) else { continue };
            let in_flight = child.shell.filter(|_| child.is_in_flight());
            let now =
                Noted { due: child.timeout(), in_flight, awaited_since: child.awaited_since() };
            let before = core::mem::replace(&mut child.noted, now);
            renew(&mut self.due, agent, before.due, now.due);
            renew(&mut self.awaited, agent, before.awaited_since, now.awaited_since);
            if before.in_flight != now.in_flight {
                if let Some(start) = now.in_flight {
                    *self.in_flight.entry(start).or_default() += 1;
                }
                self.count_out(before.in_flight);
            }
        }
    }

    fn count_out(&mut self, start: Option<StartId>) {
        let Some(start) = start else { return };
        let Some(count) = self.in_flight.get_mut(&start) else { return };
        *count -= 1;
        if *count == 0 {
            self.in_flight.remove(&start);
        }
        if self.in_flight.is_empty() {
            self.in_flight = BTreeMap::new(); // an empty map may keep memory, and most are from here on
        }
    }
}

fn renew(
    table: &mut BTreeSet<(Time, AgentId)>,
    agent: AgentId,
    before: Option<Time>,
    now: Option<Time>,
) {
    if before != now {
        before.map(|at| table.remove(&(at, agent)));
        table.extend(now.map(|at| (at, agent)));
    }
}

impl Index<&AgentId> for ChildTable {
    type Output = Child;

    fn index(&self, agent: &AgentId) -> &Child {
        &self.children[agent]
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use core::time::Duration;

    use model::{IdSet, Tree};

    use super::*;
    use crate::child::ChildState;

    const SECOND: Duration = Duration::from_secs(1);

    fn table(n: u32) -> ChildTable {
        let mut table = ChildTable::default();
        for agent in (1..=n).map(AgentId) {
            let below = (IdSet::new(), Vec::new());
            let child =
                Child::new(Time::ZERO, agent, String::new(), below.0, below.1, Tree::adaptive());
            table.insert(agent, child);
        }
        table
    }

    fn start(child: &mut Child, start: u64, give_up_at: Time) {
        child.shell = Some(StartId(start));
        child.state = ChildState::Starting { give_up_at };
    }

    #[test]
    fn what_is_due_first_is_right_before_and_after_the_table_has_looked() {
        let mut table = table(3);
        let at = |seconds: u32| Time::ZERO + seconds * SECOND;
        let check = |table: &mut ChildTable, expected| {
            assert_eq!(table.first_due(), expected);
            let due = expected.map(|at| table.due_until(at)).unwrap_or_default();
            assert_eq!((table.first_due(), due.is_empty()), (expected, expected.is_none()));
        };
        check(&mut table, None);
        start(table.get_mut(&AgentId(2)).unwrap(), 0, at(5));
        start(table.get_mut(&AgentId(1)).unwrap(), 1, at(7));
        check(&mut table, Some(at(5)));
        table.get_mut(&AgentId(2)).unwrap().state = ChildState::Up;
        check(&mut table, Some(at(7)));
        let due = |child: &mut Child| child.state = ChildState::Starting { give_up_at: at(2) };
        table.values_mut().for_each(due);
        check(&mut table, Some(at(2)));
        assert_eq!(table.due_until(at(2)), [1, 2, 3].map(AgentId).into());
        assert_eq!(table.due_until(at(1)), BTreeSet::new());
        table.values_mut().for_each(|child| child.state = ChildState::Waiting);
        check(&mut table, None);
    }

    #[test]
    fn a_start_is_in_flight_until_the_last_of_its_agents_is_not() {
        let mut table = table(3);
        for (agent, of) in [(1, 0), (2, 0), (3, 1)] {
            start(table.get_mut(&AgentId(agent)).unwrap(), of, Time::ZERO);
        }
        assert_eq!(table.starts_in_flight(), 2);
        table.get_mut(&AgentId(1)).unwrap().state = ChildState::Up;
        assert_eq!(table.starts_in_flight(), 2);
        table.get_mut(&AgentId(2)).unwrap().state = ChildState::Up;
        assert_eq!(table.starts_in_flight(), 1);
        table.get_mut(&AgentId(3)).unwrap().shell = None;
        assert_eq!(table.starts_in_flight(), 0);
    }
}
