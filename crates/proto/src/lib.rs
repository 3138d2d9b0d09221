//! Sans-IO state machines of the tree: calls in, effects out.
#![no_std]

extern crate alloc;

mod event;

pub use event::Event;
