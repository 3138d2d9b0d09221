//! The keeper: the process beside an agent that ends what is left when the agent dies.
//!
//! Of the two, the keeper is the one that our starter knows. It forks the agent, waits for it,
//! kills what the agent left behind and ends as the agent did. Both are sub-reapers, so whichever
//! dies, the other gets its descendants or is told: the keeper by the wait, the agent by the end
//! of a pipe that only the keeper holds. A parent-death signal would be quicker, and wrong: the
//! agent must live long enough to kill its own descendants first.
//!
//! The keeper is made before anything is allocated. The front end's holds one descriptor, and not
//! the user's pipe. That of an agent keeps the remote shell's too: standard input, whose end is the
//! shell's, and standard error to say there which signal killed the agent. A status does not come
//! through every remote shell (ssh makes it 255, as everything that goes wrong), while a line does.
//! If both are killed at the same instant, what ignores its
//! own parent's death survives, unless a cgroup or a PID namespace holds it.
#![expect(unsafe_code, reason = "fork, and signals taken with their origin")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::process::{self, ExitStatus, State};
use crate::{Pid, Signal, signals, stream};

mod watch;

use watch::Watch;

/// What the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct KeeperOptions {
    /// The keeper's name in process lists, at most 15 bytes.
    pub name: &'static CStr,
    /// Where the agent runs, and so on which side: see [`AgentGroup`].
    pub group: AgentGroup,
}

/// What the keeper writes on standard error before the number of the signal that killed the agent.
pub const KILLED_WORDS: &str = "convoke keeper: the agent was killed by signal ";

/// How long a full pipe may keep the keeper from saying so.
const TELL_MS_MAX: i32 = 200;

/// The agent's process group, which decides what a terminal does to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentGroup {
    /// The keeper's. The terminal's signals reach both, so the keeper does not pass those on. The
    /// front end's choice: it may read the terminal. The keeper stops when the agent does.
    Shared,
    /// Its own, in the keeper's session. The keeper says on standard error which signal killed the
    /// agent, see [`KILLED_WORDS`], and kills one that outlives the end of standard input for long.
    Own,
    /// Its own session, without a terminal; as `Own` otherwise.
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

/// How long the keeper tries to kill what the agent left.
const KILL_BOUND: Duration = Duration::from_secs(10);

/// What the keeper passes on to the agent, besides what programs give a meaning.
const FORWARDED: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::TSTP, Signal::CONT, Signal::QUIT];

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
    let is_front_end = options.group == AgentGroup::Shared;
    if is_front_end {
        close_all_but(&[pipe]);
    } else {
        close_all_but(&[libc::STDIN_FILENO, libc::STDERR_FILENO, pipe]);
    }
    // SAFETY: both strings end in null.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, options.name.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
    release_program();
    let status = if is_front_end { wait_for_agent(agent) } else { watch_over(agent) };
    let _ = process::kill_all_descendants(KILL_BOUND, &mut |_, _| {});
    if let (ExitStatus::Signaled { signal, .. }, false) = (status, is_front_end) {
        tell(&format!("{KILLED_WORDS}{}\n", signal.0));
    }
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

/// Passes signals on until the agent has ended, or is killed since it hangs and its shell is gone.
fn watch_over(agent: Pid) -> ExitStatus {
    // Without a descriptor for it there is still the plain wait.
    Watch::new(agent).and_then(Watch::wait).unwrap_or_else(|_| wait_for_agent(agent))
}

/// Passes signals on until the agent has ended. Those of a terminal reach the agent too.
fn wait_for_agent(agent: Pid) -> ExitStatus {
    let what = libc::WEXITED | libc::WSTOPPED;
    loop {
        match process::wait_for(libc::P_PID, agent.cast_unsigned(), what) {
            Ok(Some((_, State::Ended(status)))) => return status,
            Ok(Some((_, State::Stopped(signal)))) => {
                stop_like(signal);
                continue;
            }
            Ok(None) => {}
            // Not our child: cannot be, but waiting for ever would be the worst answer.
            Err(_) => return ExitStatus::Exited(u8::MAX),
        }
        let Some((signal, from_kernel)) = next_signal() else { continue };
        let is_forwarded = FORWARDED.contains(&signal) || signals::is_for_programs(signal);
        if is_forwarded && !from_kernel {
            let _ = process::kill(agent, signal); // it may have ended meanwhile
        }
    }
}

/// Stops as the agent did, so that the shell sees its job stop, and takes the agent along when it
/// is continued.
fn stop_like(signal: Signal) {
    signals::raise(signal);
    signals::reset(&[signal]); // stops here
    block_all_signals();
}

/// The next signal, and whether the kernel sent it, as it does for a terminal.
fn next_signal() -> Option<(Signal, bool)> {
    // SAFETY: zeroed is valid for both, and the pointers are valid.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let number = libc::sigwaitinfo(&all, &mut info);
        (number != -1).then_some((Signal(number), info.si_code == libc::SI_KERNEL))
    }
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

/// Writes to standard error if there is room, and else not at all. Nobody listening is fine: with
/// all signals blocked that is an error and no SIGPIPE.
fn tell(words: &str) {
    let mut poll = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: both pointers are valid. Where a pipe has room at all it has room for a short line.
    unsafe {
        if libc::poll(&mut poll, 1, TELL_MS_MAX) == 1 {
            libc::write(poll.fd, words.as_ptr().cast(), words.len());
        }
    }
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
