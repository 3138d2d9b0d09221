//! One agent's part in the fences of a job: every task below it enters, then all of them leave.
//!
//! An agent waits for its own tasks and for one message per child subtree, then sends one message
//! to its parent; the head answers with the whole, which travels back down the same edges. So the
//! head receives one message per child, not one per node, and every link carries two messages a
//! fence. Payloads are only concatenated: what is in them is `pmi`'s. Of large ones the caller may have
//! parts sent before, which do not come by here: whether they may, this says.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::AgentId;

use crate::gather::{Ended, Gather};

/// The fences of one job on one agent, one after the other; what comes down at their end is an `R`.
#[derive(Debug)]
pub struct Fence<R = Bytes> {
    gather: Gather<Bytes>,
    effects: VecDeque<FenceEffect<R>>,
}

/// What the caller must do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FenceEffect<R = Bytes> {
    /// Tell the parent that all below have entered this fence, with what they contribute.
    Enter(u32, Bytes),
    /// Let the local tasks go, and pass the whole to every child.
    Release(u32, R),
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

impl<R> Fence<R> {
    /// The fences of a job with tasks on this agent (`local`) and below these children.
    pub fn new(local: bool, children: impl IntoIterator<Item = AgentId>) -> Fence<R> {
        Fence { gather: Gather::new(local, children), effects: VecDeque::new() }
    }

    /// Other fences of those parts that may still enter these: none is entered yet.
    pub fn beside<S>(&self) -> Fence<S> {
        Fence::new(self.counts_local(), self.children())
    }

    /// Waits for one more child. Nobody has entered a fence yet.
    pub fn add_child(&mut self, child: AgentId) {
        self.gather.add_child(child);
    }

    /// Handles that all local tasks have entered.
    pub fn on_local_enter(&mut self, payload: Bytes) {
        self.gather.enter_local(payload);
        self.advance();
    }

    /// Handles a child's message that its whole subtree has entered.
    pub fn on_child_enter(
        &mut self,
        child: AgentId,
        fence: u32,
        payload: Bytes,
    ) -> Result<(), FenceError> {
        if !self.gather.enter_child(child, fence, payload) {
            return Err(FenceError::UnexpectedEnter { child, fence });
        }
        self.advance();
        Ok(())
    }

    /// Whether a child may still send a part of what those below it bring into a fence.
    ///
    /// # Errors
    /// When that does not wait for it.
    pub fn check_part(&self, child: AgentId, fence: u32) -> Result<(), FenceError> {
        let is_awaited = self.gather.awaits_child(child, fence);
        is_awaited.then_some(()).ok_or(FenceError::UnexpectedEnter { child, fence })
    }

    /// Whether a release by the parent would be of the fence that was entered here; not so where nobody is left to
    /// enter any.
    ///
    /// # Errors
    /// When it would be early.
    pub fn awaits_release(&self, fence: u32) -> Result<bool, FenceError> {
        match self.gather.would_end(fence) {
            Ended::Well => Ok(true),
            Ended::NotHere => Ok(false),
            Ended::Early => Err(FenceError::EarlyRelease(fence)),
        }
    }

    /// The number of the fence that may be entered, or is.
    pub fn number(&self) -> u32 {
        self.gather.number()
    }

    /// The children below which all have entered.
    pub fn entered_children(&self) -> impl Iterator<Item = AgentId> {
        self.gather.brought().filter_map(|(child, _)| child)
    }

    /// Whether the local tasks may still enter, or have entered.
    pub(crate) fn counts_local(&self) -> bool {
        self.gather.counts_local()
    }

    /// The children below which tasks may still enter, or have entered.
    pub fn children(&self) -> impl Iterator<Item = AgentId> {
        self.gather.children()
    }

    /// The children that are waited for.
    pub fn awaited_children(&self) -> impl Iterator<Item = AgentId> {
        self.gather.awaited_children()
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

    /// Handles the parent's release.
    pub fn on_release(&mut self, fence: u32, brought: R) -> Result<(), FenceError> {
        match self.gather.end(fence) {
            Ended::Well => self.effects.push_back(FenceEffect::Release(fence, brought)),
            Ended::NotHere => {}
            Ended::Early => return Err(FenceError::EarlyRelease(fence)),
        }
        Ok(())
    }

    /// The next effect. Call until `None` after every `on_*` call.
    pub fn poll_effect(&mut self) -> Option<FenceEffect<R>> {
        self.effects.pop_front()
    }

    /// Gives back the memory that the queue of effects kept for the next time.
    pub fn shrink(&mut self) {
        self.effects.shrink_to_fit();
    }

    fn advance(&mut self) {
        if let Some(number) = self.gather.completes() {
            let whole = self.take_whole();
            self.effects.push_back(FenceEffect::Enter(number, whole));
        }
    }

    /// The payloads of all parts, which are kept no longer.
    fn take_whole(&mut self) -> Bytes {
        let payloads: Vec<Bytes> =
            self.gather.brought_mut().map(mem::take).filter(|part| !part.is_empty()).collect();
        if let [payload] = payloads.as_slice() {
            return Bytes::clone(payload);
        }
        let mut whole = BytesMut::with_capacity(payloads.iter().map(|part| part.len()).sum());
        for payload in payloads {
            whole.extend_from_slice(&payload);
        }
        whole.freeze()
    }
}
