//! Tasks that wait for each other in different collectives of all: some in a fence, say, and the others in a ring.
//!
//! None of them ends, and each task is right for itself. A client that begins a fence and asks for its end later may be in
//! any of them at a time, so that it is no mistake before nothing has changed for a while. The member where it is
//! seen is the lowest one that has tasks of several kinds below it, or here.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, JobId, NodeId, Rank, Time};
use wire::JobFault;

use crate::engine::Engine;

/// How long the picture must stay the same: longer than programs compute between two collectives that they
/// have begun in another order elsewhere.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member looks whether tasks are apart.
#[derive(Debug)]
pub(super) struct Look {
    /// The next time.
    pub(super) at: Time,
    /// What it saw last: the ranks in each collective, and the number of that.
    seen: Vec<Stand>,
}

/// The name of a collective, its number, and who here and below is in it.
type Stand = (&'static str, u32, IdSet);

impl Engine {
    /// Looks after a while whether the tasks are in different collectives, once some are in a ring or an allgather.
    pub(super) fn expect_apart(&mut self, id: JobId) {
        let at = self.now + PATIENCE;
        if let Some(job) = self.jobs.get_mut(id)
            && job.look.is_none()
        {
            job.look = Some(Box::new(Look { at, seen: Vec::new() }));
        }
    }

    pub(super) fn check_apart(&mut self, id: JobId) {
        let now = self.now;
        let look = self.jobs.get(id).and_then(|job| job.look.as_ref());
        if look.is_none_or(|look| look.at > now) {
            return;
        }
        let (stands, everybody) = self.stands(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        let last = job.look.take().map(|look| look.seen).unwrap_or_default();
        let is_over = stands.iter().all(|(name, ..)| *name == FENCE);
        let is_apart = are_apart(&stands, &everybody);
        if is_apart && stands == last {
            self.task_fault(id, apart(&stands));
        } else if !is_over {
            job.look = Some(Box::new(Look { at: now + PATIENCE, seen: stands }));
        }
    }

    /// Who is in which collective, but for those in which nobody is, and who may be in one.
    fn stands(&self, id: JobId) -> (Vec<Stand>, IdSet) {
        let Some(job) = self.jobs.get(id) else { return Default::default() };
        let waits = job.pmi.waits();
        let mut stands = Vec::new();
        let mut add = |name, number, here: IdSet, below: BTreeSet<AgentId>| {
            stands.push((name, number, here.union(&self.ranks_below(id, &below))));
        };
        add(FENCE, job.fence.number(), waits.fence, job.fence.entered_children().collect());
        if let Some(ring) = &job.ring {
            add("ring", ring.number(), waits.ring, ring.entered_children().collect());
        } else {
            add("ring", 0, waits.ring, BTreeSet::new());
        }
        if let Some(allgather) = &job.allgather {
            let below = allgather.fence.entered_children().collect();
            add("allgather", allgather.fence.number(), waits.allgather, below);
        } else {
            add("allgather", 0, waits.allgather, BTreeSet::new());
        }
        stands.retain(|(.., ranks)| !ranks.is_empty());
        let below = job.fence.children().collect();
        (stands, waits.everybody.union(&self.ranks_below(id, &below)))
    }

    fn ranks_below(&self, id: JobId, children: &BTreeSet<AgentId>) -> IdSet {
        let Some(job) = self.jobs.get(id).filter(|_| !children.is_empty()) else {
            return IdSet::new();
        };
        let map = &job.spec.map;
        let nodes = map.nodes();
        let below = nodes.iter().map(NodeId).filter(|node| {
            self.job_child_towards(node.agent()).is_some_and(|child| children.contains(&child))
        });
        below.fold(IdSet::new(), |ranks, node| ranks.union(&map.ranks_on(node)))
    }
}

const FENCE: &str = "fence";

/// Whether all are in some collective, and none of these can end here.
fn are_apart(stands: &[Stand], everybody: &IdSet) -> bool {
    let inside = stands.iter().fold(IdSet::new(), |inside, (.., ranks)| inside.union(ranks));
    stands.len() > 1 && inside == *everybody && stands.iter().all(|(.., ranks)| ranks != everybody)
}

/// Of the fewest, the first rank is the one that is named.
fn apart(stands: &[Stand]) -> JobFault {
    let words: Vec<String> =
        stands.iter().map(|(name, _, ranks)| format!("ranks {ranks} wait in a {name}")).collect();
    let fewest = stands.iter().min_by_key(|(.., ranks)| ranks.len());
    let rank = fewest.and_then(|(.., ranks)| ranks.iter().next()).unwrap_or_default();
    let words = format!("{}; all tasks of a job must enter the same one", words.join(" and "));
    JobFault::Pmi { rank: Rank(rank), words }
}
