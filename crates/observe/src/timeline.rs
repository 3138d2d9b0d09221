//! When the head heard of what: the times of a session's phases, and of each agent's life.

use std::collections::BTreeMap;

use model::{AgentId, IdSet, Time};
use proto::Event;

use crate::span::Span;

/// The times of one session. The head's clock, from the start of the session.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// When all agents had joined.
    pub all_joined: Option<Time>,
    /// When the first task's end or another cause began the end of the job.
    pub stopping: Option<Time>,
    /// When every task had ended.
    pub job_done: Option<Time>,
    /// When the last agent had left.
    pub over: Option<Time>,
    /// Who joined when, in the order of joining.
    pub joined: Vec<(Time, IdSet)>,
    /// Each agent's life, where the session keeps marks; the head's own under its id.
    pub spans: BTreeMap<AgentId, Span>,
    /// When something was last heard of.
    last: Time,
}

impl Timeline {
    /// Notes an event.
    pub fn on_event(&mut self, now: Time, event: &Event) {
        self.last = self.last.max(now);
        match event {
            Event::AgentsJoined(ids) => self.joined.push((now, ids.clone())),
            Event::AllJoined(_) => self.all_joined = Some(now),
            Event::Stopping(_) => self.stopping = self.stopping.or(Some(now)),
            Event::JobDone(_) => self.job_done = Some(now),
            Event::Over => self.over = Some(now),
            Event::Marked(marks) => {
                for mark in marks {
                    self.spans.entry(mark.agent).or_default().on_mark(mark);
                }
            }
            Event::AgentStarted { .. }
            | Event::StartRetried { .. }
            | Event::LinkOverShell(_)
            | Event::StartFailed(_)
            | Event::Launched(_)
            | Event::TaskStarted { .. }
            | Event::TaskEnded { .. }
            | Event::FenceReleased { .. }
            | Event::JobFault(..)
            | Event::JobWarning(..)
            | Event::AgentLost(_)
            | Event::PeerMisbehaved { .. } => {}
        }
    }

    /// When an agent joined, if it did.
    pub fn joined_at(&self, agent: u32) -> Option<Time> {
        self.joined.iter().find(|(_, ids)| ids.contains(agent)).map(|(at, _)| *at)
    }

    /// The end of the session, as far as it was seen.
    pub fn end(&self) -> Time {
        self.over.unwrap_or(self.last)
    }
}
