//! Ways around an edge of the routing tree that has no link, or whose link breaks while both ends live.
//!
//! With `--redundancy`, members hold redundant links ([`RouteTree::redundant`]), and an edge goes over one
//! of its child's: the member at its other end passes on what is said, along the edges of the routing tree,
//! up from the child, and down to it. Once there is none left, it goes along the spawn tree, which is always
//! there: whoever is cut off from that is lost, and so is no neighbour.
//!
//! The child decides. It tells the parent by the new way how much it has received, the parent answers the
//! same, and each sends again what is missing there. So nothing is lost, doubled or reordered, as long as
//! nobody hears what still comes by a way that was left. Each is taken once, the redundant link to the nearest
//! first and the spawn tree last, so in descending order as [`Detour`]s.
//!
//! No edge waits for itself: what goes around one crosses only edges of children before its own.
//!
//! [`RouteTree::redundant`]: crate::route::RouteTree::redundant

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use model::{AgentId, JobId};
use wire::{Class, Forward, Message, Received};

use crate::LinkId;
use crate::child::Child;
use crate::edge::{Detour, Traffic, Way, traffic};
use crate::engine::Engine;
use crate::job::Job;

impl Engine {
    /// Handles that a link is down: an edge that went over it, if there is one, takes another way.
    pub(crate) fn on_edge_link_down(&mut self, link: LinkId, peer: AgentId) {
        if let Some(routing) = &mut self.routing
            && routing.early.get(&peer) == Some(&link)
        {
            routing.early.remove(&peer);
        }
        if self.edge_mut(peer).is_some_and(|edge| edge.way == Way::Own(link)) {
            self.on_edge_broken(peer);
        }
        if self.place.as_mut().is_some_and(|place| place.redundant.lose(peer, link)) {
            self.leave_detours(|via| via == peer);
        }
    }

    /// Handles that an edge's own link is gone. Once nothing more is to be said, that is no matter.
    pub(crate) fn on_edge_broken(&mut self, peer: AgentId) {
        let is_parent = self.is_routing_parent(peer);
        let Some(edge) = self.edge_mut(peer) else { return };
        edge.way = Way::Unsettled;
        // What others say around their links, for whom this member can't tell.
        let is_crossed = edge.backlog.kept().any(|kept| matches!(kept, Message::Forward(_)));
        let is_needed =
            |job: &Job| if is_parent { !job.has_reported() } else { job.has_child(peer) };
        if self.ending.is_none() && (is_crossed || self.jobs.iter().any(is_needed)) {
            self.seek_way(peer);
        }
    }

    /// Has an edge go on that has no link. A parent asks its child to see to it, which may believe that all
    /// was said.
    fn seek_way(&mut self, peer: AgentId) {
        if self.is_routing_parent(peer) {
            self.turn();
        } else if let Some(edge) = self.edge_mut(peer) {
            let received = edge.backlog.received();
            self.forward(peer, None, &Message::Received(received));
        }
    }

    /// Leaves a way around the own link that is no more.
    fn leave_detours(&mut self, is_gone: impl Fn(AgentId) -> bool) {
        let Some(edge) = self.place.as_ref().and_then(|place| place.parent.as_ref()) else {
            return;
        };
        let (Way::Turning(Some(via)) | Way::Around(Some(via))) = edge.way else { return };
        if is_gone(via) && self.ending.is_none() {
            self.turn();
        }
    }

    /// Does without redundant links: some whom they lead to, or who pass on what goes over them, are gone.
    pub(crate) fn end_detours(&mut self) {
        if let Some(place) = &mut self.place {
            place.redundant.untried.clear();
        }
        self.leave_detours(|_| true);
    }

    /// Has the edge to the parent leave its way, and tells the parent.
    pub(crate) fn turn(&mut self) {
        let via = self.next_detour();
        let Some(place) = &mut self.place else { return };
        let (parent, Some(edge)) = (place.parent_id, &mut place.parent) else { return };
        edge.way = Way::Turning(via);
        let received = edge.backlog.received();
        self.forward(parent, via, &Message::Attach(received));
    }

    fn next_detour(&mut self) -> Detour {
        loop {
            let via = self.place.as_mut()?.redundant.untried.pop_front()?;
            if self.redundant_link(via).is_some() {
                return Some(via);
            }
        }
    }

    /// The link to one at the other end of a redundant link, or to a neighbour in the spawn tree, which
    /// serves as one.
    fn redundant_link(&self, peer: AgentId) -> Option<LinkId> {
        let own = self.place.as_ref()?.redundant.links.get(&peer);
        own.copied().or_else(|| self.spawn_link(peer))
    }

    /// Handles that a child takes a way around its link, or that the parent has heard so from this one.
    pub(crate) fn on_turned(&mut self, peer: AgentId, via: Detour, received: Received) {
        let Some(place) = &self.place else {
            if let Some(routing) = &mut self.routing {
                routing.early_by_tree.insert(peer);
            }
            return;
        };
        let is_answer = place.parent_id == peer;
        let is_way = via.is_none_or(|via| place.is_redundant(peer, via));
        let Some(edge) = self.edge_mut(peer) else { return };
        let way = edge.way;
        let is_turn = match way {
            Way::Spawn => false,
            Way::Turning(asked) => is_answer && asked == via,
            Way::Unsettled | Way::Own(_) => !is_answer && is_way,
            // One that has left the way before may overtake what was said there.
            Way::Around(before) => !is_answer && is_way && via < before,
        };
        if !is_turn {
            return;
        }
        edge.way = Way::Around(via);
        edge.backlog.on_told(received);
        let received = edge.backlog.received();
        // The spawn tree is not left again.
        let missing: Vec<Message> = match via {
            Some(_) => edge.backlog.kept().cloned().collect(),
            None => edge.backlog.take().collect(),
        };
        if let Way::Own(link) = way {
            self.close_own(link);
        }
        if !is_answer {
            self.forward(peer, via, &Message::Attach(received));
        }
        for message in missing {
            self.forward(peer, via, &message);
        }
        self.check_routed();
    }

