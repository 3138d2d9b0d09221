//! Signals as something to read: blocked, then taken from a descriptor, so that no handler runs.
#![expect(unsafe_code, reason = "rustix has neither signal masks nor signalfd")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Pid, Signal};

/// Signals that are blocked and wait here.
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    /// Which.
    pub signal: Signal,
    /// Who sent it; 0 when the kernel did, as for `^C`.
    pub sender: Pid,
}

impl SignalFd {
    /// Blocks `signals` and collects them. Children get an empty mask from [`spawn`](crate::spawn()).
    ///
    /// # Errors
    /// When descriptors have run out.
    pub fn new(signals: &[Signal]) -> io::Result<SignalFd> {
        let set = set_of(signals);
        // SAFETY: `set` is valid; the new descriptor is ours alone.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(SignalFd { fd: OwnedFd::from_raw_fd(fd) }),
            }
        }
    }

    /// Takes the next signal. Call until `None`.
    ///
    /// Several signals of one number that arrived together are one.
    ///
    /// # Errors
    /// None is expected.
    pub fn read(&self) -> io::Result<Option<Received>> {
        // SAFETY: zeroed is a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let bytes = size_of_val(&info);
        // SAFETY: the kernel writes at most `bytes` bytes of a plain struct.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), bytes) };
        if n == -1 {
            let error = io::Error::last_os_error();
            let nothing = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
            return if nothing.contains(&error.kind()) { Ok(None) } else { Err(error) };
        }
        let by_kernel = info.ssi_code == libc::SI_KERNEL;
        let sender = if by_kernel { 0 } else { info.ssi_pid.cast_signed() };
        Ok(Some(Received { signal: Signal(info.ssi_signo.cast_signed()), sender }))
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Unblocks `signals` and gives them their default action: what a process does before it stops or
/// kills itself with one, so that its shell sees the truth.
pub fn reset(signals: &[Signal]) {
    for signal in signals {
        set_disposition(*signal, libc::SIG_DFL);
    }
    // SAFETY: the set is valid.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set_of(signals), ptr::null_mut());
    }
}

/// Ignores `signals`, so that for instance a write to a closed pipe is an error and no death.
pub fn ignore(signals: &[Signal]) {
    for signal in signals {
        set_disposition(*signal, libc::SIG_IGN);
    }
}

/// Whether `signal` means only what a program makes of it: nothing about the process itself, its
/// terminal, its end or its children.
pub fn is_for_programs(signal: Signal) -> bool {
    const NAMED: [i32; 9] = [
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGWINCH,
        libc::SIGURG,
        libc::SIGIO,
        libc::SIGPWR,
    ];
    // The C library keeps two below these.
    NAMED.contains(&signal.0) || (34..=64).contains(&signal.0)
}

/// Whether `signal` is ignored, as `nohup` leaves SIGHUP.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: zeroed is a valid sigaction; without a new one the call only tells.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let told = unsafe { libc::sigaction(signal.0, ptr::null(), &mut action) };
    told == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Sends `signal` to ourselves.
pub fn raise(signal: Signal) {
    // SAFETY: no preconditions.
    unsafe { libc::raise(signal.0) };
}

pub(crate) fn set_disposition(signal: Signal, disposition: libc::sighandler_t) {
    CHANGED.fetch_or(bit(signal.0), Ordering::Relaxed);
    // SAFETY: both dispositions used here are constants, not handlers.
    unsafe { libc::signal(signal.0, disposition) };
}

/// The signals that may have another than their default action, a bit for each number from 1 on:
/// those that had it when this was asked first, and those that were changed here.
pub(crate) fn changed() -> u64 {
    let found = || (1..=64).filter(|number| !is_default(*number)).fold(0, |set, n| set | bit(n));
    FOUND.get_or_init(found) | CHANGED.load(Ordering::Relaxed)
}

static FOUND: OnceLock<u64> = OnceLock::new();
static CHANGED: AtomicU64 = AtomicU64::new(0);

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// Not through the C library, which tells nothing of the signals that it keeps to itself.
fn is_default(number: i32) -> bool {
    // The kernel's own struct is no larger than this, and begins with the handler.
    let mut action = [0_u64; 8];
    let old = action.as_mut_ptr();
    let none = ptr::null::<u64>();
    // SAFETY: without a new action the call only tells.
    let told = unsafe { libc::syscall(libc::SYS_rt_sigaction, number, none, old, SET_BYTES) };
    told == 0 && action[0] == 0
}

/// The kernel's set of signals.
const SET_BYTES: usize = size_of::<u64>();

pub(crate) fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: zeroed is a valid sigset_t. Invalid numbers are refused and stay out.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal.0);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_programs_ignore_sigpipe_and_that_is_seen() {
        assert!(is_ignored(Signal::PIPE));
        assert!(!is_ignored(Signal::SEGV));
    }
}
