//! Creates one OS process without copying the address space.
//!
//! `clone(CLONE_VM | CLONE_VFORK)` onto a small stack of its own: the child borrows our memory
//! until its `execve`, and we sleep until then. So the price does not grow with our heap, where
//! `fork` pays for every page table (32 ms at 512 MiB). `posix_spawn` does the same but can set
//! no parent-death signal.
//!
//! The child part is one function that allocates nothing, takes no lock and makes only system
//! calls. It reports a failed step through a struct on our stack, which it shares.
//!
//! All signals are blocked around the clone: a handler that ran in the child would run in our
//! memory.
#![expect(unsafe_code, reason = "raw clone: the child shares our memory until its execve")]

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::ptr;

use crate::{Pid, Signal};

mod seats;

use seats::Seated;

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
    /// Standard input, output and error; `None` is ours. Of other descriptors that we have inherited the child gets
    /// those below 64.
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

/// A process we started. Dropping it neither kills nor reaps the process.
#[derive(Debug)]
pub struct Child {
    /// Its number, valid until it is reaped.
    pub pid: Pid,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
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
pub fn spawn(spec: &SpawnSpec<'_>) -> Result<Child, SpawnError> {
    let argv = pointers(&spec.argv);
    let script_argv = script_pointers(spec);
    let env = pointers(&spec.env);
    let mut moves = moves(spec);
    let seated = Seated::new(&mut moves);
    let mut plan = Plan {
        program: spec.program.as_ptr(),
        argv: argv.as_ptr(),
        script_argv: script_argv.as_ptr(),
        env: env.as_ptr(),
        dir: spec.dir.map_or(ptr::null(), CStr::as_ptr),
        moves: moves.as_mut_ptr(),
        n_moves: moves.len(),
        table_end: seated.as_ref().map(Seated::table_end),
        first_free_fd: moves.iter().map(|m| m.target).max().unwrap_or(2).max(2) + 1,
        new_session: spec.new_session,
        process_group: spec.process_group,
        death_signal: spec.parent_death_signal.map_or(0, |signal| signal.0),
        descriptors_max: spec.descriptors_max.unwrap_or(u64::MAX),
        // SAFETY: getpid has no preconditions.
        parent: unsafe { libc::getpid() },
        failed: Step::None,
        errno: 0,
    };
    let child = clone_child(&mut plan).map_err(SpawnError::Clone)?;
    // SAFETY: `plan` is alive. A volatile read, since the child wrote these behind our back.
    let (failed, errno) = unsafe {
        (ptr::read_volatile(&raw const plan.failed), ptr::read_volatile(&raw const plan.errno))
    };
    let source = io::Error::from_raw_os_error(errno);
    let error = match failed {
        Step::None => return Ok(child),
        Step::Session => SpawnError::Session(source),
        Step::Descriptors => SpawnError::Descriptors(source),
        Step::Directory => {
            SpawnError::Directory { path: path_of(spec.dir.unwrap_or_default()), source }
        }
        Step::Exec => SpawnError::Exec { program: path_of(spec.program), source },
    };
    reap(child.pid);
    Err(error)
}

/// Everything the child part needs, prepared so that it need not allocate.
struct Plan {
    program: *const c_char,
    argv: *const *const c_char,
    script_argv: *const *const c_char,
    env: *const *const c_char,
    dir: *const c_char,
    moves: *mut Move,
    n_moves: usize,
    /// The child starts in our table of descriptors, and needs nothing from this number on; `None`
    /// starts in a copy.
    table_end: Option<RawFd>,
    first_free_fd: RawFd,
    new_session: bool,
    process_group: bool,
    death_signal: c_int,
    descriptors_max: u64, // u64::MAX leaves the limit alone
    parent: Pid,
    failed: Step,
    errno: c_int,
}

/// One descriptor and the number it gets.
struct Move {
    source: RawFd,
    target: RawFd,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    None,
    Session,
    Descriptors,
    Directory,
    Exec,
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
    standard.chain(extra).map(|(fd, target)| Move { source: fd.as_raw_fd(), target }).collect()
}

fn path_of(path: &CStr) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(CString::from(path).into_bytes()).into()
}

