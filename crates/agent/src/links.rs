//! All connections: to children that we let in, and to the parent that let us in.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use bootstrap::Request;
use engine::{Input, LinkId};
use model::{AgentId, Time};
use os::net::{self, ListenError, Listener};
use os::stream;
use os::{Ready, machine};
use wire::{Frame, Handshake, Message};

use crate::door::Door;
use crate::duplex::Duplex;
use crate::helper::ShellStreams;
use crate::identity::{self, Identity};
use crate::link::{self, Link, LinkError, Progress};
use crate::parent::{Approach, Way};
use crate::reactor::{Chunk, Reactor, Watched};
use crate::source::Source;

/// Connections that have proven nothing: strangers may not use up our descriptors.
const UNPROVEN_MAX: usize = 1024;

/// All connections of this process.
#[derive(Debug)]
pub(crate) struct Links {
    identity: Identity,
    door: Option<Door>,
    links: BTreeMap<LinkId, Link>,
    next_id: u64,
    /// Links with something new to send.
    dirty: Vec<LinkId>,
    /// When each accepted connection that has proven nothing is given up; in order of time.
    unproven: Vec<(Time, LinkId)>,
    /// The search for the parent, until it is found; later that for the one in the routing tree.
    approach: Option<Approach>,
    /// The streams of the shell that started us: the boot channel, whose end is the shell's. `None`
    /// where there are none, and once they are the link.
    boot: Option<Watched>,
    /// Where records are sealed; shared, since most links are idle.
    scratch: Vec<u8>,
}

impl Links {
    /// No connections yet.
    pub(crate) fn new(identity: Identity) -> Links {
        Links {
            identity,
            door: None,
            links: BTreeMap::new(),
            next_id: 0,
            dirty: Vec::new(),
            unproven: Vec::new(),
            approach: None,
            boot: None,
            scratch: Vec::new(),
        }
    }

