//! A connection, cut into the messages that come over it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use pmi::{ClientError, Excerpt, Message, MessageBuffer, Snapshot, pmi1};

use crate::link::Link;
use crate::{Endpoint, Error};

/// What is read at once: many replies, or most of a long one.
const READ_BYTES: usize = 16 << 10;

/// A message of the server.
#[derive(Debug)]
pub(crate) enum Answer {
    Line(Bytes),
    Frame(Bytes),
}

/// Messages that have come whole, and the front of the one behind them.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    buffer: MessageBuffer,
    whole: VecDeque<Whole>,
    /// The one that has come with the message that is not whole.
    unfinished: Option<OwnedFd>,
    /// The last that has come with a message that has been taken.
    taken: Option<OwnedFd>,
}

/// A message, and the descriptor that has come with it.
#[derive(Debug)]
struct Whole {
    answer: Result<Answer, ClientError>,
    descriptor: Option<OwnedFd>,
}

impl Incoming {
    /// Waits for the next message; `request` is what it answers.
    pub(crate) fn next(&mut self, link: &Link, request: &'static str) -> Result<Answer, Error> {
        let mut bytes = [0; READ_BYTES];
        loop {
            if let Some(Whole { answer, descriptor }) = self.whole.pop_front() {
                self.taken = descriptor.or(self.taken.take());
                return answer.map_err(|source| Error::NoMessage { request, source });
            }
            match link.receive(&mut bytes) {
                Ok((0, _)) => return Err(Error::Closed { request }),
                Ok((count, descriptor)) => self.take(&bytes[..count], descriptor),
                Err(source) => return Err(Error::Receive { request, source }),
            }
        }
    }

    /// The descriptor that has come with the last message that had one, once.
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.taken.take()
    }

    /// Takes bytes as they come, and the descriptor that came with them. That is one of the last message of which some are
    /// among these: the server sends it with that alone, and a read ends behind such bytes (unix(7)).
    pub(crate) fn take(&mut self, bytes: &[u8], descriptor: Option<OwnedFd>) {
        let Incoming { buffer, whole, unfinished, taken: _ } = self;
        buffer.feed(bytes, |message| {
            let answer = message.map(|message| match message {
                Message::Line(line) => Answer::Line(Bytes::copy_from_slice(line)),
                Message::Frame(body) => Answer::Frame(Bytes::copy_from_slice(body)),
            });
            whole.push_back(Whole { answer, descriptor: unfinished.take() });
            ControlFlow::Continue(())
        });
        match whole.back_mut().filter(|_| buffer.unfinished().is_empty()) {
            Some(last) => last.descriptor = descriptor.or(last.descriptor.take()),
            None => *unfinished = descriptor.or(unfinished.take()),
        }
    }

    /// Waits for a line of PMI-1 that is called `answer`, and has no code but 0.
    pub(crate) fn line(
        &mut self,
        link: &Link,
        request: &'static str,
        answer: &str,
    ) -> Result<Bytes, Error> {
        let line = match self.next(link, request)? {
            Answer::Line(line) => line,
            Answer::Frame(body) => return Err(unexpected(request, &body)),
        };
        checked(&line, request, answer)?;
        Ok(line)
    }
}

/// Checks that a line is this answer, and accepts the request.
pub(crate) fn checked(line: &[u8], request: &'static str, answer: &str) -> Result<(), Error> {
    let fields = pmi1::Fields::of(line);
    if fields.get("cmd") != Some(answer.as_bytes()) {
        return Err(unexpected(request, line));
    }
    let code = if fields.get("rc").is_some() { fields.number("rc") } else { Ok(0) };
    match code {
        Ok(0) => Ok(()),
        Ok(code) => {
            let words = fields.get("msg").or_else(|| fields.get("reason")).unwrap_or_default();
            Err(Error::Refused { request, code, words: Excerpt::new(words) })
        }
        Err(_) => Err(unexpected(request, line)),
    }
}

pub(crate) fn unexpected(request: &'static str, answer: &[u8]) -> Error {
    Error::Unexpected { request, answer: Excerpt::new(answer) }
}

/// A connection over which PMI of some version may be spoken, and who we are on it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) incoming: Incoming,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// Whether descriptors can come over it.
    pub(crate) is_local: bool,
}

impl Connection {
    /// Connects, and agrees on the version.
    pub(crate) fn open(endpoint: &Endpoint, version: u32) -> Result<Connection, Error> {
        let link = Link::to(endpoint)?;
        let (rank, size) = match *endpoint {
            Endpoint::Descriptor { rank, size, .. } => (rank, size),
            Endpoint::Port { id, .. } => (id, 1),
            Endpoint::Alone => (0, 1),
        };
        let is_local = matches!(endpoint, Endpoint::Descriptor { .. });
        let incoming = Incoming::default();
        let mut connection = Connection { link, incoming, rank, size, is_local };
        if let Endpoint::Port { .. } = endpoint {
            connection.call()?;
        }
        let subversion = if version == 1 { 1 } else { 0 };
        let line = format!("cmd=init pmi_version={version} pmi_subversion={subversion}\n");
        connection.send("init", line.as_bytes())?;
        connection.incoming.line(&connection.link, "init", "response_to_init")?;
        Ok(connection)
    }

    /// What asks for snapshots, where they can come.
    pub(crate) fn snapshot_field(&self) -> Option<(&'static str, String)> {
        self.is_local.then(|| ("snapshot", Snapshot::VERSION.to_string()))
    }

    /// Says over a port who we are, and is told what else there is to know (`reference/pmi1.md` §4).
    fn call(&mut self) -> Result<(), Error> {
        const REQUEST: &str = "initack";
        self.send(REQUEST, format!("cmd=initack pmiid={}\n", self.rank).as_bytes())?;
        self.incoming.line(&self.link, REQUEST, "initack")?;
        let mut set = |name| {
            let line = self.incoming.line(&self.link, REQUEST, "set")?;
            pmi1::Fields::of(&line).number(name).map_err(|_| unexpected(REQUEST, &line))
        };
        let (size, rank) = (set("size")?, set("rank")?);
        set("debug")?;
        (self.size, self.rank) = (size, rank);
        Ok(())
    }

    pub(crate) fn send(&self, request: &'static str, bytes: &[u8]) -> Result<(), Error> {
        self.link.send(bytes).map_err(|source| Error::Send { request, source })
    }
}
