//! The space of keys.

use std::ffi::c_int;

use ffi::{ERR_INVALID_ARG, Out, Room, Text, call};

use crate::connection::{ERR_OTHER, code, connection};

#[unsafe(no_mangle)]
extern "C" fn PMI2_KVS_Put(key: Text, value: Text) -> c_int {
    call(|| connection()?.put(key.required()?, value.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_KVS_Fence() -> c_int {
    call(|| connection()?.fence().map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_KVS_Get(
    job: Text,
    source: c_int,
    key: Text,
    value: Room,
    size: c_int,
    length: Out<c_int>,
) -> c_int {
    call(|| {
        let pmi = connection()?;
        let key = key.required()?;
        if value.is_null() || size <= 0 {
            return Err(ERR_INVALID_ARG);
        }
        let got = pmi.get(job.bytes(), u32::try_from(source).ok(), key).map_err(code)?;
        let got = got.ok_or(ERR_OTHER)?;
        let bytes = c_int::try_from(got.len()).map_err(|_| ERR_OTHER)?;
        // Of one that is cut, C is told how long it is.
        length.set(if value.write(size, &got) { bytes } else { -bytes });
        Ok(())
    })
}
