//! The child part, from the clone to the execve, in memory that it shares with us while we go on.
//!
//! Only system calls, and these past the C library: it would write `errno`, which is ours too.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::Ordering;

use syscalls::{Errno, Sysno, syscall};

use super::{Move, Plan, SHELL, seats};

/// What failed, by a number that goes through shared memory.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(super) enum Step {
    Session = 1,
    Descriptors,
    Directory,
    Exec,
}

impl Step {
    /// `None` when no step failed.
    pub(super) fn from_number(number: i32) -> Option<Step> {
        [Step::Session, Step::Descriptors, Step::Directory, Step::Exec]
            .into_iter()
            .find(|step| *step as i32 == number)
    }
}

/// Runs on a stack of its own, with all signals blocked. `plan` is a [`Plan`] that lives until the
/// memory is given back.
pub(super) extern "C" fn main(plan: *mut c_void) -> c_int {
    // SAFETY: as said above; what the child changes in it is atomic.
    let plan = unsafe { &*plan.cast::<Plan>() };
    // SAFETY: this is the child part; the number lives as long as the plan.
    let (step, errno) = unsafe {
        // What `CLONE_CHILD_CLEARTID` does, which musl's clone refuses.
        let _ = syscall!(Sysno::set_tid_address, plan.borrows.as_ptr());
        run(plan)
    };
    plan.errno.store(errno.into_raw(), Ordering::Relaxed);
    plan.failed.store(step as i32, Ordering::Relaxed);
    // SAFETY: ends this process only; the stores above come before the kernel says so.
    let _ = unsafe { syscall!(Sysno::exit_group, 127) };
    127
}

/// Returns what failed: otherwise the program runs in our place.
///
/// # Safety
/// Only for the child part, as all that follows.
unsafe fn run(plan: &Plan) -> (Step, Errno) {
    // SAFETY: the caller's.
    unsafe {
        if let Err(errno) = own_descriptors(plan) {
            return (Step::Descriptors, errno);
        }
        if let Err(errno) = set_up_session(plan) {
            return (Step::Session, errno);
        }
        if let Err(errno) = set_up_descriptors(plan).and_then(|()| limit_descriptors(plan)) {
            return (Step::Descriptors, errno);
        }
        if !plan.dir.is_null()
            && let Err(errno) = syscall!(Sysno::chdir, plan.dir)
        {
            return (Step::Directory, errno);
        }
        (Step::Exec, execute(plan))
    }
}

/// Comes first, since until then what is done to a descriptor is done to ours.
unsafe fn own_descriptors(plan: &Plan) -> Result<(), Errno> {
    let Some(end) = plan.table_end else { return Ok(()) };
    // SAFETY: all that the child gets is below the end.
    unsafe { seats::part_from_table(end.cast_unsigned(), c_uint::MAX) }
}

unsafe fn set_up_session(plan: &Plan) -> Result<(), Errno> {
    /// The kernel's own set.
    const NONE: u64 = 0;
    // SAFETY: system calls with valid arguments.
    unsafe {
        reset_dispositions(plan.changed_signals)?;
        if plan.new_session {
            syscall!(Sysno::setsid)?;
        } else if plan.process_group {
            syscall!(Sysno::setpgid, 0, 0)?;
        }
        if plan.death_signal != 0 {
            syscall!(Sysno::prctl, libc::PR_SET_PDEATHSIG, plan.death_signal)?;
            // The parent may have died before the call, and then no signal would ever come.
            if syscall!(Sysno::getppid)? != plan.parent.cast_unsigned() as usize {
                syscall!(Sysno::exit_group, 127)?;
            }
        }
        let no_old = ptr::null_mut::<c_void>();
        let set = ptr::from_ref(&NONE);
        syscall!(Sysno::rt_sigprocmask, libc::SIG_SETMASK, set, no_old, size_of::<u64>())?;
    }
    Ok(())
}

