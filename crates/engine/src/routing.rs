//! The way from a spawn tree to a routing tree: every member finds its place and opens its edges.
//!
//! When it is known who runs the job, the head says who the members are. Everybody works out its place from that
//! ([`RouteTree`]), and connects to its parent there unless that is a neighbour in the spawn tree. Once
//! all children of a member have come, by a link or along the spawn tree, and all below in the spawn
//! tree say the same, it says so itself; then the head launches. So every edge has its way before
//! anything is sent on it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use core::time::Duration;

use model::{AgentId, IdSet, Time};
use proto::Grants;
use wire::{Contact, Message, Routes};

use crate::children::output_window;
use crate::contacts::Contacts;
use crate::edge::{Edge, Way};
use crate::engine::{Above, Engine, Phase};
use crate::route::RouteTree;
use crate::{Effect, LinkId};

/// How long a link to a routing parent may take to come up, its contact to be found included. Then the
/// edge goes along the spawn tree.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What a member of a session that routes knows before it knows its place.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    pub(crate) contacts: Contacts,
    /// Set while this agent waits only for its driver to listen.
    pub(crate) is_ready: bool,
    /// Children that have called before their place was known here: over a link, or along the tree.
    pub(crate) early: BTreeMap<AgentId, LinkId>,
    pub(crate) early_by_tree: BTreeSet<AgentId>,
}

/// A member's place in the routing tree.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) tree: RouteTree,
    /// The parent; the head, and who runs no part of the job, is its own.
    pub(crate) parent_id: AgentId,
    /// The edge to it; none where there is none, and when the parent is gone.
    pub(crate) parent: Option<Edge>,
    pub(crate) children: BTreeMap<AgentId, Edge>,
    /// Spawn children below whom some edge is not there yet.
    unrouted: BTreeSet<AgentId>,
    /// Whether the parent knows that all edges here and below are there.
    told: bool,
    /// Until when the link to the parent is waited for.
    connect_until: Option<Time>,
}

impl Place {
    /// Whether the parent of this member, `own`, is gone.
    pub(crate) fn is_orphan(&self, own: AgentId) -> bool {
        self.parent.is_none() && self.parent_id != own
    }
}

impl Engine {
    /// Begins to route, if the session does: its driver is to listen, and others are told where.
    pub(crate) fn begin_routing(&mut self) {
        if self.session().route.is_some() {
            self.routing = Some(Box::default());
            self.effects.push_back(Effect::Listen);
        }
    }

    /// Handles that the members are known: passes it on, then looks for the own place.
    pub(crate) fn on_route(&mut self, mut routes: Routes) {
        let (Some(shape), Some(routing)) = (self.session().route, &mut self.routing) else {
            return self.abandon("its parent broke the protocol".into());
        };
        if matches!(self.above, Above::Head(_))
            && self.session.as_ref().is_some_and(|it| it.pushes_contacts)
        {
            routes.contacts = routing.contacts.take_known();
        }
        let tree = RouteTree::new(shape, AgentId::HEAD, routes.members.clone());
        let parent_id = tree.parent(self.id).unwrap_or(self.id);
        self.phase = Phase::Route;
        self.tell_children(Message::Route(Box::new(routes.clone())));
        self.end_starts();
        self.take_place(tree, parent_id);
        let contact = routes.contacts.binary_search_by_key(&parent_id, |(agent, _)| *agent);
        let contact = contact.ok().map(|index| routes.contacts.swap_remove(index).1);
        self.seek_parent(contact);
        self.check_routed();
    }

