//! Beginning and end.

use std::ffi::c_int;
use std::process;

use client::Pmi2;
use ffi::{Out, Text, call};

use crate::connection::{CONNECTION, code, connection};

/// Slurm has no number for a program that was started alone.
const NO_APPNUM: c_int = -1;

#[unsafe(no_mangle)]
extern "C" fn PMI2_Init(
    spawned: Out<c_int>,
    size: Out<c_int>,
    rank: Out<c_int>,
    appnum: Out<c_int>,
) -> c_int {
    call(|| {
        let pmi = CONNECTION.get_or_begin(Pmi2::from_env).map_err(code)?;
        let place = pmi.place();
        spawned.set(c_int::from(place.spawner.is_some()));
        size.set(place.size.cast_signed());
        rank.set(place.rank.cast_signed());
        appnum.set(place.appnum.map_or(NO_APPNUM, u32::cast_signed));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Finalize() -> c_int {
    call(|| match CONNECTION.end() {
        Some(pmi) => pmi.finalize().map_err(code),
        None => Ok(()),
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Initialized() -> c_int {
    c_int::from(CONNECTION.get().is_some())
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Abort(flag: c_int, message: Text) -> c_int {
    call(|| connection()?.abort(flag != 0, message.bytes().unwrap_or_default()).map_err(code));
    process::exit(flag)
}
