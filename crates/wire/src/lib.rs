//! What agents say to each other: messages, frames, and the channel that protects them.
#![no_std]

extern crate alloc;

mod job_spec;
mod message;
mod payload;
mod routed;

pub mod frame;

mod secret;

pub mod boot;

mod cipher;

pub mod channel;
pub mod handshake;
pub mod inbox;
pub mod outbox;

mod rehearsal;

pub use boot::{BootError, BootPayload};
pub use channel::{Channel, ChannelError, Preamble, Refusal, VERSION};
pub use frame::{Class, Decoder, Frame, FrameError, encode, encoded_len};
pub use handshake::{Established, Expected, Handshake};
pub use inbox::Inbox;
pub use job_spec::{App, IoSpec, JobSpec, Origin, OutputSpec, Stdin, app_of};
pub use message::{
    AgentLoss, Collective, Exchanged, Hello, JobFault, JobWarning, Launch, LossCause, Mark,
    MarkKind, Message, Milestone, Output, Part, Reads, SessionSpec, ShellFailureKind, StartCause,
    StartFailure, Stats, Stream, TaskRecord, Welcome, Work,
};
pub use outbox::Outbox;
pub use payload::Payload;
pub use rehearsal::rehearsed;
pub use routed::{Contact, Forward, Received, Routes};
pub use secret::{BuildHash, Ephemeral, Secret, SessionId};