    fn take_place(&mut self, tree: RouteTree, parent_id: AgentId) {
        let children: BTreeSet<AgentId> = tree.children(self.id).iter().map(AgentId).collect();
        let edge = |peer| {
            Edge::new(if self.spawn_link(peer).is_some() { Way::Spawn } else { Way::Unsettled })
        };
        let place = Place {
            parent: (parent_id != self.id).then(|| edge(parent_id)),
            children: children.iter().map(|&child| (child, edge(child))).collect(),
            unrouted: self.children.values().filter(|it| it.is_up()).map(|it| it.agent).collect(),
            tree,
            parent_id,
            told: false,
            connect_until: None,
        };
        if let Some(job) = &mut self.job {
            job.set_children(children);
        }
        self.place = Some(Box::new(place));
        let Some(routing) = &mut self.routing else { return };
        let early = core::mem::take(&mut routing.early);
        let early_by_tree = core::mem::take(&mut routing.early_by_tree);
        for (child, link) in early {
            self.on_attach(link, child);
        }
        for child in early_by_tree {
            self.on_tree_taken(child, Default::default());
        }
    }

    fn seek_parent(&mut self, contact: Option<Contact>) {
        let until = self.now + CONNECT_MAX;
        let Some(place) = &mut self.place else { return };
        let parent_id = place.parent_id;
        if place.parent.as_ref().is_none_or(Edge::is_settled) {
            return;
        }
        place.connect_until = Some(until);
        match contact {
            Some(contact) => self.on_contact(parent_id, contact),
            None => self.resolve(parent_id),
        }
    }

    /// Handles that it is known where an agent listens.
    pub(crate) fn on_contact(&mut self, agent: AgentId, contact: Contact) {
        if self.is_seeking(agent) {
            self.effects.push_back(Effect::Connect { peer: agent, contact });
        }
    }

    /// Whether a link to this agent is wanted.
    pub(crate) fn is_seeking(&self, agent: AgentId) -> bool {
        let place = self.place.as_ref().filter(|place| place.parent_id == agent);
        place.is_some_and(|place| {
            place.connect_until.is_some()
                && place.parent.as_ref().is_some_and(|edge| edge.way == Way::Unsettled)
        })
    }

    /// Whether an agent is this one's routing parent, which calls nobody below.
    pub(crate) fn is_routing_parent(&self, agent: AgentId) -> bool {
        self.place.as_ref().is_some_and(|place| place.parent_id == agent)
    }

    /// Handles that a link to the routing parent is there.
    pub(crate) fn on_parent_found(&mut self, link: LinkId, peer: AgentId) {
        let Some(place) = &mut self.place else { return };
        place.connect_until = None;
        if let Some(edge) = &mut place.parent {
            edge.way = Way::Own(link);
        }
        self.links.insert(link, peer);
        self.watch_link(link);
        self.send(vec![link], Message::Attach(Default::default()));
    }

    /// Handles that no link to an agent can be had.
    pub(crate) fn on_not_connected(&mut self, peer: AgentId) {
        if self.is_seeking(peer) {
            self.give_up_connecting();
        }
    }

    /// When the search for the routing parent has had its time.
    pub(crate) fn connect_due(&self) -> Option<Time> {
        self.place.as_ref()?.connect_until
    }

    pub(crate) fn check_connecting(&mut self) {
        if self.connect_due().is_some_and(|at| at <= self.now) {
            self.give_up_connecting();
        }
    }

    fn give_up_connecting(&mut self) {
        let Some(place) = &mut self.place else { return };
        place.connect_until = None;
        let parent = place.parent_id;
        self.take_tree(parent);
    }

    /// Handles the first words of a routing child on a link of its own.
    pub(crate) fn on_attach(&mut self, link: LinkId, agent: AgentId) {
        if self.place.is_none()
            && let Some(routing) = &mut self.routing
        {
            if let Some(before) = routing.early.insert(agent, link) {
                self.close_own(before);
            }
            return;
        }
        let place = self.place.as_mut().and_then(|place| place.children.get_mut(&agent));
        match place.filter(|edge| edge.way == Way::Unsettled) {
            Some(edge) => {
                edge.way = Way::Own(link);
                self.watch_link(link);
                self.check_routed();
            }
            None => self.close_own(link),
        }
    }

    fn watch_link(&mut self, link: LinkId) {
        let timeout_ms = self.session().link_timeout_ms;
        self.effects.push_back(Effect::SetLinkTimeout(link, Some(timeout_ms)));
    }

