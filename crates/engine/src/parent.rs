//! A member and the one above it: the welcome, signs of life, and what its silence means.

use alloc::string::ToString;
use alloc::vec;

use model::AgentId;
use proto::Silence;
use wire::{Message, Welcome};

use crate::engine::{Above, Engine};
use crate::marks::Marks;
use crate::{Effect, LinkId};

impl Engine {
    pub(crate) fn on_parent_message(&mut self, message: Message) {
        if let Above::Parent { silence, .. } = &mut self.above {
            silence.on_heard(self.now);
        }
        let peer = if let Above::Parent { parent, link, .. } = &self.above {
            Some((*parent, *link))
        } else {
            None
        };
        let message = match peer {
            Some((parent, link)) => match self.on_edge_link(link, parent, message) {
                Some(Message::Resolve(agent)) if self.routing.is_some() => {
                    return self.on_resolve(link, agent);
                }
                Some(message) => message,
                None => return,
            },
            None => message,
        };
        match (&self.above, message) {
            (Above::Unwelcomed { link: Some(link), config, .. }, Message::Welcome(welcome)) => {
                let (parent, link) = (config.parent, *link);
                self.on_welcome(parent, link, *welcome);
            }
            (Above::Unwelcomed { .. }, Message::Shutdown) => self.leave(),
            (Above::Parent { link, .. }, Message::Ping { next_ms }) => {
                let link = *link;
                self.on_parent_ping(link, next_ms);
            }
            (Above::Parent { .. }, Message::OutputCredit(bytes)) => {
                self.credit.on_grant(bytes);
                self.send_output();
            }
            (Above::Parent { .. }, message) => self.down(message),
            (Above::Head(_) | Above::Unwelcomed { .. }, _) => {
                self.abandon("its parent broke the protocol".to_string());
            }
        }
    }

    fn on_welcome(&mut self, parent: AgentId, link: LinkId, welcome: Welcome) {
        let Ok(names) = crate::names::unfold(&welcome.names, welcome.below.len()) else {
            return self.abandon("its parent's list of names is broken".to_string());
        };
        let mut silence = Silence::new(self.now);
        // The first ping follows at once, and says more.
        silence.on_announced(self.now, welcome.session.heartbeat_ms);
        self.above = Above::Parent { parent, link, silence };
        let timeout_ms = welcome.session.link_timeout_ms;
        self.effects.push_back(Effect::SetLinkTimeout(link, Some(timeout_ms)));
        self.marks = welcome.session.marks.then(|| Marks::new(self.now));
        self.own_name = welcome.own_name;
        self.begin(welcome.tree, welcome.below, names, welcome.session);
        self.joining.missing.insert(self.id.0);
    }

    fn on_parent_ping(&mut self, link: LinkId, next_ms: u32) {
        if let Above::Parent { silence, .. } = &mut self.above {
            silence.on_announced(self.now, next_ms);
        }
        self.send(vec![link], Message::Ping { next_ms });
    }

    pub(crate) fn check_parent(&mut self) {
        match &self.above {
            Above::Head(_) => {}
            Above::Unwelcomed { until, .. } if *until <= self.now => {
                self.abandon("its parent did not answer".to_string());
            }
            Above::Parent { silence, .. } if silence.lost_at().is_some_and(|at| at <= self.now) => {
                let seconds = silence.length(self.now).as_secs();
                self.abandon(alloc::format!("no sign of life from its parent for {seconds} s"));
            }
            Above::Unwelcomed { .. } | Above::Parent { .. } => {}
        }
    }
}
