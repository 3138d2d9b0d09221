//! Sessions whose ranks do not follow the order of nodes.

use model::Order;

use crate::session::Session;

impl Session {
    /// Which of the placed tasks gets the next rank.
    #[must_use]
    pub fn ranked(mut self, order: Order) -> Session {
        self.ranking = Some(order);
        self
    }
}
