//! Keeps the price of a child from growing with the descriptors that we hold.
//!
//! A child starts with a copy of our table of descriptors, and its execve closes them one by one:
//! with three for each task before, the thousandth task of a host costs twice the first. Instead,
//! the child starts in our own table and then takes a copy of its low numbers only (`close_range`
//! with `CLOSE_RANGE_UNSHARE`, Linux 5.9). What the child shall get is held at low numbers
//! meanwhile: in a row of seats, which are kept for good. There is a row for each child that is
//! created while another still is.

use std::cell::{Cell, LazyCell};
use std::ffi::c_uint;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use syscalls::{Errno, Sysno, syscall};

use super::Move;

/// With descriptors below this only, a whole copy is as cheap. What lies higher is passed to no child, in whichever
/// way it starts.
pub(super) const SMALL: RawFd = 64;

/// No child of ours gets more descriptors.
const SEATS: usize = 6;

/// Children that are created at once. More get whole copies.
const ROWS: usize = 2;

/// A child's descriptors in a row of seats, which are cleared at the end: a pipe ends only when
/// nobody holds it.
#[derive(Debug)]
pub(super) struct Seated {
    row: usize,
    count: usize,
    table_end: RawFd,
}

impl Seated {
    /// Has the sources sit, where that is of use and the system can do it.
    pub(super) fn new(moves: &[Move]) -> Option<Seated> {
        let highest = moves.iter().map(|it| it.source.get()).max()?;
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
        OURS.with(|seats| seats.iter().for_each(|seats| seats.clear(self.row, self.count)));
    }
}

/// Copies of `/dev/null`, where nobody sits.
struct Seats {
    null: OwnedFd,
    rows: [Row; ROWS],
}

struct Row {
    is_taken: Cell<bool>,
    seats: Vec<OwnedFd>,
}

thread_local! {
    /// Some for each thread, so that tests may spawn from several.
    static OURS: LazyCell<Option<Seats>> = const { LazyCell::new(Seats::new) };
}

impl Seats {
    /// Nothing where the system has no such call, or no more descriptors.
    fn new() -> Option<Seats> {
        if !can_part() {
            return None;
        }
        let null: OwnedFd = File::open("/dev/null").ok()?.into();
        let row = || {
            let seats: io::Result<_> = (0..SEATS).map(|_| null.try_clone()).collect();
            Some(Row { is_taken: Cell::new(false), seats: seats.ok()? })
        };
        let rows = [row()?, row()?];
        Some(Seats { null, rows })
    }

    fn sit(&self, moves: &[Move]) -> Option<Seated> {
        let (index, row) = self.rows.iter().enumerate().find(|(_, row)| !row.is_taken.get())?;
        let highest = row.seats.iter().map(AsRawFd::as_raw_fd).max()?;
        row.is_taken.set(true);
        let seated = Seated { row: index, count: moves.len(), table_end: highest + 1 };
        let copied = moves.iter().zip(&row.seats).all(|(it, seat)| dup(it.source.get(), seat));
        if !copied {
            return None; // and what sits is cleared
        }
        for (it, seat) in moves.iter().zip(&row.seats) {
            it.source.set(seat.as_raw_fd());
        }
        Some(seated)
    }

    fn clear(&self, row: usize, count: usize) {
        let Some(row) = self.rows.get(row) else { return };
        row.seats.iter().take(count).for_each(|seat| {
            dup(self.null.as_raw_fd(), seat);
        });
        row.is_taken.set(false);
    }
}

/// Whether a child can part from our table. A range that is none is refused as such where the call
/// is known, and nothing is done.
fn can_part() -> bool {
    // SAFETY: no descriptor is closed.
    unsafe { part_from_table(1, 0) == Err(Errno::EINVAL) }
}

/// Takes a copy of the table of descriptors, without those from `first` to `last`.
///
/// # Safety
/// Only for the child part, which needs none of these.
pub(super) unsafe fn part_from_table(first: c_uint, last: c_uint) -> Result<(), Errno> {
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
    let _ = unsafe { close_range(first.cast_unsigned(), c_uint::MAX, 0) };
}

/// # Safety
/// Descriptors of the range are not used afterwards.
unsafe fn close_range(first: c_uint, last: c_uint, flags: c_uint) -> Result<(), Errno> {
    // SAFETY: a system call without pointers, past the C library: the child part makes it.
    unsafe { syscall!(Sysno::close_range, first, last, flags) }.map(|_| ())
}

/// Puts a copy of `source` in a seat, in place of what sits there. Returns whether it does.
fn dup(source: RawFd, seat: &OwnedFd) -> bool {
    // SAFETY: the seat's number is ours, and stays so.
    unsafe { libc::dup3(source, seat.as_raw_fd(), libc::O_CLOEXEC) != -1 }
}
