//! The way from a spawn tree to a routing tree: every member finds its place and opens its edges.
//!
//! When it is known who runs the job, the head says who the members are. Everybody works out its place from that
//! ([`RouteTree`]), and connects to its parent there unless that is a neighbour in the spawn tree. Once
//! all children of a member have come, by a link or along the spawn tree, and all below in the spawn
//! tree say the same, it says so itself; then the head launches. So every edge has its way before
//! anything is sent on it. Redundant links are opened behind the launch, one after the other, so that it
//! does not wait for them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, Time};
use proto::Grants;
use wire::{Contact, Message, Routes};

use crate::children::output_window;
use crate::contacts::Contacts;
use crate::edge::{Edge, Way};
use crate::engine::{Above, Engine, Phase};
use crate::job::Job;
use crate::route::RouteTree;
use crate::{Effect, LinkId};

/// How long a link to a routing parent may take to come up, its contact to be found included. Then the
/// edge goes along the spawn tree. A redundant link that takes longer is done without.
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
    /// To whom a link is being opened, and until when that is waited for.
    sought: Option<(AgentId, Time)>,
    pub(crate) redundant: Redundant,
}

/// A member's redundant links.
#[derive(Debug, Default)]
pub(crate) struct Redundant {
    /// How many each member opens.
    count: u8,
    /// Those that are there: that this member has opened, or others to it.
    pub(crate) links: BTreeMap<AgentId, LinkId>,
    /// To whom links are still to be opened.
    unsought: VecDeque<AgentId>,
    /// Around whom the edge to the parent has not gone yet.
    pub(crate) untried: VecDeque<AgentId>,
}

impl Redundant {
    /// Takes note that a link is down; says whether it was one of these.
    pub(crate) fn lose(&mut self, peer: AgentId, link: LinkId) -> bool {
        let is_own = self.links.get(&peer) == Some(&link);
        is_own && self.links.remove(&peer).is_some()
    }
}

impl Place {
    /// Whether the parent of this member, `own`, is gone.
    pub(crate) fn is_orphan(&self, own: AgentId) -> bool {
        self.parent.is_none() && self.parent_id != own
    }

    /// Whether there is an edge to an agent.
    pub(crate) fn has_neighbour(&self, agent: AgentId) -> bool {
        self.children.contains_key(&agent) || self.parent_id == agent && self.parent.is_some()
    }

