//! Take-over: what a spawn child was to start does not share its fate.
//!
//! A child that does not come up, is slow to (`slow.rs`), or is lost before the job is launched, leaves
//! agents below it. Its parent knows their names: those of a child that has not joined are still here,
//! and of the others it keeps what it gave them to start. It starts them itself, by the plan that the child would have
//! made, or hands them out. It costs the names at each level of the tree, folded, until the launch, and
//! no message: `Lost` says who is started again, and all above wait for these once more.
//!
//! What had joined below a lost child abandons itself, since its parent is gone, and comes up again as
//! another process. The old one can do no harm meanwhile: it has no path to the head, so nothing is
//! launched there. An agent that was reported as failed is struck off, and nobody starts it again but the
//! head (`second_try.rs`).

use alloc::string::String;
use alloc::vec::Vec;

use model::{AgentId, IdSet};
use wire::AgentLoss;

use crate::child::Child;
use crate::engine::{Engine, Phase};
use crate::names;

impl Engine {
    /// Those below a child that ends now: those to be started again, and those to be given up. Either is
    /// empty.
    pub(crate) fn orphans_of(&self, agent: AgentId) -> (IdSet, IdSet) {
        let orphans = self.children.get(&agent).map(|child| child.below.clone());
        let orphans = orphans.unwrap_or_default();
        if self.phase == Phase::Join && !self.joining.is_over {
            (orphans, IdSet::new())
        } else {
            (IdSet::new(), orphans)
        }
    }

    /// Handles that somebody is lost below a child.
    pub(crate) fn on_loss_below(&mut self, child: AgentId, loss: AgentLoss) {
        self.strike_off(child, &loss.agents);
        self.on_loss(loss);
    }

    /// Takes those who have failed or are lost off the list of a child: if it is gone, nobody starts them.
    pub(crate) fn strike_off(&mut self, child: AgentId, agents: &IdSet) {
        if let Some(child) = self.children.get_mut(&child) {
            child.below = child.below.difference(agents);
        }
    }

    /// Starts these instead of the child that was to.
    pub(crate) fn take_over(&mut self, agent: AgentId, orphans: &IdSet) {
        let Some(child) = self.children.get_mut(&agent).filter(|_| !orphans.is_empty()) else {
            return;
        };
        let (names, tree) = (child.take_names(orphans), child.tree);
        if self.handout.is_some() {
            return self.hand_out(orphans, names);
        }
        self.plan_children(&tree, orphans, names);
        self.set_ticker();
        self.start_waiting();
    }
}

impl Child {
    /// Takes the names of those below away, and returns those of `agents`, in order.
    fn take_names(&mut self, agents: &IdSet) -> Vec<String> {
        let own = core::mem::take(&mut self.names);
        let mut named: Vec<(u32, String)> = self.below.iter().zip(own).collect();
        for work in core::mem::take(&mut self.given) {
            let names =
                names::unfold(&work.names, work.below.len()).expect("they were folded here");
            named.extend(work.below.iter().zip(names));
        }
        self.below = IdSet::new();
        named.retain(|(agent, _)| agents.contains(*agent));
        named.sort_unstable_by_key(|(agent, _)| *agent);
        named.into_iter().map(|(_, name)| name).collect()
    }
}
