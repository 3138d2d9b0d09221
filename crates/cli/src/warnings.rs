//! What is not as the user may think, told as soon as it is heard of, and once for all nodes.

use std::collections::BTreeSet;

use observe::agent_name;
use wire::JobWarning;

use crate::report::Program;

/// Warnings that are shown; strangers who knock at many doors are not worth a screen.
const WARNINGS_MAX: usize = 20;

/// Those that were told.
#[derive(Debug)]
pub(crate) struct Warnings {
    program: Program,
    /// Without the node.
    known: BTreeSet<String>,
    /// As they were told, for the record.
    pub(crate) told: Vec<String>,
}

impl Warnings {
    /// None yet, of this job.
    pub(crate) fn of(program: Program) -> Warnings {
        Warnings { program, known: BTreeSet::new(), told: Vec::new() }
    }

    /// The lines for it, unless it was told of another node, or there were too many.
    pub(crate) fn line(&mut self, names: &[String], warning: &JobWarning) -> Option<String> {
        let (agent, text) = match warning {
            JobWarning::SpawnRefused { rank, words } => {
                let text = format!("a spawn that task {rank} asked for was refused: {words}");
                return self.tell(text);
            }
            JobWarning::RefusedCall { agent, words } => {
                (*agent, format!("somebody has called `PMI_PORT` and was turned away: {words}"))
            }
            JobWarning::OpenMpi { agent, app, library } => {
                let program = self.program.quoted(*app);
                let text = format!(
                    "{program} is linked with {library} of Open MPI, which asks for PMIx and not for PMI-1: \
                     each task will believe that it is alone\n\
                     hint: build it with MPICH or Intel MPI, or start it with the `mpirun` of Open MPI"
                );
                (*agent, text)
            }
        };
        let is_known = !self.known.insert(text.clone());
        let told = format!("{}: {text}", agent_name(names, agent));
        if is_known { None } else { self.tell(told) }
    }

    fn tell(&mut self, told: String) -> Option<String> {
        if self.told.len() >= WARNINGS_MAX {
            return None;
        }
        let line = format!("warning: {told}\n");
        self.told.push(told);
        Some(line)
    }
}
