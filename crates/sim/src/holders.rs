//! Who is to start whom: every agent is held by one process at any time, and started by that one. No two
//! processes of an agent are members at the same time.
//!
//! This is about members, who have a path to the head. What is below a process that was lost may go on
//! for a while, and is nobody.

use model::{AgentId, IdSet};
use proto::Event;
use wire::Message;

use crate::process::ProcessId;

/// Who holds each agent, and which process it is.
pub(crate) struct Holders {
    /// By agent, the head's own entry unused.
    agents: Vec<Held>,
}

/// One agent.
#[derive(Clone, Copy, Debug)]
struct Held {
    by: ProcessId,
    is_started: bool,
    /// The process that was welcomed last.
    process: Option<ProcessId>,
}

impl Holders {
    /// The head holds all of `n` agents.
    pub(crate) fn new(n: u32) -> Holders {
        let held = Held { by: ProcessId::HEAD, is_started: false, process: None };
        Holders { agents: (0..=n).map(|_| held).collect() }
    }

    /// A message may make one process responsible instead of another. Returns what is wrong with it,
    /// if the sender is a member.
    pub(crate) fn hand_over(
        &mut self,
        from: ProcessId,
        to: ProcessId,
        message: &Message,
    ) -> Option<String> {
        if let Message::Welcome(welcome) = message {
            self.give(from, to, &welcome.below)
        } else if let Message::Work(work) = message {
            self.give(from, to, &work.below)
        } else {
            None
        }
    }

    fn give(&mut self, from: ProcessId, to: ProcessId, ids: &IdSet) -> Option<String> {
        for id in ids.iter() {
            let Some(held) = self.agents.get_mut(id as usize) else {
                return Some(format!("agent {id} is given away, and there is none"));
            };
            if held.by != from || held.is_started {
                return Some(format!("agent {id} is given away by {from:?}, but it is {held:?}"));
            }
            held.by = to;
        }
        None
    }

    /// A process starts an agent. Returns what is wrong with that, if it is a member.
    pub(crate) fn start(&mut self, by: ProcessId, agent: AgentId) -> Option<String> {
        let Some(held) = self.agents.get_mut(agent.0 as usize) else {
            return Some(format!("agent {agent} is started, and there is none"));
        };
        if held.by != by {
            return Some(format!("agent {agent} is started by {by:?}, but it is {held:?}"));
        }
        held.is_started = true;
        None
    }

    /// A spawn parent that tells of the loss of a child holds all below it, to start them again. A head
    /// that ends in the same moment says that they are lost, too. Whom a parent could not start, the head
    /// may.
    pub(crate) fn on_event(&mut self, id: ProcessId, event: &Event) {
        if let Event::StartFailed(failure) = event {
            return self.give_up(id, &failure.agents);
        }
        let Event::AgentLost(loss) = event else { return };
        if self.agents.get(loss.agent.0 as usize).is_some_and(|lost| lost.by == id) {
            for agent in loss.again.union(&loss.agents).iter().filter(|id| *id != loss.agent.0) {
                let Some(held) = self.agents.get_mut(agent as usize) else { continue };
                (held.by, held.is_started) = (id, false);
            }
        }
    }

    fn give_up(&mut self, by: ProcessId, agents: &IdSet) {
        for agent in agents.iter() {
            if let Some(held) = self.agents.get_mut(agent as usize).filter(|held| held.by == by) {
                (held.by, held.is_started) = (ProcessId::HEAD, false);
            }
        }
    }

    /// A process of an agent is welcomed. Returns the one that was before.
    pub(crate) fn welcome(&mut self, agent: AgentId, process: ProcessId) -> Option<ProcessId> {
        self.agents.get_mut(agent.0 as usize)?.process.replace(process)
    }
}
