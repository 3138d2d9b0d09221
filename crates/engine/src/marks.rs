//! When what happened to whom, kept for a timeline where the session asks for it.
//!
//! Clocks of hosts agree on nothing, so an agent counts from its own welcome. Its parent knows when
//! that was by the parent's clock, and adds it to whatever comes up from that child: level by level
//! the marks come to the head's clock, too early by one way over a link for each level. They go
//! up with the farewell, when nobody waits for anything else. The head tells what it sees itself at
//! once, so that a session that fails still has a timeline.
//!
//! A session that does not ask for them pays for one comparison.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use model::{AgentId, Time};
use proto::Event;
use wire::{Mark, MarkKind, Message};

use crate::engine::Engine;

/// Marks that are kept before they are sent up, so that no message and no agent grows with the
/// session: some 12 bytes each on the wire.
const MARKS_MAX: usize = 4096;

/// The marks of one member and those below it that it has not sent up yet.
#[derive(Debug)]
pub(crate) struct Marks {
    /// When this member was welcomed; for the head the time from which its driver counts.
    zero: Time,
    /// When each child was welcomed.
    welcomed_us: BTreeMap<AgentId, u64>,
    kept: Vec<Mark>,
}

impl Marks {
    pub(crate) fn new(zero: Time) -> Marks {
        Marks { zero, welcomed_us: BTreeMap::new(), kept: Vec::new() }
    }
}

impl Engine {
    /// Notes that something happened to an agent just now.
    pub(crate) fn mark(&mut self, agent: AgentId, kind: MarkKind) {
        let (now, by) = (self.now, self.id);
        let Some(marks) = &mut self.marks else { return };
        let at_us = u64::try_from(now.since(marks.zero).as_micros()).unwrap_or(u64::MAX);
        if kind == MarkKind::Welcomed {
            marks.welcomed_us.insert(agent, at_us);
        }
        self.keep_marks(vec![Mark { agent, by, kind, at_us }]);
    }

    /// Notes the same of all of these agents.
    pub(crate) fn mark_all(&mut self, agents: &[AgentId], kind: MarkKind) {
        for &agent in agents {
            self.mark(agent, kind);
        }
    }

    /// Handles marks from below, which count from the welcome of the child that sent them.
    pub(crate) fn on_marks(&mut self, child: AgentId, mut marks: Vec<Mark>) {
        let Some(own) = &self.marks else { return };
        let welcomed_us = own.welcomed_us.get(&child).copied().unwrap_or_default();
        for mark in &mut marks {
            mark.at_us = mark.at_us.saturating_add(welcomed_us);
        }
        self.keep_marks(marks);
    }

    fn keep_marks(&mut self, new: Vec<Mark>) {
        if self.is_head() {
            return self.events.push_back(Event::Marked(new));
        }
        let Some(marks) = &mut self.marks else { return };
        marks.kept.extend(new);
        if marks.kept.len() >= MARKS_MAX {
            self.send_marks();
        }
    }

    /// Sends up what is kept.
    pub(crate) fn send_marks(&mut self) {
        let Some(marks) = &mut self.marks else { return };
        let kept = core::mem::take(&mut marks.kept);
        if !kept.is_empty() {
            self.up(Message::Marks(kept));
        }
    }
}
