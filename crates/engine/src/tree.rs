//! Who starts whom: spawn trees as pure functions of what is below one parent.
//!
//! A parent cuts the ordered ids below it into consecutive parts; the first id of a part is a
//! child, the rest is that child's own work. A planned subtree is therefore one range, its
//! description a few bytes, and each agent plans its part alone: nothing is sent but ids. A plan
//! costs time in the number of children: with ssh's usual costs, the head's part of a greedy plan
//! for a million nodes takes 40 µs.
//!
//! Times are arithmetic: a parent that is up at `t` has its i-th child (from 1) up at
//! `t + i·gap + latency`. The launching host is busy for the gap, then the latency runs.
//!
//! The greedy tree (S2-17) is planned from its deadline instead of by a queue of launches. With
//! `T` left, a new agent can have as many agents in its subtree as there are ways to arrive: a
//! node at depth `b` whose ancestors and itself are children number i1, …, ib is up after
//! `(i1 + … + ib)·gap + b·latency`, and C(a, b) choices of positive indices have a sum of at
//! most `a`. So the count is the sum over `b` of C(⌊(T − b·latency) / gap⌋, b), and a binary
//! search finds the earliest `T` that suffices. No tree is complete earlier, since every agent
//! always launches, and the plan fills all earlier arrivals before any later one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, Route, Tree};

use crate::route::RouteTree;

/// The gap that a greedy plan assumes at least. If starts cost nothing, one parent would start
/// everything; a tenth of a millisecond is below the cost of any `fork` and `exec`. With no
/// latency either, the tree is then a binomial one.
pub const GAP_MIN: Duration = Duration::from_micros(100);

/// The most children that [`default_tree`] lets an agent have. A child costs its parent a link
/// and a remote shell's pipes and process, five descriptors in all, and a soft limit of 1,024
/// descriptors is common.
pub const DEFAULT_CHILDREN_MAX: u64 = 64;

/// One child of a parent, and what that child is to start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Branch {
    /// The child, which its parent starts itself.
    pub child: AgentId,
    /// The agents that the child is responsible for, without itself.
    pub below: IdSet,
    /// How the child plans `below`.
    pub tree: Tree,
}

/// Plans one parent: its children in the order in which it starts them.
///
/// Every id of `below` is in exactly one branch. Call again with a child's `tree` and `below`
/// for the next level.
pub fn branches(tree: &Tree, below: &IdSet) -> Vec<Branch> {
    if let Tree::Routed(route) = *tree {
        return routed_branches(route, below);
    }
    let sizes = part_sizes(tree, below.len());
    let tree = child_tree(tree, below.len());
    let mut parts = below.parts();
    let mut branches = Vec::with_capacity(sizes.len());
    for size in sizes {
        let Some(child) = parts.take_one() else { break };
        branches.push(Branch { child: AgentId(child), below: parts.take(size - 1), tree });
    }
    branches
}

/// The branches of a parent in the tree of a route: their parts are no ranges, but for a binomial one.
fn routed_branches(route: Route, below: &IdSet) -> Vec<Branch> {
    // No id is as large: it stands for the parent.
    let parent = AgentId(u32::MAX);
    let tree = RouteTree::new(route, parent, below.clone());
    let branch = |child| {
        let mut below = tree.subtree(AgentId(child));
        below.remove(child);
        Branch { child: AgentId(child), below, tree: Tree::Routed(route) }
    };
    tree.children(parent).iter().map(branch).collect()
}

/// The tree for `n` agents below the head, where a start has this latency and gap. Pass
/// [`Tree::ASSUMED_LATENCY`] and [`Tree::ASSUMED_GAP`] where nothing is measured.
///
/// It is greedy: for given costs no other tree is complete earlier, it turns into `flat` for
/// few agents and into `binomial` where only the gap counts, and its shape depends on the
/// quotient of the costs alone, so that a wrong guess of both does no harm. The price is a
/// degree that grows with latency / gap. Where the head would get more than
/// [`DEFAULT_CHILDREN_MAX`] children, the best of what avoids this is taken: the greedy tree
/// for the smallest larger gap, or a k-ary tree.
pub fn default_tree(n: u64, latency: Duration, gap: Duration) -> Tree {
    let plan = Greedy::new(latency, gap);
    let is_narrow = |gap: u128| Greedy { gap, ..plan }.degree_max(n) <= DEFAULT_CHILDREN_MAX;
    if is_narrow(plan.gap) {
        return Tree::Greedy { latency, gap };
    }
    // With the gap as large as the latency, the degree is logarithmic.
    let narrow_gap = first_that(plan.gap, plan.gap.max(plan.latency), is_narrow);
    let greedy = Tree::Greedy { latency, gap: from_nanos(narrow_gap) };
    let kary = (2..=DEFAULT_CHILDREN_MAX as u16).map(Tree::Kary);
    let time = |tree: &Tree| completion_time(tree, n, latency, gap);
    kary.fold(greedy, |best, tree| if time(&tree) < time(&best) { tree } else { best })
}

