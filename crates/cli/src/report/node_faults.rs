//! What kept a job from running on some nodes, in words.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AgentId, IdSet};
use wire::JobFault;

use super::{Cause, Report, errno_text};

impl Report<'_> {
    /// What kept the job from running on some nodes.
    pub(super) fn node_faults(&mut self, faults: &[JobFault]) {
        let mut programs: BTreeMap<u32, Vec<(AgentId, String)>> = BTreeMap::new();
        let (mut directories, mut outputs) = (Vec::new(), Vec::new());
        for fault in faults {
            match fault {
                JobFault::Program { agent, app, words, errno: _ } => {
                    programs.entry(*app).or_default().push((*agent, words.clone()));
                }
                JobFault::Directory { agent, errno, words } => {
                    directories.push((*agent, format!("`{words}`: {}", errno_text(*errno))));
                }
                JobFault::Output { agent, errno, words } => {
                    outputs.push((*agent, format!("{words}: {}", errno_text(*errno))));
                }
                JobFault::Spawn { .. }
                | JobFault::Task { .. }
                | JobFault::Unfinalized { .. }
                | JobFault::Abort { .. }
                | JobFault::Pmi { .. } => {}
            }
        }
        for (app, faults) in programs {
            self.node_fault(&format!("could not run {}", self.program.quoted(app)), faults);
        }
        self.node_fault("could not enter the working directory", directories);
        let (here, there): (Vec<_>, _) =
            outputs.into_iter().partition(|(agent, _)| *agent == AgentId::HEAD);
        for (_, text) in here {
            self.line(format!("error: could not write {text}"));
        }
        self.node_fault("could not write output", there);
    }

    /// In the order of the nodes, whichever was heard of first.
    fn node_fault(&mut self, what: &str, mut faults: Vec<(AgentId, String)>) {
        if faults.is_empty() {
            return;
        }
        faults.sort_by_key(|(agent, _)| *agent);
        let agents: IdSet = faults.iter().map(|(agent, _)| agent.0).collect();
        let (count, of, names) = (agents.len(), self.names.len(), self.fold(&agents));
        self.line(format!("error: {what} on {count} of {of} nodes: {names}"));
        let set = |agent: AgentId| IdSet::range(agent.0, agent.0);
        let causes = faults.into_iter().map(|(agent, text)| Cause {
            agents: set(agent),
            below: IdSet::new(),
            by: IdSet::new(),
            text,
            words: String::new(),
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        });
        self.causes(causes.collect());
    }
}
