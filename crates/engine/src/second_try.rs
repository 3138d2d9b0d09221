//! A node that its parent cannot reach: the head tries it once itself before it counts as failed.
//!
//! What keeps an agent away may be its parent's: a firewall between the two, a name that is not known
//! there, no key to be let in with, no program to start shells. The head has the name of every host, since
//! it keeps those of all that it has given away to start (`takeover.rs`). So it makes the agent a leaf of its
//! own, and starts it one time. If that fails, too, both causes are told. What is the host's own is told at
//! once, and so is all that went wrong at the head.
//!
//! Many may fail together: they wait for the head's window as its other children do. A silent one would
//! be in the way there for as long as a start may take, so it is tried where there is room at once, or not
//! at all. However many are silent, that costs a session no more than one such time.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use model::{AgentId, IdSet, Tree};
use proto::Event;
use wire::{ShellFailureKind, StartCause, StartFailure};

use crate::child::Child;
use crate::engine::{Engine, Phase};
use crate::names;

impl Engine {
    /// Handles that starts have failed below a child.
    pub(crate) fn on_failures_below(&mut self, child: AgentId, failures: Vec<StartFailure>) {
        let mut final_ones = Vec::new();
        for failure in failures {
            self.strike_off(child, &failure.agents);
            match self.name_for_second_try(child, &failure) {
                Some((agent, name)) => self.try_here(agent, name, failure),
                None => final_ones.push(failure),
            }
        }
        if !final_ones.is_empty() {
            self.on_start_failures(final_ones);
        }
    }

    /// Who failed and what its host is called, if this member is to try it.
    fn name_for_second_try(
        &mut self,
        child: AgentId,
        failure: &StartFailure,
    ) -> Option<(AgentId, String)> {
        let agent = failure.agents.first().map(AgentId).filter(|_| failure.agents.len() == 1)?;
        let is_joining = self.phase == Phase::Join && !self.joining.is_over;
        let is_known = self.children.contains_key(&agent);
        if !self.is_head() || !is_joining || is_known || !may_differ_here(failure.cause) {
            return None;
        }
        let session = self.session();
        let has_room = self.children.len() < self.children_max as usize;
        let is_at_once = self.waiting.is_empty()
            && self.children.starts_in_flight() < session.window.max(1) as usize;
        let may_wait = failure.cause != StartCause::Silent;
        if session.bulk_max > 1 || !has_room || !(is_at_once || may_wait) {
            return None;
        }
        Some((agent, self.children.get(&child)?.name_of(agent)?))
    }

    fn try_here(&mut self, agent: AgentId, name: String, failure: StartFailure) {
        let words = failure.words.clone();
        self.events.push_back(Event::StartRetried { agent, cause: failure.cause, words });
        self.stats.retries += 1;
        let tree = if self.handout.is_some() { Tree::adaptive() } else { Tree::Flat };
        let mut child = Child::new(self.now, agent, name, IdSet::new(), Vec::new(), tree);
        child.elsewhere = Some(Box::new(failure));
        self.insert_child(child);
        self.set_ticker();
        self.waiting.push_back(agent);
        self.govern(|head, orders| head.on_progress(orders.now));
        self.start_waiting();
    }
}

impl Child {
    /// The name of somebody that it was given to start.
    fn name_of(&self, agent: AgentId) -> Option<String> {
        let work = self.given.iter().find(|work| work.below.contains(agent.0))?;
        let index = usize::try_from(work.below.index_of(agent.0)?).ok()?;
        let names = names::unfold(&work.names, work.below.len()).ok()?;
        names.into_iter().nth(index)
    }
}

/// Whether a start that failed like this elsewhere may do better here.
fn may_differ_here(cause: StartCause) -> bool {
    match cause {
        StartCause::NoShell(_) | StartCause::Silent => true,
        StartCause::Deadline => false,
        StartCause::Shell(kind, _) => match kind {
            ShellFailureKind::Busy
            | ShellFailureKind::Refused
            | ShellFailureKind::Unreachable
            | ShellFailureKind::UnknownHost
            | ShellFailureKind::Auth
            | ShellFailureKind::HostKey
            | ShellFailureKind::Other => true,
            ShellFailureKind::NoBinary
            | ShellFailureKind::NotExecutable
            | ShellFailureKind::AgentKilled(_) => false,
        },
    }
}
