//! The terminal, as far as a job's front end must know it.

use std::os::fd::AsFd;

/// Whether `fd` is a terminal.
pub fn is_terminal(fd: impl AsFd) -> bool {
    rustix::termios::isatty(fd)
}

/// Whether `fd` is our terminal and we are in its foreground: only then does reading from it not
/// stop us.
pub fn is_ours(fd: impl AsFd) -> bool {
    rustix::termios::tcgetpgrp(fd).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The terminal's width in characters, when `fd` is one and knows it.
pub fn columns(fd: impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
