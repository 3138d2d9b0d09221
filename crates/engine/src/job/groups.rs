//! Barriers of groups: the agents that have tasks of a group meet as all do in a fence, and nobody else hears of it.
//!
//! Each agent sees in the map of tasks which members are here, below which child, and elsewhere. The lowest agent that
//! has them all turns the barrier around: two messages on each edge from there to the group's agents, none anywhere
//! else.
//!
//! A task that has ended is not waited for, and only its own agent knows of its end. So an agent asks those that it
//! waits for, once it has waited long enough to wonder; they ask in turn, and answer when their tasks have entered or
//! ended.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use bytes::Bytes;
use model::{AgentId, IdSet, JobId, NodeId, Rank, RankGroup, TaskMap, Time};
use proto::{Fence, FenceEffect};
use wire::Message;

use super::Job;
use crate::engine::Engine;

/// The barriers of groups that this member knows of.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: BTreeMap<RankGroup, Meeting>,
    /// Barriers that are over, and whose tasks here are yet to be let out: in a turn of its own, as after a fence.
    released: VecDeque<(Time, RankGroup, Bytes)>,
}

/// One barrier.
#[derive(Debug)]
struct Meeting {
    /// Its local part has entered at once where no task of the group is here.
    fence: Fence,
    members: Members,
    /// When those who are missing are asked.
    ask_at: Option<Time>,
}

/// Where the members of a group are.
#[derive(Debug, Default)]
struct Members {
    here: bool,
    below: BTreeSet<AgentId>,
    elsewhere: bool,
}

/// How long those who are missing are not asked whether they will come.
const PATIENCE: Duration = Duration::from_secs(1);

impl Groups {
    /// When there is something to do.
    pub(super) fn due_at(&self) -> Option<Time> {
        let released = self.released.front().map(|(at, ..)| *at);
        self.open.values().filter_map(|meeting| meeting.ask_at).chain(released).min()
    }
}

impl Engine {
    /// Handles that the tasks of a group here have entered its barrier, or have ended.
    pub(super) fn on_group_exchange(&mut self, id: JobId, group: &RankGroup, pairs: Bytes) {
        self.open_meeting(id, group);
        self.with_meeting(id, group, |meeting| meeting.fence.on_local_enter(pairs));
    }

    pub(crate) fn on_group_enter(
        &mut self,
        id: JobId,
        agent: AgentId,
        group: &RankGroup,
        payload: Bytes,
    ) {
        if !self.may_meet(id, group) {
            return self.job_child_misbehaved(agent, "it named a group that cannot be");
        }
        self.expect_meeting(id, group);
        let mut entered = Ok(());
        self.with_meeting(id, group, |meeting| {
            entered = meeting.fence.on_child_enter(agent, 0, payload);
        });
        if let Err(error) = entered {
            self.job_child_misbehaved(agent, &error.to_string());
        }
    }

    pub(crate) fn on_group_release(&mut self, id: JobId, group: &RankGroup, payload: Bytes) {
        let mut released = false;
        self.with_meeting(id, group, |meeting| {
            released = meeting.fence.on_release(0, payload).is_ok();
        });
        if !released && self.jobs.get(id).is_some() {
            self.abandon("its parent broke the protocol: it ended a barrier too early".to_string());
        }
    }

    /// Handles that others wait for tasks of this group that are here or below.
    pub(crate) fn on_group_awaited(&mut self, id: JobId, group: &RankGroup) {
        if !self.may_meet(id, group) {
            return self.abandon("its parent broke the protocol: no such group".to_string());
        }
        if self.jobs.get(id).is_some_and(|job| job.reported) {
            return; // that all is done, which is on its way, says it
        }
        self.expect_meeting(id, group);
        // Who is here or below may all have ended before anybody entered.
        self.drain_meeting(id, group);
        self.ask_missing(id, group);
    }

