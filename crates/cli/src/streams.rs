//! The user's two streams, for commands that are not a job.

use std::io::{self, Write};

/// Words for the user. If standard error is gone, there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a result, and returns the exit status.
pub(crate) fn print(text: &str) -> u8 {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => 0,
        Err(_) => engine::exit_code::OUTPUT_CLOSED,
    }
}
