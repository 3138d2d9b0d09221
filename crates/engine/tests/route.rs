//! What every routing tree promises, for every number of members up to 300.

use engine::route::RouteTree;
use engine::tree::branches;
use model::{AgentId, IdSet, Route, Tree};

const N_MAX: u32 = 300;

const SHAPES: [Route; 7] = [
    Route::Kary(1),
    Route::Kary(2),
    Route::Kary(3),
    Route::Kary(16),
    Route::Kary(64),
    Route::Binomial,
    Route::Direct,
];

#[test]
fn children_subtrees_and_ways_follow_from_the_parents_whoever_is_missing() {
    for n in (0..40).chain([64, 100, N_MAX]) {
        for shape in SHAPES {
            for members in [IdSet::range(1, n), with_holes(n)] {
                check(&RouteTree::new(shape, AgentId::HEAD, members));
            }
        }
    }
}

#[test]
fn nobody_has_more_children_than_the_shape_allows_nor_is_deeper() {
    for n in 1..=N_MAX {
        let logarithm = (n + 1).next_power_of_two().ilog2();
        for shape in SHAPES {
            let tree = RouteTree::new(shape, AgentId::HEAD, IdSet::range(1, n));
            let (degree, depth) = match shape {
                Route::Kary(1) => (1, n),
                Route::Kary(children) => (u32::from(children), kary_depth(children.into(), n)),
                Route::Binomial => (logarithm, (n + 1).ilog2()),
                Route::Direct => (n, 1),
            };
            let members = (0..=n).map(AgentId);
            let degree_max = members.clone().map(|agent| tree.children(agent).len()).max();
            assert_eq!(degree_max, Some(u64::from(degree.min(n))), "{shape} of {n}");
            let depth_max = members.map(|agent| depth_of(&tree, agent)).max();
            assert_eq!(depth_max, Some(depth), "{shape} of {n}");
        }
    }
}

#[test]
fn a_spawn_tree_of_a_routes_shape_is_the_routing_tree() {
    for n in 0..=N_MAX {
        for shape in SHAPES {
            let tree = RouteTree::new(shape, AgentId::HEAD, IdSet::range(1, n));
            let mut todo = vec![(AgentId::HEAD, IdSet::range(1, n), Tree::Routed(shape))];
            let mut reached = 0;
            while let Some((parent, below, plan)) = todo.pop() {
                for branch in branches(&plan, &below) {
                    assert_eq!(tree.parent(branch.child), Some(parent), "{shape} of {n}");
                    reached += 1;
                    todo.push((branch.child, branch.below, branch.tree));
                }
            }
            assert_eq!(reached, n, "{shape} of {n}");
        }
    }
}

#[test]
fn redundant_links_lead_around_an_edge_over_those_of_members_before_and_are_as_many_for_all() {
    for n in (0..40).chain([100]) {
        for shape in SHAPES {
            for members in [IdSet::range(1, n), with_holes(n)] {
                let tree = RouteTree::new(shape, AgentId::HEAD, members);
                (0..4).for_each(|count| check_redundant(&tree, count));
            }
        }
    }
}

fn check_redundant(tree: &RouteTree, count: u8) {
    let mut calls = vec![0; N_MAX as usize + 1];
    for (number, id) in (1..).zip(tree.below().iter()) {
        let (agent, parent) = (AgentId(id), tree.parent(AgentId(id)));
        let links: Vec<AgentId> = tree.redundant(agent, count).collect();
        assert_eq!(links.len(), usize::from(count).min(number - 1), "{agent} in {tree:?}");
        assert!(links.windows(2).all(|pair| pair[0] > pair[1]), "the nearest first");
        for &via in &links {
            calls[via.0 as usize] += 1;
            let mut at = via;
            while Some(at) != parent {
                let next = parent.and_then(|parent| tree.next_hop(at, parent)).expect("a way");
                let child = if tree.parent(at) == Some(next) { at } else { next };
                assert!(child < agent, "{agent} via {via} crosses the edge of {child} in {tree:?}");
                at = next;
            }
        }
    }
    assert!(calls.iter().all(|&calls| calls <= u32::from(count) + 1), "{count} in {tree:?}");
}

/// Holds everything against what the parents say.
fn check(tree: &RouteTree) {
    let members: Vec<AgentId> = [0].into_iter().chain(tree.below().iter()).map(AgentId).collect();
    for &agent in &members {
        let is_child = |other: &&AgentId| tree.parent(**other) == Some(agent);
        let children: IdSet = members.iter().filter(is_child).map(|child| child.0).collect();
        assert_eq!(tree.children(agent), children, "{tree:?}");
        let ways = members.iter().map(|&to| (to, way(tree, to)));
        let below = ways.clone().filter(|(to, way)| *to == agent || way.contains(&agent));
        let subtree: IdSet = below.map(|(to, _)| to.0).collect();
        assert_eq!(tree.subtree_len(agent), subtree.len(), "{tree:?}");
        assert_eq!(tree.subtree(agent), subtree, "{tree:?}");
        for (to, way) in ways {
            let at = way.iter().position(|&hop| hop == agent);
            let next = at.map(|at| at.checked_sub(1).map_or(to, |below| way[below]));
            assert_eq!(tree.child_towards(agent, to), next, "{tree:?}");
        }
    }
    let gone: IdSet = tree.below().iter().filter(|id| id % 3 == 1).collect();
    let is_orphan = |id: &u32| {
        let parent = tree.parent(AgentId(*id));
        !gone.contains(*id) && parent.is_some_and(|parent| gone.contains(parent.0))
    };
    assert_eq!(tree.orphans(&gone), tree.below().iter().filter(is_orphan).collect(), "{tree:?}");
    assert_eq!(tree.parent(AgentId(9_999)), None);
}

/// The members above one, the nearest first.
fn way(tree: &RouteTree, agent: AgentId) -> Vec<AgentId> {
    std::iter::successors(tree.parent(agent), |&above| tree.parent(above)).collect()
}

fn depth_of(tree: &RouteTree, agent: AgentId) -> u32 {
    way(tree, agent).iter().fold(0, |depth, _| depth + 1)
}

fn with_holes(n: u32) -> IdSet {
    (1..=n).filter(|id| id % 5 != 0).collect()
}

/// The smallest depth at which k + k² + … reaches n.
fn kary_depth(k: u32, n: u32) -> u32 {
    let reached = |depth| (1..=depth).map(|level| u64::from(k).pow(level)).sum::<u64>();
    (1..=n).find(|&depth| reached(depth) >= u64::from(n)).unwrap_or(n)
}
