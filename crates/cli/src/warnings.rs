//! What is not as the user may think, told as soon as it is heard of, and once for all nodes.

use std::collections::BTreeSet;

use observe::agent_name;
use wire::JobWarning;

/// Warnings that are shown; strangers who knock at many doors are not worth a screen.
const WARNINGS_MAX: usize = 20;

/// Those that were told.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    told: BTreeSet<String>,
}

impl Warnings {
    /// The line for it, unless it was told of another node, or there were too many.
    pub(crate) fn line(&mut self, names: &[String], warning: &JobWarning) -> Option<String> {
        let (agent, text) = match warning {
            JobWarning::RefusedCall { agent, words } => {
                (*agent, format!("somebody has called `PMI_PORT` and was turned away: {words}"))
            }
        };
        let is_new = self.told.len() < WARNINGS_MAX && self.told.insert(text.clone());
        is_new.then(|| format!("warning: {}: {text}\n", agent_name(names, agent)))
    }
}
