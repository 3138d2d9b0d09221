//! What agents say to each other: messages, frames, and the channel that protects them.
#![no_std]

extern crate alloc;

mod message;

pub use message::{
    AgentLoss, Hello, JobFault, JobSpec, LossCause, Message, Output, SessionSpec, ShellFailureKind,
    StartCause, StartFailure, Stats, Stream, Welcome,
};

/// The protocol's version; agents of one session must agree.
pub const VERSION: u16 = 1;

/// Bytes of a message on the wire. (Replaced by the codec.)
pub fn encoded_len(message: &Message) -> usize {
    match message {
        Message::Output(output) => output.data.len() + 32,
        _ => postcard::experimental::serialized_size(message).unwrap_or(0),
    }
}
