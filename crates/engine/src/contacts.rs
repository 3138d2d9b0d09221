//! Who listens where: S0's second phase.
//!
//! Every agent tells its spawn parent where it listens. In a session of some thousand agents that goes
//! up with the joining, one message from each subtree once that is whole, and so overlaps with the
//! bootstrap of the others; the head tells all to all, in the message that makes them route. Algorithm 2
//! as printed floods what comes in to the children that came earlier: each of those floods would be
//! merged here with the next, up to the last, since links are opened after the join anyway.
//!
//! In larger sessions nobody is told of all others: O(n) state on n nodes cannot be. Who wants to know
//! asks along the spawn tree, up until somebody knows or has the agent below, then down to its spawn
//! parent, which knows. Answers are remembered on their way (S3-13, S3-15).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use model::AgentId;
use wire::{Contact, Message};

use crate::LinkId;
use crate::engine::Engine;

/// The most agents of a session in which everybody is told where all others listen: with an address
/// or two each, some tens of kilobytes on every link.
pub const CONTACTS_PUSHED_MAX: u64 = 4_096;

/// Answers that an agent remembers beyond those about its own children.
const ANSWERS_MAX: usize = 4_096;

/// Where agents listen, as far as this one knows.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    known: BTreeMap<AgentId, Contact>,
    /// Those that the parent is to be told of.
    untold: Vec<(AgentId, Contact)>,
    /// Who waits for an answer.
    asked: BTreeMap<AgentId, Vec<LinkId>>,
    listens: bool,
}

impl Contacts {
    /// Whether this member itself listens.
    pub(crate) fn has_own(&self) -> bool {
        self.listens
    }

    /// Remembers where agents listen.
    pub(crate) fn keep(&mut self, contacts: impl Iterator<Item = (AgentId, Contact)>) {
        self.known.extend(contacts);
    }

    /// All that is known, for everybody.
    pub(crate) fn take_known(&mut self) -> Vec<(AgentId, Contact)> {
        core::mem::take(&mut self.known).into_iter().collect()
    }
}

impl Engine {
    /// Handles that the driver listens, and where.
    pub(crate) fn on_listening(&mut self, contact: Contact) {
        let (id, is_head) = (self.id, self.is_head());
        let Some(routing) = &mut self.routing else { return };
        routing.contacts.listens = true;
        routing.contacts.known.insert(id, contact.clone());
        if !is_head {
            routing.contacts.untold.push((id, contact));
        }
        if core::mem::take(&mut routing.is_ready) {
            self.on_self_joined();
        }
    }

    /// Tells the parent, before the last `Joined` of this subtree or, where contacts are asked for, the
    /// first of this agent.
    pub(crate) fn tell_contacts(&mut self) {
        let pushes = self.session().pushes_contacts;
        let is_whole = self.joining.missing.is_empty();
        let Some(routing) = &mut self.routing else { return };
        let is_time = is_whole || !pushes;
        if is_time && !routing.contacts.untold.is_empty() {
            let untold = core::mem::take(&mut routing.contacts.untold);
            self.up(Message::Contacts(untold));
        }
    }

    /// Handles what a spawn child tells.
    pub(crate) fn on_contacts_from_below(&mut self, contacts: Vec<(AgentId, Contact)>) {
        let pushes = self.session().pushes_contacts;
        let is_head = self.is_head();
        let Some(routing) = &mut self.routing else { return };
        if pushes && !is_head {
            return routing.contacts.untold.extend(contacts);
        }
        contacts.into_iter().for_each(|(agent, contact)| self.learn(agent, contact));
    }

    /// Remembers where somebody listens, and tells who has asked.
    pub(crate) fn learn(&mut self, agent: AgentId, contact: Contact) {
        let is_own = self.children.contains_key(&agent);
        let pushes = self.session().pushes_contacts;
        let Some(routing) = &mut self.routing else { return };
        let contacts = &mut routing.contacts;
        let links = contacts.asked.remove(&agent).unwrap_or_default();
        if is_own || pushes || contacts.known.len() < ANSWERS_MAX {
            contacts.known.insert(agent, contact.clone());
        }
        let links: Vec<LinkId> = links.into_iter().filter(|link| self.has_link(*link)).collect();
        if !links.is_empty() {
            self.send(links, Message::Contacts(vec![(agent, contact.clone())]));
        }
        self.on_contact(agent, contact);
    }

    /// Handles a question of a neighbour in the spawn tree.
    pub(crate) fn on_resolve(&mut self, link: LinkId, agent: AgentId) {
        match self.routing.as_ref().and_then(|routing| routing.contacts.known.get(&agent)) {
            Some(contact) => {
                let contact = contact.clone();
                self.send(vec![link], Message::Contacts(vec![(agent, contact)]));
            }
            None => self.ask(agent, Some(link)),
        }
    }

    /// Looks for an agent, for whoever is at the other end of a link or for this one.
    pub(crate) fn resolve(&mut self, agent: AgentId) {
        match self.routing.as_ref().and_then(|routing| routing.contacts.known.get(&agent)) {
            Some(contact) => {
                let contact = contact.clone();
                self.on_contact(agent, contact);
            }
            None => self.ask(agent, None),
        }
    }

    fn ask(&mut self, agent: AgentId, link: Option<LinkId>) {
        let towards = self.spawn_child_towards(agent);
        let nobody_knows = self.is_head() && towards.is_none();
        let Some(routing) = &mut self.routing else { return };
        if nobody_knows {
            return;
        }
        let is_new = !routing.contacts.asked.contains_key(&agent);
        routing.contacts.asked.entry(agent).or_default().extend(link);
        match towards.flatten() {
            _ if !is_new => {}
            Some(link) => self.send(vec![link], Message::Resolve(agent)),
            None => self.up(Message::Resolve(agent)),
        }
    }
}