    /// Handles how much a neighbour has received, which came around a link: by the way that the edge goes,
    /// or from a parent whose link to this member is gone.
    fn on_received_around(&mut self, peer: AgentId, via: Detour, received: Received) {
        let is_parent = self.is_routing_parent(peer);
        let Some(edge) = self.edge_mut(peer) else { return };
        match edge.way {
            Way::Around(way) if way == via => edge.backlog.on_told(received),
            Way::Own(link) if is_parent && via.is_none() => {
                self.close_own(link);
                self.turn();
            }
            Way::Unsettled if is_parent && via.is_none() => self.turn(),
            Way::Unsettled | Way::Spawn | Way::Own(_) | Way::Turning(_) | Way::Around(_) => {}
        }
    }

    /// Sends a message around a link. One that is too long for it is too long for any link.
    pub(crate) fn forward(&mut self, to: AgentId, via: Detour, message: &Message) {
        let Ok(forward) = Forward::new(self.id, to, via, message) else { return };
        match via {
            Some(via) => self.relay(via, forward),
            None => self.pass_on(Message::Forward(forward), to, true),
        }
    }

    /// Takes what has come along the routing tree for this member and returns it with whom it is from, or
    /// passes it on.
    pub(crate) fn take_or_relay(&mut self, forward: Box<Forward>) -> Option<(AgentId, Message)> {
        match forward.via {
            _ if forward.to == self.id => self.take(&forward),
            Some(via) => {
                self.relay(via, forward);
                None
            }
            None => None,
        }
    }

    /// Passes on what goes over the redundant link between the child of an edge and `via`: up from the child
    /// that comes first, down to it last.
    fn relay(&mut self, via: AgentId, forward: Box<Forward>) {
        let Some(place) = &self.place else { return };
        let Forward { from, to, .. } = *forward;
        let is_up = place.tree.parent(from) == Some(to);
        let (crosses, peer) = if is_up { (self.id == from, via) } else { (self.id == via, to) };
        let next = place.tree.next_hop(self.id, if is_up { to } else { via });
        let message = Message::Forward(forward);
        if !crosses {
            let Some(next) = next else { return };
            if self.edge_mut(next).is_some_and(|edge| edge.way == Way::Unsettled) {
                self.seek_way(next);
            }
            self.send_to([next], message);
        } else if let Some(link) = self.redundant_link(peer) {
            self.send(vec![link], message);
        }
    }

    /// Handles a message on its way along the spawn tree, from above or from below. What is for one who
    /// cannot be reached is for one who is lost.
    pub(crate) fn on_forward(&mut self, forward: Box<Forward>, is_from_below: bool) {
        if forward.to != self.id {
            let to = forward.to;
            return self.pass_on(Message::Forward(forward), to, is_from_below);
        }
        let Some((from, message)) = self.take(&forward) else { return };
        if self.edge_mut(from).is_some() {
            self.on_job_message(from, message);
        } else {
            self.on_orphan_message(from, message);
        }
    }

    /// Handles what has come around a link for this member; returns what is about the job.
    fn take(&mut self, forward: &Forward) -> Option<(AgentId, Message)> {
        let (from, via) = (forward.from, forward.via);
        match forward.message() {
            Ok(Message::Attach(received)) => self.on_turned(from, via, received),
            Ok(Message::Received(received)) => self.on_received_around(from, via, received),
            Ok(message) if traffic(&message) == Traffic::Session => {
                let words = "it sent along the routing tree what does not belong there";
                self.edge_misbehaved(from, words);
            }
            Ok(message) => return self.is_heard(from, via, &message).then_some((from, message)),
            Err(error) => self.edge_misbehaved(from, &error.to_string()),
        }
        None
    }

    /// Counts a message, unless it comes by a way that its edge has left.
    fn is_heard(&mut self, from: AgentId, via: Detour, message: &Message) -> bool {
        let Some(edge) = self.edge_mut(from) else { return via.is_none() };
        if edge.way != Way::Around(via) {
            return false;
        }
        let (class, bytes) = (Class::of(message) as usize, wire::encoded_len(message));
        if via.is_some()
            && let Some(received) = edge.backlog.on_received(class, bytes)
        {
            self.forward(from, via, &Message::Received(received));
        }
        true
    }

    /// Head: handles what one says that has lost its routing parent.
    fn on_orphan_message(&mut self, from: AgentId, message: Message) {
        if let Message::Done { job: JobId::FIRST, statuses, .. } = message {
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
    pub(crate) fn spawn_child(&self, agent: AgentId) -> Option<&Child> {
        let below = self.children.last_until(agent);
        // One that this member could not start may be there elsewhere; one that was lost is nowhere.
        let owner = |child: &&Child| {
            let has_failed = child.is_gone() && child.up_at.is_none();
            !has_failed && (child.agent == agent || child.below.contains(agent.0))
        };
        below.filter(owner).or_else(|| self.children.values().find(owner))
    }
}
