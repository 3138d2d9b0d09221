//! The keeper: the process beside an agent that ends what is left when the agent dies.
//!
//! Of the two, the keeper is the one that our starter knows. It forks the agent, waits for it,
//! kills what the agent left behind and ends as the agent did. Both are sub-reapers, so whichever
//! dies, the other gets its descendants or is told: the keeper by the wait, the agent by the end
//! of a pipe that only the keeper holds. A parent-death signal would be quicker, and wrong: the
//! agent must live long enough to kill its own descendants first.
//!
//! An agent that hangs sees no end of its starter. So the keeper of an agent watches standard
//! input, the remote shell's channel, as well, and ends an agent that does not when that has.
//!
//! The keeper is made before anything is allocated, and holds three descriptors: not the user's
//! pipe, and of the shell's channel only what it watches. If both are killed at the same instant,
//! what ignores its own parent's death survives, unless a cgroup or a PID namespace holds it.
#![expect(unsafe_code, reason = "fork, and signals taken with their origin")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::process::{self, ExitStatus, State};
use crate::{Clock, Pid, Signal, SignalFd, signals, stream};

/// What the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct KeeperOptions {
    /// The keeper's name in process lists, at most 15 bytes.
    pub name: &'static CStr,
    /// Where the agent runs.
    pub group: AgentGroup,
}

/// The agent's process group, which decides what a terminal does to it, and whom it lives for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentGroup {
    /// The keeper's. The terminal's signals reach both, so the keeper does not pass those on. The
    /// front end's choice: it may read the terminal. The keeper stops with it, so that the shell
    /// sees its job stop.
    Shared,
    /// Its own, in the keeper's session. It lives for whoever holds the other end of standard
    /// input, and a keeper whose agent is stopped does not stop: it is needed all the more.
    Own,
    /// Its own session, without a terminal; else as the one before.
    OwnSession,
}

/// What the agent has of its keeper.
#[derive(Debug)]
pub struct Kept {
    /// Reads the end when the keeper has died. The agent must then kill all below it, and end.
    pub keeper_gone: OwnedFd,
    /// The keeper's number: the sender of the signals that it passes on.
    pub keeper: Pid,
}

/// The keeper could not be made; nothing has changed.
#[derive(Debug, thiserror::Error)]
#[error("fork a keeper")]
pub struct KeeperError(#[source] pub io::Error);

/// Standard input: for an agent the remote shell's channel.
const SHELL: RawFd = 0;

/// How long the keeper tries to kill what the agent left.
const KILL_BOUND: Duration = Duration::from_secs(10);

/// How long an agent may live on when the shell's channel has ended. An agent that is well needs
/// as long as it takes to kill what is below it, and what is killed under way the keeper goes on
/// to kill.
const ORPHAN_BOUND: Duration = Duration::from_secs(1);

/// What the keeper wakes for; all but the last is passed on to the agent.
const AWAITED: [Signal; 10] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::CONT,
    Signal::WINCH,
    Signal::QUIT,
    Signal::CHLD,
];

/// Forks. Returns in the child, the agent; the parent becomes the keeper and never returns.
///
/// Call it first in `main`, before there are threads, descriptors or memory to speak of.
///
/// # Errors
/// When there is no descriptor or process to be had.
pub fn fork_keeper(options: KeeperOptions) -> Result<Kept, KeeperError> {
    let stream::Pipe { read, write } = stream::pipe().map_err(KeeperError)?;
    // Ignored SIGCHLD is inherited, and would have the kernel reap for us.
    signals::set_disposition(Signal::CHLD, libc::SIG_DFL);
    let mask = block_all_signals();
    let keeper = process::own_pid();
    // SAFETY: the process has one thread, as the caller promises, so both sides go on normally.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            set_mask(&mask);
            Err(KeeperError(error))
        }
        0 => {
            drop(write);
            let set_up = set_up_agent(options.group);
            set_mask(&mask);
            set_up.map(|()| Kept { keeper_gone: read, keeper }).map_err(KeeperError)
        }
        agent => {
            keep(agent, &options, write.as_raw_fd());
        }
    }
}

fn set_up_agent(group: AgentGroup) -> io::Result<()> {
    process::set_child_subreaper()?;
    // What our starter left open by mistake is none of our tasks' affair.
    close_range_on_exec(3);
    // SAFETY: no preconditions.
    process::check(unsafe {
        match group {
            AgentGroup::Shared => 0,
            AgentGroup::Own => libc::setpgid(0, 0),
            AgentGroup::OwnSession => libc::setsid(),
        }
    })
}

/// The keeper's whole life, with all signals blocked.
fn keep(agent: Pid, options: &KeeperOptions, pipe: RawFd) -> ! {
    // Nothing here can fail in a way that the keeper could do something about.
    let _ = process::set_child_subreaper();
    let is_shared = options.group == AgentGroup::Shared;
    let kept = [SHELL, pipe];
    close_all_but(if is_shared { &kept[1..] } else { &kept });
    // SAFETY: both strings end in null.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, options.name.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
    release_program();
    let status = wait_for_agent(agent, is_shared);
    let _ = process::kill_all_descendants(KILL_BOUND, &mut |_, _| {});
    end_like(status)
}

