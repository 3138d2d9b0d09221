//! What Slurm's and MVAPICH's libraries have beyond PMI-2: a ring, allgathers, and collectives that are begun and waited
//! for later.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use client::{Outcome, Request};
use ffi::{Cells, ERR_INVALID_ARG, Out, Room, Text, call};

use crate::connection::{ERR_OTHER, code, connection, write};

/// `PMIX_REQUEST_NULL`.
const NO_REQUEST: u64 = 0;

/// The bytes that C has for each value of an allgather, `PMI2_MAX_VALLEN`, of which the last is for the NUL.
const CELL_BYTES: usize = 1024;

/// Where the values of an allgather go that was begun, by the number of the request.
static DESTINATIONS: Mutex<BTreeMap<u64, Cells>> = Mutex::new(BTreeMap::new());

/// Values that the library has made room for.
static LENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

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
        let ring = pmi.ring(value.required()?).map_err(code)?;
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
extern "C" fn PMIX_Allgather(value: Text, buffer: Cells) -> c_int {
    call(|| {
        let pmi = connection()?;
        let value = value.required()?;
        if buffer.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        fill(buffer, &pmi.allgather(value, CELL_BYTES - 1).map_err(code)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMIX_Iallgather(value: Text, buffer: Cells, request: Out<u64>) -> c_int {
    call(|| {
        let pmi = connection()?;
        let value = value.required()?;
        if buffer.is_null() || request.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let mut destinations = destinations();
        let number = pmi.begin_allgather(value, CELL_BYTES - 1).map_err(code)?.number();
        destinations.insert(number, buffer);
        request.set(number);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMIX_Wait(request: Out<u64>) -> c_int {
    call(|| {
        let pmi = connection()?;
        let number = request.get().filter(|number| *number != NO_REQUEST);
        let number = number.ok_or(ERR_INVALID_ARG)?;
        request.set(NO_REQUEST);
        let destination = destinations().remove(&number);
        match pmi.wait(Request::with_number(number)).map_err(code)? {
            Outcome::Met => Ok(()),
            Outcome::Gathered(values) => fill(destination.ok_or(ERR_INVALID_ARG)?, &values),
        }
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
        pmi.wait(begun).map(drop).map_err(code)
    })
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI2_Iallgather(value: Text) -> c_int {
    call(|| {
        let pmi = connection()?;
        pmi.begin_allgather(value.required()?, CELL_BYTES - 1).map(drop).map_err(code)
    })
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI2_Iallgather_wait(buffer: Cells) -> c_int {
    call(|| if buffer.is_null() { Err(ERR_INVALID_ARG) } else { fill(buffer, &gathered()?) })
}

/// MVAPICH's name for the same, where the library has room for the values.
#[unsafe(no_mangle)]
extern "C" fn PMI2_SHMEM_Iallgather(value: Text) -> c_int {
    PMI2_Iallgather(value)
}

/// The values are there until the next call. MVAPICH gives nothing back.
#[unsafe(no_mangle)]
extern "C" fn PMI2_SHMEM_Iallgather_wait(buffer: Out<*const u8>) -> c_int {
    call(|| {
        if buffer.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let values = gathered()?;
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        *lent = vec![0; values.len() * CELL_BYTES];
        for (cell, value) in lent.chunks_exact_mut(CELL_BYTES).zip(&values) {
            cell[..CELL_BYTES - 1].get_mut(..value.len()).ok_or(ERR_OTHER)?.copy_from_slice(value);
        }
        buffer.set(lent.as_ptr());
        Ok(())
    })
}

/// Waits for the allgather that is under way.
fn gathered() -> Result<Vec<Vec<u8>>, c_int> {
    let pmi = connection()?;
    let begun = pmi.allgather_under_way().ok_or(ERR_INVALID_ARG)?;
    match pmi.wait(begun).map_err(code)? {
        Outcome::Gathered(values) => Ok(values),
        Outcome::Met => Err(ERR_OTHER),
    }
}

fn fill(buffer: Cells, values: &[Vec<u8>]) -> Result<(), c_int> {
    if buffer.write(CELL_BYTES, values) { Ok(()) } else { Err(ERR_OTHER) }
}

fn destinations() -> MutexGuard<'static, BTreeMap<u64, Cells>> {
    DESTINATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}
