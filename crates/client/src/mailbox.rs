//! Requests of several threads over one connection, each answered when it is done (`reference/pmi2.md` §3).
//!
//! Every request has a number, which the answer repeats. Whoever waits for an answer while nobody reads does so, and
//! lays down for the others what is theirs.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use pmi::pmi2::{Fields, Frame};
use pmi::{Excerpt, MessageBuffer};

use crate::Error;
use crate::connection::{Answer, Connection, Incoming, unexpected};
use crate::link::Link;

/// A connection that is shared.
#[derive(Debug)]
pub(crate) struct Mailbox {
    link: Link,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    next: u64,
    /// What has been asked, and its answer once it is here, by number.
    asked: BTreeMap<u64, (&'static str, Option<Bytes>)>,
    /// What has come; nothing while somebody waits for more.
    incoming: Option<Incoming>,
    is_broken: bool,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    number: u64,
    request: &'static str,
}

impl Ticket {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Mailbox {
    pub(crate) fn new(connection: Connection) -> Mailbox {
        let Connection { link, incoming, .. } = connection;
        let incoming = Some(incoming);
        let state = State { next: 1, asked: BTreeMap::new(), incoming, is_broken: false };
        Mailbox { link, state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(
        &self,
        request: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<Bytes, Error> {
        let ticket = self.begin(request, fields)?;
        self.wait(ticket)
    }

    /// Asks.
    pub(crate) fn begin(
        &self,
        request: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<Ticket, Error> {
        let mut state = self.lock();
        let number = state.next;
        let thread = number.to_string();
        let frame = frame(request, &[("thrid", thread.as_bytes())], fields)?;
        // Requests of two threads must not run into each other, so the lock is kept.
        self.link.send(&frame).map_err(|source| Error::Send { request, source })?;
        state.next += 1;
        state.asked.insert(number, (request, None));
        Ok(Ticket { number, request })
    }

    /// Asks for what has no answer.
    pub(crate) fn tell(
        &self,
        request: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<(), Error> {
        let frame = frame(request, &[], fields)?;
        let _state = self.lock();
        self.link.send(&frame).map_err(|source| Error::Send { request, source })
    }

    /// Waits for an answer that accepts the request.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<Bytes, Error> {
        let mut state = self.lock();
        loop {
            let Some((_, answer)) = state.asked.get_mut(&ticket.number) else {
                return Err(Error::NotUnderWay);
            };
            if let Some(answer) = answer.take() {
                state.asked.remove(&ticket.number);
                return accepted(answer, ticket.request);
            }
            if state.is_broken {
                state.asked.remove(&ticket.number);
                return Err(Error::Broken);
            }
            state = match state.incoming.take() {
                Some(incoming) => self.read(state, incoming, ticket)?,
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits for one message, with the state unlocked, and lays it down.
    fn read<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        mut incoming: Incoming,
        ticket: Ticket,
    ) -> Result<MutexGuard<'a, State>, Error> {
        drop(state);
        let answer = incoming.next(&self.link, ticket.request);
        let mut state = self.lock();
        state.incoming = Some(incoming);
        let laid_down = answer.and_then(|answer| state.lay_down(answer, ticket.request));
        state.is_broken |= laid_down.is_err();
        self.arrived.notify_all();
        match laid_down {
            Ok(()) => Ok(state),
            Err(error) => {
                state.asked.remove(&ticket.number);
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lay_down(&mut self, answer: Answer, request: &'static str) -> Result<(), Error> {
        let body = match answer {
            Answer::Frame(body) => body,
            Answer::Line(line) => return Err(unexpected(request, &line)),
        };
        let fields = Fields::of(&body);
        let name = fields.get("cmd").unwrap_or_default();
        let is_answer = |asked: &(&str, Option<Bytes>)| {
            asked.1.is_none() && name.strip_suffix(b"-response") == Some(asked.0.as_bytes())
        };
        // A server that does not repeat the number answers in order.
        let asked = match fields.number::<u64>("thrid") {
            Some(number) => self.asked.get_mut(&number).filter(|asked| is_answer(asked)),
            None => self.asked.values_mut().find(|asked| is_answer(asked)),
        };
        let Some((_, place)) = asked else { return Err(unexpected(request, &body)) };
        *place = Some(body);
        Ok(())
    }
}

/// The answer, if its code accepts the request.
pub(crate) fn accepted(answer: Bytes, request: &'static str) -> Result<Bytes, Error> {
    let fields = Fields::of(&answer);
    match fields.number("rc") {
        Some(0) => Ok(answer),
        Some(code) => {
            let words = fields.get("errmsg").unwrap_or_default();
            Err(Error::Refused { request, code, words: Excerpt::new(&words) })
        }
        None => Err(unexpected(request, &answer)),
    }
}

/// A whole frame.
pub(crate) fn frame(
    request: &'static str,
    first: &[(&str, &[u8])],
    fields: &[(&str, &[u8])],
) -> Result<BytesMut, Error> {
    let all = || first.iter().chain(fields);
    // Every semicolon is doubled, and a name, `=` and `;` go with each value.
    let values = all().map(|(key, value)| key.len() + 2 * value.len() + 2).sum::<usize>();
    let bytes = "cmd=;".len() + request.len() + values;
    if bytes > MessageBuffer::FRAME_BYTES_MAX {
        return Err(Error::TooLong { request, bytes });
    }
    let mut out = BytesMut::with_capacity(MessageBuffer::PREFIX_BYTES + bytes);
    let frame = Frame::begin(&mut out, &[request.as_bytes()]);
    all().fold(frame, |frame, (key, value)| frame.bytes(key, value)).end();
    Ok(out)
}
