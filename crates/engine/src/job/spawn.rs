//! Jobs that tasks have asked for: the request goes up to the head (`spawner.rs`), the job comes down to its nodes, and
//! word of how far all below have come with it goes up.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;

use model::{AgentId, JobId, Rank, SpawnReply};
use proto::Event;
use wire::{JobSpec, Launch, Message, Milestone};

use super::Job;
use crate::Effect;
use crate::engine::Engine;

/// How far a job has come here and below.
#[derive(Debug)]
pub(super) struct Progress {
    next: Milestone,
    /// Whether the tasks here have reached it.
    own: bool,
    /// Children below which not all have.
    behind: BTreeSet<AgentId>,
}

impl Progress {
    fn towards(next: Milestone, children: &BTreeSet<AgentId>) -> Box<Progress> {
        Box::new(Progress { next, own: false, behind: children.clone() })
    }
}

impl Job {
    /// Notes that the tasks here have come so far.
    pub(super) fn reach(&mut self, milestone: Milestone) {
        if let Some(progress) = self.progress.as_mut().filter(|it| it.next == milestone) {
            progress.own = true;
        }
    }

    /// The milestone that all here and below have reached, once; the next one comes into sight.
    fn take_reached(&mut self) -> Option<Milestone> {
        let reached = self.progress.take_if(|it| it.own && it.behind.is_empty())?.next;
        self.progress = match reached {
            Milestone::Prepared => Some(Progress::towards(Milestone::Created, &self.children)),
            Milestone::Created => None,
        };
        Some(reached)
    }
}

impl Engine {
    /// Takes a job that some have asked for: passes it to those below that have tasks of it, and has its programs
    /// looked up and its files made here.
    pub(crate) fn take_spawned(&mut self, spec: Arc<JobSpec>) {
        let (id, node) = (spec.job, self.id.node());
        if self.jobs.get(id).is_some() {
            return self.parent_misbehaved("a job twice");
        }
        let children = self.those_with_tasks(&self.job_children(), &spec.map);
        let mut job = Job::new(Arc::clone(&spec), node, children.iter().copied());
        job.progress = Some(Progress::towards(Milestone::Prepared, &children));
        let is_busy = job.has_tasks() || job.writes_files(node);
        let apps = job.apps();
        self.jobs.insert(job);
        self.tell_some(children, Message::Spawn(Box::new((*spec).clone())));
        if is_busy {
            let host = self.own_name.clone();
            self.effects.push_back(Effect::Prepare { job: spec, host, apps });
        } else {
            self.on_milestone(id, Milestone::Prepared);
        }
    }

    /// Handles that the tasks of a job here have come so far.
    pub(crate) fn on_milestone(&mut self, id: JobId, milestone: Milestone) {
        if let Some(job) = self.jobs.get_mut(id).filter(|job| job.stopping.is_none()) {
            job.reach(milestone);
            self.tell_reached(id);
        }
    }

    /// Handles that all below a child have come so far.
    pub(crate) fn on_child_reached(&mut self, id: JobId, agent: AgentId, milestone: Milestone) {
        // One that is being ended may have come farther when the order reached it.
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.stopping.is_none()) else { return };
        let progress = job.progress.as_mut().filter(|progress| progress.next == milestone);
        if progress.is_some_and(|progress| progress.behind.remove(&agent)) {
            self.tell_reached(id);
        } else {
            self.job_child_misbehaved(agent, "it came farther with a job than it could");
        }
    }

    fn tell_reached(&mut self, id: JobId) {
        if let Some(milestone) = self.jobs.get_mut(id).and_then(Job::take_reached) {
            self.up_job(Message::Reached(id, milestone));
        }
    }

    /// Launches a job that some have asked for.
    pub(super) fn launch_spawned(&mut self, launch: Launch) {
        let id = launch.job;
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.launched = true;
        let children = job.children.clone();
        self.tell_some(children, Message::Launch(Box::new(launch)));
        if !self.is_head() {
            self.events.push_back(Event::Launched(id));
        }
        self.spawn_tasks(id);
    }

    /// Forgets a job that some have asked for, and that is over.
    pub(super) fn forget_job(&mut self, id: JobId) {
        let node = self.id.node();
        if self.jobs.get(id).is_some_and(|job| job.writes_files(node)) {
            self.effects.push_back(Effect::CloseFiles(id));
        }
        self.jobs.remove(id);
    }

    /// Hands the answer to a request on to the node of the task that asked.
    pub(crate) fn on_spawn_reply(&mut self, id: JobId, rank: Rank, reply: Box<SpawnReply>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.tasks.contains_key(&rank) {
            job.pmi.on_spawn_reply(rank, &reply);
            return self.drain_pmi(id);
        }
        self.tell_some(self.job_child_with(id, rank), Message::SpawnReply(id, rank, reply));
    }
}
