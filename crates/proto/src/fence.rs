//! One agent's part in the fences of a job: every task below it enters, then all of them leave.
//!
//! An agent waits for its own tasks and for one message per child subtree, then sends one message
//! to its parent; the head answers with the whole, which travels back down the same edges. So the
//! head receives one message per child, not one per node, and every link carries two messages a
//! fence. Payloads are only concatenated: what is in them is `pmi`'s.
//!
//! A part whose tasks have all ended can't enter any more and is not waited for: a task that ends
//! without entering must not leave the others in a barrier for ever. Losing an agent is another
//! matter, and ends the job.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use model::AgentId;

/// The fences of one job on one agent, one after the other.
#[derive(Debug)]
pub struct Fence {
    number: u32,
    /// `None` where no task of the job runs.
    local: Option<Part>,
    children: BTreeMap<AgentId, Part>,
    counts: Counts,
    entered: bool,
    effects: VecDeque<FenceEffect>,
}

/// What the caller must do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FenceEffect {
    /// Tell the parent that all below have entered this fence, with what they contribute.
    Enter(u32, Bytes),
    /// Let the local tasks go, and pass the whole to every child.
    Release(u32, Bytes),
}

/// A peer sent something that is no part of a fence here. Close its link.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FenceError {
    /// The child is not waited for, or is in another fence.
    #[error("agent {child} entered fence {fence}, which does not wait for it")]
    UnexpectedEnter {
        /// The child.
        child: AgentId,
        /// The fence that it named.
        fence: u32,
    },
    /// The parent released a fence that was not entered here.
    #[error("fence {0} was released before it was entered")]
    EarlyRelease(u32),
}

/// One of those that a fence waits for.
#[derive(Debug)]
enum Part {
    Awaited,
    Entered(Bytes),
    Ended,
}

/// How many parts are in which state, so that none of very many children costs a look at all.
#[derive(Debug, Default)]
struct Counts {
    awaited: usize,
    entered: usize,
}

impl Counts {
    /// Puts a part into another state.
    fn change(&mut self, part: &mut Part, to: Part) {
        if let Some(count) = self.of(part) {
            *count -= 1;
        }
        if let Some(count) = self.of(&to) {
            *count += 1;
        }
        *part = to;
    }

    fn of(&mut self, part: &Part) -> Option<&mut usize> {
        match part {
            Part::Awaited => Some(&mut self.awaited),
            Part::Entered(_) => Some(&mut self.entered),
            Part::Ended => None,
        }
    }
}

impl Fence {
    /// The fences of a job with tasks on this agent (`local`) and below these children.
    pub fn new(local: bool, children: impl IntoIterator<Item = AgentId>) -> Fence {
        let mut fence = Fence {
            number: 0,
            local: local.then_some(Part::Awaited),
            children: BTreeMap::new(),
            counts: Counts { awaited: usize::from(local), entered: 0 },
            entered: false,
            effects: VecDeque::new(),
        };
        children.into_iter().for_each(|child| fence.add_child(child));
        fence
    }

    /// Waits for one more child. Nobody has entered a fence yet.
    pub fn add_child(&mut self, child: AgentId) {
        let part = self.children.entry(child).or_insert(Part::Ended);
        self.counts.change(part, Part::Awaited);
    }

    /// Handles that all local tasks have entered.
    pub fn on_local_enter(&mut self, payload: Bytes) {
        let Some(part @ Part::Awaited) = &mut self.local else {
            panic!("local tasks enter a fence once");
        };
        self.counts.change(part, Part::Entered(payload));
        self.advance();
    }

    /// Handles a child's message that its whole subtree has entered.
    pub fn on_child_enter(
        &mut self,
        child: AgentId,
        fence: u32,
        payload: Bytes,
    ) -> Result<(), FenceError> {
        match self.children.get_mut(&child) {
            Some(part @ Part::Awaited) if fence == self.number && !self.entered => {
                self.counts.change(part, Part::Entered(payload));
                self.advance();
                Ok(())
            }
            Some(_) | None => Err(FenceError::UnexpectedEnter { child, fence }),
        }
    }

    /// The children that are waited for.
    pub fn awaited_children(&self) -> impl Iterator<Item = AgentId> {
        let is_awaited = |part: &&Part| matches!(part, Part::Awaited);
        let awaited = self.children.iter().filter(move |(_, part)| is_awaited(part));
        awaited.map(|(child, _)| *child)
    }

    /// Handles that no local task can enter any more.
    pub fn on_local_end(&mut self) {
        if let Some(part) = &mut self.local {
            self.counts.change(part, Part::Ended);
        }
        self.advance();
    }

    /// Handles that no task below a child can enter any more.
    pub fn on_child_end(&mut self, child: AgentId) {
        if let Some(part) = self.children.get_mut(&child) {
            self.counts.change(part, Part::Ended);
            self.advance();
        }
    }

    /// Handles the parent's release. A parent releases all its children, those with it whose tasks
    /// have ended: they waited for nothing.
    pub fn on_release(&mut self, fence: u32, payload: Bytes) -> Result<(), FenceError> {
        if !self.entered && self.has_ended() {
            return Ok(());
        }
        if fence != self.number || !self.entered {
            return Err(FenceError::EarlyRelease(fence));
        }
        self.number += 1;
        self.entered = false;
        for part in self.local.iter_mut().chain(self.children.values_mut()) {
            if matches!(part, Part::Entered(_)) {
                self.counts.change(part, Part::Awaited);
            }
        }
        self.effects.push_back(FenceEffect::Release(fence, payload));
        Ok(())
    }

    /// The next effect. Call until `None` after every `on_*` call.
    pub fn poll_effect(&mut self) -> Option<FenceEffect> {
        self.effects.pop_front()
    }

    /// Whether no task below can enter any more.
    fn has_ended(&self) -> bool {
        self.counts.awaited == 0 && self.counts.entered == 0
    }

    fn advance(&mut self) {
        if !self.entered && self.counts.entered > 0 && self.counts.awaited == 0 {
            self.entered = true;
            let payload = self.whole();
            self.effects.push_back(FenceEffect::Enter(self.number, payload));
        }
    }

    fn whole(&self) -> Bytes {
        let payloads: Vec<&Bytes> = self
            .local
            .iter()
            .chain(self.children.values())
            .filter_map(|part| match part {
                Part::Entered(payload) => Some(payload),
                Part::Awaited | Part::Ended => None,
            })
            .filter(|payload| !payload.is_empty())
            .collect();
        if let [payload] = payloads.as_slice() {
            return Bytes::clone(payload);
        }
        let mut whole = BytesMut::with_capacity(payloads.iter().map(|part| part.len()).sum());
        for payload in payloads {
            whole.extend_from_slice(payload);
        }
        whole.freeze()
    }
}
