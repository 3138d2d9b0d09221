//! Spawn trees for the floor, written down for a program in C.
//!
//! The product's own tree, `adaptive`, has no plan: who starts whom is decided by how long starts
//! take. So a floor follows the greedy plan for the costs that its row has, which the product is not
//! told: no tree of agents that all start others is complete earlier.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use engine::tree;
use model::{AgentId, IdSet, Tree};

/// The tree of the floor: the greedy one for these costs. Without any, all trees take no time by
/// arithmetic, and it is the one that the product would plan for the costs of ssh that it assumes:
/// greedy too, and no agent has more than [`tree::DEFAULT_CHILDREN_MAX`] children.
pub(crate) fn floor_tree(n: usize, latency: Duration, gap: Duration) -> Tree {
    if latency.is_zero() && gap.is_zero() {
        return tree::default_tree(n as u64, Tree::ASSUMED_LATENCY, Tree::ASSUMED_GAP);
    }
    Tree::Greedy { latency, gap }
}

/// When the greedy tree for these costs is complete: the optimum, whatever the tree.
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
        assert!(lists.iter().all(|list| list.len() <= 3));
    }

    #[test]
    fn no_tree_is_complete_before_the_floor_s() {
        let ms = Duration::from_millis;
        for (n, latency, gap) in
            [(256, 1028, 28), (1000, 1028, 28), (256, 100, 10), (256, 40, 12), (256, 500, 2)]
        {
            let (latency, gap) = (ms(latency), ms(gap));
            let time = |tree: &Tree| tree::completion_time(tree, n as u64, latency, gap);
            let floor = time(&floor_tree(n, latency, gap));
            assert_eq!(floor, greedy_arithmetic(n, latency, gap));
            let assumed = tree::default_tree(n as u64, Tree::ASSUMED_LATENCY, Tree::ASSUMED_GAP);
            for other in [assumed, Tree::Flat, Tree::Binomial, Tree::TwoLevel, Tree::Kary(8)] {
                assert!(floor <= time(&other), "n={n}, {latency:?}, {gap:?}: {other}");
            }
        }
    }

    #[test]
    fn without_costs_the_floor_has_the_tree_for_the_assumed_ones() {
        let tree = floor_tree(256, Duration::ZERO, Duration::ZERO);
        assert_eq!(tree, Tree::greedy());
        let most = children(&tree, 256).iter().map(Vec::len).max().unwrap();
        assert!(most as u64 <= tree::DEFAULT_CHILDREN_MAX);
    }
}
