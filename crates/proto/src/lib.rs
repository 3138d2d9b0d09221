//! Sans-IO state machines of the tree: calls in, effects out.
#![no_std]

extern crate alloc;

mod backlog;
mod credit;
mod event;
mod fence;
mod gather;
mod heartbeat;
mod last_lines;
mod lines;
mod readers;
mod ring;

pub use backlog::Backlog;
pub use credit::{Credit, Grants};
pub use event::Event;
pub use fence::{Fence, FenceEffect, FenceError};
pub use heartbeat::{Silence, Ticker};
pub use last_lines::LastLines;
pub use lines::{Lines, PIECE_BYTES_MAX, QUIET, READ_BYTES_BEST};
pub use readers::Readers;
pub use ring::{Ring, RingEffect, RingError};
