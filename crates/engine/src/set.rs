//! Strict batches: a parent starts a set of leaves, waits for all of it, and starts the next.
//!
//! Each of a set has joined, has failed, or is to be tried again later before anybody of the next is
//! started (S1-19). The window bounds how many starts are in flight, too, but goes on when any of them
//! is over; a batch waits for the slowest. It bounds how many call back at once, and costs the
//! latency once for every set (S1-24).
//!
//! As in S1, sets are of leaves, whose calls are the bulk: children that are to start others are not
//! held back, so that the tree above the last level comes up as without sets. In an adaptive tree
//! nobody is to start anybody when it is started itself, so there sets are of all children.
//!
//! A set is counted in agents, however many of them one command starts. It costs a look at each
//! shell that lives for each start, and without batches nothing.

use model::AgentId;

use crate::child::Child;
use crate::engine::Engine;

impl Engine {
    /// How many leaves may be started now: the rest of a set, or a new one when no leaf is in flight.
    pub(crate) fn set_room(&self) -> usize {
        let Some(batch) = self.session().batch else { return usize::MAX };
        let batch = usize::try_from(batch.max(1)).unwrap_or(usize::MAX);
        if self.has_leaf_in_flight() { batch.saturating_sub(self.set_started) } else { batch }
    }

    /// Takes note of agents that are about to be started.
    pub(crate) fn count_in_set(&mut self, agents: &[AgentId]) {
        if self.session().batch.is_none() {
            return;
        }
        if !self.has_leaf_in_flight() {
            self.set_started = 0;
        }
        for agent in agents {
            let Some(child) = self.children.get_mut(agent) else { continue };
            child.in_set = child.is_leaf();
            self.set_started += usize::from(child.in_set);
        }
    }

    /// Whether a child that is tried again goes before those that wait: it must not wait for sets
    /// of leaves.
    pub(crate) fn is_first_again(&self, agent: AgentId) -> bool {
        let is_leaf = self.children.get(&agent).is_some_and(Child::is_leaf);
        self.session().batch.is_some() && !is_leaf
    }

    fn has_leaf_in_flight(&self) -> bool {
        let mut agents = self.starts.values().flatten();
        agents.any(|agent| {
            self.children.get(agent).is_some_and(|child| child.in_set && child.is_in_flight())
        })
    }
}
