//! The program's connection, and what goes wrong on it as codes.

use std::ffi::c_int;
use std::sync::Arc;

use client::{Error, Pmi2};
use ffi::{ERR_INVALID_ARG, Room, Shared};

/// `PMI2_ERR_INIT`: there is no connection yet, or none any more.
const ERR_INIT: c_int = 1;
/// `PMI2_ERR_OTHER`, Slurm's word for everything else.
pub(crate) const ERR_OTHER: c_int = 14;

pub(crate) static CONNECTION: Shared<Pmi2> = Shared::new();

pub(crate) fn connection() -> Result<Arc<Pmi2>, c_int> {
    CONNECTION.get().ok_or(ERR_INIT)
}

/// The code of an error, which is told who wants to know.
pub(crate) fn code(error: Error) -> c_int {
    ffi::tell(&error, &["PMI2_DEBUG", "PMI_DEBUG"]);
    ERR_OTHER
}

/// Writes what fits of a string: one that is cut is no error, as with Slurm.
pub(crate) fn write(room: Room, size: c_int, text: &[u8]) -> Result<(), c_int> {
    if room.is_null() || size <= 0 {
        return Err(ERR_INVALID_ARG);
    }
    room.write(size, text);
    Ok(())
}
