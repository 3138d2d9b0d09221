//! Whom a job ran on, in words, and what that makes of those who were missing.

use std::fmt;

use engine::Outcome;
use model::{IdSet, PlacementError};
use wire::AgentLoss;

use super::Report;

/// Whether something ended the job, or the job ran without it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Level {
    Error,
    Warning,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Error => "error",
            Level::Warning => "warning",
        })
    }
}

/// A loss matters where the job ran there, or before it ran at all.
pub(super) fn level_of(loss: &AgentLoss, members: &IdSet) -> Level {
    let is_untouched = members.difference(&loss.agents) == *members;
    if is_untouched && !members.is_empty() { Level::Warning } else { Level::Error }
}

impl Report<'_> {
    /// Whom the job ran on, where that was not as planned, or why it could not run on those who were
    /// there.
    pub(super) fn members(&mut self, outcome: &Outcome) {
        let nodes = self.names.len();
        if let Some(PlacementError::TooManyTasks { tasks, slots, nodes: there }) = outcome.shortage
        {
            let short = u64::from(tasks).saturating_sub(slots);
            self.line(format!(
                "error: {there} of {nodes} nodes are up, and have {slots} slots: {short} too few for \
                 {tasks} tasks"
            ));
            self.line("hint: ask for fewer tasks (`-n`), or give more hosts and `--spares`".into());
        } else if let Some(error) = &outcome.shortage {
            self.line(format!("error: {error}"));
        }
        if let Some(map) = &outcome.map {
            let (count, tasks, on) =
                (outcome.members.len(), map.len(), self.fold(&outcome.members));
            self.line(format!("warning: {tasks} tasks ran on {count} of {nodes} nodes: {on}"));
        }
        let starts = outcome.start_failures.iter().map(|failure| &failure.agents);
        let losses = outcome.losses.iter().map(|loss| &loss.agents);
        let gone = starts.chain(losses).fold(IdSet::new(), |gone, agents| gone.union(agents));
        let there = (nodes as u64).saturating_sub(gone.len());
        if let Some(min) = self.program.nodes_min.filter(|&min| there < u64::from(min))
            && outcome.members.is_empty()
        {
            self.line(format!(
                "error: {there} of {nodes} nodes are up, and the job needs {min} (`--min-nodes`)"
            ));
        }
    }
}
