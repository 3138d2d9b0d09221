//! Room for strings of many, in cells of one size.

use std::ffi::{c_char, c_void};
use std::ptr;

/// `void *`: cells that follow each other, or null. C may pass it in one call and have it filled in another.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Cells(*mut c_void);

// SAFETY: it is only written through, by whichever thread C has wait for what goes there.
unsafe impl Send for Cells {}

impl Cells {
    /// Whether there are none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a string and its NUL into each of the first cells, and returns whether all fit.
    pub fn write(self, cell_bytes: usize, texts: &[Vec<u8>]) -> bool {
        if self.0.is_null() || texts.iter().any(|text| text.len() >= cell_bytes) {
            return false;
        }
        for (index, text) in texts.iter().enumerate() {
            // SAFETY: C passes as many cells of this size as there are strings, and a string is shorter than one.
            unsafe {
                let cell = self.0.cast::<c_char>().add(index * cell_bytes);
                ptr::copy_nonoverlapping(text.as_ptr().cast(), cell, text.len());
                cell.add(text.len()).write(0);
            }
        }
        true
    }
}