    /// Handles that no task below a child will enter anything any more. Where that is since the child was lost, the
    /// job is to end, and nobody goes on without it.
    pub(super) fn on_child_left_groups(&mut self, id: JobId, agent: AgentId) {
        if !self.is_done_with_job(id, agent) {
            return;
        }
        for group in self.open_groups(id, |meeting| meeting.members.below.contains(&agent)) {
            self.with_meeting(id, &group, |meeting| meeting.fence.on_child_end(agent));
        }
    }

    /// Does what the passing of time asks for.
    pub(super) fn check_groups(&mut self, id: JobId) {
        self.finish_groups(id);
        let now = self.now;
        for group in self.open_groups(id, |meeting| meeting.ask_at.is_some_and(|at| at <= now)) {
            self.ask_missing(id, &group);
        }
    }

    /// Opens a barrier that somebody else has entered, and waits for the tasks here.
    fn expect_meeting(&mut self, id: JobId, group: &RankGroup) {
        if self.open_meeting(id, group)
            && let Some(job) = self.jobs.get_mut(id)
            && job.groups.open.get(group).is_some_and(|meeting| meeting.members.here)
        {
            job.pmi.on_group_awaited(group);
            self.drain_pmi(id);
        }
    }

    /// Opens a barrier unless it is open. Returns whether it was not.
    fn open_meeting(&mut self, id: JobId, group: &RankGroup) -> bool {
        let members = match self.jobs.get(id) {
            Some(job) if !job.groups.open.contains_key(group) => self.members_of(id, group),
            Some(_) | None => return false,
        };
        let ask_at = (!members.below.is_empty()).then(|| self.now + PATIENCE);
        let awaited = members.below.iter().filter(|child| !self.is_done_with_job(id, **child));
        let mut fence = Fence::new(true, awaited.copied());
        let Some(job) = self.jobs.get_mut(id) else { return false };
        if !members.here {
            fence.on_local_enter(Bytes::new());
        }
        job.groups.open.insert(group.clone(), Meeting { fence, members, ask_at });
        true
    }

    /// Changes an open barrier, and does what follows.
    fn with_meeting(&mut self, id: JobId, group: &RankGroup, change: impl FnOnce(&mut Meeting)) {
        if let Some(meeting) = self.jobs.get_mut(id).and_then(|job| job.groups.open.get_mut(group))
        {
            change(meeting);
            self.drain_meeting(id, group);
        }
    }

