//! Strict batches as they look from outside: what each parent has on its way.

use std::collections::{BTreeMap, BTreeSet};

use engine::tree;
use model::{AgentId, IdSet, Tree};
use proto::Event;

use crate::process::ProcessId;

/// The current set of each parent, where a session has strict batches.
pub(crate) struct Sets {
    batch: Option<u32>,
    /// Agents that are started in sets.
    leaves: IdSet,
    current: BTreeMap<ProcessId, Set>,
    /// Parents that may have planned anew, what others were to start: who is a leaf there is not known.
    replanned: BTreeSet<ProcessId>,
}

#[derive(Default)]
struct Set {
    started: u32,
    on_their_way: BTreeSet<AgentId>,
}

impl Sets {
    /// Nobody of `n` agents has been started. Those behind the first `begun` are children of the head, if they are.
    pub(crate) fn new(batch: Option<u32>, tree: &Tree, begun: u32, n: u32) -> Sets {
        let later = IdSet::range(1, n).difference(&IdSet::range(1, begun));
        let leaves = batch.map_or(IdSet::new(), |_| leaves(tree, begun).union(&later));
        Sets { batch, leaves, current: BTreeMap::new(), replanned: BTreeSet::new() }
    }

    /// A parent starts an agent. Returns what is wrong with that.
    pub(crate) fn start(&mut self, by: ProcessId, agent: AgentId) -> Option<String> {
        let is_known = self.leaves.contains(agent.0) && !self.replanned.contains(&by);
        let batch = self.batch.filter(|_| is_known)?;
        let set = self.current.entry(by).or_default();
        if set.on_their_way.is_empty() {
            set.started = 0;
        }
        set.started += 1;
        set.on_their_way.insert(agent);
        let is_early = set.started > batch;
        let others = set.on_their_way.len() - 1;
        is_early.then(|| {
            format!("agent {agent} is started beyond a set of {batch}, {others} of it on their way")
        })
    }

    /// A parent has welcomed an agent.
    pub(crate) fn welcome(&mut self, by: ProcessId, agent: AgentId) {
        if let Some(set) = self.current.get_mut(&by) {
            set.on_their_way.remove(&agent);
        }
    }

    /// A parent tells that starts have failed, for now or for good, or that agents are lost.
    pub(crate) fn on_event(&mut self, by: ProcessId, event: &Event) {
        if matches!(event, Event::StartFailed(_) | Event::AgentLost(_)) {
            self.replanned.insert(by);
        }
        let Some(set) = self.current.get_mut(&by) else { return };
        if let Event::StartRetried { agent, .. } = event {
            set.on_their_way.remove(agent);
        } else if let Event::StartFailed(failure) = event {
            set.on_their_way.retain(|agent| !failure.agents.contains(agent.0));
        }
    }
}

/// Who has nobody to start: in a planned tree, and before it joins.
fn leaves(tree: &Tree, n: u32) -> IdSet {
    let all = IdSet::range(1, n);
    if let Tree::Adaptive { .. } = tree {
        return all;
    }
    let mut leaves = IdSet::new();
    let mut parents = vec![(*tree, all)];
    while let Some((tree, below)) = parents.pop() {
        for branch in tree::branches(&tree, &below) {
            if branch.below.is_empty() {
                leaves.insert(branch.child.0);
            } else {
                parents.push((branch.tree, branch.below));
            }
        }
    }
    leaves
}
