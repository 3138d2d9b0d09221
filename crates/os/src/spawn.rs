//! Creates OS processes without copying the address space, and without waiting for one before the
//! next is begun.
//!
//! `clone(CLONE_VM)` onto a small stack of its own: the child borrows our memory until its `execve`.
//! So the price does not grow with our heap, where `fork` pays for every page table (32 ms at
//! 512 MiB). `posix_spawn` does the same but can set no parent-death signal, and has its caller
//! sleep until the program runs (`CLONE_VFORK`). We go on, with a processor more than one: the
//! kernel clears a number in our memory when the child gives it back (`set_tid_address`).
//!
//! The child part ([`child`]) allocates nothing, takes no lock and makes only system calls, past the
//! C library, whose `errno` would be ours. It reports a failed step through a struct that it shares
//! with us.
//!
//! All signals are blocked around the clone: a handler that ran in the child would run in our
//! memory.
#![expect(unsafe_code, reason = "raw clone: the child shares our memory until its execve")]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::{Timespec, futex};

use crate::{Pid, Signal, process, signals};

mod child;
mod seats;
mod stack;

use child::Step;
use seats::Seated;
use stack::ChildStack;

/// What to start and how. Everything the child does not need is absent by default.
#[derive(Debug)]
pub struct SpawnSpec<'a> {
    /// The executable's path; see [`which`](crate::which()). A script without `#!` is given to
    /// `/bin/sh`, as `execvp` does.
    pub program: &'a CStr,
    /// The arguments, the program's own name included.
    pub argv: Vec<&'a CStr>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<&'a CStr>,
    /// The working directory; `None` is ours.
    pub dir: Option<&'a CStr>,
    /// Standard input, output and error; `None` is ours. Of other descriptors that we have
    /// inherited the child gets those below 64.
    pub fds: [Option<BorrowedFd<'a>>; 3],
    /// More descriptors, with the numbers that the child sees. Numbers must differ.
    pub extra_fds: Vec<(BorrowedFd<'a>, RawFd)>,
    /// Start a session, and with it a process group, without a terminal.
    pub new_session: bool,
    /// Start a process group, whose number is the child's pid.
    pub process_group: bool,
    /// The signal that the child gets when we die. It is lost when the child changes its user.
    pub parent_death_signal: Option<Signal>,
    /// How many descriptors the child may have open; `None` is as many as we. See
    /// [`raise_descriptor_limit`](crate::machine::raise_descriptor_limit).
    pub descriptors_max: Option<u64>,
}

impl<'a> SpawnSpec<'a> {
    /// Runs `program` with `argv` and `env`, and otherwise as we run ourselves.
    pub fn new(program: &'a CStr, argv: Vec<&'a CStr>, env: Vec<&'a CStr>) -> SpawnSpec<'a> {
        SpawnSpec {
            program,
            argv,
            env,
            dir: None,
            fds: [None; 3],
            extra_fds: Vec::new(),
            new_session: false,
            process_group: false,
            parent_death_signal: None,
            descriptors_max: None,
        }
    }
}

/// The step that failed; the child is gone and reaped.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No process could be made, for want of processes, memory or descriptors.
    #[error("create a process")]
    Clone(#[source] io::Error),
    /// The session, process group or parent-death signal could not be set.
    #[error("start a session for the new process")]
    Session(#[source] io::Error),
    /// A descriptor could not be put in its place.
    #[error("pass descriptors to the new process")]
    Descriptors(#[source] io::Error),
    /// The working directory could not be entered.
    #[error("change to directory `{}`", .path.display())]
    Directory {
        /// As given.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("execute `{}`", .program.display())]
    Exec {
        /// As given.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Starts a process. When this returns `Ok`, the new program runs.
///
/// # Errors
/// The first step that failed, after the child has been reaped.
pub fn spawn(spec: &SpawnSpec<'_>) -> Result<Pid, SpawnError> {
    // SAFETY: waited for while `spec` is borrowed.
    unsafe { Running::begin(spec) }.and_then(Running::wait)
}

/// A process that is being created, and what it is created from. Dropping it waits.
#[derive(Debug)]
pub struct Spawning<T> {
    running: Result<Running, SpawnError>,
    /// Behind `running`, which is dropped first: the child reads it.
    item: Box<T>,
}

impl<T: 'static> Spawning<T> {
    /// Begins to create what `spec` makes of `item`, and does not wait until its program runs. Do
    /// not reap children before [`Spawning::wait`].
    pub fn begin(item: T, spec: impl FnOnce(&T) -> SpawnSpec<'_>) -> Spawning<T> {
        let item = Box::new(item);
        // SAFETY: we keep the item at its place until the child has been waited for, and whoever
        // forgets us forgets the item with all that it owns.
        let running = unsafe { Running::begin(&spec(&item)) };
        Spawning { running, item }
    }

    /// What it is created from.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// Waits until the program runs, and gives the item back. An error is the first step
    /// that failed, after the child has been reaped.
    pub fn wait(self) -> (T, Result<Pid, SpawnError>) {
        let pid = self.running.and_then(Running::wait);
        (*self.item, pid)
    }
}

/// A child that may still run in our memory.
#[derive(Debug)]
struct Running {
    pid: Pid,
    plan: Rc<Plan>,
    /// Held until the child has what sits there.
    _seated: Option<Seated>,
    stack: Option<ChildStack>,
}

impl Running {
    /// # Safety
    /// All that `spec` borrows must stay as it is, its descriptors open, until this has been waited
    /// for.
    unsafe fn begin(spec: &SpawnSpec<'_>) -> Result<Running, SpawnError> {
        let moves = moves(spec);
        let seated = Seated::new(&moves);
        let stack = ChildStack::take().map_err(SpawnError::Clone)?;
        let plan = Rc::new(Plan::new(spec, moves, seated.as_ref().map(Seated::table_end)));
        let pid = clone_child(&plan, &stack).map_err(SpawnError::Clone)?;
        Ok(Running { pid, plan, _seated: seated, stack: Some(stack) })
    }

    fn wait(mut self) -> Result<Pid, SpawnError> {
        self.wait_for_memory();
        let source = || io::Error::from_raw_os_error(self.plan.errno.load(Ordering::Relaxed));
        let error = match Step::from_number(self.plan.failed.load(Ordering::Relaxed)) {
            None => return Ok(self.pid),
            Some(Step::Session) => SpawnError::Session(source()),
            Some(Step::Descriptors) => SpawnError::Descriptors(source()),
            Some(Step::Directory) => {
                // SAFETY: whoever began this keeps what the spec borrows until now.
                let path = unsafe { path_of(self.plan.dir) };
                SpawnError::Directory { path, source: source() }
            }
            Some(Step::Exec) => {
                // SAFETY: as above.
                let program = unsafe { path_of(self.plan.program) };
                SpawnError::Exec { program, source: source() }
            }
        };
        reap(self.pid);
        Err(error)
    }

    /// Returns when the child has executed its program or ended.
    fn wait_for_memory(&mut self) {
        while self.plan.borrows.load(Ordering::Acquire) != 0 {
            let checked = Some(&KILLED_CHECKED);
            let woken = futex::wait(&self.plan.borrows, futex::Flags::empty(), BORROWS, checked);
            if woken == Err(Errno::TIMEDOUT) && process::has_ended(self.pid) {
                break;
            }
        }
        self.stack.take().into_iter().for_each(ChildStack::give_back);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.wait_for_memory();
    }
}

/// Everything the child part needs, prepared so that it need not allocate.
#[derive(Debug)]
struct Plan {
    program: *const c_char,
    argv: Vec<*const c_char>,
    script_argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    dir: *const c_char, // null: ours
    moves: Vec<Move>,
    /// The child starts in our table of descriptors, and needs nothing from this number on; `None`
    /// starts in a copy.
    table_end: Option<RawFd>,
    first_free_fd: RawFd,
    new_session: bool,
    process_group: bool,
    death_signal: c_int, // 0: none
    /// One bit for each signal that does not have its default action here.
    changed_signals: u64,
    descriptors_max: u64, // u64::MAX leaves the limit alone
    parent: Pid,
    /// [`BORROWS`] until the kernel clears it.
    borrows: AtomicU32,
    failed: AtomicI32, // a step's number
    errno: AtomicI32,
}

const BORROWS: u32 = 1;

/// A child that was killed before it could ask for the number to be cleared is noticed after that.
const KILLED_CHECKED: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// One descriptor and the number it gets.
#[derive(Debug)]
struct Move {
    source: Cell<RawFd>, // the child part's, once it runs
    target: RawFd,
}

impl Plan {
    fn new(spec: &SpawnSpec<'_>, moves: Vec<Move>, table_end: Option<RawFd>) -> Plan {
        Plan {
            program: spec.program.as_ptr(),
            argv: pointers(&spec.argv),
            script_argv: script_pointers(spec),
            env: pointers(&spec.env),
            dir: spec.dir.map_or(ptr::null(), CStr::as_ptr),
            first_free_fd: moves.iter().map(|m| m.target).max().unwrap_or(2).max(2) + 1,
            moves,
            table_end,
            new_session: spec.new_session,
            process_group: spec.process_group,
            death_signal: spec.parent_death_signal.map_or(0, |signal| signal.0),
            changed_signals: signals::changed(),
            descriptors_max: spec.descriptors_max.unwrap_or(u64::MAX),
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            borrows: AtomicU32::new(BORROWS),
            failed: AtomicI32::new(0),
            errno: AtomicI32::new(0),
        }
    }
}

fn pointers(strings: &[&CStr]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}

/// `/bin/sh PROGRAM ARGUMENTS`, for a script that does not say what runs it.
fn script_pointers(spec: &SpawnSpec<'_>) -> Vec<*const c_char> {
    let arguments = spec.argv.iter().skip(1).map(|s| s.as_ptr());
    [SHELL.as_ptr(), spec.program.as_ptr()]
        .into_iter()
        .chain(arguments)
        .chain([ptr::null()])
        .collect()
}

const SHELL: &CStr = c"/bin/sh";

fn moves(spec: &SpawnSpec<'_>) -> Vec<Move> {
    let standard = (0..).zip(&spec.fds).filter_map(|(target, fd)| Some((fd.as_ref()?, target)));
    let extra = spec.extra_fds.iter().map(|(fd, target)| (fd, *target));
    standard
        .chain(extra)
        .map(|(fd, target)| Move { source: Cell::new(fd.as_raw_fd()), target })
        .collect()
}

/// # Safety
/// `path` is of a spec that is still borrowed.
unsafe fn path_of(path: *const c_char) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    // SAFETY: the caller's.
    let path = unsafe { CStr::from_ptr(path) };
    std::ffi::OsString::from_vec(CString::from(path).into_bytes()).into()
}

fn reap(pid: Pid) {
    // SAFETY: a null status is allowed. The child has called _exit, so this does not wait long.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Clones with all signals blocked.
fn clone_child(plan: &Rc<Plan>, stack: &ChildStack) -> io::Result<Pid> {
    let table = if plan.table_end.is_some() { libc::CLONE_FILES } else { 0 };
    let flags = libc::CLONE_VM | libc::SIGCHLD | table;
    let plan = Rc::as_ptr(plan).cast_mut().cast();
    let mask = block_all_signals();
    // SAFETY: whoever drops the stack or the plan waits until the child is done with both.
    let pid = unsafe { libc::clone(child::main, stack.top(), flags, plan) };
    let error = io::Error::last_os_error();
    restore_signals(&mask);
    if pid == -1 { Err(error) } else { Ok(pid) }
}

fn block_all_signals() -> libc::sigset_t {
    // SAFETY: zeroed is a valid sigset_t, and both pointers are valid.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` came from pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}
