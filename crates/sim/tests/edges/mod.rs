//! Spawn trees and routing trees, and who is whose neighbour in them, for tests that count.

use engine::route::RouteTree;
use model::{AgentId, IdSet};

pub(crate) const TREES: [&str; 7] =
    ["flat", "chain", "kary:2", "binomial", "two-level", "greedy", "adaptive"];

/// Those of them whose shape is known before.
pub(crate) const PLANNED: &[&str] = &["flat", "chain", "kary:2", "binomial", "two-level", "greedy"];

pub(crate) const ROUTES: [&str; 6] =
    ["kary:1", "kary:2", "kary:3", "kary:16", "binomial", "direct"];

pub(crate) fn route_tree(route: &str, n: u32) -> RouteTree {
    RouteTree::new(route.parse().expect("a route"), AgentId::HEAD, IdSet::range(1, n))
}

/// Who is whose neighbour in either tree.
pub(crate) struct Edges {
    spawn_parents: Vec<u32>,
    route_parents: Vec<u32>,
}

impl Edges {
    pub(crate) fn of(tree: &str, route: &str, n: u32) -> Edges {
        let mut spawn_parents = vec![0; n as usize + 1];
        let mut todo = vec![(0, IdSet::range(1, n), tree.parse().expect("a tree"))];
        while let Some((parent, below, tree)) = todo.pop() {
            for branch in engine::tree::branches(&tree, &below) {
                spawn_parents[branch.child.0 as usize] = parent;
                todo.push((branch.child.0, branch.below, branch.tree));
            }
        }
        let tree = route_tree(route, n);
        let parent = |id| tree.parent(AgentId(id)).map_or(0, |parent| parent.0);
        Edges { spawn_parents, route_parents: (0..=n).map(parent).collect() }
    }

    fn are_spawn_neighbours(&self, one: u32, other: u32) -> bool {
        let is_child =
            |child: u32, parent: u32| child > 0 && self.spawn_parents[child as usize] == parent;
        is_child(one, other) || is_child(other, one)
    }

    /// Edges of the routing tree that are none of the spawn tree.
    fn new_edges(&self) -> impl Iterator<Item = (u32, u32)> {
        let edges = self.route_parents.iter().zip(0..).skip(1);
        edges
            .map(|(&parent, child)| (child, parent))
            .filter(|&(child, parent)| !self.are_spawn_neighbours(child, parent))
    }

    pub(crate) fn new_links(&self) -> u64 {
        self.new_edges().count() as u64
    }

    /// Redundant links that are none of the spawn tree, if each opens so many: to those before it, but for its
    /// parent.
    pub(crate) fn redundant(&self, count: usize) -> impl Iterator<Item = (u32, u32)> {
        let members = self.route_parents.iter().zip(0..);
        let links = members.flat_map(move |(&parent, member)| {
            let before = (0..member).rev().filter(move |&other| other != parent);
            before.take(count).map(move |other| (member, other))
        });
        links.filter(|&(member, other)| !self.are_spawn_neighbours(member, other))
    }

    /// The neighbours of the busiest.
    pub(crate) fn links_max(&self, redundancy: usize) -> u64 {
        let mut links = vec![0_u64; self.spawn_parents.len()];
        let spawn =
            self.spawn_parents.iter().zip(0..).skip(1).map(|(&parent, child)| (child, parent));
        for (child, parent) in spawn.chain(self.new_edges()).chain(self.redundant(redundancy)) {
            links[child as usize] += 1;
            links[parent as usize] += 1;
        }
        links.into_iter().max().expect("the head has links")
    }

    /// Steps along the spawn tree from everybody who needs a link to the spawn parent of the one at its
    /// other end.
    pub(crate) fn ways_to_the_spawn_parent(&self) -> u64 {
        let above = |id: u32| -> Vec<u32> {
            let parent = |&id: &u32| (id > 0).then(|| self.spawn_parents[id as usize]);
            std::iter::successors(Some(id), parent).collect()
        };
        let way = |(child, parent): (u32, u32)| {
            let target = if parent == 0 { 0 } else { self.spawn_parents[parent as usize] };
            let (from, to) = (above(child), above(target));
            let shared = from.iter().filter(|id| to.contains(id)).count();
            (from.len() + to.len() - 2 * shared) as u64
        };
        self.new_edges().map(way).sum()
    }
}