/// The time from the head's first launch until the last of `n` agents below it is up.
pub fn completion_time(tree: &Tree, n: u64, latency: Duration, gap: Duration) -> Duration {
    let mut costs =
        Costs { latency: latency.as_nanos(), gap: gap.as_nanos(), known: BTreeMap::new() };
    from_nanos(costs.completion(tree, n))
}

/// How many agents go to each child, the child included, in start order.
fn part_sizes(tree: &Tree, n: u64) -> Vec<u64> {
    match *tree {
        _ if n == 0 => Vec::new(),
        Tree::Flat => near_equal(n, n),
        Tree::Chain => near_equal(n, 1),
        Tree::Kary(children) => near_equal(n, u64::from(children.max(1))),
        Tree::Binomial => halves(n),
        Tree::TwoLevel => near_equal(n, n.isqrt() + u64::from(n.isqrt().pow(2) < n)),
        Tree::Greedy { latency, gap } | Tree::Adaptive { latency, gap } => {
            Greedy::new(latency, gap).part_sizes(n)
        }
        Tree::Routed(route) => {
            let last = u32::try_from(n).unwrap_or(u32::MAX - 1);
            let tree = RouteTree::new(route, AgentId::HEAD, IdSet::range(1, last));
            let children = tree.children(AgentId::HEAD);
            children.iter().map(|child| tree.subtree_len(AgentId(child))).collect()
        }
        Tree::Scela { .. } => part_sizes(&child_tree(tree, n), n),
    }
}

/// The tree that a child uses for its own part, where its parent has `n` below itself.
fn child_tree(tree: &Tree, n: u64) -> Tree {
    match *tree {
        Tree::TwoLevel => Tree::Flat,
        Tree::Scela { cores, depth_max, connections_max } => {
            Tree::Kary(scela_degree(n, cores, depth_max, connections_max))
        }
        Tree::Flat
        | Tree::Chain
        | Tree::Kary(_)
        | Tree::Binomial
        | Tree::Greedy { .. }
        | Tree::Adaptive { .. }
        | Tree::Routed(_) => *tree,
    }
}

/// The degree that ScELA's rule (S3-10) gives a tree of `n` agents below the head.
///
/// The ideal is the smallest k with log_k(n) ≤ `depth_max`. A process can handle `connections_max`
/// connections, and one for each of a node's `cores` may be a task's: where those and k are more, the
/// degree is what is left, and the tree is deeper. At least 1, also where nothing is left.
pub fn scela_degree(n: u64, cores: u16, depth_max: u8, connections_max: u16) -> u16 {
    let is_enough = |k: u128| k.checked_pow(depth_max.into()).is_none_or(|most| most >= n.into());
    let ideal = first_that(1, u16::MAX.into(), is_enough);
    let left = connections_max.saturating_sub(cores).max(1);
    u16::try_from(ideal).unwrap_or(u16::MAX).min(left)
}

/// Cuts `n` into at most `parts` sizes that differ by at most one. The larger come first: they
/// are started first, and so the depth is the smallest that the degree allows.
fn near_equal(n: u64, parts: u64) -> Vec<u64> {
    let parts = parts.min(n);
    (0..parts).map(|index| n / parts + u64::from(index < n % parts)).collect()
}

/// Gives each child half of the agents that have no starter yet, the parent counted among them:
/// after every round of starts, twice as many agents are up.
fn halves(n: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut with_parent = n + 1;
    while with_parent > 1 {
        sizes.push(with_parent / 2);
        with_parent -= with_parent / 2;
    }
    sizes
}

/// The greedy plan's costs, in nanoseconds, the gap at least [`GAP_MIN`].
#[derive(Clone, Copy)]
struct Greedy {
    latency: u128,
    gap: u128,
}

