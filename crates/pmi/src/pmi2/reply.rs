//! The frames that clients get: `cmd=NAME-response;` with the union of what all known clients look for.

use bytes::BytesMut;

use super::frame::Frame;

/// How a request ended (`reference/pmi2.md` §7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReturnCode {
    Fail = -1,
    Success = 0,
    InvalidArgument = 3,
    InvalidKey = 4,
    InvalidKeyLength = 5,
    InvalidValueLength = 7,
    Other = 14,
}

/// Writes replies.
pub(crate) enum Reply {}

impl Reply {
    /// Begins the answer to a request called `name` of this thread, if it said which it is.
    pub(crate) fn to<'a>(
        out: &'a mut BytesMut,
        name: &[u8],
        thread: Option<&[u8]>,
        code: ReturnCode,
    ) -> Frame<'a> {
        let frame = Frame::begin(out, &[name, b"-response"]);
        let frame = match thread {
            Some(thread) => frame.bytes("thrid", thread),
            None => frame,
        };
        frame.field("rc", code as i32)
    }
}
