//! What the messages of PMI-2 say (`reference/pmi2.md`).

pub(crate) mod allgather;
mod fields;
mod frame;
mod reply;
mod request;

pub use allgather::AllgatherPiece;
pub use fields::Fields;
pub use frame::Frame;
pub(crate) use reply::{Reply, ReturnCode};
pub(crate) use request::{Asked, Refusal, Request};
