//! One connection: from the first byte of a handshake to the last one of a channel.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use engine::{HOST_SILENT_MAX, Input, LinkEnd, LinkId};
use model::{AgentId, Time};
use os::net::{self, LinkTimes};
use os::stream::{self, ReadOutcome, WriteOutcome};
use os::{Interest, Ready};
use wire::channel::SEALED_BYTES_MAX;
use wire::{
    Channel, ChannelError, Established, Frame, FrameError, Handshake, Inbox, Message, Outbox,
};

use crate::duplex::Duplex;
use crate::reactor::{Chunk, READ_BYTES, Reactor};

/// Sealed bytes that are made for one write: a record, which is still in the processor's cache then.
/// A link that is stuck holds no more.
const SEALED_BYTES: usize = SEALED_BYTES_MAX;

/// The kernel's probes on an idle link, so that a cut one is noticed while nobody has anything to
/// say and no process wakes for it.
const PROBE: Duration = Duration::from_secs(2);

/// Probes without an answer before a link is given up on which bytes may wait for ever: the first
/// comes after one interval.
const PROBES_MAX: u32 = (HOST_SILENT_MAX.as_secs() / PROBE.as_secs()) as u32 - 1;

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The peer closed it.
    #[error("connection closed")]
    Closed,
    /// The network or the peer's end.
    #[error("{0}")]
    Io(io::Error),
    /// The peer is none of the session, or its bytes are garbled.
    #[error("{0}")]
    Channel(ChannelError),
    /// Its frames are no messages.
    #[error("{0}")]
    Frame(FrameError),
    /// A message of ours does not fit into a frame.
    #[error("message cannot be sent: {0}")]
    Unsendable(FrameError),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    duplex: Duplex,
    /// Whether it runs over a remote shell's streams, which no kernel probes.
    is_over_shell: bool,
    state: State,
    outbox: Outbox,
    /// Bytes that are ready to go but that the socket did not take.
    unsent: Vec<u8>,
    /// How many of them have gone.
    sent: usize,
}

#[derive(Debug)]
enum State {
    /// The connection is not there yet; what to say once it is.
    Connecting(Handshake),
    /// The peer has yet to prove itself.
    Proving(Handshake),
    /// It has.
    Up { channel: Channel, inbox: Inbox },
    /// All was sent and the peer told so; it has yet to close.
    Draining,
    /// Closing: what is queued goes, what comes is dropped.
    Closing(Channel),
    /// Failed.
    Broken,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// Nothing that others must know.
    Same,
    /// The peer has proven to be this agent.
    Proven(AgentId),
    /// We closed it, and it is done.
    Done,
}

impl Link {
    /// A connection that was begun with `net::connect`.
    pub(crate) fn connecting(
        reactor: &Reactor,
        id: LinkId,
        fd: OwnedFd,
        handshake: Handshake,
    ) -> io::Result<Link> {
        let duplex = Duplex::socket(fd, id);
        Link::new(reactor, duplex, State::Connecting(handshake), Interest::WRITE)
    }

    /// A connection that was accepted.
    pub(crate) fn accepted(
        reactor: &Reactor,
        id: LinkId,
        fd: OwnedFd,
        handshake: Handshake,
    ) -> io::Result<Link> {
        net::set_link_options(&fd, &times(None))?;
        Link::new(reactor, Duplex::socket(fd, id), State::Proving(handshake), Interest::READ)
    }

    /// A link over the streams of a remote shell, on which `words` go before the handshake.
    pub(crate) fn over_shell(
        reactor: &Reactor,
        duplex: Duplex,
        handshake: Handshake,
        words: Vec<u8>,
    ) -> Result<Link, LinkError> {
        let state = State::Proving(handshake);
        let link = Link::new(reactor, duplex, state, Interest::READ).map_err(LinkError::Io)?;
        let mut link = Link { is_over_shell: true, unsent: words, ..link };
        link.send_handshake(reactor)?;
        Ok(link)
    }

    fn new(
        reactor: &Reactor,
        mut duplex: Duplex,
        state: State,
        interest: Interest,
    ) -> io::Result<Link> {
        duplex.wait_for(&reactor.poller, interest)?;
        let (outbox, unsent) = (Outbox::new(), Vec::new());
        Ok(Link { duplex, is_over_shell: false, state, outbox, unsent, sent: 0 })
    }

    /// Whether the engine knows of it.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Whether it runs over a remote shell's streams.
    pub(crate) fn is_over_shell(&self) -> bool {
        self.is_over_shell
    }

    /// Whether somebody is at the other end, who may have yet to prove who that is.
    pub(crate) fn is_connected(&self) -> bool {
        !matches!(self.state, State::Connecting(_) | State::Broken)
    }

    /// Whether the peer has not proven itself.
    pub(crate) fn is_unproven(&self) -> bool {
        matches!(self.state, State::Connecting(_) | State::Proving(_))
    }

    /// Queues a frame. Flush at the end of the turn.
    pub(crate) fn push(&mut self, frame: Frame) {
        if self.is_up() {
            self.outbox.push_frame(frame);
        }
    }

