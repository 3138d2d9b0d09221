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

/// Whether a field is called so, with a number behind it.
pub(crate) fn is_numbered(field: &[u8], name: &str) -> bool {
    let number = field.strip_prefix(name.as_bytes());
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}
