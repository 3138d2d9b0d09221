//! Pairs of strings: those that C passes, and those that C is given and gives back.

use std::ffi::{c_char, c_int};
use std::ptr;

use crate::Text;

/// `PMI_keyval_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pair {
    /// The first string.
    pub key: Text,
    /// The second.
    pub value: Text,
}

/// A pointer to pairs that are C's to keep, in memory of `malloc`, or null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct OwnedPairs(*mut Pair);

/// Two strings, each of which may be missing.
pub type Strings = (Option<Vec<u8>>, Option<Vec<u8>>);

impl OwnedPairs {
    /// Whether there are none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Copies pairs for C, which gives them back to [`free`](Self::free); none where memory has run out.
    pub fn new(pairs: &[Strings]) -> Option<OwnedPairs> {
        if pairs.is_empty() {
            return Some(OwnedPairs(ptr::null_mut()));
        }
        // SAFETY: calloc(3) is called with the size of the pairs; zeroes are null pointers, which pairs may have.
        let room: *mut Pair = unsafe { libc::calloc(pairs.len(), size_of::<Pair>()) }.cast();
        if room.is_null() {
            return None;
        }
        for (index, (key, value)) in pairs.iter().enumerate() {
            let pair = Pair { key: copy(key.as_deref())?, value: copy(value.as_deref())? };
            // SAFETY: the index is below the number of pairs that there is room for.
            unsafe { room.add(index).write(pair) }
        }
        Some(OwnedPairs(room))
    }

    /// Gives so many pairs back to the system.
    pub fn free(self, size: c_int) {
        for index in 0..usize::try_from(size).unwrap_or(0) {
            // SAFETY: C says how many it was given by `new`, and gives back each once. What came from malloc(3), and
            // null, free(3) takes.
            unsafe {
                let Pair { key, value } = self.0.add(index).read();
                libc::free(key.as_pointer().cast());
                libc::free(value.as_pointer().cast());
            }
        }
        // SAFETY: as above.
        unsafe { libc::free(self.0.cast()) }
    }
}

/// A string in memory of `malloc`, or null where there is none; nothing where memory has run out.
fn copy(text: Option<&[u8]>) -> Option<Text> {
    let Some(text) = text else { return Some(Text::NULL) };
    // SAFETY: there is room for the text and the zero behind it, and calloc(3) has written that.
    unsafe {
        let room: *mut c_char = libc::calloc(text.len() + 1, 1).cast();
        if room.is_null() {
            return None;
        }
        ptr::copy_nonoverlapping(text.as_ptr().cast(), room, text.len());
        Some(Text::of(room))
    }
}