    fn drain_meeting(&mut self, id: JobId, group: &RankGroup) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some(meeting) = job.groups.open.get_mut(group)
            && let Some(effect) = meeting.fence.poll_effect()
        {
            match effect {
                FenceEffect::Enter(..) if job.stopping.is_some() => {} // nobody goes on
                FenceEffect::Enter(fence, payload) if !meeting.members.elsewhere => {
                    let turned = meeting.fence.on_release(fence, payload);
                    assert!(turned.is_ok(), "a fence that was entered can be released");
                }
                FenceEffect::Enter(_, payload) => {
                    meeting.ask_at = None;
                    let group = Box::new(group.clone());
                    self.up_job(Message::GroupEnter { job: id, group, payload });
                }
                FenceEffect::Release(_, payload) => self.end_meeting(id, group, payload),
            }
        }
    }

    /// Hands the end of a barrier on, then lets the tasks here out.
    fn end_meeting(&mut self, id: JobId, group: &RankGroup, payload: Bytes) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(meeting) = job.groups.open.remove(group) else { return };
        if meeting.members.here {
            job.groups.released.push_back((self.now, group.clone(), payload.clone()));
        }
        let children = self.busy_children(id, &meeting.members.below);
        if children.is_empty() {
            return self.finish_groups(id);
        }
        let group = Box::new(group.clone());
        self.tell_some(children, Message::GroupRelease { job: id, group, payload });
    }

    /// Lets the tasks here have what exchanges of groups have brought.
    fn finish_groups(&mut self, id: JobId) {
        while let Some(job) = self.jobs.get_mut(id)
            && let Some((_, group, payload)) = job.groups.released.pop_front()
        {
            if let Err(error) = job.pmi.on_group_complete(&group, payload) {
                return self.parent_misbehaved(error);
            }
            // Those who were faster may be in the next barrier of the group.
            if job.groups.open.contains_key(&group) {
                job.pmi.on_group_awaited(&group);
            }
            self.drain_pmi(id);
        }
    }

    /// Asks the children of which somebody is missing in a barrier, once.
    fn ask_missing(&mut self, id: JobId, group: &RankGroup) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(meeting) = job.groups.open.get_mut(group) else { return };
        if mem::take(&mut meeting.ask_at).is_none() {
            return;
        }
        let awaited = meeting.fence.awaited_children().collect();
        let awaited = self.busy_children(id, &awaited);
        self.tell_some(awaited, Message::GroupAwaited(id, Box::new(group.clone())));
    }

    fn open_groups(&self, id: JobId, is_meant: impl Fn(&Meeting) -> bool) -> Vec<RankGroup> {
        let open = self.jobs.get(id).into_iter().flat_map(|job| &job.groups.open);
        open.filter(|(_, meeting)| is_meant(meeting)).map(|(group, _)| group.clone()).collect()
    }

    /// Those of these children that are not gone, nor have done with the job.
    fn busy_children(&self, id: JobId, children: &BTreeSet<AgentId>) -> Vec<AgentId> {
        let Some(job) = self.jobs.get(id) else { return Vec::new() };
        let busy = children.intersection(&job.children).copied();
        busy.filter(|&child| self.is_job_child_there(child)).collect()
    }

    /// Whether a child has said that no task below it runs any more, and others may go on without those.
    fn is_done_with_job(&self, id: JobId, child: AgentId) -> bool {
        let is_done = |job: &Job| !job.children.contains(&child) && !job.is_failing;
        self.is_job_child_there(child) && self.jobs.get(id).is_some_and(is_done)
    }

    /// Whether a peer may name this group: ranks of the job, and some.
    fn may_meet(&self, id: JobId, group: &RankGroup) -> bool {
        let size = self.jobs.get(id).map_or(0, |job| job.spec.map.len());
        group.ranks.ranges().last().is_some_and(|(_, last)| *last < size)
    }

    /// Those below which tasks may still run. Below a spare that is not needed there are none, and its
    /// loss does not end the job.
    fn children_with_tasks(&self, id: JobId) -> BTreeSet<AgentId> {
        let Some(job) = self.jobs.get(id) else { return BTreeSet::new() };
        self.those_with_tasks(&job.children, &job.spec.map)
    }

    /// Those of these children below which a map of tasks has some.
    pub(super) fn those_with_tasks(
        &self,
        children: &BTreeSet<AgentId>,
        map: &TaskMap,
    ) -> BTreeSet<AgentId> {
        let mut agents = IdSet::new();
        for &(first, last) in map.nodes().ranges() {
            agents.insert_range(NodeId(first).agent().0, NodeId(last).agent().0);
        }
        let has_tasks = |child: &AgentId| agents.difference(&self.job_subtree(*child)) != agents;
        children.iter().copied().filter(has_tasks).collect()
    }

    fn members_of(&self, id: JobId, group: &RankGroup) -> Members {
        let Some(job) = self.jobs.get(id) else { return Members::default() };
        if group.ranks.len() == u64::from(job.spec.map.len()) {
            let (elsewhere, below) = (!self.is_head(), self.children_with_tasks(id));
            return Members { here: job.has_tasks(), below, elsewhere };
        }
        let mut members = Members::default();
        let mut last = None;
        for agent in group.ranks.iter().filter_map(|rank| job.spec.map.node_of(Rank(rank))) {
            let agent = agent.agent();
            if last.replace(agent) == Some(agent) {
                continue;
            }
            match self.job_child_towards(agent) {
                _ if agent == self.id => members.here = true,
                Some(child) => drop(members.below.insert(child)),
                None => members.elsewhere = !self.is_head(),
            }
        }
        members
    }
}
