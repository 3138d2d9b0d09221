//! Stacks for child parts, used again and again.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io;
use std::ptr;

/// The memory that a child part runs on, with a page below it that faults.
#[derive(Debug)]
pub(super) struct ChildStack {
    base: *mut c_void,
}

/// The child part is shallow; an unoptimised build needs some 2 KiB.
const STACK_BYTES: usize = 64 * 1024;
const GUARD_BYTES: usize = 64 * 1024; // at least a page on every architecture

thread_local! {
    /// Those that no child runs on.
    static FREE: RefCell<Vec<ChildStack>> = const { RefCell::new(Vec::new()) };
}

impl ChildStack {
    /// One that no child runs on.
    pub(super) fn take() -> io::Result<ChildStack> {
        FREE.with_borrow_mut(Vec::pop).map_or_else(ChildStack::new, Ok)
    }

    /// Keeps it for the next child.
    pub(super) fn give_back(self) {
        FREE.with_borrow_mut(|free| free.push(self));
    }

    /// Stacks grow down on every architecture that we run on.
    pub(super) fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, aligned to a page.
        unsafe { self.base.byte_add(GUARD_BYTES + STACK_BYTES) }
    }

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
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: we made this mapping, and no child runs on it.
        unsafe { libc::munmap(self.base, GUARD_BYTES + STACK_BYTES) };
    }
}
