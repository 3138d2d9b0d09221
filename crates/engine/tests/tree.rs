//! What every spawn tree promises (S0-36, S0-37, S1-14, S2-16, S2-17).

use std::collections::BTreeMap;
use std::time::Duration;

use engine::tree::{DEFAULT_CHILDREN_MAX, branches, completion_time, default_tree, scela_degree};
use model::{AgentId, IdSet, Route, Tree};

const N_MAX: u32 = 300;

#[test]
fn every_tree_reaches_each_node_exactly_once() {
    for n in 1..=N_MAX {
        for tree in shapes().into_iter().chain((1..=64).map(Tree::Kary)) {
            Walk::of(tree, n).assert_reaches_all(n);
        }
    }
}

#[test]
fn kary_trees_have_at_most_k_children_and_the_smallest_depth() {
    for n in 1..=N_MAX {
        for k in 1..=64 {
            let walk = Walk::of(Tree::Kary(k), n);
            assert!(walk.degree <= usize::from(k), "kary:{k} of {n}");
            assert_eq!(walk.depth, kary_depth(u32::from(k), n), "kary:{k} of {n}");
        }
    }
}

#[test]
fn kary_depth_is_the_logarithm_of_the_number_of_processes() {
    for n in 1..=N_MAX {
        for k in 2..=64_u32 {
            // S2-16 counts processes, the root included.
            let logarithm = (0..).find(|&depth| k.pow(depth) > n).unwrap();
            assert!(kary_depth(k, n) as u32 <= logarithm, "kary:{k} of {n}");
        }
    }
}

#[test]
fn scelas_rule_takes_the_smallest_degree_for_its_depth_unless_connections_run_out() {
    for n in 1..=N_MAX {
        for depth_max in 1..=4 {
            let enough = (1..).find(|k: &u32| k.pow(depth_max.into()) >= n).unwrap();
            let ideal = scela_degree(n.into(), 8, depth_max, u16::MAX);
            assert_eq!(u32::from(ideal), enough, "{n}");
            for connections_max in [1, 8, 9, 12, 20, 300] {
                let degree = scela_degree(n.into(), 8, depth_max, connections_max);
                let is_ideal = 8 + ideal <= connections_max;
                let left = connections_max.saturating_sub(8).max(1);
                assert_eq!(degree, if is_ideal { ideal } else { ideal.min(left) }, "{n}");
                let tree = Tree::Scela { cores: 8, depth_max, connections_max };
                let (walk, kary) = (Walk::of(tree, n), Walk::of(Tree::Kary(degree), n));
                assert_eq!((walk.degree, walk.depth), (kary.degree, kary.depth), "{tree} of {n}");
            }
        }
    }
}

#[test]
fn flat_and_chain_take_one_start_after_the_other() {
    for n in 1..=N_MAX {
        let (flat, chain) = (Walk::of(Tree::Flat, n), Walk::of(Tree::Chain, n));
        assert_eq!((flat.degree, flat.depth), (n as usize, 1));
        assert_eq!((chain.degree, chain.depth), (1, n as usize));
    }
}

#[test]
fn binomial_trees_double_in_every_round() {
    for n in 1..=N_MAX {
        let walk = Walk::of(Tree::Binomial, n);
        let rounds = (n + 1).next_power_of_two().ilog2();
        assert_eq!(walk.degree, rounds as usize, "{n}");
        assert_eq!(walk.depth, (n + 1).ilog2() as usize, "{n}");
        let time = completion_time(&Tree::Binomial, u64::from(n), Duration::ZERO, ms(1));
        assert_eq!(time, ms(u64::from(rounds)), "{n}");
    }
}

#[test]
fn two_level_trees_have_a_root_of_the_square_root_and_flat_parts() {
    for n in 1..=N_MAX {
        let walk = Walk::of(Tree::TwoLevel, n);
        let root = f64::from(n).sqrt().ceil() as usize;
        assert_eq!(walk.degree, root, "{n}");
        assert!(walk.depth <= 2, "{n}");
        for branch in branches(&Tree::TwoLevel, &below(n)) {
            assert_eq!(branch.tree, Tree::Flat);
            assert!(branch.below.len() < root as u64, "{n}");
        }
    }
}

#[test]
fn greedy_is_never_later_than_any_other_tree() {
    for (latency, gap) in COSTS {
        for n in 1..=N_MAX {
            let greedy = Tree::Greedy { latency, gap };
            let optimum = time(&greedy, n, (latency, gap));
            for tree in shapes().into_iter().chain((1..=64).map(Tree::Kary)) {
                let other = time(&tree, n, (latency, gap));
                assert!(optimum <= other, "{tree} for {n} at {latency:?}, {gap:?}");
            }
        }
    }
}

#[test]
fn greedy_equals_the_best_of_all_trees() {
    for (latency, gap) in COSTS {
        let best = best_times(60, (latency, gap));
        for n in 1..=60 {
            let greedy = Tree::Greedy { latency, gap };
            assert_eq!(
                time(&greedy, n, (latency, gap)),
                best[n as usize],
                "{n} at {latency:?}, {gap:?}"
            );
        }
    }
}

