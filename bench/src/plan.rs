//! Spawn trees for the floor: the same shapes as the product's, written down for a program in C.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use engine::tree;
use model::{AgentId, IdSet, Tree};

/// The tree that the product takes for `n` agents when nothing is measured.
pub(crate) fn default_tree(n: usize) -> Tree {
    tree::default_tree(n as u64, Tree::ASSUMED_LATENCY, Tree::ASSUMED_GAP)
}

/// When the default tree of `n` agents is complete, by its own arithmetic.
pub(crate) fn default_arithmetic(n: usize, latency: Duration, gap: Duration) -> Duration {
    tree::completion_time(&default_tree(n), n as u64, latency, gap)
}

/// When the greedy tree for these costs is complete: the optimum.
pub(crate) fn greedy_arithmetic(n: usize, latency: Duration, gap: Duration) -> Duration {
    tree::completion_time(&Tree::Greedy { latency, gap }, n as u64, latency, gap)
}

/// Writes who starts whom among `n` agents and the root, as `floors/tree.c` reads it.
pub(crate) fn write(path: &Path, tree: &Tree, n: usize) -> anyhow::Result<()> {
    let lists = children(tree, n);
    let mut start = u32::try_from(lists.len() + 1)?;
    let mut numbers = vec![start];
    for list in &lists {
        start += u32::try_from(list.len())?;
        numbers.push(start);
    }
    numbers.extend(lists.concat());
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
    std::fs::write(path, bytes).with_context(|| format!("write {}", path.display()))
}

/// The most children that one agent of the tree has.
pub(crate) fn degree(tree: &Tree, n: usize) -> usize {
    children(tree, n).iter().map(Vec::len).max().unwrap_or_default()
}

/// For each agent, the root first, its children in the order of their start.
fn children(tree: &Tree, n: usize) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); n + 1];
    let all: IdSet = (1..=n as u32).collect();
    let mut unplanned = VecDeque::from([(AgentId(0), *tree, all)]);
    while let Some((parent, tree, below)) = unplanned.pop_front() {
        for branch in tree::branches(&tree, &below) {
            lists[parent.0 as usize].push(branch.child.0);
            unplanned.push_back((branch.child, branch.tree, branch.below));
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_lists_every_agent_once() {
        let lists = children(&Tree::Kary(3), 40);
        let mut all: Vec<u32> = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (1..=40).collect::<Vec<_>>());
        assert_eq!(degree(&Tree::Kary(3), 40), 3);
        assert_eq!(degree(&Tree::Flat, 40), 40);
    }
}
