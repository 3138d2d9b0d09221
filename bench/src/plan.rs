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
use model::{AgentId, IdSet, Time, Tree};
use proto::Event;
use sim::{Calibration, Distribution, Session};

use crate::report::Measured;

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

/// When the product's own tree is complete where these costs are constant and nothing else costs
/// anything. It is simulated, since nothing but its run tells who starts whom.
pub(crate) fn own_arithmetic(n: usize, latency: Duration, gap: Duration) -> Measured {
    let mut calibration = Calibration::constant(latency, gap);
    calibration.link.latency_us = Distribution::constant(0.0);
    simulated(n, "adaptive", calibration)
}

/// When the head of a simulated session says that all have joined.
pub(crate) fn simulated(n: usize, tree: &str, calibration: Calibration) -> Measured {
    let n = u32::try_from(n).map_err(|error| error.to_string())?;
    let session = Session::of(n).tree(tree).calibration(calibration);
    let report = session.try_run().map_err(|failure| failure.to_string())?;
    let joined = report.time_of(|event| matches!(event, Event::AllJoined(_)));
    Ok(joined.ok_or("not all have joined")?.since(Time::ZERO).into())
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

    /// The engine gives no process more than 64 children, and finds the costs out by itself.
    #[test]
    fn the_products_own_arithmetic_is_little_above_the_optimum() {
        for (latency_ms, gap_ms) in [(1_028, 28), (257, 7), (100, 10)] {
            let costs = [latency_ms, gap_ms].map(Duration::from_millis);
            for n in [1, 16, 256, 1_000] {
                let own = own_arithmetic(n, costs[0], costs[1]).unwrap().value;
                let optimum = greedy_arithmetic(n, costs[0], costs[1]).as_secs_f64();
                assert!((0.999 * optimum..1.15 * optimum).contains(&own), "{n}: {own} {optimum}");
            }
        }
    }

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
