//! Messages between neighbours of the routing tree, and the ways that they take.
//!
//! An edge goes over the link of spawn parent and child where they are neighbours in both trees, else
//! over a link of its own, which the child opens. Where that cannot be had, or breaks while both
//! ends live, it goes around it (`detour.rs`).

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use model::{AgentId, JobId, Rank};
use proto::{Backlog, Event, Grants};
use wire::{Class, Message};

use crate::child::Child;
use crate::engine::Engine;
use crate::job::{Job, Reader, is_exchange};
use crate::{Effect, LinkId};

/// An edge of the routing tree, as one of its ends knows it.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) way: Way,
    pub(crate) backlog: Backlog<Message>,
    /// Output that the child at its other end may send.
    pub(crate) grants: Grants,
}

/// The way that an edge goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// It is the child's to find.
    Unsettled,
    /// Over the link between spawn parent and spawn child, which breaks only when one of them is lost.
    Spawn,
    /// Over its own link.
    Own(LinkId),
    /// Around that, once the parent has heard so.
    Turning(Detour),
    /// Around that.
    Around(Detour),
}

/// A way around an edge's own link: by the redundant link between the edge's child and this member, or,
/// with none, along the spawn tree.
pub(crate) type Detour = Option<AgentId>;

impl Edge {
    pub(crate) fn new(way: Way) -> Edge {
        Edge { way, backlog: Backlog::default(), grants: Grants::new(0) }
    }

    /// Keeps a message that is sent, or will be, unless its way can't break while both ends live.
    fn keep(&mut self, message: &Message) {
        match self.way {
            Way::Spawn | Way::Around(None) => {}
            Way::Unsettled | Way::Own(_) | Way::Turning(_) | Way::Around(Some(_)) => {
                self.backlog.keep(Class::of(message) as usize, message.clone());
            }
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        match self.way {
            Way::Spawn | Way::Own(_) | Way::Around(_) => true,
            Way::Unsettled | Way::Turning(_) => false,
        }
    }
}

/// Who may send a message, once a session routes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Traffic {
    /// A routing parent.
    Down,
    /// A routing child.
    Up,
    /// Either of them: it is on its way from one member to another.
    Either,
    /// A neighbour of the spawn tree, or it is about the edge itself.
    Session,
}

/// What travels along the routing tree is about a job; about life and death, the spawn tree tells.
pub(crate) fn traffic(message: &Message) -> Traffic {
    match message {
        Message::Launch(_)
        | Message::Release { .. }
        | Message::Held(..)
        | Message::Fetched(..)
        | Message::ReleasePart(..)
        | Message::OutputCredit(_)
        | Message::Input { .. }
        | Message::InputEnd(_)
        | Message::GroupRelease { .. }
        | Message::GroupAwaited(..)
        | Message::NameReply(..)
        | Message::Spawn(_)
        | Message::SpawnReply(..)
        | Message::RingPlace(..)
        | Message::AllgatherRelease(..)
        | Message::Signal(..) => Traffic::Down,
        Message::JobFault(..)
        | Message::Warning(..)
        | Message::NameRequest(..)
        | Message::SpawnRequest(..)
        | Message::Reached(..)
        | Message::RingEnter(..)
        | Message::AllgatherEnter(..)
        | Message::Enter { .. }
        | Message::EnterPart(..)
        | Message::Fetch(..)
        | Message::GroupEnter { .. }
        | Message::Output(_)
        | Message::InputCredit(..)
        | Message::InputClosed(_)
        | Message::Records(..)
        | Message::Done { .. } => Traffic::Up,
        Message::Forward(forward) if forward.via.is_some() => Traffic::Either,
        Message::Hello(_)
        | Message::Welcome(_)
        | Message::Job(_)
        | Message::Joined(_)
        | Message::StartFailed(_)
        | Message::JoinDeadline
        | Message::Stop { .. }
        | Message::Lost(_)
        | Message::Shutdown
        | Message::Bye(_)
        | Message::Ping { .. }
        | Message::Suspend(_)
        | Message::MoreWork(_)
        | Message::Work(_)
        | Message::Marks(_)
        | Message::Contacts(_)
        | Message::Resolve(_)
        | Message::Route(_)
        | Message::Attach(_)
        | Message::Received(_)
        | Message::Routed
        | Message::Forward(_)
        | Message::Gone(_) => Traffic::Session,
    }
}

impl Engine {
    /// Sends a message over links of its own, and counts it.
    pub(crate) fn send(&mut self, links: Vec<LinkId>, message: Message) {
        let copies = links.len() as u64;
        let bytes = copies * wire::encoded_len(&message) as u64;
        let phase = self.phase as usize;
        self.stats.messages[phase] += copies;
        self.stats.bytes[phase] += bytes;
        if is_exchange(&message) {
            self.stats.exchanged.add(copies, bytes);
        }
        self.effects.push_back(Effect::Send { links, message });
    }