    /// The link of a routing parent that is the head, for as long as that may be stopped.
    pub(crate) fn own_link_to_head(&self) -> Option<LinkId> {
        let place = self.place.as_ref().filter(|place| place.parent_id == AgentId::HEAD)?;
        match place.parent.as_ref()?.way {
            Way::Own(link) => Some(link),
            Way::Unsettled | Way::Spawn | Way::Turning | Way::Tree => None,
        }
    }

    /// Handles that all edges below a spawn child are there.
    pub(crate) fn on_routed(&mut self, child: AgentId) {
        match &mut self.place {
            Some(place) => {
                place.unrouted.remove(&child);
                self.check_routed();
            }
            None => self.child_misbehaved(child, "it has routes before it was told of any"),
        }
    }

    /// Handles that an agent is lost. A spawn child that runs no part of the job is not waited for; where
    /// it does, the session ends.
    pub(crate) fn await_no_routes_of(&mut self, agent: AgentId) {
        if self.place.as_mut().is_some_and(|place| place.unrouted.remove(&agent)) {
            self.check_routed();
        }
    }

    /// Tells the parent, once, that all edges here and below are there.
    pub(crate) fn check_routed(&mut self) {
        let Some(place) = &mut self.place else { return };
        let is_whole = place.unrouted.is_empty() && place.children.values().all(Edge::is_settled);
        if is_whole && !place.told {
            place.told = true;
            self.up(Message::Routed);
        }
    }

    /// Handles that agents are gone: messages pass through them no more.
    pub(crate) fn on_gone(&mut self, gone: &IdSet) {
        let Some(place) = &mut self.place else { return };
        let is_gone = |agent: &AgentId| gone.contains(agent.0);
        let parent = place.parent.take_if(|_| is_gone(&place.parent_id));
        let children: BTreeSet<AgentId> = place.children.keys().copied().filter(is_gone).collect();
        let edges = children.iter().filter_map(|child| place.children.remove(child));
        let own_link = |edge: &Edge| match edge.way {
            Way::Own(link) => Some(link),
            Way::Unsettled | Way::Spawn | Way::Turning | Way::Tree => None,
        };
        let is_orphan = parent.is_some();
        let links: BTreeSet<LinkId> =
            parent.into_iter().chain(edges).filter_map(|edge| own_link(&edge)).collect();
        for link in links {
            self.close_own(link);
        }
        if is_orphan && let Some(job) = &mut self.job {
            job.report_again();
        }
        for child in children {
            self.on_child_done(child, Default::default());
        }
        self.send_output();
    }

    /// Lets the routing children send output.
    pub(crate) fn grant_edges(&mut self) {
        let Some(place) = &mut self.place else { return };
        let window = output_window(place.children.len());
        for edge in place.children.values_mut() {
            edge.grants = Grants::new(window);
        }
        self.tell_below(Message::OutputCredit(window));
    }

    /// Whether nobody passes on what this member sends up, since its routing parent is gone.
    pub(crate) fn is_orphan(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_orphan(self.id))
    }

    /// Those below a member in the tree that a job's messages take.
    pub(crate) fn job_subtree(&self, agent: AgentId) -> IdSet {
        match &self.place {
            Some(place) => place.tree.subtree(agent),
            None => self.children.get(&agent).map(|child| child.subtree()).unwrap_or_default(),
        }
    }

    /// The link to a neighbour in the spawn tree, while it may be sent messages.
    pub(crate) fn spawn_link(&self, peer: AgentId) -> Option<LinkId> {
        match &self.above {
            Above::Parent { parent, link, .. } if *parent == peer => Some(*link),
            Above::Head(_) | Above::Unwelcomed { .. } | Above::Parent { .. } => {
                self.children.get(&peer).filter(|child| child.is_up())?.link
            }
        }
    }

    /// Whether a link of the spawn tree is there.
    pub(crate) fn has_link(&self, link: LinkId) -> bool {
        self.links.contains_key(&link) || self.uplink() == Some(link)
    }
}
