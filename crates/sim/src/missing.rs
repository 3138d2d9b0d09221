//! Sessions whose jobs can do without some nodes.

use crate::session::Session;

impl Session {
    /// The last so many nodes are spares.
    #[must_use]
    pub fn spares(mut self, spares: u32) -> Session {
        self.spares = spares;
        self
    }

    /// The job runs without nodes that are missing, if so many are there.
    #[must_use]
    pub fn on_missing_continue(mut self, nodes_min: u32) -> Session {
        self.nodes_min = Some(nodes_min);
        self
    }

    /// The job has as many tasks as it was planned with, whoever is missing.
    #[must_use]
    pub fn fixed(mut self) -> Session {
        self.is_fixed = true;
        self
    }
}
