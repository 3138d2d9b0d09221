//! Identities. All of them are dense numbers that never change during a session.

use core::fmt;

use serde::{Deserialize, Serialize};

/// An agent's number within its session: the head is 0, the agent of node `i` is `i + 1`.
///
/// It implies nothing about a position in any tree.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
pub struct AgentId(pub u32);

/// A node's index in the session's node list.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
pub struct NodeId(pub u32);

/// A task's number within its job, 0-based (`PMI_RANK`, `PMIX_RANK`).
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
pub struct Rank(pub u32);

/// A job's number within its session. One `convoke run` is a session that begins with one job, [`JobId::FIRST`].
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
pub struct JobId(pub u32);

impl JobId {
    /// The job that a session is started for.
    pub const FIRST: JobId = JobId(0);
}

impl AgentId {
    /// The head: the root of the spawn tree, which lives in the front end.
    pub const HEAD: AgentId = AgentId(0);

    /// The node this agent serves; the head serves none.
    pub fn node(self) -> Option<NodeId> {
        self.0.checked_sub(1).map(NodeId)
    }
}

impl NodeId {
    /// The agent that serves this node.
    pub fn agent(self) -> AgentId {
        AgentId(self.0 + 1)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