/// Gives these signals their default action: an ignored one would stay ignored beyond execve, and a
/// handler would run in the parent's memory once signals are unblocked.
unsafe fn reset_dispositions(mut changed: u64) -> Result<(), Errno> {
    /// The kernel's own struct, which is no larger than this; all zero is the default action.
    const DEFAULT: [u64; 8] = [0; 8];
    while changed != 0 {
        let signal = changed.trailing_zeros() + 1;
        changed &= changed - 1;
        let (action, no_old) = (DEFAULT.as_ptr(), ptr::null_mut::<c_void>());
        // SAFETY: a system call that reads DEFAULT.
        unsafe { syscall!(Sysno::rt_sigaction, signal, action, no_old, size_of::<u64>())? };
    }
    Ok(())
}

/// Moves sources out of the way of targets first, then puts each in its place.
unsafe fn set_up_descriptors(plan: &Plan) -> Result<(), Errno> {
    // SAFETY: system calls. The copy that dup3 makes is not close-on-exec.
    unsafe {
        for Move { source, target } in &plan.moves {
            let at = source.get();
            if at != *target && plan.moves.iter().any(|other| other.target == at) {
                let moved = syscall!(Sysno::fcntl, at, libc::F_DUPFD_CLOEXEC, plan.first_free_fd)?;
                source.set(moved as RawFd);
            }
        }
        for Move { source, target } in &plan.moves {
            let at = source.get();
            if at == *target {
                syscall!(Sysno::fcntl, at, libc::F_SETFD, 0)?;
            } else {
                syscall!(Sysno::dup3, at, *target, 0)?;
            }
        }
        // Every source has been put in its place, and all places are below.
        seats::close_from(plan.first_free_fd.max(seats::SMALL));
    }
    Ok(())
}

/// Lowers the soft limit only, so that the child may raise it again.
unsafe fn limit_descriptors(plan: &Plan) -> Result<(), Errno> {
    if plan.descriptors_max == u64::MAX {
        return Ok(());
    }
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let resource = libc::RLIMIT_NOFILE;
    // SAFETY: system calls with valid pointers. Limits are a process's own even in shared memory.
    unsafe {
        let (ours, no_limit) = (0, ptr::null_mut::<c_void>());
        syscall!(Sysno::prlimit64, ours, resource, no_limit, ptr::from_mut(&mut limit))?;
        limit.rlim_cur = plan.descriptors_max.min(limit.rlim_max);
        syscall!(Sysno::prlimit64, ours, resource, ptr::from_ref(&limit), no_limit)?;
    }
    Ok(())
}

/// Returns only when the program could not be executed, and says why.
unsafe fn execute(plan: &Plan) -> Errno {
    // SAFETY: all arrays end in null and live as long as the plan.
    unsafe {
        let errno = exec(plan.program, plan.argv.as_ptr(), plan);
        if errno == Errno::ENOEXEC && is_text(plan.program) {
            return exec(SHELL.as_ptr(), plan.script_argv.as_ptr(), plan);
        }
        errno
    }
}

unsafe fn exec(program: *const c_char, argv: *const *const c_char, plan: &Plan) -> Errno {
    // SAFETY: the caller's.
    let done = unsafe { syscall!(Sysno::execve, program, argv, plan.env.as_ptr()) };
    done.err().unwrap_or(Errno::ENOSYS) // it does not return otherwise
}

/// Whether a file may be a script: a program for another machine is not, and `sh` would run what
/// it takes for commands there. Like shells, looks for a zero byte at the front.
unsafe fn is_text(path: *const c_char) -> bool {
    let mut front = [0_u8; 80];
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: system calls with valid pointers. A descriptor that stays open is close-on-exec.
    let read = unsafe {
        syscall!(Sysno::openat, libc::AT_FDCWD, path, flags, 0)
            .and_then(|fd| syscall!(Sysno::read, fd, front.as_mut_ptr(), front.len()))
    };
    // What may be executed and not read is left to the shell to complain about.
    read.map_or(true, |bytes| !front.iter().take(bytes).any(|byte| *byte == 0))
}