    /// Those who hear of the job from this member.
    pub(crate) fn job_children(&self) -> BTreeSet<AgentId> {
        match &self.place {
            Some(place) => place.children.keys().copied().collect(),
            None => {
                let there = self.children.values().filter(|child| !child.is_gone());
                there.map(|child| child.agent).collect()
            }
        }
    }

    /// The one of them that this agent is, or is below.
    pub(crate) fn job_child_towards(&self, agent: AgentId) -> Option<AgentId> {
        match &self.place {
            Some(place) => place.tree.child_towards(self.id, agent),
            None => self.spawn_child(agent).map(|child| child.agent),
        }
    }

    /// The one of them below which a task runs, or that runs it.
    pub(crate) fn job_child_with(&self, id: JobId, rank: Rank) -> Option<AgentId> {
        let node = self.jobs.get(id)?.spec.map.node_of(rank)?;
        self.job_child_towards(node.agent())
    }

    /// Whether messages about the job reach a child.
    pub(crate) fn is_job_child_there(&self, child: AgentId) -> bool {
        match &self.place {
            Some(place) => place
                .children
                .get(&child)
                .is_some_and(|edge| edge.way != Way::Spawn || self.spawn_link(child).is_some()),
            None => self.children.get(&child).is_some_and(Child::is_up),
        }
    }

    /// Handles what a child of the tree says that the job's messages take.
    pub(crate) fn on_job_message_from_below(&mut self, agent: AgentId, message: Message) {
        if let Message::JobFault(job, fault) = message {
            self.fault(job, *fault);
        } else if let Message::Warning(job, warning) = message {
            self.warn(job, warning);
        } else if let Message::NameRequest(..) | Message::SpawnRequest(..) = message {
            self.up_job(message);
        } else if let Message::Reached(job, milestone) = message {
            self.on_child_reached(job, agent, milestone);
        } else if let Message::RingEnter(job, ring, stretch) = message {
            self.on_child_ring(job, agent, ring, *stretch);
        } else if let Message::AllgatherEnter(job, allgather, values) = message {
            self.on_child_allgather(job, agent, allgather, &values);
        } else if let Message::Enter { job, fence, payload } = message {
            self.on_child_enter(job, agent, fence, payload);
        } else if let Message::EnterPart(job, part) = message {
            self.on_child_part(job, agent, part);
        } else if let Message::Fetch(job, name) = message {
            self.on_child_fetch(job, agent, name);
        } else if let Message::GroupEnter { job, group, payload } = message {
            self.on_group_enter(job, agent, &group, payload);
        } else if let Message::Output(output) = message {
            self.on_child_output(agent, output);
        } else if let Message::Done { job, statuses, by_order } = message {
            if let Some(job) = self.jobs.get_mut(job) {
                job.note_order(by_order);
            }
            self.on_child_done(job, agent, statuses);
        } else if let Message::Records(job, records) = message {
            self.keep_records(job, records);
        } else if let Message::InputCredit(job, bytes) = message {
            self.on_input_taken(job, Reader::Child(agent), bytes);
        } else if let Message::InputClosed(job) = message {
            self.on_input_closed(job, Reader::Child(agent));
        }
    }

    /// Sends a message about the job to everybody who hears of it from this member.
    pub(crate) fn tell_below(&mut self, message: Message) {
        if self.place.is_some() {
            self.tell_some(self.job_children(), message);
        } else {
            let members = self.children.values().filter(|child| !child.is_late);
            let members: Vec<AgentId> = members.map(|child| child.agent).collect();
            self.tell_some(members, message);
        }
    }

    /// Sends a message about a job to those below who take part in it.
    pub(crate) fn tell_job(&mut self, id: JobId, message: Message) {
        if id == JobId::FIRST {
            return self.tell_below(message);
        }
        let children = self.jobs.get(id).map(Job::children).unwrap_or_default();
        self.tell_some(children, message);
    }

    /// Sends a message about the job to some of them. One that is being lost has missed orders that
    /// came before, and gets none.
    pub(crate) fn tell_some(
        &mut self,
        children: impl IntoIterator<Item = AgentId>,
        message: Message,
    ) {
        if self.place.is_some() {
            return self.send_to(children, message);
        }
        let children = children.into_iter().filter_map(|id| self.children.get(&id));
        let links: Vec<LinkId> =
            children.filter(|child| child.is_up()).filter_map(|child| child.link).collect();
        if !links.is_empty() {
            self.send(links, message);
        }
    }

    /// Gives up the link of a child that broke the job's protocol.
    pub(crate) fn job_child_misbehaved(&mut self, agent: AgentId, words: &str) {
        if self.children.contains_key(&agent) {
            self.child_misbehaved(agent, words);
        } else {
            self.edge_misbehaved(agent, words);
        }
    }

