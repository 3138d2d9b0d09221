//! What the messages of PMI-2 say (`reference/pmi2.md`).

mod fields;
mod reply;
mod request;

pub(crate) use reply::{Reply, ReturnCode};
pub(crate) use request::{Asked, Refusal, Request};
