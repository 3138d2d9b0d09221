//! Keeps the price of a child from growing with the descriptors that we hold.
//!
//! A child starts with a copy of our table of descriptors, and its execve closes them one by one:
//! with three for each task before, the thousandth task of a host costs twice the first. Instead,
//! the child starts in our own table and then takes a copy of its low numbers only (`close_range`
//! with `CLOSE_RANGE_UNSHARE`, Linux 5.9). What the child shall get is held at low numbers
//! meanwhile: in seats, which are kept for good.

use std::cell::LazyCell;
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::Move;

/// With descriptors below this only, a whole copy is as cheap. What lies higher is passed to no child, in whichever
/// way it starts.
pub(super) const SMALL: RawFd = 64;

/// No child of ours gets more descriptors.
const SEATS: usize = 6;

/// A child's descriptors in their seats, which are cleared at the end: a pipe ends only when nobody
/// holds it.
pub(super) struct Seated {
    count: usize,
    table_end: RawFd,
}

impl Seated {
    /// Has the sources sit, where that is of use and the system can do it.
    pub(super) fn new(moves: &mut [Move]) -> Option<Seated> {
        let highest = moves.iter().map(|it| it.source).max()?;
        if highest < SMALL || moves.len() > SEATS {
            return None;
        }
        OURS.with(|seats| seats.as_ref()?.sit(moves))
    }

    /// The child needs nothing of our table from this number on.
    pub(super) fn table_end(&self) -> RawFd {
        self.table_end
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        OURS.with(|seats| seats.iter().for_each(|seats| seats.clear(self.count)));
    }
}

/// Copies of `/dev/null`, where nobody sits.
struct Seats {
    null: OwnedFd,
    seats: Vec<OwnedFd>,
}

thread_local! {
    /// A set for each thread, so that tests may spawn from several.
    static OURS: LazyCell<Option<Seats>> = const { LazyCell::new(Seats::new) };
}

impl Seats {
    /// Nothing where the system has no such call, or no more descriptors.
    fn new() -> Option<Seats> {
        if !can_part() {
            return None;
        }
        let null: OwnedFd = File::open("/dev/null").ok()?.into();
        let seats: io::Result<_> = (0..SEATS).map(|_| null.try_clone()).collect();
        Some(Seats { null, seats: seats.ok()? })
    }

    fn sit(&self, moves: &mut [Move]) -> Option<Seated> {
        let highest = self.seats.iter().map(AsRawFd::as_raw_fd).max()?;
        let seated = Seated { count: moves.len(), table_end: highest + 1 };
        let copied = moves.iter().zip(&self.seats).all(|(it, seat)| dup(it.source, seat));
        if !copied {
            return None; // and what sits is cleared
        }
        for (it, seat) in moves.iter_mut().zip(&self.seats) {
            it.source = seat.as_raw_fd();
        }
        Some(seated)
    }

    fn clear(&self, count: usize) {
        self.seats.iter().take(count).for_each(|seat| {
            dup(self.null.as_raw_fd(), seat);
        });
    }
}

/// Whether a child can part from our table. A range that is none is refused as such where the call
/// is known, and nothing is done.
fn can_part() -> bool {
    // SAFETY: no descriptor is closed.
    let done = unsafe { part_from_table(1, 0) };
    done == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Takes a copy of the table of descriptors, without those from `first` to `last`.
///
/// # Safety
/// Only for the child part, which needs none of these.
pub(super) unsafe fn part_from_table(first: c_uint, last: c_uint) -> c_int {
    // SAFETY: what is closed is not needed.
    unsafe { close_range(first, last, libc::CLOSE_RANGE_UNSHARE) }
}

/// Closes what we have inherited and did not mean to pass on. Where the call is unknown it stays open, and does no
/// harm.
///
/// # Safety
/// Only for the child part, in its own table, which needs none of these.
pub(super) unsafe fn close_from(first: RawFd) {
    // SAFETY: what is closed is not needed.
    unsafe { close_range(first.cast_unsigned(), c_uint::MAX, 0) };
}

/// # Safety
/// Descriptors of the range are not used afterwards.
unsafe fn close_range(first: c_uint, last: c_uint, flags: c_uint) -> c_int {
    // SAFETY: a system call without pointers.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == -1 { -1 } else { 0 }
}

/// Puts a copy of `source` in a seat, in place of what sits there. Returns whether it does.
fn dup(source: RawFd, seat: &OwnedFd) -> bool {
    // SAFETY: the seat's number is ours, and stays so.
    unsafe { libc::dup3(source, seat.as_raw_fd(), libc::O_CLOEXEC) != -1 }
}
