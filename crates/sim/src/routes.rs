//! Sessions whose jobs' messages take other ways than the spawn tree.

use model::{IdSet, Route};

use crate::session::Session;

impl Session {
    /// The routing tree, by its name.
    ///
    /// # Panics
    /// When no route has this name.
    #[must_use]
    pub fn route(self, name: &str) -> Session {
        let route = Route::parse_or_same(name).expect("a route's name");
        self.spec(|spec| spec.route = route)
    }

    /// Each member opens so many redundant links.
    #[must_use]
    pub fn redundancy(self, redundancy: u8) -> Session {
        self.spec(|spec| spec.redundancy = redundancy)
    }

    /// Agents ask where others listen, as in very large sessions.
    #[must_use]
    pub fn contacts_on_demand(self) -> Session {
        self.spec(|spec| spec.pushes_contacts = false)
    }

    /// These agents can't listen, or nobody reaches them.
    #[must_use]
    pub fn deaf(mut self, deaf: IdSet) -> Session {
        self.deaf = deaf;
        self
    }
}
