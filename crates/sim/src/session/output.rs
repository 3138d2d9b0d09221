//! Where the output of a session's tasks goes.

use model::{AgentId, FilePattern};
use wire::OutputSpec;

use super::Session;

impl Session {
    /// Both outputs go to files of their own, on the tasks' nodes (`local`) or at the head, and to the user,
    /// too (`tee`).
    #[must_use]
    pub fn files(self, local: bool, tee: bool) -> Session {
        let file = |name: &str| Some(FilePattern::new(name).expect("a pattern"));
        let (stdout, stderr) = (file("/out/%r.out"), file("/out/%r.err"));
        let merged = self.output.merged;
        Session { output: OutputSpec { stdout, stderr, local, tee, merged }, ..self }
    }

    /// Tasks write standard error where they write standard output.
    #[must_use]
    pub fn merged(mut self) -> Session {
        self.output.merged = true;
        self
    }

    /// The disk of this agent (0: the head) takes so many bytes of output.
    #[must_use]
    pub fn disk(mut self, agent: AgentId, bytes: u64) -> Session {
        self.disks.insert(agent, bytes);
        self
    }
}
