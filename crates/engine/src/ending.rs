//! The end of a member: in good order, from the leaves to the head, or at once.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use core::fmt::Display;
use core::time::Duration;

use model::Time;
use proto::Event;
use wire::{MarkKind, Message, Stats};

use crate::child::Child;
use crate::engine::{Above, Engine, Phase};
use crate::job::Job;
use crate::{Effect, LinkEnd};

/// The end of the session.
#[derive(Debug)]
pub(crate) struct Ending {
    /// When whatever is left is given up.
    pub(crate) give_up_at: Time,
}

/// How long a subtree may take to leave before it is left behind: its agents then notice that their
/// links are closed and end by themselves.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// The exit status of an agent that ended otherwise than by its parent's order. Nobody acts on it.
const AGENT_FAILED: u8 = 1;

impl Engine {
    /// Begins the end: everything below is told to leave, and everything here is killed.
    pub(crate) fn shut_down(&mut self) {
        if self.ending.is_some() {
            return;
        }
        self.phase = Phase::End;
        self.ending = Some(Ending { give_up_at: self.now + LEAVE_MAX });
        self.mark(self.id, MarkKind::Leaving);
        self.tell_children(Message::Shutdown);
        self.end_starts();
        self.kill_jobs();
    }

    /// Leaves once nothing is left below and here.
    pub(crate) fn leave_when_alone(&mut self) {
        let alone = self.starts.is_empty()
            && self.children.values().all(Child::is_gone)
            && self.jobs.iter().all(Job::is_clean);
        if self.ending.is_some() && alone {
            self.leave();
        }
    }

    /// Leaves in good order. What may be left here after all is the driver's to kill.
    pub(crate) fn leave(&mut self) {
        if self.over {
            return;
        }
        self.note_unfinished();
        self.jobs.ids().into_iter().for_each(|job| self.send_records(job));
        self.send_marks();
        let mut stats = core::mem::take(&mut self.stats);
        self.events.push_back(Event::Over);
        match &mut self.above {
            Above::Head(head) => {
                head.outcome.incomplete = head.outcome.incomplete.union(&stats.unfinished);
                head.outcome.stats = stats;
                self.effects.push_back(Effect::Exit(head.outcome.code));
            }
            Above::Parent { link, .. } => {
                let link = *link;
                // Its own size, as it is before it is counted.
                stats.bytes[Phase::End as usize] += wire::encoded_len(&bye(&stats)) as u64;
                stats.messages[Phase::End as usize] += 1;
                self.send(vec![link], bye(&stats));
                self.effects.push_back(Effect::Close(link));
                self.effects.push_back(Effect::Exit(0));
            }
            Above::Unwelcomed { .. } => self.effects.push_back(Effect::Exit(AGENT_FAILED)),
        }
        self.over = true;
    }

    /// Takes note of whom this member leaves without having heard that all has ended there.
    fn note_unfinished(&mut self) {
        for job in self.jobs.iter() {
            let left = job.unfinished_children().map(|child| self.job_subtree(child));
            let own = job.unfinished(self.id, &self.output);
            let left = left.fold(own, |left, below| left.union(&below));
            self.stats.unfinished = self.stats.unfinished.union(&left);
        }
    }

    /// Handles that its parent does what no parent may.
    pub(crate) fn parent_misbehaved(&mut self, what: impl Display) {
        self.abandon(format!("its parent broke the protocol: {what}"));
    }

    /// Ends in disorder: nobody is left to obey.
    pub(crate) fn abandon(&mut self, words: String) {
        if self.over {
            return;
        }
        let code = match &mut self.above {
            Above::Head(head) => head.abandoned(),
            Above::Unwelcomed { .. } | Above::Parent { .. } => AGENT_FAILED,
        };
        self.events.push_back(Event::Over);
        self.effects.push_back(Effect::Abandon { code, words });
        self.over = true;
    }
}

fn bye(stats: &Stats) -> Message {
    Message::Bye(Box::new(stats.clone()))
}

/// Why an agent whose link to its parent is over has nobody to obey.
pub(crate) fn parent_gone(end: LinkEnd, words: &str) -> String {
    let end = match end {
        LinkEnd::Closed => "its parent is gone",
        LinkEnd::Cut => "the network to its parent is cut",
        LinkEnd::Misbehaved => "its parent broke the protocol",
    };
    if words.is_empty() { end.to_string() } else { alloc::format!("{end}: {words}") }
}
