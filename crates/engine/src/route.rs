//! The routing tree: who passes a job's messages on to whom.
//!
//! It is a pure function of the members and a shape ([`Route`]), so that every member works its own
//! place out, and nothing about it is sent. The members are numbered in the order of their ids, the
//! root first, from 0; a member that is missing changes the numbers, not the shape.
//!
//! A subtree of each shape has the same shape again: so the same function, asked for what is below
//! one parent, plans a spawn tree ([`model::Tree::Routed`]).

use alloc::vec::Vec;

use model::{AgentId, IdSet, Route};

/// The routing tree of some members.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RouteTree {
    shape: Route,
    root: AgentId,
    /// All but the root.
    below: IdSet,
}

impl RouteTree {
    /// The tree of `below` under `root`, which is none of them.
    pub fn new(shape: Route, root: AgentId, below: IdSet) -> RouteTree {
        RouteTree { shape, root, below }
    }

    /// Everybody but the root.
    pub fn below(&self) -> &IdSet {
        &self.below
    }

    /// The parent of a member; the root and strangers have none.
    pub fn parent(&self, agent: AgentId) -> Option<AgentId> {
        let index = self.index(agent).filter(|&index| index > 0)?;
        self.agent(self.shape_parent(index))
    }

    /// The children of a member, in ascending order.
    pub fn children(&self, agent: AgentId) -> IdSet {
        self.index(agent).map(|index| self.children_at(index)).unwrap_or_default()
    }

    /// A member and all below it.
    pub fn subtree(&self, agent: AgentId) -> IdSet {
        let Some(index) = self.index(agent) else { return IdSet::new() };
        let below = self.levels(index).map(|(first, last)| self.members(first, last));
        let mut subtree = below.fold(IdSet::new(), |subtree, level| subtree.union(&level));
        subtree.insert(agent.0);
        subtree
    }

    /// How many members a subtree has, itself included.
    pub fn subtree_len(&self, agent: AgentId) -> u64 {
        let Some(index) = self.index(agent) else { return 0 };
        1 + self.levels(index).map(|(first, last)| last + 1 - first).sum::<u64>()
    }

    /// The child of `from` that is `to`, or has it below itself.
    pub fn child_towards(&self, from: AgentId, to: AgentId) -> Option<AgentId> {
        let (from, mut index) = (self.index(from)?, self.index(to)?);
        while index > 0 {
            let parent = self.shape_parent(index);
            if parent == from {
                return self.agent(index);
            }
            index = parent;
        }
        None
    }

    /// Whom a member opens redundant links to: the `count` members numbered before it, the nearest first, but
    /// for its parent.
    ///
    /// So everybody opens as many and is called by `count` + 1 others at the most, while each has `kary:K`'s
    /// K² grandchildren. Nobody before a member is below it, so the way from them to its parent leads
    /// around the edge between the two, over edges of children numbered before it alone.
    pub fn redundant(&self, agent: AgentId, count: u8) -> impl Iterator<Item = AgentId> {
        let parent = self.parent(agent);
        let before = (0..self.index(agent).unwrap_or(0)).rev();
        let members = before.filter_map(|index| self.agent(index));
        members.filter(move |member| Some(*member) != parent).take(count.into())
    }

    /// The neighbour of `from` on the way to `to`.
    pub fn next_hop(&self, from: AgentId, to: AgentId) -> Option<AgentId> {
        self.child_towards(from, to).or_else(|| self.parent(from))
    }

    /// Those outside of `gone` whose parents are in it.
    pub fn orphans(&self, gone: &IdSet) -> IdSet {
        let children = gone.iter().map(|id| self.children(AgentId(id)));
        children.fold(IdSet::new(), |all, own| all.union(&own)).difference(gone)
    }

    fn index(&self, agent: AgentId) -> Option<u64> {
        if agent == self.root { Some(0) } else { Some(1 + self.below.index_of(agent.0)?) }
    }

    fn agent(&self, index: u64) -> Option<AgentId> {
        match index.checked_sub(1) {
            None => Some(self.root),
            Some(below) => self.below.slice(below, 1).first().map(AgentId),
        }
    }

    /// The members with these numbers, none of them the root's.
    fn members(&self, first: u64, last: u64) -> IdSet {
        self.below.slice(first.saturating_sub(1), last + 1 - first)
    }

    fn last_index(&self) -> u64 {
        self.below.len()
    }

    fn shape_parent(&self, index: u64) -> u64 {
        match self.shape {
            Route::Kary(children) => (index - 1) / u64::from(children.max(1)),
            Route::Binomial => index & (index - 1),
            Route::Direct => 0,
        }
    }

    fn children_at(&self, index: u64) -> IdSet {
        let last = self.last_index();
        match self.shape {
            Route::Binomial => {
                let steps = (0..u64::BITS).map(|bit| 1 << bit);
                let own = lowest_bit(index);
                let steps = steps.take_while(|&step| step < own && step <= last - index);
                steps.filter_map(|step| self.agent(index + step)).map(|agent| agent.0).collect()
            }
            Route::Kary(_) | Route::Direct => {
                let level = self.levels(index).next();
                level.map(|(first, last)| self.members(first, last)).unwrap_or_default()
            }
        }
    }

    /// What is below a member, as ranges of numbers; for k-ary trees a level each.
    fn levels(&self, index: u64) -> impl Iterator<Item = (u64, u64)> {
        let last = self.last_index();
        let ranges: Vec<(u64, u64)> = match self.shape {
            Route::Kary(children) => {
                let children = u64::from(children.max(1));
                let level = |&(first, last): &(u64, u64)| {
                    Some((first * children + 1, last * children + children))
                };
                core::iter::successors(Some((index, index)), level)
                    .skip(1)
                    .map_while(|(first, end)| (first <= last).then(|| (first, end.min(last))))
                    .collect()
            }
            Route::Binomial => {
                let end = index.saturating_add(lowest_bit(index) - 1).min(last);
                (end > index).then_some((index + 1, end)).into_iter().collect()
            }
            Route::Direct => (index == 0 && last > 0).then_some((1, last)).into_iter().collect(),
        };
        ranges.into_iter()
    }
}

/// The lowest bit of a number that is set; the root's is beyond all.
fn lowest_bit(index: u64) -> u64 {
    if index == 0 { 1 << (u64::BITS - 1) } else { index & index.wrapping_neg() }
}
