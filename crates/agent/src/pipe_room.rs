//! Room in a pipe that we write to, whose reader lags behind.

use std::os::fd::AsFd;

/// What the pipe is to hold, so that both ends wake each other less often: who reads little at a time wakes the
/// writer for each page.
pub(crate) const LARGE_PIPE_BYTES: usize = 256 * 1024;

/// Whether a pipe was made larger.
#[derive(Debug, Default)]
pub(crate) struct PipeRoom {
    is_enlarged: bool,
}

impl PipeRoom {
    /// Handles that the pipe is full: the first time, it is made larger. Where it is no pipe, or the user's share of
    /// pipe memory is used up, it stays as it is.
    pub(crate) fn on_full(&mut self, fd: impl AsFd) {
        if !self.is_enlarged {
            let _ = os::stream::set_pipe_bytes(fd, LARGE_PIPE_BYTES);
            self.is_enlarged = true;
        }
    }
}