    /// Sends a message about the job towards the head.
    pub(crate) fn up_job(&mut self, message: Message) {
        match &self.place {
            None => self.up(message),
            Some(_) if self.is_head() => self.up(message),
            Some(place) if place.is_orphan(self.id) => self.up_as_orphan(message),
            Some(place) => {
                let parent = place.parent_id;
                self.send_to([parent], message);
            }
        }
    }

    /// Who passed messages on is gone, so the job is being ended: the head must know when nothing runs
    /// here any more. For the rest it does not wait, and who is told of in the loss may miss it.
    fn up_as_orphan(&mut self, message: Message) {
        if matches!(message, Message::Done { .. } | Message::JobFault(..) | Message::Records(..)) {
            self.forward(AgentId::HEAD, None, &message);
        }
    }

    /// Sends a message to neighbours of the routing tree.
    pub(crate) fn send_to(&mut self, peers: impl IntoIterator<Item = AgentId>, message: Message) {
        let (mut links, mut around) = (Vec::new(), Vec::new());
        for peer in peers {
            let Some(edge) = self.edge_mut(peer) else { continue };
            edge.keep(&message);
            match edge.way {
                Way::Unsettled | Way::Turning(_) => {}
                Way::Spawn => links.extend(self.spawn_link(peer)),
                Way::Own(link) => links.push(link),
                Way::Around(via) => around.push((peer, via)),
            }
        }
        // What goes around some links may cross others, and is kept behind what has gone there.
        if !links.is_empty() {
            self.send(links, message.clone());
        }
        for (peer, via) in around {
            self.forward(peer, via, &message);
        }
    }

    pub(crate) fn edge_mut(&mut self, peer: AgentId) -> Option<&mut Edge> {
        let place = self.place.as_mut()?;
        if place.parent_id == peer && place.parent.is_some() {
            return place.parent.as_mut();
        }
        place.children.get_mut(&peer)
    }

    /// Handles a message about the job that came over a link, if the session routes: what it is about
    /// is a matter between neighbours of that tree. Returns it if it is something else.
    pub(crate) fn on_edge_link(
        &mut self,
        link: LinkId,
        peer: AgentId,
        message: Message,
    ) -> Option<Message> {
        let Some(edge) = self.edge_mut(peer) else { return self.on_no_edge(message) };
        if let Message::Received(received) = message {
            edge.backlog.on_told(received);
            return None;
        }
        if traffic(&message) == Traffic::Session {
            return Some(message);
        }
        if edge.way == Way::Own(link) {
            let (class, bytes) = (Class::of(&message) as usize, wire::encoded_len(&message));
            if let Some(received) = edge.backlog.on_received(class, bytes) {
                self.send(vec![link], Message::Received(received));
            }
        }
        self.on_job_message(peer, message);
        None
    }

    /// Handles what came from one with whom there is no edge: a redundant link carries what goes around
    /// another. What one that is gone has sent before counts no more.
    fn on_no_edge(&mut self, message: Message) -> Option<Message> {
        if self.place.is_none() || traffic(&message) == Traffic::Session {
            return Some(message);
        }
        if let Message::Forward(forward) = message
            && let Some((from, message)) = self.take_or_relay(forward)
        {
            self.on_job_message(from, message);
        }
        None
    }

    pub(crate) fn on_job_message(&mut self, mut peer: AgentId, mut message: Message) {
        // What has come around one link may be what goes around another.
        while let Message::Forward(forward) = message {
            let Some(taken) = self.take_or_relay(forward) else { return };
            (peer, message) = taken;
        }
        let Some(place) = self.place.as_ref().filter(|place| place.has_neighbour(peer)) else {
            return;
        };
        let expected = if place.parent_id == peer { Traffic::Down } else { Traffic::Up };
        if traffic(&message) != expected {
            self.edge_misbehaved(peer, "it sent the wrong way along the routing tree");
        } else if let Message::OutputCredit(bytes) = message {
            self.credit.on_grant(bytes);
            self.send_output();
        } else if expected == Traffic::Down {
            self.down(message);
        } else {
            self.on_job_message_from_below(peer, message);
        }
    }

    /// Gives up the link of a neighbour that broke the protocol. Its spawn parent looks after it.
    pub(crate) fn edge_misbehaved(&mut self, agent: AgentId, words: &str) {
        self.events.push_back(Event::PeerMisbehaved { agent, words: words.into() });
        if let Some(&Edge { way: Way::Own(link), .. }) = self.edge_mut(agent).as_deref() {
            self.close_own(link);
            self.on_edge_broken(agent);
        }
    }

    /// Closes the link of an edge.
    pub(crate) fn close_own(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.effects.push_back(Effect::Close(link));
    }
}
