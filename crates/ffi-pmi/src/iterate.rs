//! A walk through all pairs of a space.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use client::Error;
use ffi::{Room, Text, call};

use crate::connection::{
    ERR_INVALID_KEY, ERR_INVALID_KEY_LENGTH, ERR_INVALID_KVS, ERR_INVALID_VAL,
    ERR_INVALID_VAL_LENGTH, connection, fail,
};
use crate::keys::checked;

/// Which pair is next, by the space's name.
static NEXT: Mutex<BTreeMap<Vec<u8>, u32>> = Mutex::new(BTreeMap::new());

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Iter_first(
    name: Text,
    key: Room,
    key_size: c_int,
    value: Room,
    value_size: c_int,
) -> c_int {
    call(|| step(&name, true, (key, key_size), (value, value_size)))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Iter_next(
    name: Text,
    key: Room,
    key_size: c_int,
    value: Room,
    value_size: c_int,
) -> c_int {
    call(|| step(&name, false, (key, key_size), (value, value_size)))
}

/// Gives the first pair, or the next one. Behind the last is one with an empty key.
fn step(
    name: &Text,
    is_first: bool,
    key: (Room, c_int),
    value: (Room, c_int),
) -> Result<(), c_int> {
    let pmi = connection()?;
    let name = checked(name, pmi.maxes().name, ERR_INVALID_KVS)?;
    if key.0.is_null() {
        return Err(ERR_INVALID_KEY);
    }
    if value.0.is_null() {
        return Err(ERR_INVALID_VAL);
    }
    let mut all = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let next = all.entry(name.to_vec()).or_default();
    if is_first {
        *next = 0;
    }
    let pair = match pmi.by_index(name, *next) {
        Err(Error::Refused { .. }) => return Err(ERR_INVALID_KVS),
        pair => pair.map_err(fail)?,
    };
    *next = next.saturating_add(u32::from(pair.is_some()));
    let (key_text, value_text) = pair.unwrap_or_default();
    if !key.0.write(key.1, &key_text) {
        return Err(ERR_INVALID_KEY_LENGTH);
    }
    if value.0.write(value.1, &value_text) { Ok(()) } else { Err(ERR_INVALID_VAL_LENGTH) }
}
