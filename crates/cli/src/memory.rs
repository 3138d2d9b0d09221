//! What memory the processes of a session take, for the planner; and whether what is to run on this
//! machine fits into it.
//!
//! A model, not a simulation: what the simulator holds for an agent is less than what a process takes
//! that has the program's own pages, a keeper and buffers. So each term was measured on real
//! sessions, as the peak of resident memory (`VmHWM`), and is written down here: what the program
//! itself takes in both builds, the rest in the static one.
//! A test holds the model against processes that run (`tests/planner.rs`).
//!
//! Of a process and its keeper together:
//!
//! - what it takes whatever the session: [`HEAD`] or [`AGENT`];
//! - [`CHILD`] for each of its children: the link with its buffers and keys, and what the engine
//!   knows of it;
//! - for each host that is not started yet and whose name it holds, [`HEAD_NAME`] in the head, which
//!   has all of them and places tasks on them, and [`AGENT_NAME`] in an agent;
//! - in an MPI job [`CARD`] for each task of the whole job, since every agent can find every card.
//!
//! What is left out: the remote shells that run beside a parent, one for each child; the kernel's
//! socket buffers; the tasks, and what of their output is on its way, which is bounded by 4 MiB.

use model::{IdSet, Tree};

/// The head and its keeper in a session of a few agents, and an agent and its keeper without children.
/// Most of it are pages of the program and its libraries.
const HEAD: u64 = if IS_STATIC { 7_000_000 } else { 11_900_000 };
const AGENT: u64 = if IS_STATIC { 5_300_000 } else { 8_900_000 };

/// What of an agent and its keeper no other process of the machine shares.
pub(crate) const AGENT_PRIVATE: u64 = 1_000_000;

/// The build that is shipped; tests run another.
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// A child: 1 MB for the head's first 124.
const CHILD: u64 = 8_300;

/// A host that the head has: 31 MB for 100,000.
const HEAD_NAME: u64 = 310;

/// A host that an agent has yet to start or to give to a child: 9.1 MB for 50,000.
const AGENT_NAME: u64 = 182;

/// A task's card in each agent.
const CARD: u64 = 200;

/// Hosts that an agent of an adaptive tree holds at most, in practice: shares are four hosts for each
/// of those who work below it.
const ADAPTIVE_NAMES_MAX: u64 = 256;

/// What decides how much the processes of a session hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Hosts of the session.
    pub(crate) nodes: u64,
    /// Children of the head.
    pub(crate) head_children: u64,
    /// The most children that an agent has.
    pub(crate) agent_children: u64,
    /// The most hosts that an agent has below it when it is welcomed.
    pub(crate) agent_names: u64,
}

/// Peak resident bytes, the keeper's included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Memory {
    /// Of the head.
    pub(crate) head: u64,
    /// Of the agent that takes the most.
    pub(crate) agent: u64,
}

impl Load {
    pub(crate) fn memory(self) -> Memory {
        Memory {
            head: HEAD + CHILD * self.head_children + HEAD_NAME * self.nodes,
            agent: AGENT + CHILD * self.agent_children + AGENT_NAME * self.agent_names,
        }
    }
}

/// The most hosts that one agent is made responsible for.
pub(crate) fn agent_names(tree: &Tree, nodes: u32) -> u64 {
    match tree {
        Tree::Adaptive { .. } => u64::from(nodes).min(ADAPTIVE_NAMES_MAX),
        Tree::Flat
        | Tree::Chain
        | Tree::Kary(_)
        | Tree::Binomial
        | Tree::TwoLevel
        | Tree::Greedy { .. }
        | Tree::Routed(_)
        | Tree::Scela { .. } => {
            let branches = engine::tree::branches(tree, &IdSet::range(1, nodes));
            branches.iter().map(|branch| branch.below.len()).max().unwrap_or_default()
        }
    }
}

/// Memory that is wanted here and is not free.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}, and {} are free", shown(*.wanted), shown(*.free))]
pub(crate) struct Shortage {
    wanted: u64,
    free: u64,
}

/// Bytes that can be had without swapping; as many as there can be where the kernel does not say.
pub(crate) fn free() -> u64 {
    os::machine::available_memory().unwrap_or(u64::MAX)
}

/// Refuses what needs more than is free: a machine that swaps could not even be told to stop.
pub(crate) fn check(wanted: u64, free: u64) -> Result<(), Shortage> {
    if wanted > free { Err(Shortage { wanted, free }) } else { Ok(()) }
}

/// What the cards of an MPI job take in every agent.
pub(crate) fn of_cards(tasks: u64) -> u64 {
    CARD * tasks
}

/// Bytes as people say them: `0.4 KB`, `2.9 MB`, `310 MB`, `1.2 GB`.
pub(crate) fn shown(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    match megabytes {
        1e3.. => format!("{:.1} GB", megabytes / 1e3),
        100.0.. => format!("{megabytes:.0} MB"),
        ..0.1 => format!("{:.1} KB", megabytes * 1e3),
        _ => format!("{megabytes:.1} MB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_sessions_are_met() {
        // Peaks of head and keeper, and of an agent and its keeper, in sessions of the static build.
        let of_head = |memory: Memory| memory.head - HEAD + 3_900_000;
        let of_agent = |memory: Memory| memory.agent - AGENT + 2_900_000;
        let flat = Load { nodes: 128, head_children: 128, agent_children: 0, agent_names: 0 };
        assert!(of_head(flat.memory()).abs_diff(4_960_000) < 200_000, "{:?}", flat.memory());
        let half = agent_names(&Tree::Kary(2), 100_000);
        let wide = Load { nodes: 100_000, head_children: 1, agent_children: 1, agent_names: half };
        assert!(of_agent(wide.memory()).abs_diff(11_940_000) < 200_000, "{:?}", wide.memory());
        assert!(of_head(wide.memory()).abs_diff(33_100_000 + 1_850_000) < 500_000);
    }

    #[test]
    fn an_agent_holds_its_part_of_the_hosts_and_an_adaptive_one_a_share() {
        assert_eq!(agent_names(&Tree::Flat, 1_000), 0);
        assert_eq!(agent_names(&Tree::Chain, 1_000), 999);
        assert_eq!(agent_names(&Tree::Kary(4), 1_000), 249);
        assert_eq!(agent_names(&Tree::adaptive(), 1_000_000), ADAPTIVE_NAMES_MAX);
    }

    #[test]
    fn bytes_are_shown_with_two_or_three_figures() {
        let texts = [400, 2_930_000, 314_000_000, 1_240_000_000].map(shown);
        assert_eq!(texts, ["0.4 KB", "2.9 MB", "314 MB", "1.2 GB"]);
    }
}
