//! Arrays that C passes.

use std::ffi::c_int;
use std::slice;

use crate::Text;

/// A pointer to an array, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Array<T>(*const T);

impl<T> Array<T> {
    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Its first `length` elements; none where it is null or the length is negative.
    pub fn elements(&self, length: c_int) -> &[T] {
        match usize::try_from(length) {
            // SAFETY: C passes an array of so many elements, which stays as long as the argument.
            Ok(length) if !self.0.is_null() => unsafe { slice::from_raw_parts(self.0, length) },
            Ok(_) | Err(_) => &[],
        }
    }
}

impl<T> Array<Array<T>> {
    /// The first `length` elements of the array with this index among `count`; none where it or all are null.
    pub fn within(&self, count: c_int, index: usize, length: c_int) -> &[T] {
        self.elements(count).get(index).map_or(&[], |array| array.elements(length))
    }
}

impl Array<c_int> {
    /// The number with this index among `count`; 0 where all are null.
    pub fn number(&self, count: c_int, index: usize) -> c_int {
        self.elements(count).get(index).copied().unwrap_or(0)
    }
}

impl Array<Text> {
    /// Its strings up to the null that ends it; none where it is null itself.
    pub fn strings(&self) -> Vec<&[u8]> {
        let mut strings = Vec::new();
        if self.0.is_null() {
            return strings;
        }
        // SAFETY: C ends an array of strings of no length with null, and does not change it during a call.
        while let Some(text) = unsafe { &*self.0.add(strings.len()) }.bytes() {
            strings.push(text);
        }
        strings
    }
}