fn reap(pid: Pid) {
    // SAFETY: a null status is allowed. The child has called _exit, so this does not wait long.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Clones with all signals blocked; returns when the child has executed or ended.
fn clone_child(plan: &mut Plan) -> io::Result<Child> {
    STACK.with(|cell| {
        let stack = match cell.get() {
            Some(stack) => stack,
            None => cell.get_or_init({
                let stack = ChildStack::new()?;
                || stack
            }),
        };
        let mut pidfd: c_int = -1;
        let table = if plan.table_end.is_some() { libc::CLONE_FILES } else { 0 };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | table;
        let mask = block_all_signals();
        // SAFETY: the stack is ours alone until the child is done with it, since CLONE_VFORK
        // suspends us; `plan` outlives that too. `pidfd` is where the kernel puts the descriptor.
        let pid = unsafe {
            libc::clone(child_main, stack.top(), flags, ptr::from_mut(plan).cast(), &raw mut pidfd)
        };
        let error = io::Error::last_os_error();
        restore_signals(&mask);
        if pid == -1 {
            return Err(error);
        }
        // SAFETY: the kernel made this descriptor for us, and nobody else knows it.
        Ok(Child { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
    })
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

/// The child part, from the clone to the execve, in memory that it shares with us.
extern "C" fn child_main(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<Plan>();
    // SAFETY: the parent is suspended and keeps `plan` alive; only system calls are made.
    unsafe {
        let failed = if own_descriptors(&*plan) == -1 {
            Step::Descriptors
        } else if set_up_session(&*plan) == -1 {
            Step::Session
        } else if set_up_descriptors(&*plan) == -1 || limit_descriptors(&*plan) == -1 {
            Step::Descriptors
        } else if !(*plan).dir.is_null() && libc::chdir((*plan).dir) == -1 {
            Step::Directory
        } else {
            execute(&*plan);
            Step::Exec
        };
        ptr::write_volatile(&raw mut (*plan).errno, *libc::__errno_location());
        ptr::write_volatile(&raw mut (*plan).failed, failed);
        libc::_exit(127)
    }
}

/// Comes first, since until then what is done to a descriptor is done to ours.
///
/// # Safety
/// Only for the child part.
unsafe fn own_descriptors(plan: &Plan) -> c_int {
    let Some(end) = plan.table_end else { return 0 };
    // SAFETY: all that the child gets is below the end.
    unsafe { seats::part_from_table(end.cast_unsigned(), c_uint::MAX) }
}

/// # Safety
/// Only for the child part.
unsafe fn set_up_session(plan: &Plan) -> c_int {
    // SAFETY: system calls with valid arguments.
    unsafe {
        reset_dispositions();
        if plan.new_session && libc::setsid() == -1 {
            return -1;
        }
        if plan.process_group && !plan.new_session && libc::setpgid(0, 0) == -1 {
            return -1;
        }
        if plan.death_signal != 0 {
            if libc::prctl(libc::PR_SET_PDEATHSIG, plan.death_signal as libc::c_ulong) == -1 {
                return -1;
            }
            // The parent may have died before the call, and then no signal would ever come.
            if libc::getppid() != plan.parent {
                libc::_exit(127);
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut())
    }
}

/// Gives every signal its default action: an ignored one would stay ignored beyond execve, and a
/// handler would run in the parent's memory once signals are unblocked.
///
/// # Safety
/// Only for the child part.
unsafe fn reset_dispositions() {
    /// The kernel's own struct, which is no larger than this; all zero is the default action.
    const DEFAULT: [u64; 8] = [0; 8];
    const SET_BYTES: usize = 8;
    for signal in 1..=64 {
        let no_old = ptr::null_mut::<c_void>();
        // SAFETY: a system call that reads DEFAULT. Not through libc, which refuses the signals
        // that it keeps to itself. SIGKILL and SIGSTOP are refused, harmlessly.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT.as_ptr(), no_old, SET_BYTES);
        }
    }
}

/// Moves sources out of the way of targets first, then puts each in its place.
///
/// # Safety
/// Only for the child part.
unsafe fn set_up_descriptors(plan: &Plan) -> c_int {
    // SAFETY: the parent made `n_moves` moves and is suspended.
    let moves = unsafe { std::slice::from_raw_parts_mut(plan.moves, plan.n_moves) };
    for index in 0..moves.len() {
        let Move { source, target } = moves[index];
        if source != target && moves.iter().any(|other| other.target == source) {
            // SAFETY: a system call.
            let moved = unsafe { libc::fcntl(source, libc::F_DUPFD_CLOEXEC, plan.first_free_fd) };
            if moved == -1 {
                return -1;
            }
            moves[index].source = moved;
        }
    }
    for Move { source, target } in moves.iter() {
        // SAFETY: system calls. The copy that dup2 makes is not close-on-exec.
        let done = unsafe {
            if source == target {
                libc::fcntl(*source, libc::F_SETFD, 0)
            } else {
                libc::dup2(*source, *target)
            }
        };
        if done == -1 {
            return -1;
        }
    }
    // SAFETY: every source has been put in its place, and all places are below.
    unsafe { seats::close_from(plan.first_free_fd.max(seats::SMALL)) };
    0
}

/// Lowers the soft limit only, so that the child may raise it again.
///
/// # Safety
/// Only for the child part.
unsafe fn limit_descriptors(plan: &Plan) -> c_int {
    if plan.descriptors_max == u64::MAX {
        return 0;
    }
    // SAFETY: system calls with valid pointers. Limits are a process's own even in shared memory.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == -1 {
            return -1;
        }
        limit.rlim_cur = plan.descriptors_max.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit)
    }
}

/// Returns only when the program could not be executed, with errno set.
///
/// # Safety
/// Only for the child part.
unsafe fn execute(plan: &Plan) {
    // SAFETY: all arrays end in null and live in the suspended parent.
    unsafe {
        libc::execve(plan.program, plan.argv, plan.env);
        if *libc::__errno_location() != libc::ENOEXEC {
            return;
        }
        if is_text(plan.program) {
            libc::execve(SHELL.as_ptr(), plan.script_argv, plan.env);
        } else {
            *libc::__errno_location() = libc::ENOEXEC;
        }
    }
}

/// Whether a file may be a script: a program for another machine is not, and `sh` would run what
/// it takes for commands there. Like shells, looks for a zero byte at the front.
///
/// # Safety
/// Only for the child part, with a string that lives in the suspended parent.
unsafe fn is_text(path: *const c_char) -> bool {
    let mut front = [0_u8; 80];
    // SAFETY: system calls with valid pointers. A descriptor that stays open is close-on-exec.
    let bytes = unsafe {
        let fd = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        libc::read(fd, front.as_mut_ptr().cast(), front.len())
    };
    // What may be executed and not read is left to the shell to complain about.
    usize::try_from(bytes).map_or(true, |bytes| !front[..bytes].contains(&0))
}

thread_local! {
    /// One for each thread, so that tests may spawn from several.
    static STACK: OnceCell<ChildStack> = const { OnceCell::new() };
}

/// The memory that the child part runs on, with a page below it that faults.
struct ChildStack {
    base: *mut c_void,
}

/// The child part is shallow; an unoptimised build needs some 2 KiB.
const STACK_BYTES: usize = 64 * 1024;
const GUARD_BYTES: usize = 64 * 1024; // at least a page on every architecture

impl ChildStack {
    fn new() -> io::Result<ChildStack> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new mapping at an address of the kernel's choice, then its protection.
        unsafe {
            let bytes = GUARD_BYTES + STACK_BYTES;
            let base = libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let stack = ChildStack { base };
            let usable = base.byte_add(GUARD_BYTES);
            if libc::mprotect(usable, STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE) == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(stack)
        }
    }

    /// Stacks grow down on every architecture that we run on.
    fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, aligned to a page.
        unsafe { self.base.byte_add(GUARD_BYTES + STACK_BYTES) }
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: we made this mapping, and no child runs on it.
        unsafe { libc::munmap(self.base, GUARD_BYTES + STACK_BYTES) };
    }
}
