//! Links of the routing tree: agents that listen, and those that look for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use engine::Input;
use model::AgentId;
use wire::Contact;

use super::shells::CONNECT_TIMEOUT;
use super::{Happening, World};
use crate::process::ProcessId;

/// The port of every agent.
const PORT: u16 = 1_024;

impl World<'_> {
    /// An engine's driver listens. The address is the process's own: a restarted agent has another.
    pub(super) fn listen(&mut self, id: ProcessId) {
        let host = u32::try_from(id.0).unwrap_or(u32::MAX);
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(host)), PORT);
        let can_listen = !self.session.deaf.contains(self.processes[id.0].agent.0);
        let contact = Contact::from(if can_listen { vec![address] } else { Vec::new() });
        self.tell_soon(id, Input::Listening(contact));
    }

    /// An engine's driver looks for an agent.
    pub(super) fn seek(&mut self, id: ProcessId, peer: AgentId, contact: Contact) {
        let found = Vec::from(contact).first().and_then(|address| match address.ip() {
            IpAddr::V4(ip) => usize::try_from(ip.to_bits()).ok().map(ProcessId),
            IpAddr::V6(_) => None,
        });
        match found.filter(|found| self.processes.get(found.0).is_some_and(|it| it.agent == peer)) {
            Some(found) => {
                let latency = self.machines.link_latency(self.processes[id.0].agent);
                self.after(latency, Happening::RouteCall(id, found));
            }
            None => self.tell_soon(id, Input::NotConnected(peer)),
        }
    }

    /// A call is there. Who hangs answers later; who is gone or cut off does not.
    pub(super) fn route_call(&mut self, from: ProcessId, to: ProcessId) {
        let (caller, called) = (self.processes[from.0].agent, self.processes[to.0].agent);
        if self.apart_until(caller, called).is_some() {
            let failed = Input::NotConnected(called);
            return self.after(CONNECT_TIMEOUT, Happening::Input(from, failed));
        }
        if !self.processes[to.0].is_running() {
            return self.tell(from, Input::NotConnected(called));
        }
        if let Some(until) = self.processes[to.0].paused_until(self.now) {
            return self.queue.push(until, Happening::RouteCall(from, to));
        }
        let handshake_us = self.machines.cpu().handshake_us;
        let done = self.work(to, self.now, handshake_us);
        let done = self.work(from, done, handshake_us);
        self.queue.push(done, Happening::RouteConnected(from, to));
    }

    pub(super) fn route_connected(&mut self, from: ProcessId, to: ProcessId) {
        let called = self.processes[to.0].agent;
        if !self.processes[from.0].is_running() {
            return;
        }
        if self.processes[to.0].is_running() {
            self.connect(to, from, true);
        } else {
            self.tell(from, Input::NotConnected(called));
        }
    }
}
