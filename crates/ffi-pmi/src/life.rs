//! Beginning and end.

use std::env;
use std::ffi::c_int;
use std::process;

use client::Pmi1;
use ffi::{ERR_INVALID_ARG, Out, Text, call};

use crate::connection::{CONNECTION, connection, fail};

#[unsafe(no_mangle)]
extern "C" fn PMI_Init(spawned: Out<c_int>) -> c_int {
    call(|| {
        if spawned.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        CONNECTION.get_or_begin(Pmi1::from_env).map_err(fail)?;
        // The protocol does not say it.
        let is_spawned = env::var("PMI_SPAWNED").is_ok_and(|value| value.trim() != "0");
        spawned.set(c_int::from(is_spawned));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Initialized(initialized: Out<c_int>) -> c_int {
    call(|| initialized.give(|| Ok(c_int::from(CONNECTION.get().is_some()))))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Finalize() -> c_int {
    call(|| match CONNECTION.end() {
        Some(pmi) => pmi.finalize().map_err(fail),
        None => Ok(()),
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Abort(code: c_int, message: Text) -> c_int {
    call(|| connection()?.abort(code, message.bytes().unwrap_or_default()).map_err(fail));
    process::exit(code)
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Barrier() -> c_int {
    call(|| connection()?.barrier().map_err(fail))
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI_Ibarrier() -> c_int {
    call(|| connection()?.begin_barrier().map_err(fail))
}

/// MVAPICH's name.
#[unsafe(no_mangle)]
extern "C" fn PMI_Wait() -> c_int {
    call(|| connection()?.wait_barrier().map_err(fail))
}
