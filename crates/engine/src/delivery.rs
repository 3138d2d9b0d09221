//! Sending the agent's program to hosts that lack it, each down the shell of its start.
//!
//! A host asks when its shell has found neither the program nor a cached copy. Each in turn gets it:
//! whoever has it first can pass it on, while all of them at once would all have it last. So n hosts
//! below a host that asks for nothing else have it after log n transfers, in a tree made for that. A
//! turn is over when all is sent, or when nothing has moved for [`STILL_MAX`], so that a host that
//! hangs does not hold up others.
//!
//! A start that is sent the program has its time for every piece of it, so that a slow link is no
//! silence, and one that waits has it when its turn has come.

use alloc::collections::VecDeque;
use core::time::Duration;

use model::Time;

use crate::child::ChildState;
use crate::engine::Engine;
use crate::{Effect, StartId};

/// Longer than a healthy host on a slow network needs between two pieces, and no longer than a login.
const STILL_MAX: Duration = Duration::from_secs(1);

/// How far it is with bringing the program to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// The host lacks it, and waits for it.
    Wanted,
    /// More of it has been sent.
    Moved,
    /// All of it has been sent, and its agent comes up.
    Sent,
}

/// The starts whose hosts asked for the program.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    waiting: VecDeque<StartId>,
    /// Whose turn it is, and until when if nothing moves.
    turn: Option<(StartId, Time)>,
}

impl Deliveries {
    /// Whether a start waits for others' transfers.
    pub(crate) fn is_waiting(&self, start: StartId) -> bool {
        self.waiting.contains(&start)
    }

    /// When the next turn begins though nothing happens.
    pub(crate) fn due(&self) -> Option<Time> {
        self.turn.filter(|_| !self.waiting.is_empty()).map(|(_, until)| until)
    }

    fn next(&mut self, now: Time) -> Option<StartId> {
        let is_free = self.turn.is_none_or(|(_, until)| until <= now);
        self.waiting.pop_front_if(|_| is_free)
    }

    fn end(&mut self, start: StartId) {
        self.waiting.retain(|other| *other != start);
        self.turn = self.turn.filter(|(other, _)| *other != start);
    }
}

impl Engine {
    /// Handles what a start's shell asks for, and how far that is.
    pub(crate) fn on_delivery(&mut self, start: StartId, delivery: Delivery) {
        match delivery {
            Delivery::Wanted if self.is_starting(start) && !self.deliveries.is_waiting(start) => {
                self.deliveries.waiting.push_back(start);
                self.send_programs();
            }
            // Its start has been given up meanwhile.
            Delivery::Wanted => {}
            Delivery::Moved => {
                if let Some((holder, until)) = &mut self.deliveries.turn
                    && *holder == start
                {
                    *until = self.now + STILL_MAX;
                }
                self.allow_time(start);
            }
            Delivery::Sent => {
                self.allow_time(start);
                self.end_delivery(start);
            }
        }
    }

    /// Handles that a start is sent nothing more, or that its shell has ended.
    pub(crate) fn end_delivery(&mut self, start: StartId) {
        self.deliveries.end(start);
        self.send_programs();
    }

    /// Lets those have the program whose turn it is.
    pub(crate) fn send_programs(&mut self) {
        while let Some(start) = self.deliveries.next(self.now) {
            if self.is_starting(start) {
                self.deliveries.turn = Some((start, self.now + STILL_MAX));
                self.stats.deliveries = self.stats.deliveries.saturating_add(1);
                self.allow_time(start);
                self.effects.push_back(Effect::SendProgram(start));
            }
        }
    }

    fn is_starting(&self, start: StartId) -> bool {
        let agents = self.starts.get(&start).into_iter().flatten();
        let mut states = agents.filter_map(|agent| self.children.get(agent));
        states.any(|child| matches!(child.state, ChildState::Starting { .. }))
    }

    /// Gives a start its whole time from here on.
    fn allow_time(&mut self, start: StartId) {
        let until = self.start_time_from(self.now);
        for agent in self.starts.get(&start).into_iter().flatten() {
            if let Some(child) = self.children.get_mut(agent)
                && let ChildState::Starting { give_up_at } = &mut child.state
            {
                *give_up_at = until;
            }
        }
    }

    /// Until when a start may take that has its whole time from `begin` on.
    pub(crate) fn start_time_from(&self, begin: Time) -> Time {
        begin + Duration::from_millis(self.session().start_timeout_ms.into())
    }
}
