//! Requests of several threads over one connection, each answered when it is done (`reference/pmi2.md` §3).
//!
//! Every request has a number, which the answer repeats. Whoever waits for an answer while nobody reads does so, and
//! lays down for the others what is theirs.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
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
    /// By number.
    asked: BTreeMap<u64, Asked>,
    /// What has come; nothing while somebody waits for more.
    incoming: Option<Incoming>,
    is_broken: bool,
}

/// What has been asked, and what of its answer is here.
#[derive(Debug)]
struct Asked {
    request: &'static str,
    answer: Answered,
    is_answered: bool,
}

/// What has come as an answer.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    /// One, or several where it does not fit.
    pub(crate) messages: Vec<Bytes>,
    pub(crate) descriptor: Option<OwnedFd>,
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
        let state =
            State { next: 1, asked: BTreeMap::new(), incoming: Some(incoming), is_broken: false };
        Mailbox { link, state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(
        &self,
        request: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<Bytes, Error> {
        let ticket = self.begin(request, fields)?;
        let answer = self.wait(ticket)?.messages.pop();
        Ok(answer.expect("an answer is one message at least"))
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
        self.send(&mut state, request, &frame)?;
        state.next += 1;
        state
            .asked
            .insert(number, Asked { request, answer: Answered::default(), is_answered: false });
        Ok(Ticket { number, request })
    }

    /// Asks for what has no answer.
    pub(crate) fn tell(
        &self,
        request: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<(), Error> {
        self.send(&mut self.lock(), request, &frame(request, &[], fields)?)
    }

    /// Sends with the lock kept, since requests of two threads must not run into each other. Behind half of one, nothing
    /// is understood.
    fn send(&self, state: &mut State, request: &'static str, frame: &[u8]) -> Result<(), Error> {
        let sent = self.link.send(frame);
        state.is_broken |= sent.is_err();
        sent.map_err(|source| Error::Send { request, source })
    }

    /// Waits for an answer that accepts the request.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<Answered, Error> {
        let Ticket { number, request } = ticket;
        let mut state = self.lock();
        loop {
            let is_answered = match state.asked.get(&number) {
                Some(asked) => asked.is_answered,
                None => return Err(Error::NotUnderWay),
            };
            if is_answered || state.is_broken {
                let asked = state.asked.remove(&number).filter(|asked| asked.is_answered);
                let answer = asked.ok_or(Error::Broken)?.answer;
                answer.messages.iter().try_for_each(|part| accepted(part, request))?;
                return Ok(answer);
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
        let descriptor = incoming.take_descriptor();
        state.incoming = Some(incoming);
        let laid_down =
            answer.and_then(|answer| state.lay_down(answer, descriptor, ticket.request));
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
    fn lay_down(
        &mut self,
        answer: Answer,
        descriptor: Option<OwnedFd>,
        request: &'static str,
    ) -> Result<(), Error> {
        let body = match answer {
            Answer::Frame(body) => body,
            Answer::Line(line) => return Err(unexpected(request, &line)),
        };
        let fields = Fields::of(&body);
        let name = fields.get("cmd").unwrap_or_default();
        let is_answer = |asked: &Asked| {
            let name = name.strip_suffix(b"-response");
            !asked.is_answered && name == Some(asked.request.as_bytes())
        };
        // A server that does not repeat the number answers in order.
        let asked = match fields.number::<u64>("thrid") {
            Some(number) => self.asked.get_mut(&number).filter(|asked| is_answer(asked)),
            None => self.asked.values_mut().find(|asked| is_answer(asked)),
        };
        let Some(asked) = asked else { return Err(unexpected(request, &body)) };
        asked.is_answered = !fields.is_true("more");
        asked.answer.messages.push(body);
        asked.answer.descriptor = descriptor.or(asked.answer.descriptor.take());
        Ok(())
    }
}

/// Checks that the code of an answer accepts the request.
pub(crate) fn accepted(answer: &[u8], request: &'static str) -> Result<(), Error> {
    let fields = Fields::of(answer);
    match fields.number("rc") {
        Some(0) => Ok(()),
        Some(code) => {
            let words = fields.get("errmsg").unwrap_or_default();
            Err(Error::Refused { request, code, words: Excerpt::new(&words) })
        }
        None => Err(unexpected(request, answer)),
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
    let bytes_max = MessageBuffer::FRAME_BYTES_MAX;
    if bytes > bytes_max {
        return Err(Error::TooLong { request, bytes, bytes_max });
    }
    let mut out = BytesMut::with_capacity(MessageBuffer::PREFIX_BYTES + bytes);
    let frame = Frame::begin(&mut out, &[request.as_bytes()]);
    all().fold(frame, |frame, (key, value)| frame.bytes(key, value)).end();
    Ok(out)
}
