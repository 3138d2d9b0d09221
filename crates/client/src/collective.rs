//! One kind of collective, of which a program is in one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Request;
use crate::mailbox::Ticket;

/// The one that was begun and not waited for.
#[derive(Debug, Default)]
pub(crate) struct Collective(Mutex<Option<Ticket>>);

/// The right to begin one; kept as long as who waits for its end at once does.
pub(crate) type Turn<'a> = MutexGuard<'a, Option<Ticket>>;

impl Collective {
    /// The turn, once no thread has it, unless one was begun.
    pub(crate) fn turn(&self) -> Option<Turn<'_>> {
        let turn = self.lock();
        if turn.is_some() { None } else { Some(turn) }
    }

    /// What was begun, if this is it.
    pub(crate) fn begun(&self, request: Request) -> Option<Ticket> {
        self.lock().filter(|ticket| ticket.number() == request.number())
    }

    /// Ends what was begun, if this is it.
    pub(crate) fn end(&self, request: Request) {
        self.lock().take_if(|ticket| ticket.number() == request.number());
    }

    pub(crate) fn lock(&self) -> Turn<'_> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
