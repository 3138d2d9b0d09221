//! How starts go: those of an agent, whoever makes them, and those that go wrong for some who make them
//! and work for others.

use model::{AgentId, IdSet};

use crate::fault::ShellPlan;
use crate::session::Session;

/// How starts go of those on one side that those on the other make.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    from: IdSet,
    to: IdSet,
    plan: ShellPlan,
}

impl Barrier {
    pub(crate) fn plan(&self) -> &ShellPlan {
        &self.plan
    }
}

impl Session {
    /// How the first starts of this agent go; later ones work.
    #[must_use]
    pub fn shell(mut self, agent: AgentId, plans: &[ShellPlan]) -> Session {
        self.shells.insert(agent, plans.to_vec());
        self
    }

    /// Every start of these that one of those makes goes like this.
    #[must_use]
    pub fn barrier(mut self, from: IdSet, to: IdSet, plan: ShellPlan) -> Session {
        self.barriers.push(Barrier { from, to, plan });
        self
    }

    /// How a start goes.
    pub(crate) fn plan_of(&self, starter: AgentId, agent: AgentId, attempt: u32) -> ShellPlan {
        let is_between = |it: &&Barrier| it.from.contains(starter.0) && it.to.contains(agent.0);
        match self.barriers.iter().find(is_between) {
            Some(barrier) => barrier.plan,
            None => {
                let plans = self.shells.get(&agent).map_or(&[][..], Vec::as_slice);
                let attempt = usize::try_from(attempt).unwrap_or(usize::MAX);
                plans.get(attempt).copied().unwrap_or(ShellPlan::Works)
            }
        }
    }
}
