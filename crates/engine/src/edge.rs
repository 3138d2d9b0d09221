//! Messages between neighbours of the routing tree, and the ways that they take.
//!
//! An edge goes over the link of spawn parent and child where they are neighbours in both trees, else
//! over a link of its own, which the child opens. Where that cannot be had, or breaks while both
//! ends live, it goes along the spawn tree ([`Message::Forward`]), which is always there: whoever is cut
//! off from that is lost, and so is no neighbour. To change the way, each end tells the other how
//! much it has received, and what is missing is sent again.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use model::AgentId;
use proto::{Backlog, Event, Grants};
use wire::{Class, Forward, Message, Received};

use crate::child::Child;
use crate::engine::Engine;
use crate::{Effect, LinkId};

/// An edge of the routing tree, as one of its ends knows it.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) way: Way,
    backlog: Backlog<Message>,
    /// Output that the child at its other end may send.
    pub(crate) grants: Grants,
}

/// The way that an edge goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// It is being sought.
    Unsettled,
    /// Over the link between spawn parent and spawn child, which breaks only when one of them is lost.
    Spawn,
    /// Over its own link.
    Own(LinkId),
    /// Along the spawn tree, once the other end has said so too.
    Turning,
    /// Along the spawn tree.
    Tree,
}

impl Edge {
    pub(crate) fn new(way: Way) -> Edge {
        Edge { way, backlog: Backlog::default(), grants: Grants::new(0) }
    }

