//! The few system calls of the fixtures for which there is no safe wrapper.

#![expect(unsafe_code, reason = "adopting a descriptor and setting a signal's disposition")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes ownership of the descriptor that a launcher says it left open for this process.
pub(crate) fn adopt_descriptor(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes any number and touches no memory.
    if fd <= 2 || unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the PMI descriptor is not open"));
    }
    // SAFETY: the descriptor is open, as was just seen. It was inherited, so nothing in this process owns
    // it, provided that each fixture adopts it once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ignores a signal from here on; what this process starts ignores it too.
pub fn ignore_signal(signal: i32) -> io::Result<()> {
    set_disposition(signal, libc::SIG_IGN)
}

/// Dies of a signal by its default action; returns only when the signal does not kill.
pub fn die_of_signal(signal: i32) -> io::Result<()> {
    // Rust's own handlers for SIGSEGV and SIGBUS would swallow a signal that no fault has caused.
    // The dispositions of SIGKILL and SIGSTOP cannot be set, which changes nothing here.
    let _ = set_disposition(signal, libc::SIG_DFL);
    // SAFETY: sends a signal, and touches no memory.
    if unsafe { libc::raise(signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends a signal of any number, real-time ones included, which rustix does not name.
pub fn send_signal(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: sends a signal, and touches no memory.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_disposition(signal: i32, disposition: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: the disposition is SIG_IGN or SIG_DFL, so no code of ours runs in a handler.
    if unsafe { libc::signal(signal, disposition) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