    /// Who we are.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where children reach us: every address of the machine. Listens from the first call on.
    pub(crate) fn addresses(&mut self, reactor: &Reactor) -> Result<Vec<SocketAddr>, ListenError> {
        let port = match &self.door {
            Some(door) => door.port(),
            None => self.listen(reactor)?,
        };
        let addresses = machine::interface_addresses().unwrap_or_default();
        Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// Looks for the parent, and reports the end of the boot channel, if there is one.
    pub(crate) fn approach(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        approach: Approach,
        boot: Option<Watched>,
    ) {
        (self.approach, self.boot) = (Some(approach), boot);
        self.continue_approach(now, reactor);
    }

    /// Looks for the parent in the routing tree. The other is found by then.
    pub(crate) fn seek(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        parent: AgentId,
        addresses: Vec<SocketAddr>,
    ) {
        self.approach = Some(Approach::of_routing_parent(now, parent, addresses));
        self.continue_approach(now, reactor);
    }

    /// Listens, and reports where.
    pub(crate) fn report_addresses(&mut self, reactor: &mut Reactor) {
        // Without an address nobody calls, and what was to come by a link takes the spawn tree.
        let addresses = self.addresses(reactor).unwrap_or_default();
        reactor.report(Input::Listening(addresses.into()));
    }

    /// Takes a shell's streams as a link that a child of ours wants. Should that fail, the start
    /// ends at its deadline.
    pub(crate) fn adopt(&mut self, reactor: &mut Reactor, streams: ShellStreams) {
        let id = self.new_id();
        let Ok(handshake) = self.responder() else { return };
        let duplex = Duplex::socket(streams.fd, id);
        let Ok(mut link) = Link::over_shell(reactor, duplex, handshake, Vec::new()) else { return };
        let heard = link.hear(reactor, &streams.begin);
        self.links.insert(id, link);
        self.settle(reactor, id, heard);
    }

    /// Handles what comes down the boot channel after the boot line. It means nothing; its end does.
    pub(crate) fn on_boot(&mut self, reactor: &mut Reactor) {
        let Some(boot) = &self.boot else { return };
        match reactor.read(boot) {
            Ok(Chunk::Data(_) | Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => {
                self.boot = None;
                reactor.report(Input::ShellGone);
            }
        }
    }

    /// Queues a message on some links, encoded once. [`Links::flush`] sends it.
    pub(crate) fn send(&mut self, reactor: &mut Reactor, links: &[LinkId], message: &Message) {
        let frame = match Frame::new(message) {
            Ok(frame) => frame,
            Err(error) => {
                for id in links {
                    self.down(reactor, *id, &LinkError::Unsendable(error.clone()));
                }
                return;
            }
        };
        for id in links {
            if let Some(link) = self.links.get_mut(id) {
                link.push(frame.clone());
                self.dirty.push(*id);
            }
        }
    }

    /// Has the kernel close a link whose peer acknowledges nothing for so long.
    pub(crate) fn set_timeout(&mut self, id: LinkId, timeout_ms: Option<u32>) {
        if let Some(link) = self.links.get(&id) {
            link.set_timeout(timeout_ms);
        }
    }

    /// Closes a link behind what is queued.
    pub(crate) fn close(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.close();
            self.dirty.push(id);
        }
    }

    /// Closes all links behind what is queued.
    pub(crate) fn close_all(&mut self) {
        let ids: Vec<LinkId> = self.links.keys().copied().collect();
        for id in ids {
            self.close(id);
        }
    }

    /// Whether no link is left that the engine knew of.
    pub(crate) fn is_quiet(&self) -> bool {
        self.links.values().all(Link::is_unproven)
    }

    /// Writes what was queued in this turn.
    pub(crate) fn flush(&mut self, reactor: &mut Reactor) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for id in dirty.drain(..) {
            if let Some(link) = self.links.get_mut(&id) {
                let result = link.flush(reactor, &mut self.scratch);
                self.settle(reactor, id, result);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Handles a socket that is ready.
    pub(crate) fn on_ready(&mut self, now: Time, reactor: &mut Reactor, id: LinkId, ready: Ready) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let result = link.on_ready(reactor, id, ready);
        if let Some(approach) = self.approach.as_mut().filter(|_| link.is_connected()) {
            approach.on_answered();
        }
        self.settle(reactor, id, result);
        self.continue_approach(now, reactor);
    }

    /// Takes connections that wait.
    pub(crate) fn on_listener(&mut self, now: Time, reactor: &mut Reactor) {
        let Some(door) = &mut self.door else { return };
        for fd in door.accept(now, reactor) {
            // What cannot even be set up is not worth a word: the peer tries again.
            let _ = self.accept(now, reactor, fd);
        }
    }

    /// When to call [`Links::on_time`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let unproven = self.unproven.first().map(|(at, _)| *at);
        let approach = self.approach.as_ref().and_then(Approach::poll_timeout);
        let door = self.door.as_ref().and_then(Door::poll_timeout);
        [unproven, approach, door].into_iter().flatten().min()
    }

    /// Handles the passing of time.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &mut Reactor) {
        while let Some(&(at, id)) = self.unproven.first()
            && at <= now
        {
            self.unproven.remove(0);
            if self.links.get(&id).is_some_and(Link::is_unproven) {
                self.links.remove(&id);
            }
        }
        if let Some(door) = &mut self.door {
            door.on_time(now, reactor);
        }
        self.continue_approach(now, reactor);
    }

