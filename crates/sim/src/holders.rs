//! Who is to start whom: every agent is held by one process at any time, and started by that one.

use model::{AgentId, IdSet};
use wire::Message;

use crate::process::ProcessId;

/// Who holds each agent, and whether it has been started.
pub(crate) struct Holders {
    /// By agent, the head's own entry unused.
    held: Vec<(ProcessId, bool)>,
}

impl Holders {
    /// The head holds all of `n` agents.
    pub(crate) fn new(n: u32) -> Holders {
        Holders { held: (0..=n).map(|_| (ProcessId::HEAD, false)).collect() }
    }

    /// A message may make one process responsible instead of another. Returns what is wrong with it.
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
            let Some(held) = self.held.get_mut(id as usize) else {
                return Some(format!("agent {id} is given away, and there is none"));
            };
            if *held != (from, false) {
                return Some(format!("agent {id} is given away by {from:?}, but it is {held:?}"));
            }
            held.0 = to;
        }
        None
    }

    /// A process starts an agent. Returns what is wrong with that.
    pub(crate) fn start(&mut self, by: ProcessId, agent: AgentId) -> Option<String> {
        let Some(held) = self.held.get_mut(agent.0 as usize) else {
            return Some(format!("agent {agent} is started, and there is none"));
        };
        held.1 = true;
        (held.0 != by).then(|| format!("agent {agent} is started by {by:?}, but it is {held:?}"))
    }
}
