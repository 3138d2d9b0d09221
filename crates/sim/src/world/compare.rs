//! Comparing what the head says with the rulebook.

use engine::Input;
use model::{AgentId, IdSet};
use proto::Event;

use super::World;
use crate::fault::ShellPlan;
use crate::process::{End, ProcessId};
use crate::rulebook::Truth;

impl World<'_> {
    /// Tells the rulebook what the user does.
    pub(super) fn follow_user(&mut self, input: &Input) {
        if let Input::UserSignal(signal) = *input {
            self.rulebook.on_user_signal(self.now, signal);
        } else if let Input::OutputClosed(_) = input {
            self.rulebook.on_output_closed(self.now);
        }
    }

    /// Compares what the head tells.
    pub(super) fn compare(&mut self, event: &Event) {
        let World { shells, processes, links, hurt, session, checker, rulebook, now, .. } = self;
        let truth = |agent: AgentId| {
            let runs = shells.iter().rev().filter(|shell| shell.agents.contains(&agent));
            let parent = runs.clone().next().map(|shell| processes[shell.by.0].agent);
            let is_hurt = |agent: AgentId| hurt.contains(agent.0);
            Truth {
                was_linked: links.iter().any(|link| processes[link.ends[1].0].agent == agent),
                was_welcomed: checker.report.welcomes.contains_key(&agent),
                was_hurt: is_hurt(agent)
                    || parent.is_some_and(is_hurt)
                    || !session.shells_last()
                        && runs.clone().any(|shell| shell.plan == ShellPlan::EndsEarly),
            }
        };
        let wrong = rulebook.on_event(*now, event, truth);
        self.checker.violations.extend(wrong);
    }

    /// Compares the exit status.
    pub(super) fn compare_status(&mut self, end: End) {
        let wrong = match end {
            End::Exit(code) => self.rulebook.on_exit(self.now, code, true),
            End::Abandon(code) => self.rulebook.on_exit(self.now, code, false),
            End::Crash => None,
        };
        self.checker.violations.extend(wrong);
    }

    /// Every agent that ended while its tasks ran is named, unless the head was killed.
    pub(super) fn check_told(&mut self) {
        let Some(End::Exit(_)) = self.processes[ProcessId::HEAD.0].end else { return };
        let outcome = self.processes[ProcessId::HEAD.0].engine.outcome();
        let lost = outcome.losses.iter().map(|loss| &loss.agents);
        let told = lost.fold(outcome.incomplete.clone(), |told, agents| told.union(agents));
        let untold: IdSet = self.cut_short.difference(&told);
        if !untold.is_empty() {
            self.checker.violate(format!("agents {untold} ended before their tasks, untold"));
        }
    }
}
