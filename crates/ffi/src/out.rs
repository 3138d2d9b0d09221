//! Where results go.

use std::ffi::c_int;
use std::ptr;

use crate::ERR_INVALID_ARG;

/// A pointer to room for a value, or for an array, or null. Two arguments may be the same one.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the value, unless the pointer is null.
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: C passes null, or room for the value, which is its own.
            unsafe { self.0.write(value) }
        }
    }

    /// Writes a value, for which there must be room before it is asked for.
    ///
    /// # Errors
    /// [`ERR_INVALID_ARG`] without room, or why there is no value.
    pub fn give(self, value: impl FnOnce() -> Result<T, c_int>) -> Result<(), c_int> {
        if self.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        self.set(value()?);
        Ok(())
    }

    /// What is there, unless the pointer is null.
    pub fn get(self) -> Option<T> {
        // SAFETY: C passes null, or a pointer to a value that it has initialised.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }

    /// Writes what fits of the values into room for so many, and returns how many.
    pub fn set_all(self, length: c_int, values: &[T]) -> usize {
        let room = if self.0.is_null() { 0 } else { usize::try_from(length).unwrap_or(0) };
        let count = values.len().min(room);
        // SAFETY: C passes room for at least `length` values, which is its own.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.0, count) };
        count
    }
}
