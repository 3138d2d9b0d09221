//! The program's connection, and what goes wrong on it as codes.

use std::ffi::c_int;
use std::sync::Arc;

use client::{Error, Pmi1};
use ffi::{ERR_INVALID_ARG, Room, Shared};

/// `PMI_FAIL`.
pub(crate) const FAIL: c_int = -1;
/// `PMI_ERR_NOMEM`.
pub(crate) const ERR_NOMEM: c_int = 2;
/// `PMI_ERR_INVALID_KEY`.
pub(crate) const ERR_INVALID_KEY: c_int = 4;
/// `PMI_ERR_INVALID_KEY_LENGTH`.
pub(crate) const ERR_INVALID_KEY_LENGTH: c_int = 5;
/// `PMI_ERR_INVALID_VAL`.
pub(crate) const ERR_INVALID_VAL: c_int = 6;
/// `PMI_ERR_INVALID_VAL_LENGTH`.
pub(crate) const ERR_INVALID_VAL_LENGTH: c_int = 7;
/// `PMI_ERR_INVALID_LENGTH`.
pub(crate) const ERR_INVALID_LENGTH: c_int = 8;
/// `PMI_ERR_INVALID_KVS`.
pub(crate) const ERR_INVALID_KVS: c_int = 14;

pub(crate) static CONNECTION: Shared<Pmi1> = Shared::new();

/// Slurm's library fails where `PMI_Init` was not called.
pub(crate) fn connection() -> Result<Arc<Pmi1>, c_int> {
    CONNECTION.get().ok_or(FAIL)
}

/// The code of an error that has none of its own, which is told who wants to know.
pub(crate) fn fail(error: Error) -> c_int {
    ffi::tell(&error, &["PMI_DEBUG"]);
    FAIL
}

/// Writes a string, all of which must fit.
pub(crate) fn write(room: Room, size: c_int, text: &[u8]) -> Result<(), c_int> {
    if room.is_null() {
        return Err(ERR_INVALID_ARG);
    }
    if room.write(size, text) { Ok(()) } else { Err(ERR_INVALID_LENGTH) }
}