/// Takes the program's code out of this process's memory. Starting up has touched much of it, the
/// keeper needs little more, and that comes back from the file by itself.
fn release_program() {
    // SAFETY: the linker defines both; only their addresses are used.
    unsafe extern "C" {
        safe static __executable_start: u8;
        safe static etext: u8;
    }
    let page = rustix::param::page_size();
    let start = (&raw const __executable_start).addr() & !(page - 1);
    let end = (&raw const etext).addr() & !(page - 1);
    // SAFETY: between the two are only the program's constants and code, mapped from its file and
    // never written, so the pages that are dropped are read again as they were.
    unsafe {
        libc::madvise(std::ptr::without_provenance_mut(start), end - start, libc::MADV_DONTNEED);
    }
}

/// Passes signals on until the agent has ended, and ends it when it outlives its shell.
fn wait_for_agent(agent: Pid, is_shared: bool) -> ExitStatus {
    let what = libc::WEXITED | libc::WSTOPPED;
    // Descriptors there are; all were closed just before.
    let Ok(mut watch) = Watch::new(!is_shared) else { return ExitStatus::Exited(u8::MAX) };
    loop {
        match process::wait_for(libc::P_PID, agent.cast_unsigned(), what) {
            Ok(Some((_, State::Ended(status)))) => return status,
            Ok(Some((_, State::Stopped(signal)))) if is_shared => {
                stop_like(signal);
                continue;
            }
            Ok(Some((_, State::Stopped(_))) | None) => {}
            // Not our child: cannot be, but waiting for ever would be the worst answer.
            Err(_) => return ExitStatus::Exited(u8::MAX),
        }
        watch.wait();
        if watch.is_over() {
            let _ = process::kill(agent, Signal::KILL); // it may have ended meanwhile
        }
        while let Ok(Some(received)) = watch.signals.read() {
            let is_known = received.by_kernel && is_shared;
            if received.signal != Signal::CHLD && !is_known {
                let _ = process::kill(agent, received.signal); // it may have ended meanwhile
            }
        }
    }
}

/// What a keeper waits for.
struct Watch {
    signals: SignalFd,
    clock: Clock,
    /// The shell's channel, while its end is waited for.
    shell: Option<RawFd>,
    /// Set when the channel has ended: when the agent's time is over.
    deadline: Option<u64>,
}

impl Watch {
    fn new(with_shell: bool) -> io::Result<Watch> {
        let signals = SignalFd::new(&AWAITED)?;
        let shell = with_shell.then_some(SHELL);
        Ok(Watch { signals, clock: Clock::new(), shell, deadline: None })
    }

    /// Waits for a signal, the end of the channel, or the deadline.
    fn wait(&mut self) {
        let watch = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let signals = watch(self.signals.as_fd().as_raw_fd(), libc::POLLIN);
        // The kernel passes over a negative number.
        let mut fds = [signals, watch(self.shell.unwrap_or(-1), libc::POLLRDHUP)];
        // SAFETY: the array is valid, and two long.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), 2, self.timeout_ms()) };
        if n > 0 && fds[1].revents != 0 {
            self.shell = None;
            // If there is no such descriptor, nobody started the agent through it.
            if fds[1].revents & libc::POLLNVAL == 0 {
                let bound = u64::try_from(ORPHAN_BOUND.as_nanos()).unwrap_or(u64::MAX);
                self.deadline = Some(self.clock.now() + bound);
            }
        }
    }

    /// Whether the agent's time is over; told once.
    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        self.deadline.take_if(|deadline| *deadline <= now).is_some()
    }

    /// Until the deadline, rounded up; -1 for ever.
    fn timeout_ms(&self) -> i32 {
        let left = |deadline: u64| deadline.saturating_sub(self.clock.now()) / 1_000_000 + 1;
        self.deadline.map_or(-1, |deadline| i32::try_from(left(deadline)).unwrap_or(i32::MAX))
    }
}

/// Stops as the agent did, so that the shell sees its job stop, and takes the agent along when it
/// is continued.
fn stop_like(signal: Signal) {
    signals::raise(signal);
    signals::reset(&[signal]); // stops here
    block_all_signals();
}

/// Ends with the agent's status, or by the agent's signal, without a second core file.
fn end_like(status: ExitStatus) -> ! {
    if let ExitStatus::Signaled { signal, .. } = status {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is valid.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        signals::reset(&[signal]);
        signals::raise(signal);
    }
    // SAFETY: no preconditions. Nothing of the agent's may be flushed twice, so not `exit`.
    unsafe { libc::_exit(status.code().into()) }
}

/// Closes all descriptors but these, which are in order.
fn close_all_but(kept: &[RawFd]) {
    let mut first = 0;
    for fd in kept.iter().map(|fd| fd.cast_unsigned()) {
        if fd > first {
            close_range(first, fd - 1);
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX);
}

/// Kernels before 5.11 do not know the flag; there, tasks inherit what we have inherited.
fn close_range_on_exec(first: u32) {
    // SAFETY: no descriptor is closed here.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Kernels before 5.9 have no close_range, and there the descriptors are closed one by one.
fn close_range(first: u32, last: u32) {
    // SAFETY: the caller closes what it owns, and uses none of it afterwards.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) == -1 {
            let limit = libc::sysconf(libc::_SC_OPEN_MAX).try_into().unwrap_or(1024);
            for fd in first..=last.min(limit) {
                libc::close(fd.cast_signed());
            }
        }
    }
}

fn block_all_signals() -> libc::sigset_t {
    // SAFETY: zeroed is a valid sigset_t, and the pointers are valid.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask came from pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}
