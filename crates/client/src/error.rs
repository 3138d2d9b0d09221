//! What can go wrong between a program and its PMI server.

use std::io;

use pmi::{ClientError, Excerpt, SnapshotError};

/// A call of PMI that has not done what it is for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable of the environment that is to name the connection does not.
    #[error("`{name}` is `{value}`, which is no {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The descriptor in `PMI_FD` is not open: something between launcher and program has closed it.
    #[error("take the PMI connection from descriptor {number}, which `PMI_FD` names")]
    Descriptor {
        /// Its number.
        number: i32,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody answers at `PMI_PORT`.
    #[error("connect to the PMI server at {address}, which `PMI_PORT` names")]
    Connect {
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The connection does not take what is asked.
    #[error("send `{request}` to the PMI server")]
    Send {
        /// The request.
        request: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The connection has failed.
    #[error("read the PMI server's answer to `{request}`")]
    Receive {
        /// The request.
        request: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The server is gone.
    #[error("the PMI server has closed the connection and has not answered `{request}`")]
    Closed {
        /// The request.
        request: &'static str,
    },
    /// The server has sent what is no message.
    #[error("the PMI server has answered `{request}` with what is no message")]
    NoMessage {
        /// The request.
        request: &'static str,
        /// What is wrong with it.
        source: ClientError,
    },
    /// The server has sent something else than the answer.
    #[error("the PMI server has answered `{request}` with `{answer}`")]
    Unexpected {
        /// The request.
        request: &'static str,
        /// What came.
        answer: Excerpt,
    },
    /// An earlier call has found the connection broken, and told why.
    #[error("the PMI connection has failed before")]
    Broken,
    /// The server has said no.
    #[error("the PMI server refuses `{request}` with code {code}: {words}")]
    Refused {
        /// The request.
        request: &'static str,
        /// Its code.
        code: i32,
        /// Its reason.
        words: Excerpt,
    },
    /// Text that the protocol cannot carry.
    #[error("`{request}` cannot carry `{text}`: {why}")]
    Text {
        /// The request.
        request: &'static str,
        /// The text.
        text: Excerpt,
        /// Why not.
        why: &'static str,
    },
    /// A request longer than a message may be.
    #[error("`{request}` of {bytes} bytes is more than the {bytes_max} that fit a message of PMI")]
    TooLong {
        /// The request.
        request: &'static str,
        /// Its length, or that of its value.
        bytes: usize,
        /// How long that may be.
        bytes_max: usize,
    },
    /// Between the begin of a fence or barrier and the wait for its end, the space of keys must be left alone.
    #[error("`{request}` while a fence is under way: wait for its end first")]
    FenceUnderWay {
        /// The request.
        request: &'static str,
    },
    /// A program takes part in one collective of a kind at a time.
    #[error("`{request}` while another is under way: wait for its end first")]
    UnderWay {
        /// The request.
        request: &'static str,
    },
    /// What the server shares with us is not what it should be.
    #[error("look a key up in what the PMI server shares")]
    Snapshot(#[source] SnapshotError),
    /// An answer that came in memory is not there, or not whole.
    #[error("read the PMI server's answer to `{request}` in the memory that it shares")]
    Shared {
        /// The request.
        request: &'static str,
    },
    /// Nothing is under way that could be waited for.
    #[error("wait for a request that is not under way")]
    NotUnderWay,
}