impl Greedy {
    fn new(latency: Duration, gap: Duration) -> Greedy {
        Greedy { latency: latency.as_nanos(), gap: gap.max(GAP_MIN).as_nanos() }
    }

    fn part_sizes(self, n: u64) -> Vec<u64> {
        let deadline = self.deadline(n);
        let earlier: u64 = self.children(n, deadline).map(|left| self.early(left, n)).sum();
        let mut last_moment = n - earlier;
        self.children(n, deadline)
            .map(|left| {
                let early = self.early(left, n);
                let late = last_moment.min(self.capacity(left, n) - early);
                last_moment -= late;
                early + late
            })
            .take_while(|&size| size > 0)
            .collect()
    }

    /// How many children can be up by the deadline; the last few may not be needed.
    fn degree_max(self, n: u64) -> u64 {
        let launching = self.deadline(n).saturating_sub(self.latency);
        u64::try_from(launching / self.gap).unwrap_or(u64::MAX).min(n)
    }

    /// The earliest time at which `n` agents below one parent can be up.
    fn deadline(self, n: u64) -> u128 {
        let flat = u128::from(n) * self.gap + self.latency;
        first_that(0, flat, |time| self.capacity(time, n + 1) > n)
    }

    /// For each child that can be up by `deadline`, the time that it then has left.
    fn children(self, n: u64, deadline: u128) -> impl Iterator<Item = u128> {
        (1..=u128::from(n))
            .map_while(move |index| deadline.checked_sub(index * self.gap + self.latency))
    }

    /// What an agent with `left` to go can have in its subtree before the last moment.
    fn early(self, left: u128, limit: u64) -> u64 {
        left.checked_sub(1).map_or(0, |left| self.capacity(left, limit))
    }

    /// The most agents, at most `limit`, in the subtree of one that has `left` to go.
    fn capacity(self, left: u128, limit: u64) -> u64 {
        let mut count = 0;
        let mut depth = 0;
        while let Some(launching) = left.checked_sub(depth * self.latency) {
            let ways = choices(launching / self.gap, depth, u128::from(limit));
            count += ways;
            if ways == 0 || count >= u128::from(limit) {
                break;
            }
            depth += 1;
        }
        u64::try_from(count).map_or(limit, |count| count.min(limit))
    }
}

/// C(n, k), or `limit` when that is less.
fn choices(n: u128, k: u128, limit: u128) -> u128 {
    if k > n {
        return 0;
    }
    let mut ways: u128 = 1;
    for index in 1..=k {
        // C(n−k+i, i) is whole and grows with i.
        ways = ways.saturating_mul(n - k + index) / index;
        if ways >= limit {
            return limit;
        }
    }
    ways
}

/// The first number from `low` to `high` for which `holds`, which must hold from there on; if
/// for none, `high`.
fn first_that(mut low: u128, mut high: u128, holds: impl Fn(u128) -> bool) -> u128 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Completion times of subtrees already worked out: subtrees of a plan have few distinct sizes.
struct Costs {
    latency: u128,
    gap: u128,
    known: BTreeMap<u64, u128>,
}

impl Costs {
    fn completion(&mut self, tree: &Tree, n: u64) -> u128 {
        match *tree {
            _ if n == 0 => 0,
            Tree::Flat => u128::from(n) * self.gap + self.latency,
            Tree::Chain | Tree::Kary(0 | 1) => u128::from(n) * (self.gap + self.latency),
            Tree::TwoLevel | Tree::Scela { .. } => self.last_part(tree, n),
            Tree::Kary(_)
            | Tree::Binomial
            | Tree::Greedy { .. }
            | Tree::Adaptive { .. }
            | Tree::Routed(_) => {
                if let Some(&time) = self.known.get(&n) {
                    return time;
                }
                let time = self.last_part(tree, n);
                self.known.insert(n, time);
                time
            }
        }
    }

    fn last_part(&mut self, tree: &Tree, n: u64) -> u128 {
        let child_tree = child_tree(tree, n);
        let mut up = self.latency;
        let mut last = 0;
        for size in part_sizes(tree, n) {
            up += self.gap;
            last = last.max(up + self.completion(&child_tree, size - 1));
        }
        last
    }
}

fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanos / SECOND).unwrap_or(u64::MAX);
    Duration::new(seconds, (nanos % SECOND) as u32)
}
