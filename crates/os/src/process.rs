//! How processes end, and how to end them.
//!
//! There should be one reaper. [`try_wait`] takes the status of a child we know; [`reap_any`]
//! takes any, so a sub-reaper that uses it must look each pid up among its own.
#![expect(unsafe_code, reason = "rustix does not say which child a wait for any child found")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::PidfdFlags;

use crate::{Clock, Signal, signals};

mod descendants;
mod environment;

pub use descendants::{Process, descendants_of};
pub use environment::environment_of;

/// A process's number.
pub type Pid = i32;

/// Begins a session, and leaves the one before to the processes that this one has created.
///
/// Linux can make each session a scheduling group (sched(7), "The autogroup feature"). In one of its own, a process that
/// mostly sleeps gets a processor when it wakes, however much time those that it has created have used.
///
/// # Errors
/// When its parent is in another session, or gone.
pub fn begin_session() -> io::Result<()> {
    // The leader of a process group may not, and a group of its own is what a session begins with.
    let parent = rustix::process::getppid();
    rustix::process::setpgid(None, Some(rustix::process::getpgid(parent)?))?;
    rustix::process::setsid()?;
    Ok(())
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ExitStatus {
    /// It called `exit` with this.
    Exited(u8),
    /// A signal killed it.
    Signaled {
        /// Which.
        signal: Signal,
        /// Whether it left a core file.
        core_dumped: bool,
    },
}

impl ExitStatus {
    /// Whether it exited with 0.
    pub fn success(self) -> bool {
        self == ExitStatus::Exited(0)
    }

    /// As a shell has it: `128 + n` for signal n.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Exited(code) => code,
            ExitStatus::Signaled { signal, .. } => 128_u8.saturating_add(signal.0 as u8),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Exited(code) => write!(f, "exited with status {code}"),
            ExitStatus::Signaled { signal, core_dumped: false } => write!(f, "killed by {signal}"),
            ExitStatus::Signaled { signal, core_dumped: true } => {
                write!(f, "killed by {signal} (core dumped)")
            }
        }
    }
}

/// What a process and those of its children that it waited for have used (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// Processor time in its own code.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The most memory that it held at once, in KiB; no less than its starter did.
    pub rss_max_kib: u64,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// How often it waited for something.
    pub voluntary_switches: u64,
    /// How often its processor was taken away.
    pub involuntary_switches: u64,
}

/// What a wait for any child found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reaped {
    /// This child has ended, and its number is free again; what it used.
    Ended(Pid, ExitStatus, Usage),
    /// There are children, and all of them run.
    Running,
    /// There are no children, and so no descendants of a sub-reaper.
    NoChildren,
}

/// A descriptor for a child that was not reaped: readable when it has ended.
///
/// # Errors
/// When it is no child, or descriptors have run out.
pub fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Takes the status of a child if it has ended. Once.
///
/// # Errors
/// When `pidfd` is of no child of ours, or its status was taken before.
pub fn try_wait(pidfd: impl AsFd) -> io::Result<Option<ExitStatus>> {
    let id = pidfd.as_fd().as_raw_fd().cast_unsigned();
    Ok(wait_for(libc::P_PIDFD, id, libc::WEXITED)?.map(|(_, state)| match state {
        State::Ended(status) => status,
        State::Stopped(_) => unreachable!("only WEXITED was asked for"),
    }))
}

/// The signal that stopped the child, if it has been stopped since the last call.
///
/// # Errors
/// When `pidfd` is of no child of ours.
pub fn try_wait_stopped(pidfd: impl AsFd) -> io::Result<Option<Signal>> {
    let id = pidfd.as_fd().as_raw_fd().cast_unsigned();
    Ok(wait_for(libc::P_PIDFD, id, libc::WSTOPPED)?.and_then(|(_, state)| match state {
        State::Stopped(signal) => Some(signal),
        State::Ended(_) => None,
    }))
}

