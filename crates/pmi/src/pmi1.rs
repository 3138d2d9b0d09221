//! What the messages of PMI-1.2 say (`reference/pmi1.md`).

mod group;
pub(crate) mod reply;
mod request;

pub use group::GroupFault;
pub(crate) use group::Scope;
pub use request::Fields;
pub(crate) use request::{Request, SpawnBlock};