#[test]
fn greedy_equals_the_best_of_all_trees_one_by_one() {
    for costs @ (latency, gap) in COSTS {
        for n in 1..=7 {
            let best = all_parents(n).map(|parents| last_arrival(&parents, costs)).min();
            assert_eq!(Some(time(&Tree::Greedy { latency, gap }, n, costs)), best, "{n}");
        }
    }
}

/// An agent with T left has made its first start when T − gap is left; the child then has
/// T − gap − latency.
#[test]
fn greedy_fulfils_its_recurrence_for_large_n() {
    for costs @ (latency, gap) in COSTS {
        let (latency_ms, gap_ms) = (latency.as_millis() as usize, gap.as_millis() as usize);
        let mut up_to = vec![1_u64];
        while up_to.last().is_some_and(|&agents| agents <= 10_000_000) {
            let ago = |ms: usize| up_to.len().checked_sub(ms).map(|left| up_to[left]);
            let child = ago(gap_ms + latency_ms);
            up_to.push(child.map_or(1, |child| ago(gap_ms).unwrap_or(1) + child));
        }
        for n in [1_000, 4_567, 10_000, 100_000, 1_000_000, 9_999_999] {
            let earliest = up_to.partition_point(|&agents| agents <= u64::from(n));
            let planned = time(&Tree::Greedy { latency, gap }, n, costs);
            assert_eq!(planned, ms(earliest as u64), "{n} at {costs:?}");
        }
    }
}

#[test]
fn greedy_has_as_many_agents_up_as_possible_at_every_moment() {
    for costs @ (latency, gap) in COSTS {
        for n in [7, 64, 300] {
            let mut ups = arrivals(Tree::Greedy { latency, gap }, n, costs);
            ups.sort_unstable();
            for (index, &up) in (1..).zip(&ups) {
                assert_eq!(
                    up,
                    time(&Tree::Greedy { latency, gap }, index, costs),
                    "{index} of {n}"
                );
            }
        }
    }
}

/// The table of completion times that the bars are taken from: near-equal parts, larger first,
/// the head not counted among the n.
#[test]
fn completion_times_are_those_of_the_published_table() {
    let costs = (ms(1_028), ms(28));
    let rows = [
        (64, [2_820, 6_364, 2_476, 2_588, 2_980, 2_820, 2_252]),
        (256, [8_196, 8_476, 3_588, 2_924, 3_148, 3_932, 2_644]),
        (1_000, [29_028, 9_728, 4_756, 4_036, 3_792, 4_240, 3_260]),
        (10_000, [281_028, 14_008, 6_064, 5_484, 5_100, 6_696, 4_120]),
        (100_000, [2_801_028, 17_316, 7_316, 6_708, 6_856, 7_312, 5_044]),
    ];
    for (n, times) in rows {
        let kary = [2, 8, 16, 32, 64].map(Tree::Kary);
        let greedy = Tree::Greedy { latency: costs.0, gap: costs.1 };
        let trees = [Tree::Flat].into_iter().chain(kary).chain([greedy]);
        for (tree, expected) in trees.zip(times) {
            assert_eq!(time(&tree, n, costs), ms(expected), "{tree} for {n}");
        }
    }
}

#[test]
fn a_greedy_plan_without_costs_takes_as_many_rounds_as_a_binomial_one() {
    let free = Tree::Greedy { latency: Duration::ZERO, gap: Duration::ZERO };
    for n in 1..=N_MAX {
        let rounds = (n + 1).next_power_of_two().ilog2();
        assert!(Walk::of(free, n).degree as u32 <= rounds, "{n}");
        assert_eq!(time(&free, n, (Duration::ZERO, ms(1))), ms(u64::from(rounds)), "{n}");
    }
}

#[test]
fn a_greedy_plan_without_a_gap_starts_all_at_once() {
    let tree = Tree::Greedy { latency: ms(500), gap: Duration::ZERO };
    assert_eq!(Walk::of(tree, N_MAX).degree, N_MAX as usize);
}

#[test]
fn the_default_tree_has_a_bounded_degree_and_is_close_to_the_optimum() {
    for (latency, gap) in COSTS {
        for n in [1, 64, 256, 1_000, 10_000, 100_000, 1_000_000] {
            let tree = default_tree(u64::from(n), latency, gap);
            assert!(branches(&tree, &below(n)).len() as u64 <= DEFAULT_CHILDREN_MAX);
            let optimum = time(&Tree::Greedy { latency, gap }, n, (latency, gap));
            let planned = time(&tree, n, (latency, gap));
            assert!(planned <= optimum * 3 / 2, "{planned:?} against {optimum:?} for {n}, {tree}");
        }
    }
}

#[test]
fn a_million_nodes_are_planned_by_the_head_without_a_list() {
    let tree = default_tree(1_000_000, Tree::ASSUMED_LATENCY, Tree::ASSUMED_GAP);
    let branches = branches(&tree, &below(1_000_000));
    assert_eq!(branches.iter().map(|branch| branch.below.len() + 1).sum::<u64>(), 1_000_000);
    assert!(branches.iter().all(|branch| branch.below.ranges().len() <= 1));
}

