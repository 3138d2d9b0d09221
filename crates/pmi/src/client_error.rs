//! What a client can do wrong: its own fault, never ours, and never a panic.

use alloc::string::String;
use core::fmt;

use model::PmiDialect;

use crate::GroupFault;

/// A client broke the protocol. No further bytes of it are read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// A line without `cmd=` or `mcmd=` at its front.
    #[error("not a PMI command: `{0}`")]
    NotACommand(Excerpt),
    /// A command that PMI-1.2 does not have.
    #[error("unknown PMI command: `{0}`")]
    UnknownCommand(Excerpt),
    /// A command without one of its fields.
    #[error("PMI command without the field `{field}`: `{line}`")]
    MissingField {
        /// The field.
        field: &'static str,
        /// The command as it came.
        line: Excerpt,
    },
    /// A field that should be a number.
    #[error("PMI command whose field `{field}` is not a number: `{line}`")]
    NotANumber {
        /// The field.
        field: &'static str,
        /// The command as it came.
        line: Excerpt,
    },
    /// A message longer than the limit.
    #[error("PMI message of more than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The connection ended inside a message.
    #[error("connection ended inside the PMI message `{0}`")]
    Unfinished(Excerpt),
    /// A client speaks what the user has not let the job speak.
    #[error("{0} is what `--pmi` leaves out: use `--pmi auto`")]
    NotOffered(PmiDialect),
    /// A second `barrier_in` before the `barrier_out` of the first.
    #[error("entered a PMI barrier that it is waiting in already")]
    BarrierTwice,
    /// A barrier of a group that cannot be. No reply would do: MPICH's client takes any for the barrier's end.
    #[error("PMI barrier of the group `{group}`: {fault}")]
    Group {
        /// The group as it came.
        group: Excerpt,
        /// What is wrong with it.
        fault: GroupFault,
    },
    /// Something else than its rank from who connects to `PMI_PORT`.
    #[error("it does not say its rank, as `cmd=initack` and PMI-2's `cmd=fullinit` do, but `{0}`")]
    NotACall(Excerpt),
    /// `initack` over a connection that is known to be a task's.
    #[error("PMI `initack` of a task that is connected")]
    CallTwice,
    /// A command that this server does not offer, and to which no failure reply exists.
    #[error("PMI command that is not supported: `{0}`")]
    Unsupported(Excerpt),
}

/// The front of some bytes from outside, made safe to show.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Enough to recognise a command by, and still one line on a terminal.
    const BYTES_MAX: usize = 72;

    /// Escapes `bytes`, and cuts them when they are many.
    pub fn new(bytes: &[u8]) -> Excerpt {
        let shown = bytes.get(..Self::BYTES_MAX).unwrap_or(bytes);
        let mut text: String = shown.escape_ascii().map(char::from).collect();
        if shown.len() < bytes.len() {
            text.push_str("...");
        }
        Excerpt(text)
    }

    /// The escaped text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
