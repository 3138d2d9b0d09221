//! One agent's part in the rings of a job (S4-07): every task brings a value, and learns those of its two
//! neighbours.
//!
//! A stretch of the ring goes up: how many tasks it has, and the values at its ends. The head closes the ring,
//! and each agent tells every part where its stretch begins and who is next to it. So each edge carries one
//! message of a few values either way, however many tasks there are (S4-10). The order of the ring is that
//! of the tree: an agent's own tasks, then those below each child.
//!
//! Whose tasks have all ended is in no ring, as in no fence.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use model::{AgentId, RingPlace, RingStretch};

use crate::fence::Fence;
use crate::gather::{Ended, Gather};

/// The rings of one job on one agent, one after the other.
#[derive(Debug)]
pub struct Ring {
    /// Boxed, since a map has room for eleven in a node, and few jobs have rings.
    gather: Gather<Box<RingStretch>>,
    /// The stretches of the ring that is being closed, in order.
    parts: Vec<(Option<AgentId>, RingStretch)>,
    effects: VecDeque<RingEffect>,
}

/// What the caller must do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RingEffect {
    /// Tell the parent that all below have entered this ring, and what stretch of it they are.
    Enter(u32, RingStretch),
    /// Tell a child where its stretch of this ring is.
    Tell(AgentId, u32, RingPlace),
    /// Let the local tasks go.
    Release(RingPlace),
}

/// A peer sent something that is no part of a ring here. Close its link.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RingError {
    /// The child is not waited for, or is in another ring.
    #[error("agent {child} entered ring {ring}, which does not wait for it")]
    UnexpectedEnter {
        /// The child.
        child: AgentId,
        /// The ring that it named.
        ring: u32,
    },
    /// The parent closed a ring that was not entered here.
    #[error("ring {0} was closed before it was entered")]
    EarlyPlace(u32),
}

impl Ring {
    /// The rings of a job with tasks on this agent (`local`) and below these children.
    pub fn new(local: bool, children: impl IntoIterator<Item = AgentId>) -> Ring {
        let gather = Gather::new(local, children);
        Ring { gather, parts: Vec::new(), effects: VecDeque::new() }
    }

    /// The rings of those parts that may still enter these fences: none is entered yet.
    pub fn beside<R>(fence: &Fence<R>) -> Ring {
        Ring::new(fence.counts_local(), fence.children())
    }

    /// Handles that all local tasks have entered.
    pub fn on_local_enter(&mut self, stretch: RingStretch) {
        self.gather.enter_local(Box::new(stretch));
        self.advance();
    }

    /// Handles a child's message that its whole subtree has entered.
    pub fn on_child_enter(
        &mut self,
        child: AgentId,
        ring: u32,
        stretch: RingStretch,
    ) -> Result<(), RingError> {
        if !self.gather.enter_child(child, ring, Box::new(stretch)) {
            return Err(RingError::UnexpectedEnter { child, ring });
        }
        self.advance();
        Ok(())
    }

    /// The number of the ring that may be entered, or is.
    pub fn number(&self) -> u32 {
        self.gather.number()
    }

    /// The children below which all have entered.
    pub fn entered_children(&self) -> impl Iterator<Item = AgentId> {
        self.gather.brought().filter_map(|(child, _)| child)
    }

    /// Handles that no local task can enter any more.
    pub fn on_local_end(&mut self) {
        self.gather.end_local();
        self.advance();
    }

    /// Handles that no task below a child can enter any more.
    pub fn on_child_end(&mut self, child: AgentId) {
        self.gather.end_child(child);
        self.advance();
    }

    /// Handles the parent's word where the stretch of this agent and all below it is.
    pub fn on_place(&mut self, ring: u32, place: &RingPlace) -> Result<(), RingError> {
        match self.gather.end(ring) {
            Ended::Well => self.tell(ring, place),
            Ended::NotHere => {}
            Ended::Early => return Err(RingError::EarlyPlace(ring)),
        }
        Ok(())
    }

    /// The next effect. Call until `None` after every `on_*` call.
    pub fn poll_effect(&mut self) -> Option<RingEffect> {
        self.effects.pop_front()
    }

    fn advance(&mut self) {
        let Some(number) = self.gather.completes() else { return };
        let brought = self.gather.brought().filter(|(_, stretch)| stretch.count > 0);
        self.parts = brought.map(|(whose, stretch)| (whose, RingStretch::clone(stretch))).collect();
        let stretch = RingStretch {
            count: self.parts.iter().fold(0, |sum, (_, part)| part.count.saturating_add(sum)),
            left: self.parts.first().map(|(_, part)| part.left.clone()).unwrap_or_default(),
            right: self.parts.last().map(|(_, part)| part.right.clone()).unwrap_or_default(),
        };
        self.effects.push_back(RingEffect::Enter(number, stretch));
    }

    fn tell(&mut self, ring: u32, place: &RingPlace) {
        let parts = core::mem::take(&mut self.parts);
        let mut first = place.first;
        for (index, (whose, stretch)) in parts.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| parts.get(before));
            let own = RingPlace {
                first,
                left: before.map_or(&place.left, |(_, part)| &part.right).clone(),
                right: parts.get(index + 1).map_or(&place.right, |(_, part)| &part.left).clone(),
            };
            first = first.saturating_add(stretch.count);
            self.effects.push_back(match whose {
                Some(child) => RingEffect::Tell(*child, ring, own),
                None => RingEffect::Release(own),
            });
        }
    }
}