    fn listen(&mut self, reactor: &Reactor) -> Result<u16, ListenError> {
        let listener = Listener::on_any_address(0)?;
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, listener.port()));
        let door = Door::open(reactor, listener, Source::Listener)
            .map_err(|source| ListenError { address, source })?;
        Ok(self.door.insert(door).port())
    }

    fn accept(&mut self, now: Time, reactor: &Reactor, fd: std::os::fd::OwnedFd) -> io::Result<()> {
        self.unproven.retain(|(_, id)| self.links.get(id).is_some_and(Link::is_unproven));
        if self.unproven.len() >= UNPROVEN_MAX {
            let (_, oldest) = self.unproven.remove(0);
            self.links.remove(&oldest);
        }
        let id = self.new_id();
        let handshake = self.responder()?;
        self.links.insert(id, Link::accepted(reactor, id, fd, handshake)?);
        self.unproven.push((link::proof_deadline(now), id));
        Ok(())
    }

    fn responder(&self) -> io::Result<Handshake> {
        let (expected, ephemeral) = (self.identity.expected(), identity::ephemeral()?);
        Ok(Handshake::responder(&self.identity.secret, expected, ephemeral))
    }

    fn new_id(&mut self) -> LinkId {
        self.next_id += 1;
        LinkId(self.next_id)
    }

    /// Draws the consequences of what a link has just done.
    fn settle(&mut self, reactor: &mut Reactor, id: LinkId, result: Result<Progress, LinkError>) {
        match result {
            Ok(Progress::Same) => {}
            Ok(Progress::Done) => {
                self.links.remove(&id);
            }
            Ok(Progress::Proven(peer)) => self.up(reactor, id, peer),
            Err(error) => self.down(reactor, id, &error),
        }
    }

    fn up(&mut self, reactor: &mut Reactor, id: LinkId, peer: AgentId) {
        if let Some(approach) = self.approach.take_if(|approach| approach.has(id)) {
            for other in approach.others(id) {
                self.links.remove(&other);
            }
        }
        let over_shell = self.links.get(&id).is_some_and(Link::is_over_shell);
        reactor.report(Input::LinkUp { link: id, peer, over_shell });
        if let Some(link) = self.links.get_mut(&id) {
            let result = link.report_early(reactor, id).map(|()| Progress::Same);
            self.settle(reactor, id, result);
        }
    }

    fn down(&mut self, reactor: &mut Reactor, id: LinkId, error: &LinkError) {
        let Some(link) = self.links.remove(&id) else { return };
        if link.is_up() {
            let (end, words) = (error.end(), error.words());
            reactor.report(Input::LinkDown { link: id, end, words });
        } else if let Some(approach) = &mut self.approach {
            approach.on_failed(id, error);
        }
    }

    fn continue_approach(&mut self, now: Time, reactor: &mut Reactor) {
        while let Some(way) = self.approach.as_mut().and_then(|it| it.next_way(now)) {
            let id = self.new_id();
            let begun = match way {
                Way::Address(address) => self.connect(reactor, id, address),
                Way::Shell => self.use_boot_channel(reactor, id),
            };
            let Some(approach) = &mut self.approach else { return };
            match begun {
                Ok(link) => {
                    self.links.insert(id, link);
                    approach.on_begun(id, way);
                }
                Err(error) => approach.on_not_begun(way, &error),
            }
        }
        if let Some(failed) = self.approach.take_if(|it| it.has_failed()) {
            reactor.report(failed.into_failure());
        }
    }

    fn connect(
        &self,
        reactor: &Reactor,
        id: LinkId,
        address: SocketAddr,
    ) -> Result<Link, LinkError> {
        let begin = || Link::connecting(reactor, id, net::connect(address)?, self.initiator()?);
        begin().map_err(LinkError::Io)
    }

    /// Makes the streams of the shell that started us the link, in the place of all other ways.
    fn use_boot_channel(&mut self, reactor: &Reactor, id: LinkId) -> Result<Link, LinkError> {
        for given_up in self.approach.as_mut().map(Approach::give_up).unwrap_or_default() {
            self.links.remove(&given_up);
        }
        let duplex = self.boot_duplex(reactor, id).map_err(LinkError::Io)?;
        let handshake = self.initiator().map_err(LinkError::Io)?;
        Link::over_shell(reactor, duplex, handshake, Request::Link.line())
    }

    fn boot_duplex(&mut self, reactor: &Reactor, id: LinkId) -> io::Result<Duplex> {
        let boot = self.boot.take().ok_or(io::ErrorKind::NotFound)?;
        let input = boot.into_fd(&reactor.poller)?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        stream::set_nonblocking(&input)?;
        stream::set_nonblocking(&output)?;
        Ok(Duplex::streams(input, output, id))
    }

    fn initiator(&self) -> io::Result<Handshake> {
        let Some(approach) = &self.approach else { return Err(io::ErrorKind::NotFound.into()) };
        let preamble = self.identity.preamble(approach.parent(), approach.attempt());
        Ok(Handshake::initiator(&self.identity.secret, preamble, identity::ephemeral()?))
    }
}