    pub(crate) fn is_settled(&self) -> bool {
        match self.way {
            Way::Spawn | Way::Own(_) | Way::Tree => true,
            Way::Unsettled | Way::Turning => false,
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
    /// A neighbour of the spawn tree, or it is about the edge itself.
    Session,
}

/// What travels along the routing tree is about a job; about life and death, the spawn tree tells.
pub(crate) fn traffic(message: &Message) -> Traffic {
    match message {
        Message::Launch(_)
        | Message::Release { .. }
        | Message::OutputCredit(_)
        | Message::Input { .. }
        | Message::InputEnd(_)
        | Message::GroupRelease { .. }
        | Message::GroupAwaited(..)
        | Message::NameReply(..)
        | Message::Signal(..) => Traffic::Down,
        Message::JobFault(..)
        | Message::Warning(..)
        | Message::NameRequest(..)
        | Message::Enter { .. }
        | Message::GroupEnter { .. }
        | Message::Output(_)
        | Message::InputCredit(..)
        | Message::InputClosed(_)
        | Message::Records(..)
        | Message::Done { .. } => Traffic::Up,
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

    /// Sends a message about the job to everybody who hears of it from this member.
    pub(crate) fn tell_below(&mut self, message: Message) {
        if self.place.is_some() {
            self.tell_some(self.job_children(), message);
        } else {
            self.tell_children(message);
        }
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
            self.forward(AgentId::HEAD, &message);
        }
    }

    /// Sends a message to neighbours of the routing tree.
    pub(crate) fn send_to(&mut self, peers: impl IntoIterator<Item = AgentId>, message: Message) {
        let mut links = Vec::new();
        for peer in peers {
            let Some(edge) = self.edge_mut(peer) else { continue };
            match edge.way {
                Way::Spawn => links.extend(self.spawn_link(peer)),
                Way::Own(link) => {
                    edge.backlog.keep(Class::of(&message) as usize, message.clone());
                    links.push(link);
                }
                Way::Unsettled | Way::Turning => {
                    edge.backlog.keep(Class::of(&message) as usize, message.clone());
                }
                Way::Tree => self.forward(peer, &message),
            }
        }
        if !links.is_empty() {
            self.send(links, message);
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
        let Some(edge) = self.edge_mut(peer) else {
            // What one that is gone has sent before counts no more.
            let is_late = self.place.is_some() && traffic(&message) != Traffic::Session;
            return (!is_late).then_some(message);
        };
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

    fn on_job_message(&mut self, peer: AgentId, message: Message) {
        let Some(place) = &self.place else { return };
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

    /// Handles that a link is down: the edge that went over it, if there is one, takes another way.
    pub(crate) fn on_edge_link_down(&mut self, link: LinkId, peer: AgentId) {
        if let Some(routing) = &mut self.routing
            && routing.early.get(&peer) == Some(&link)
        {
            routing.early.remove(&peer);
        }
        if self.edge_mut(peer).is_some_and(|edge| edge.way == Way::Own(link)) {
            self.on_edge_broken(peer);
        }
    }

    fn on_edge_broken(&mut self, peer: AgentId) {
        let is_needed = self.ending.is_none() && self.is_edge_needed(peer);
        self.turn(peer, is_needed);
    }

    /// Leaves the way that an edge has had, and tells its other end if that is to do so too.
    fn turn(&mut self, peer: AgentId, tells: bool) {
        let Some(edge) = self.edge_mut(peer) else { return };
        edge.way = Way::Turning;
        if tells {
            let received = edge.backlog.received();
            self.forward(peer, &Message::Attach(received));
        }
    }

    /// Whether something may still be said on an edge.
    fn is_edge_needed(&self, peer: AgentId) -> bool {
        let is_parent = self.place.as_ref().is_some_and(|place| place.parent_id == peer);
        self.job
            .as_ref()
            .is_some_and(|job| if is_parent { !job.has_reported() } else { job.has_child(peer) })
    }

    /// Takes the spawn tree where no link of its own can be had.
    pub(crate) fn take_tree(&mut self, peer: AgentId) {
        if self.edge_mut(peer).is_some_and(|edge| edge.way == Way::Unsettled) {
            self.turn(peer, true);
        }
    }

    /// Handles that a neighbour takes the spawn tree from here on.
    pub(crate) fn on_tree_taken(&mut self, peer: AgentId, received: Received) {
        if self.place.is_none() {
            if let Some(routing) = &mut self.routing {
                routing.early_by_tree.insert(peer);
            }
            return;
        }
        let Some(edge) = self.edge_mut(peer) else { return };
        let (way, own) = (edge.way, edge.backlog.received());
        match way {
            Way::Spawn | Way::Tree => return,
            Way::Own(_) | Way::Unsettled | Way::Turning => edge.way = Way::Tree,
        }
        edge.backlog.on_told(received);
        let missing: Vec<Message> = edge.backlog.take().collect();
        if let Way::Own(link) = way {
            self.close_own(link);
        }
        if way != Way::Turning {
            self.forward(peer, &Message::Attach(own));
        }
        for message in missing {
            self.forward(peer, &message);
        }
        self.check_routed();
    }

    /// Closes the link of an edge.
    pub(crate) fn close_own(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.effects.push_back(Effect::Close(link));
    }

    /// Sends a message along the spawn tree. One that is too long for it is too long for any link.
    pub(crate) fn forward(&mut self, to: AgentId, message: &Message) {
        if let Ok(forward) = Forward::new(self.id, to, message) {
            self.pass_on(Message::Forward(forward), to, true);
        }
    }

    /// Handles a message on its way along the spawn tree, from above or from below. What is for one who
    /// cannot be reached is for one who is lost.
    pub(crate) fn on_forward(&mut self, forward: Box<Forward>, is_from_below: bool) {
        if forward.to != self.id {
            let to = forward.to;
            return self.pass_on(Message::Forward(forward), to, is_from_below);
        }
        let from = forward.from;
        match forward.message() {
            Ok(Message::Attach(received)) => self.on_tree_taken(from, received),
            Ok(message) if traffic(&message) == Traffic::Session => {
                self.edge_misbehaved(
                    from,
                    "it sent along the routing tree what does not belong there",
                );
            }
            Ok(message) if self.edge_mut(from).is_some() => self.on_job_message(from, message),
            Ok(message) => self.on_orphan_message(from, message),
            Err(error) => self.edge_misbehaved(from, &error.to_string()),
        }
    }

    /// Head: handles what one says that has lost its routing parent.
    fn on_orphan_message(&mut self, from: AgentId, message: Message) {
        if let Message::Done { job: _, statuses, .. } = message {
            self.govern(|head, orders| head.on_orphan_done(from, &statuses, orders));
        } else if self.is_head() && matches!(message, Message::JobFault(..) | Message::Records(..))
        {
            self.up(message);
        }
    }

    fn pass_on(&mut self, message: Message, to: AgentId, may_go_up: bool) {
        match self.spawn_child_towards(to) {
            Some(Some(link)) => self.send(vec![link], message),
            Some(None) => {}
            None if may_go_up && !self.is_head() => self.up(message),
            None => {}
        }
    }

    /// The link of the spawn child that is this agent or has it below, and `None` in it while that child
    /// is being lost. `None` if nobody below is it.
    pub(crate) fn spawn_child_towards(&self, agent: AgentId) -> Option<Option<LinkId>> {
        let child = self.spawn_child(agent)?;
        Some(child.link.filter(|_| child.is_up()))
    }

    /// The spawn child that this agent is, or is below.
    fn spawn_child(&self, agent: AgentId) -> Option<&Child> {
        let below = self.children.range(..=agent).next_back().map(|(_, child)| child);
        let owner = |child: &&Child| child.agent == agent || child.below.contains(agent.0);
        below.filter(owner).or_else(|| self.children.values().find(owner))
    }
}
