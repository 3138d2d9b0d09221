//! Spaces of keys.

use std::ffi::c_int;

use client::Error;
use ffi::{ERR_INVALID_ARG, Room, Text, call};

use crate::connection::{
    ERR_INVALID_KEY, ERR_INVALID_KVS, ERR_INVALID_VAL, connection, fail, write,
};

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Get_my_name(name: Room, size: c_int) -> c_int {
    call(|| write(name, size, &connection()?.name().map_err(fail)?))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Create(name: Room, size: c_int) -> c_int {
    call(|| {
        let pmi = connection()?;
        if name.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let created = pmi.create().map_err(fail)?;
        // One whose name nobody knows must not stay.
        write(name, size, &created)
            .or_else(|code| pmi.destroy(&created).map_err(fail).and(Err(code)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Destroy(name: Text) -> c_int {
    call(|| match connection()?.destroy(name.required()?) {
        Err(Error::Refused { .. } | Error::Text { .. }) => Err(ERR_INVALID_ARG),
        destroyed => destroyed.map_err(fail),
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Put(name: Text, key: Text, value: Text) -> c_int {
    call(|| {
        let pmi = connection()?;
        let maxes = pmi.maxes();
        let name = checked(&name, maxes.name, ERR_INVALID_KVS)?;
        let key = checked(&key, maxes.key, ERR_INVALID_KEY)?;
        let value = checked(&value, usize::MAX, ERR_INVALID_VAL)?;
        match pmi.put(name, key, value) {
            Err(error @ Error::TooLong { .. }) => {
                fail(error);
                Err(ERR_INVALID_VAL)
            }
            Err(Error::Refused { .. }) => Err(ERR_INVALID_KVS),
            put => put.map_err(fail),
        }
    })
}

/// What was put is sent at once.
#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Commit(name: Text) -> c_int {
    call(|| {
        name.required()?;
        connection().map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Get(name: Text, key: Text, value: Room, size: c_int) -> c_int {
    call(|| {
        let pmi = connection()?;
        let name = checked(&name, pmi.maxes().name, ERR_INVALID_KVS)?;
        let key = checked(&key, pmi.maxes().key, ERR_INVALID_KEY)?;
        if value.is_null() {
            return Err(ERR_INVALID_VAL);
        }
        match pmi.get(name, key) {
            Err(Error::Refused { .. }) => Err(ERR_INVALID_KEY),
            got => write(value, size, &got.map_err(fail)?),
        }
    })
}

/// A word that is there and, with its NUL, no longer than this: lines of PMI-1 carry no blanks.
pub(crate) fn checked(text: &Text, max: usize, code: c_int) -> Result<&[u8], c_int> {
    let is_word =
        |bytes: &&[u8]| bytes.len() < max && !bytes.iter().any(|byte| matches!(byte, b' ' | b'\n'));
    text.bytes().filter(is_word).ok_or(code)
}