    /// Sends no more than what is queued. Flush at the end of the turn.
    pub(crate) fn close(&mut self) {
        if self.is_up()
            && let State::Up { channel, .. } = mem::replace(&mut self.state, State::Broken)
        {
            self.state = State::Closing(channel);
        }
    }

    /// Handles a socket that is ready.
    pub(crate) fn on_ready(
        &mut self,
        reactor: &mut Reactor,
        id: LinkId,
        ready: Ready,
    ) -> Result<Progress, LinkError> {
        if matches!(self.state, State::Connecting(_)) {
            if !ready.writable && !ready.hangup {
                return Ok(Progress::Same);
            }
            self.on_connected(reactor)?;
        }
        let mut progress = Progress::Same;
        if ready.readable {
            progress = self.receive(reactor, id)?;
        }
        if ready.writable && progress == Progress::Same {
            progress = self.flush(reactor, &mut Vec::new())?;
        }
        Ok(progress)
    }

    /// Writes what can be written, sealed in `scratch`, and waits for room for the rest.
    pub(crate) fn flush(
        &mut self,
        reactor: &Reactor,
        scratch: &mut Vec<u8>,
    ) -> Result<Progress, LinkError> {
        let is_empty = self.write_all(scratch)?;
        if is_empty && let State::Closing(_) = self.state {
            return self.drain(reactor);
        }
        self.update_interest(reactor, !is_empty)?;
        Ok(Progress::Same)
    }

    /// Has the kernel break the connection when the peer acknowledges nothing for so long. Over a
    /// shell nobody but the engine's heartbeats can tell.
    pub(crate) fn set_timeout(&self, timeout_ms: Option<u32>) {
        if !self.is_over_shell {
            let _ = net::set_link_options(self.duplex.input(), &times(timeout_ms)); // fails if broken
        }
    }

    fn on_connected(&mut self, reactor: &Reactor) -> Result<(), LinkError> {
        let socket = self.duplex.input();
        net::connect_result(socket).map_err(LinkError::Io)?;
        net::set_link_options(socket, &times(None)).map_err(LinkError::Io)?;
        if let State::Connecting(handshake) = mem::replace(&mut self.state, State::Broken) {
            self.state = State::Proving(handshake);
        }
        self.send_handshake(reactor)
    }

    fn send_handshake(&mut self, reactor: &Reactor) -> Result<(), LinkError> {
        if let State::Proving(handshake) = &mut self.state {
            while let Some(bytes) = handshake.poll_send() {
                self.unsent.extend_from_slice(&bytes);
            }
        }
        let is_empty = self.write_unsent()?;
        self.update_interest(reactor, !is_empty)
    }

    /// Reads once.
    fn receive(&mut self, reactor: &mut Reactor, id: LinkId) -> Result<Progress, LinkError> {
        if let State::Up { channel, inbox } = &mut self.state {
            let outcome = reactor.read_onto(self.duplex.input(), inbox.buffer_mut(), READ_BYTES);
            match outcome.map_err(LinkError::Io)? {
                ReadOutcome::Data(_) => {
                    let is_any = inbox.open_records(channel).map_err(LinkError::Channel)?;
                    // What else prints on a shell's stream is no sign of life.
                    let is_alive = is_any || !self.is_over_shell;
                    if !report_all(reactor, inbox, id)? && is_alive {
                        reactor.report(Input::Alive(id));
                    }
                }
                ReadOutcome::WouldBlock => {}
                ReadOutcome::Eof => return Err(LinkError::Closed),
            }
            return Ok(Progress::Same);
        }
        match reactor.read(self.duplex.input()).map_err(LinkError::Io)? {
            Chunk::Data(bytes) => self.hear(reactor, &bytes),
            Chunk::WouldBlock => Ok(Progress::Same),
            Chunk::Eof if matches!(self.state, State::Draining) => Ok(Progress::Done),
            Chunk::Eof => Err(LinkError::Closed),
        }
    }

    /// Handles what comes before the channel is there, and after it was closed.
    pub(crate) fn hear(&mut self, reactor: &Reactor, bytes: &[u8]) -> Result<Progress, LinkError> {
        let State::Proving(handshake) = &mut self.state else { return Ok(Progress::Same) };
        let heard = handshake.on_bytes(bytes).map_err(LinkError::Channel);
        self.send_handshake(reactor)?;
        heard?;
        Ok(self.proven())
    }

    /// Reports messages that came together with the handshake's last bytes.
    pub(crate) fn report_early(
        &mut self,
        reactor: &mut Reactor,
        id: LinkId,
    ) -> Result<(), LinkError> {
        match &mut self.state {
            State::Up { inbox, .. } => report_all(reactor, inbox, id).map(|_| ()),
            State::Connecting(_)
            | State::Proving(_)
            | State::Draining
            | State::Closing(_)
            | State::Broken => Ok(()),
        }
    }

    fn proven(&mut self) -> Progress {
        let State::Proving(handshake) = &mut self.state else { return Progress::Same };
        let Some(Established { channel, inbox, peer, .. }) = handshake.poll_established() else {
            return Progress::Same;
        };
        self.state = State::Up { channel, inbox };
        Progress::Proven(peer)
    }