    /// Whether a member opens a redundant link to another.
    pub(crate) fn is_redundant(&self, agent: AgentId, to: AgentId) -> bool {
        self.tree.redundant(agent, self.redundant.count).any(|member| member == to)
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
        self.keep_contacts(routes.contacts);
        self.seek_parent();
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
            sought: None,
            redundant: Redundant { count: self.session().redundancy, ..Redundant::default() },
        };
        self.jobs.iter_mut().for_each(|job| job.set_children(children.clone()));
        self.place = Some(Box::new(place));
        let Some(routing) = &mut self.routing else { return };
        let early = core::mem::take(&mut routing.early);
        let early_by_tree = core::mem::take(&mut routing.early_by_tree);
        for (child, link) in early {
            self.on_attach(link, child);
        }
        for child in early_by_tree {
            self.on_turned(child, None, Default::default());
        }
    }

    /// Remembers where those listen whom this member will call.
    fn keep_contacts(&mut self, contacts: Vec<(AgentId, Contact)>) {
        let (Some(place), Some(routing)) = (&self.place, &mut self.routing) else { return };
        let redundant = place.tree.redundant(self.id, place.redundant.count);
        let called: BTreeSet<AgentId> = redundant.chain([place.parent_id]).collect();
        let contacts = contacts.into_iter().filter(|(agent, _)| called.contains(agent));
        routing.contacts.keep(contacts);
    }

    fn seek_parent(&mut self) {
        let Some(place) = &self.place else { return };
        if place.parent.as_ref().is_some_and(|edge| !edge.is_settled()) {
            self.seek(place.parent_id);
        }
    }

    /// Begins to open the redundant links of this member. A neighbour in the spawn tree has a link already.
    pub(crate) fn seek_redundant(&mut self) {
        let Some(place) = &self.place else { return };
        let members: VecDeque<AgentId> =
            place.tree.redundant(self.id, place.redundant.count).collect();
        let unsought =
            members.iter().copied().filter(|it| self.spawn_link(*it).is_none()).collect();
        if let Some(place) = &mut self.place {
            (place.redundant.unsought, place.redundant.untried) = (unsought, members);
        }
        self.seek_next();
    }

    fn seek_next(&mut self) {
        let next = self.place.as_mut().and_then(|place| place.redundant.unsought.pop_front());
        if let Some(agent) = next {
            self.seek(agent);
        }
    }

    fn seek(&mut self, agent: AgentId) {
        if let Some(place) = &mut self.place {
            place.sought = Some((agent, self.now + CONNECT_MAX));
            self.resolve(agent);
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
        let Some(place) = &self.place else { return false };
        let edge = place.parent.as_ref().filter(|_| place.parent_id == agent);
        place.sought.is_some_and(|(sought, _)| sought == agent)
            && edge.is_none_or(|edge| edge.way == Way::Unsettled)
    }

    /// Whether an agent is this one's routing parent.
    pub(crate) fn is_routing_parent(&self, agent: AgentId) -> bool {
        self.place.as_ref().is_some_and(|place| place.parent_id == agent)
    }

    /// Handles that a link is there which this member has sought.
    pub(crate) fn on_found(&mut self, link: LinkId, peer: AgentId) {
        let Some(place) = &mut self.place else { return };
        place.sought = None;
        match place.parent.as_mut().filter(|_| place.parent_id == peer) {
            Some(edge) => edge.way = Way::Own(link),
            None => _ = place.redundant.links.insert(peer, link),
        }
        self.links.insert(link, peer);
        self.watch_link(link);
        self.send(vec![link], Message::Attach(Default::default()));
        self.seek_next();
    }

    /// Handles that no link to an agent can be had.
    pub(crate) fn on_not_connected(&mut self, peer: AgentId) {
        if self.is_seeking(peer) {
            self.give_up_seeking();
        }
    }

    /// When the search for an agent has had its time.
    pub(crate) fn connect_due(&self) -> Option<Time> {
        self.place.as_ref()?.sought.map(|(_, until)| until)
    }

    pub(crate) fn check_connecting(&mut self) {
        if self.connect_due().is_some_and(|at| at <= self.now) {
            self.give_up_seeking();
        }
    }

    fn give_up_seeking(&mut self) {
        let Some(place) = &mut self.place else { return };
        let is_parent = place.sought.take().is_some_and(|(agent, _)| agent == place.parent_id);
        if is_parent && place.parent.as_ref().is_some_and(|edge| edge.way == Way::Unsettled) {
            self.turn();
        }
        self.seek_next();
    }

    /// Handles the first words of a routing child on a link of its own, or of another on a redundant one.
    pub(crate) fn on_attach(&mut self, link: LinkId, agent: AgentId) {
        if self.place.is_none()
            && let Some(routing) = &mut self.routing
        {
            if let Some(before) = routing.early.insert(agent, link) {
                self.close_own(before);
            }
            return;
        }
        let own = self.id;
        let Some(place) = &mut self.place else { return self.close_own(link) };
        let is_redundant = place.is_redundant(agent, own);
        match place.children.get_mut(&agent).filter(|edge| edge.way == Way::Unsettled) {
            Some(edge) => edge.way = Way::Own(link),
            None if is_redundant => {
                if let Some(before) = place.redundant.links.insert(agent, link) {
                    self.close_own(before);
                }
            }
            None => return self.close_own(link),
        }
        self.watch_link(link);
        self.check_routed();
    }

    fn watch_link(&mut self, link: LinkId) {
        let timeout_ms = self.session().link_timeout_ms;
        self.effects.push_back(Effect::SetLinkTimeout(link, Some(timeout_ms)));
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
            Way::Unsettled | Way::Spawn | Way::Turning(_) | Way::Around(_) => None,
        };
        let is_orphan = parent.is_some();
        let links: BTreeSet<LinkId> =
            parent.into_iter().chain(edges).filter_map(|edge| own_link(&edge)).collect();
        for link in links {
            self.close_own(link);
        }
        if is_orphan {
            self.jobs.iter_mut().for_each(Job::report_again);
        }
        for child in children {
            self.on_child_gone(child);
        }
        self.end_detours();
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
