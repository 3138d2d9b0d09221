//! Strings, and room for them.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::ERR_INVALID_ARG;

/// `const char *`: a string, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub(crate) const NULL: Text = Text(ptr::null());

    /// What must be a string that lives as long as C wants.
    pub(crate) fn of(text: *mut c_char) -> Text {
        Text(text)
    }

    pub(crate) fn as_pointer(self) -> *mut c_char {
        self.0.cast_mut()
    }

    /// Its bytes, without the NUL; nothing where it is null.
    pub fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: a pointer that C passes as a string is null, or ends with NUL and stays as long as the argument.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The same of a string that must be there.
    ///
    /// # Errors
    /// [`ERR_INVALID_ARG`], where it is null.
    pub fn required(&self) -> Result<&[u8], c_int> {
        self.bytes().ok_or(ERR_INVALID_ARG)
    }
}

/// `char *`: room for a string, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Room(*mut c_char);

impl Room {
    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes what fits of a string and its NUL into room of this size, and returns whether all has.
    pub fn write(self, size: c_int, text: &[u8]) -> bool {
        let Some(last) = usize::try_from(size).ok().and_then(|size| size.checked_sub(1)) else {
            return false;
        };
        if self.0.is_null() {
            return false;
        }
        let fits = text.len().min(last);
        // SAFETY: C passes room of at least `size` bytes, in which the text and its NUL end, and which is its own.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), self.0, fits);
            self.0.add(fits).write(0);
        }
        fits == text.len()
    }
}