    /// Returns whether everything is written.
    fn write_all(&mut self, scratch: &mut Vec<u8>) -> Result<bool, LinkError> {
        while self.write_unsent()? {
            let channel = match &mut self.state {
                State::Up { channel, .. } | State::Closing(channel) => channel,
                State::Connecting(_) | State::Proving(_) | State::Draining | State::Broken => {
                    return Ok(true);
                }
            };
            if self.outbox.is_empty() {
                return Ok(true);
            }
            scratch.clear();
            self.outbox.fill(channel, scratch, SEALED_BYTES).map_err(LinkError::Channel)?;
            let n = write(self.duplex.output(), scratch)?;
            if n < scratch.len() {
                mem::swap(&mut self.unsent, scratch);
                self.sent = n;
            }
        }
        Ok(false)
    }

    /// Returns whether nothing is left of what was sealed before.
    fn write_unsent(&mut self) -> Result<bool, LinkError> {
        while self.sent < self.unsent.len() {
            match write(self.duplex.output(), &self.unsent[self.sent..])? {
                0 => return Ok(false),
                n => self.sent += n,
            }
        }
        (self.unsent, self.sent) = (Vec::new(), 0);
        Ok(true)
    }

    /// All is written: says so, and waits for the peer to close. Closing at once could drop what the
    /// kernel has yet to send, when something that nobody read had come meanwhile. A pipe can do neither,
    /// and loses nothing.
    fn drain(&mut self, reactor: &Reactor) -> Result<Progress, LinkError> {
        if net::shutdown_write(self.duplex.output()).is_err() {
            return Ok(Progress::Done);
        }
        self.state = State::Draining;
        self.update_interest(reactor, false)?;
        Ok(Progress::Same)
    }

    fn update_interest(&mut self, reactor: &Reactor, write: bool) -> Result<(), LinkError> {
        let interest = Interest { read: true, write, news: false };
        self.duplex.wait_for(&reactor.poller, interest).map_err(LinkError::Io)
    }
}

impl LinkError {
    /// Whether it was the peer, the network, or the peer's mistake.
    pub(crate) fn end(&self) -> LinkEnd {
        match self {
            LinkError::Io(error) if is_of_network(error) => LinkEnd::Cut,
            LinkError::Closed | LinkError::Io(_) | LinkError::Unsendable(_) => LinkEnd::Closed,
            LinkError::Channel(_) | LinkError::Frame(_) => LinkEnd::Misbehaved,
        }
    }

    /// What more there is to say for the user than [`LinkError::end`] says: the system's words for
    /// the usual ends do not.
    pub(crate) fn words(&self) -> String {
        match self {
            LinkError::Closed => String::new(),
            LinkError::Io(error) if error.kind() == io::ErrorKind::ConnectionReset => String::new(),
            LinkError::Io(error) if error.kind() == io::ErrorKind::TimedOut => String::new(),
            LinkError::Io(_)
            | LinkError::Channel(_)
            | LinkError::Frame(_)
            | LinkError::Unsendable(_) => self.to_string(),
        }
    }
}

/// Whether the kernel gave a connection up of its own: no peer has closed it.
fn is_of_network(error: &io::Error) -> bool {
    let of_network = [
        io::ErrorKind::TimedOut,
        io::ErrorKind::HostUnreachable,
        io::ErrorKind::NetworkUnreachable,
        io::ErrorKind::NetworkDown,
    ];
    of_network.contains(&error.kind())
}

/// How long an unproven connection may take.
pub(crate) const PROOF_TIMEOUT: Duration = Duration::from_secs(30);

/// When an unproven connection that begins at `now` is given up.
pub(crate) fn proof_deadline(now: Time) -> Time {
    now + PROOF_TIMEOUT
}

/// Returns how many bytes were taken, 0 when there is no room.
fn write(fd: impl AsFd, bytes: &[u8]) -> Result<usize, LinkError> {
    match stream::write(fd, bytes).map_err(LinkError::Io)? {
        WriteOutcome::Data(n) => Ok(n),
        WriteOutcome::WouldBlock => Ok(0),
        WriteOutcome::Closed => Err(LinkError::Closed),
    }
}

/// Returns whether there were any.
fn report_all(reactor: &mut Reactor, inbox: &mut Inbox, id: LinkId) -> Result<bool, LinkError> {
    let mut any = false;
    while let Some(message) = inbox.next_message().map_err(LinkError::Frame)? {
        any = true;
        report_message(reactor, id, message);
    }
    Ok(any)
}

fn report_message(reactor: &mut Reactor, link: LinkId, message: Message) {
    reactor.report(Input::Message { link, message });
}

fn times(timeout_ms: Option<u32>) -> LinkTimes {
    let unacknowledged_max = Duration::from_millis(u64::from(timeout_ms.unwrap_or(0)));
    LinkTimes {
        keepalive_idle: PROBE,
        keepalive_interval: PROBE,
        keepalive_probes: PROBES_MAX,
        unacknowledged_max,
    }
}