/// Takes the status of any child that has ended, adopted ones too. Call until none has.
///
/// # Errors
/// None is expected.
pub fn reap_any() -> io::Result<Reaped> {
    // SAFETY: zeroed is a valid rusage, and both pointers are valid.
    let (pid, status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed());
        (libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage), status, usage)
    };
    match pid {
        0 => Ok(Reaped::Running),
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reaped::NoChildren),
            error => Err(error),
        },
        pid => Ok(Reaped::Ended(pid, ended(status), Usage::of(&usage))),
    }
}

/// The end that a status of `wait` tells.
fn ended(status: i32) -> ExitStatus {
    if libc::WIFEXITED(status) {
        return ExitStatus::Exited((libc::WEXITSTATUS(status) & 0xff) as u8);
    }
    let (signal, core_dumped) = (Signal(libc::WTERMSIG(status)), libc::WCOREDUMP(status));
    ExitStatus::Signaled { signal, core_dumped }
}

impl Usage {
    fn of(usage: &libc::rusage) -> Usage {
        // The kernel counts from zero up.
        let time = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec.cast_unsigned())
                + Duration::from_micros(time.tv_usec.cast_unsigned())
        };
        Usage {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            rss_max_kib: usage.ru_maxrss.cast_unsigned(),
            minor_faults: usage.ru_minflt.cast_unsigned(),
            major_faults: usage.ru_majflt.cast_unsigned(),
            voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
            involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
        }
    }
}

/// Whether there is a child, running or not yet reaped. A sub-reaper without one has no descendants.
pub fn has_children() -> bool {
    let looked = wait_for(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT);
    !looked.is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD))
}

/// Whether a child has ended, reaped or not.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let looked = wait_for(libc::P_PID, pid.cast_unsigned(), libc::WEXITED | libc::WNOWAIT);
    !matches!(looked, Ok(None))
}

/// Sends `signal` to one process. The number must be known to be in use: of a child not reaped.
///
/// # Errors
/// When it is gone, or another user's.
pub fn kill(pid: Pid, signal: Signal) -> io::Result<()> {
    assert!(pid > 0); // 0 and less mean groups
    // SAFETY: no preconditions.
    check(unsafe { libc::kill(pid, signal.0) })
}

/// Sends `signal` to the process of a pidfd, and never to a later one of the same number.
///
/// # Errors
/// When it is gone, or another user's.
pub fn kill_pidfd(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    let fd = pidfd.as_fd().as_raw_fd();
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is borrowed for the call, and a null siginfo is allowed.
    let done = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal.0, no_info, 0) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends `signal` to every process of a group.
///
/// # Errors
/// When there is none.
pub fn kill_group(group: Pid, signal: Signal) -> io::Result<()> {
    assert!(group > 1); // 1 would mean everybody
    // SAFETY: no preconditions.
    check(unsafe { libc::kill(-group, signal.0) })
}

/// Sends `signal` to those descendants of ours that are in session `session`; returns how many.
///
/// # Errors
/// When /proc cannot be read.
pub fn kill_session_descendants(session: Pid, signal: Signal) -> io::Result<usize> {
    let mut killed = 0;
    for process in descendants_of(own_pid())?.iter().filter(|p| p.session == session) {
        killed += usize::from(kill(process.pid, signal).is_ok());
    }
    Ok(killed)
}

/// Our own number.
pub fn own_pid() -> Pid {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }
}

/// Makes us the parent of every descendant whose own parent dies.
///
/// # Errors
/// None is expected.
pub fn set_child_subreaper() -> io::Result<()> {
    let yes: libc::c_ulong = 1;
    // SAFETY: no preconditions.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, yes) })
}

/// Descendants were left when the time was up.
#[derive(Debug, thiserror::Error)]
#[error("processes that cannot be killed: {pids:?}")]
pub struct Survivors {
    /// Which.
    pub pids: Vec<Pid>,
}

