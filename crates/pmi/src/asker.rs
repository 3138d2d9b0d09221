//! How a client has asked what is answered later: its answer is in the same dialect.

use bytes::Bytes;

/// The dialect of a request, and whose it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Asker {
    /// In PMI-1.
    Line,
    /// In PMI-2; one of several threads said which it is.
    Frame { thread: Option<Bytes> },
}
