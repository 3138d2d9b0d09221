//! What Slurm's and MVAPICH's libraries have beyond PMI-2: a ring, and fences that are begun and waited for later.

use std::ffi::c_int;

use client::Request;
use ffi::{Out, Room, Text, call};

use crate::connection::{ERR_INVALID_ARG, code, connection, required, write};

/// `PMIX_REQUEST_NULL`.
const NO_REQUEST: u64 = 0;

#[unsafe(no_mangle)]
extern "C" fn PMIX_Ring(
    value: Text,
    rank: Out<c_int>,
    ranks: Out<c_int>,
    left: Room,
    right: Room,
    size: c_int,
) -> c_int {
    call(|| {
        let pmi = connection()?;
        let ring = pmi.ring(required(&value)?).map_err(code)?;
        write(left, size, &ring.left)?;
        write(right, size, &ring.right)?;
        rank.set(ring.number.cast_signed());
        ranks.set(pmi.place().size.cast_signed());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMIX_KVS_Ifence(request: Out<u64>) -> c_int {
    call(|| {
        let pmi = connection()?;
        if request.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        request.set(pmi.begin_fence().map_err(code)?.number());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMIX_Wait(request: Out<u64>) -> c_int {
    call(|| {
        let pmi = connection()?;
        let number = request.get().filter(|number| *number != NO_REQUEST);
        let begun = Request::with_number(number.ok_or(ERR_INVALID_ARG)?);
        request.set(NO_REQUEST);
        pmi.wait(begun).map_err(code)
    })
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI2_KVS_Ifence() -> c_int {
    call(|| connection()?.begin_fence().map(drop).map_err(code))
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI2_KVS_Wait() -> c_int {
    call(|| {
        let pmi = connection()?;
        let begun = pmi.fence_under_way().ok_or(ERR_INVALID_ARG)?;
        pmi.wait(begun).map_err(code)
    })
}
