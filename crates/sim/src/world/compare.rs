//! Comparing what the head says with the rulebook.

use engine::Input;
use model::{AgentId, IdSet};
use proto::Event;

use super::World;
use crate::fault::ShellPlan;
use crate::link::Link;
use crate::process::{End, Process, ProcessId};
use crate::report::Report;
use crate::rulebook::Truth;
use crate::session::Session;
use crate::shell::Shell;

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
        // The end of a job that cannot run is nobody else's.
        if let Event::Stopping(job) = event
            && self.failing_jobs.contains(job)
        {
            return;
        }
        let World { shells, processes, links, hurt, session, checker, rulebook, now, .. } = self;
        let seen = Seen { shells, processes, links, hurt, session, report: &checker.report };
        let wrong = rulebook.on_event(*now, event, &seen);
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

/// What has happened in the world. Each question but one is a walk through much of it, so it is for
/// what is rare: losses.
struct Seen<'a> {
    shells: &'a [Shell],
    processes: &'a [Process],
    links: &'a [Link],
    hurt: &'a IdSet,
    session: &'a Session,
    report: &'a Report,
}

impl Truth for Seen<'_> {
    fn was_linked(&self, agent: AgentId) -> bool {
        self.links.iter().any(|link| self.processes[link.ends[1].0].agent == agent)
    }

    fn was_welcomed(&self, agent: AgentId) -> bool {
        self.report.welcomes.contains_key(&agent)
    }

    fn was_hurt(&self, agent: AgentId) -> bool {
        let runs = self.shells.iter().rev().filter(|shell| shell.agents.contains(&agent));
        let parent = runs.clone().next().map(|shell| self.processes[shell.by.0].agent);
        let is_hurt = |agent: AgentId| self.hurt.contains(agent.0);
        is_hurt(agent)
            || parent.is_some_and(is_hurt)
            || !self.session.shells_last()
                && runs.clone().any(|shell| shell.plan == ShellPlan::EndsEarly)
    }
}
