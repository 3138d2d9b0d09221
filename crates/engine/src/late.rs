//! Hosts without tasks get an agent when a job that a task has asked for needs their room.
//!
//! Such an agent is a leaf below the head, and joins while the session runs. It is told of the first job, with which
//! agents join, but is no member of it: the job was launched without it, so the head sends it none of that job's
//! messages, and waits for none. Once it has joined it is a member like others: other jobs may have tasks there, its loss ends
//! the session, and it leaves with everybody. The head has [`LATE_MAX`] such children at most; who wants more has all hosts
//! brought up when the session begins. A session that routes has none: its tree is made of its members.

use alloc::string::String;
use alloc::vec::Vec;

use model::{AgentId, IdSet, Tree};

use crate::child::Child;
use crate::engine::Engine;

/// The most hosts that get an agent so.
pub const LATE_MAX: usize = 64;

impl Engine {
    /// Starts agents on these hosts, which have none.
    pub(crate) fn start_late(&mut self, hosts: Vec<(AgentId, String)>) {
        if hosts.is_empty() {
            return;
        }
        for (agent, name) in hosts {
            let mut child = Child::new(self.now, agent, name, IdSet::new(), Vec::new(), Tree::Flat);
            child.is_late = true;
            self.children.insert(agent, child);
            self.joining.missing.insert(agent.0);
            self.waiting.push_back(agent);
        }
        self.set_ticker();
        self.start_waiting();
    }
}
