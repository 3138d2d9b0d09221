//! A reference: what a session is, without trees, messages or time.
//!
//! Agents may be members once their parents have welcomed them, the job is launched when all whom the
//! head counts on are there, tasks run there and end once, and a job is done when no task runs but on agents that are lost.
//! The world moves the reference by what really happens. What engines tell their observers is held
//! against it right then.

use std::collections::BTreeMap;

use model::{AgentId, ExitStatus, IdSet, JobId};
use proto::Event;

use crate::task_id::TaskId;

/// What really is.
#[derive(Default)]
pub(crate) struct Reference {
    /// By agent: whether its parent has welcomed it.
    welcomed: Vec<bool>,
    /// Whom the job runs on.
    members: IdSet,
    tasks: BTreeMap<TaskId, Task>,
    /// Agents that the head has declared lost.
    lost: IdSet,
    is_all_joined: bool,
    is_launched: bool,
}

/// A task that was created.
#[derive(Clone, Copy)]
struct Task {
    agent: AgentId,
    ended: Option<ExitStatus>,
}

/// Something that must not be, in words.
type Wrong = Option<String>;

impl Reference {
    /// A session of `n` agents.
    pub(crate) fn new(n: u32) -> Reference {
        Reference { welcomed: vec![false; position(n) + 1], ..Reference::default() }
    }

    /// An agent's parent has welcomed it.
    pub(crate) fn welcome(&mut self, agent: AgentId) {
        self.welcomed[position(agent.0)] = true;
    }

    /// A task is created.
    pub(crate) fn launch(&mut self, agent: AgentId, of: TaskId) -> Wrong {
        if self.tasks.insert(of, Task { agent, ended: None }).is_some() {
            return Some(format!("rank {of} was launched twice"));
        }
        let is_member = self.members.contains(agent.0);
        (!is_member).then(|| format!("rank {of} was launched on {agent}, which is no member"))
    }

    /// A task has ended.
    pub(crate) fn end(&mut self, of: TaskId, status: ExitStatus) -> Wrong {
        match self.tasks.get_mut(&of) {
            Some(Task { ended: ended @ None, .. }) => {
                *ended = Some(status);
                None
            }
            Some(_) | None => Some(format!("rank {of} ended and did not run")),
        }
    }

    /// An agent or the head tells something.
    pub(crate) fn on_event(&mut self, agent: AgentId, event: &Event) -> Wrong {
        match event {
            Event::TaskEnded { job, rank, status } => {
                self.on_told_end(TaskId { job: *job, rank: *rank }, *status)
            }
            Event::AgentsJoined(ids) if agent == AgentId::HEAD => {
                if self.is_launched {
                    self.members = self.members.union(ids);
                }
                let stranger = self.stranger(ids);
                stranger.map(|id| format!("agent {id} has joined without a welcome"))
            }
            Event::AllJoined(members) => {
                self.is_all_joined = true;
                self.members = members.clone();
                self.stranger(members).map(|id| format!("agent {id} has not joined"))
            }
            Event::Launched(_) if agent == AgentId::HEAD => {
                self.is_launched = true;
                (!self.is_all_joined).then(|| "a launch before all have joined".into())
            }
            Event::AgentLost(loss) if agent == AgentId::HEAD => {
                self.lost = self.lost.union(&loss.agents);
                None
            }
            Event::JobDone(job) if agent == AgentId::HEAD => self.on_job_done(*job),
            Event::AgentStarted { .. }
            | Event::StartRetried { .. }
            | Event::LinkOverShell(_)
            | Event::Marked(_)
            | Event::AgentsJoined(_)
            | Event::StartFailed(_)
            | Event::Launched(_)
            | Event::TaskStarted { .. }
            | Event::FenceReleased { .. }
            | Event::JobFault(..)
            | Event::Stopping(_)
            | Event::AgentLost(_)
            | Event::JobWarning(..)
            | Event::PeerMisbehaved { .. }
            | Event::JobDone(_)
            | Event::Over => None,
        }
    }

    fn stranger(&self, ids: &IdSet) -> Option<u32> {
        ids.iter().find(|&id| !self.welcomed[position(id)])
    }

    fn on_told_end(&self, of: TaskId, status: ExitStatus) -> Wrong {
        // A task that could not be created has a status and no process.
        let task = self.tasks.get(&of)?;
        (task.ended != Some(status))
            .then(|| format!("rank {of}: {status:?} was told, {:?} is true", task.ended))
    }

    /// The first job is told of last.
    fn on_job_done(&self, job: JobId) -> Wrong {
        let is_over = |of: &TaskId| job == JobId::FIRST || of.job == job;
        let runs = |task: &Task| task.ended.is_none() && !self.lost.contains(task.agent.0);
        let running = self.tasks.iter().filter(|(of, task)| is_over(of) && runs(task)).count();
        (running > 0).then(|| format!("job {} is done, and {running} tasks run", job.0))
    }
}

fn position(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rank;

    const OK: ExitStatus = ExitStatus::Exited(0);

    fn task(rank: u32) -> TaskId {
        TaskId::first(Rank(rank))
    }

    fn joined() -> Reference {
        let mut reference = Reference::new(2);
        reference.welcome(AgentId(1));
        reference.welcome(AgentId(2));
        let all = Event::AllJoined(IdSet::range(1, 2));
        assert_eq!(reference.on_event(AgentId::HEAD, &all), None);
        reference
    }

    #[test]
    fn a_launch_with_somebody_missing_is_wrong() {
        let mut reference = Reference::new(2);
        reference.welcome(AgentId(1));
        reference.welcome(AgentId(1));
        assert!(reference.launch(AgentId(1), task(0)).is_some());
        let all = Event::AllJoined(IdSet::range(1, 2));
        assert!(reference.on_event(AgentId::HEAD, &all).is_some());
        let joined = Event::AgentsJoined(IdSet::range(1, 2));
        assert!(reference.on_event(AgentId::HEAD, &joined).is_some());
    }

    #[test]
    fn a_job_is_done_when_no_task_runs_but_on_lost_agents() {
        let mut reference = joined();
        assert_eq!(reference.launch(AgentId(1), task(0)), None);
        assert_eq!(reference.launch(AgentId(2), task(1)), None);
        assert_eq!(reference.end(task(0), OK), None);
        let done = Event::JobDone(JobId(0));
        assert!(reference.on_event(AgentId::HEAD, &done).is_some());
        assert_eq!(reference.end(task(1), OK), None);
        assert_eq!(reference.on_event(AgentId::HEAD, &done), None);
    }

    #[test]
    fn a_status_that_is_not_the_tasks_is_wrong() {
        let mut reference = joined();
        assert_eq!(reference.launch(AgentId(1), task(0)), None);
        let told = Event::TaskEnded { job: JobId(0), rank: Rank(0), status: OK };
        assert!(reference.on_event(AgentId(1), &told).is_some(), "it still runs");
        assert_eq!(reference.end(task(0), ExitStatus::Exited(1)), None);
        assert!(reference.on_event(AgentId(1), &told).is_some());
        assert!(reference.end(task(0), OK).is_some(), "it has ended");
    }
}