#[test]
fn a_set_with_holes_is_planned_like_one_without() {
    let ids: IdSet = "3,5-9,20,40-44".parse().unwrap();
    let branches = branches(&Tree::Kary(3), &ids);
    let parts: Vec<_> = branches.iter().map(|b| format!("{}>{}", b.child, b.below)).collect();
    assert_eq!(parts, ["3>5-7", "8>9,20,40", "41>42-44"]);
}

const COSTS: [(Duration, Duration); 8] = [
    (ms(1_028), ms(28)),
    (ms(257), ms(7)),
    (ms(100), ms(10)),
    (ms(40), ms(12)),
    (ms(500), ms(2)),
    (ms(0), ms(3)),
    (ms(5), ms(50)),
    (ms(30), ms(30)),
];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn shapes() -> [Tree; 10] {
    let routed = [Route::Kary(3), Route::Binomial, Route::Direct].map(Tree::Routed);
    let [kary, binomial, direct] = routed;
    [
        Tree::Flat,
        Tree::Chain,
        Tree::Binomial,
        Tree::TwoLevel,
        Tree::greedy(),
        Tree::Kary(8),
        kary,
        binomial,
        direct,
        Tree::Scela { cores: 8, depth_max: 3, connections_max: 16 },
    ]
}

fn below(n: u32) -> IdSet {
    IdSet::range(1, n)
}

fn time(tree: &Tree, n: u32, (latency, gap): (Duration, Duration)) -> Duration {
    completion_time(tree, u64::from(n), latency, gap)
}

/// The smallest depth at which k + k² + … reaches n.
fn kary_depth(k: u32, n: u32) -> usize {
    let mut level = 1_u64;
    let mut reached = 0_u64;
    (1..)
        .find(|_| {
            level = (level * u64::from(k)).min(u64::from(n));
            reached += level;
            reached >= u64::from(n)
        })
        .expect("the levels grow")
}

struct Walk {
    seen: BTreeMap<AgentId, u32>,
    degree: usize,
    depth: usize,
}

impl Walk {
    fn of(tree: Tree, n: u32) -> Walk {
        let mut walk = Walk { seen: BTreeMap::new(), degree: 0, depth: 0 };
        let mut pending = vec![(tree, below(n), 1)];
        while let Some((tree, below, level)) = pending.pop() {
            let branches = branches(&tree, &below);
            walk.degree = walk.degree.max(branches.len());
            for branch in branches {
                walk.depth = walk.depth.max(level);
                *walk.seen.entry(branch.child).or_default() += 1;
                if !branch.below.is_empty() {
                    pending.push((branch.tree, branch.below, level + 1));
                }
            }
        }
        walk
    }

    fn assert_reaches_all(&self, n: u32) {
        assert!(self.seen.values().all(|&times| times == 1));
        assert!(self.seen.keys().map(|id| id.0).eq(1..=n));
    }
}

/// When each of n agents is up, by following the plan itself.
fn arrivals(tree: Tree, n: u32, (latency, gap): (Duration, Duration)) -> Vec<Duration> {
    let mut ups = Vec::new();
    let mut pending = vec![(tree, below(n), Duration::ZERO)];
    while let Some((tree, below, up)) = pending.pop() {
        for (index, branch) in (1..).zip(branches(&tree, &below)) {
            let child_up = up + gap * index + latency;
            ups.push(child_up);
            pending.push((branch.tree, branch.below, child_up));
        }
    }
    ups
}

/// Every tree of n agents, as the parent of each: every ordered tree has its agents numbered so
/// that parents come before children, and a parent's children in the order of their starts.
fn all_parents(n: u32) -> impl Iterator<Item = Vec<usize>> {
    let count: usize = (1..=n as usize).product();
    (0..count).map(move |mut number| {
        let parent = |agent: usize| {
            let parent = number % agent;
            number /= agent;
            parent
        };
        (1..=n as usize).map(parent).collect()
    })
}

/// When the last agent is up whose parents these are; 0 is the head.
fn last_arrival(parents: &[usize], (latency, gap): (Duration, Duration)) -> Duration {
    let mut ups = vec![Duration::ZERO];
    let mut starts = vec![0; parents.len() + 1];
    for &parent in parents {
        starts[parent] += 1;
        ups.push(ups[parent] + gap * starts[parent] + latency);
    }
    ups.into_iter().max().expect("the head is up")
}

/// The optimum over all trees by trying every size of the first child, for 0 to n agents.
fn best_times(n: usize, (latency, gap): (Duration, Duration)) -> Vec<Duration> {
    let mut best = vec![Duration::ZERO];
    for total in 1..=n {
        let split = |first: usize| {
            let child = gap + latency + best[first - 1];
            let rest = total - first;
            if rest == 0 { child } else { child.max(gap + best[rest]) }
        };
        best.push((1..=total).map(split).min().expect("one size at least"));
    }
    best
}