/// Kills everything below us and reaps it, telling `on_reaped` of each child.
///
/// All are stopped first, round by round until no new one appears, so that none can start another
/// behind our back; then killed. We must be a sub-reaper, or those whose parents died are out of
/// reach. When there is nothing, it costs one system call, and otherwise at least two scans of
/// `/proc`: where hundreds of agents share a machine, each should kill the tasks that it knows
/// first.
///
/// # Errors
/// What is left after `bound`: processes stuck in the kernel, or another user's.
pub fn kill_all_descendants(
    bound: Duration,
    on_reaped: &mut dyn FnMut(Pid, ExitStatus),
) -> Result<(), Survivors> {
    /// How long to wait for deaths before looking for processes again.
    const ROUND_NANOS: u64 = 50_000_000;
    let clock = Clock::new();
    let deadline = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let ended = ChildSignal::block();
    while reap_all(on_reaped) {
        if clock.now() > deadline {
            let left = descendants_of(own_pid()).unwrap_or_default();
            return Err(Survivors { pids: left.iter().map(|process| process.pid).collect() });
        }
        for pid in stop_descendants() {
            let _ = kill(pid, Signal::KILL); // gone is fine
        }
        let round_end = clock.now() + ROUND_NANOS;
        while clock.now() < round_end && reap_all(on_reaped) {
            ended.wait(Duration::from_nanos(round_end.saturating_sub(clock.now())));
        }
    }
    Ok(())
}

/// Takes all statuses there are; false when no children are left.
fn reap_all(on_reaped: &mut dyn FnMut(Pid, ExitStatus)) -> bool {
    loop {
        match reap_any() {
            Ok(Reaped::Ended(pid, status, _)) => on_reaped(pid, status),
            Ok(Reaped::Running) | Err(_) => return true,
            Ok(Reaped::NoChildren) => return false,
        }
    }
}

/// Stops every descendant and returns them. Bounded, since a process may be out of our hands.
fn stop_descendants() -> Vec<Pid> {
    const ROUNDS_MAX: usize = 64;
    let mut stopped: Vec<Pid> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let Ok(found) = descendants_of(own_pid()) else { break };
        let n_before = stopped.len();
        for process in found {
            if !stopped[..n_before].contains(&process.pid) {
                let _ = kill(process.pid, Signal::STOP); // gone is fine
                stopped.push(process.pid);
            }
        }
        if stopped.len() == n_before {
            break;
        }
    }
    stopped
}

/// SIGCHLD, blocked as long as this lives, so that it can be waited for.
struct ChildSignal {
    set: libc::sigset_t,
    mask_before: libc::sigset_t,
}

impl ChildSignal {
    fn block() -> ChildSignal {
        let set = signals::set_of(&[Signal::CHLD]);
        let mut mask_before = signals::set_of(&[]);
        // SAFETY: all sets are valid.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut mask_before) };
        ChildSignal { set, mask_before }
    }

    /// Waits until it comes, for `bound` at most.
    fn wait(&self, bound: Duration) {
        let timeout = libc::timespec {
            tv_sec: bound.as_secs().cast_signed(),
            tv_nsec: bound.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are valid, and a null siginfo is allowed.
        unsafe { libc::sigtimedwait(&self.set, std::ptr::null_mut(), &timeout) };
    }
}

impl Drop for ChildSignal {
    fn drop(&mut self) {
        // SAFETY: the mask is the one that pthread_sigmask gave us.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask_before, std::ptr::null_mut());
        }
    }
}

pub(crate) enum State {
    Ended(ExitStatus),
    Stopped(Signal),
}

/// One `waitid` that does not block.
pub(crate) fn wait_for(
    id_type: libc::idtype_t,
    id: libc::id_t,
    what: i32,
) -> io::Result<Option<(Pid, State)>> {
    // SAFETY: zeroed is a valid siginfo_t, and waitid fills it in. When no child is ready, it
    // leaves or sets si_pid to 0, which is why it is zeroed first.
    let (pid, status, code) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        check(libc::waitid(id_type, id, &mut info, what | libc::WNOHANG))?;
        (info.si_pid(), info.si_status(), info.si_code)
    };
    let signaled = |core_dumped| ExitStatus::Signaled { signal: Signal(status), core_dumped };
    let state = match code {
        libc::CLD_EXITED => State::Ended(ExitStatus::Exited((status & 0xff) as u8)),
        libc::CLD_KILLED => State::Ended(signaled(false)),
        libc::CLD_DUMPED => State::Ended(signaled(true)),
        _ => State::Stopped(Signal(status)),
    };
    Ok((pid != 0).then_some((pid, state)))
}

pub(crate) fn check(result: i32) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
