//! An error and its sources as one line.

use std::error::Error;

/// The error, and behind colons what caused it.
pub fn error_chain(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |&source| source.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
