//! Who we are, and who is near.

use std::ffi::c_int;

use client::{Pmi1, neighbours};
use ffi::{ERR_INVALID_ARG, Out, Room, call};

use crate::connection::{ERR_INVALID_LENGTH, FAIL, connection, fail, write};

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_size(size: Out<c_int>) -> c_int {
    call(|| size.give(|| Ok(connection()?.size().cast_signed())))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_rank(rank: Out<c_int>) -> c_int {
    call(|| rank.give(|| Ok(connection()?.rank().cast_signed())))
}

/// Where the server does not know, as many as there are, as with Slurm.
#[unsafe(no_mangle)]
extern "C" fn PMI_Get_universe_size(size: Out<c_int>) -> c_int {
    call(|| {
        size.give(|| {
            let pmi = connection()?;
            Ok(pmi.universe_size().map_err(fail)?.unwrap_or(pmi.size()).cast_signed())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_appnum(appnum: Out<c_int>) -> c_int {
    call(|| appnum.give(|| Ok(connection()?.appnum().map_err(fail)?.map_or(-1, u32::cast_signed))))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_id(id: Room, size: c_int) -> c_int {
    call(|| write(id, size, &connection()?.name().map_err(fail)?))
}

/// Jobs that can read each other's keys have no name of their own.
#[unsafe(no_mangle)]
extern "C" fn PMI_Get_kvs_domain_id(id: Room, size: c_int) -> c_int {
    PMI_Get_id(id, size)
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_id_length_max(length: Out<c_int>) -> c_int {
    call(|| length.give(|| max(connection()?.maxes().name)))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Get_name_length_max(length: Out<c_int>) -> c_int {
    call(|| length.give(|| max(connection()?.maxes().name)))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Get_key_length_max(length: Out<c_int>) -> c_int {
    call(|| length.give(|| max(connection()?.maxes().key)))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_KVS_Get_value_length_max(length: Out<c_int>) -> c_int {
    call(|| length.give(|| max(connection()?.maxes().value)))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_clique_size(size: Out<c_int>) -> c_int {
    call(|| size.give(|| max(clique(&*connection()?)?.len())))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Get_clique_ranks(ranks: Out<c_int>, length: c_int) -> c_int {
    call(|| {
        if ranks.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let clique = clique(&*connection()?)?;
        if usize::try_from(length).is_ok_and(|length| length >= clique.len()) {
            ranks.set_all(length, &clique);
            Ok(())
        } else {
            Err(ERR_INVALID_LENGTH)
        }
    })
}

/// The ranks on our node.
fn clique(pmi: &Pmi1) -> Result<Vec<c_int>, c_int> {
    let mapping = pmi.name().and_then(|name| pmi.get(&name, b"PMI_process_mapping"));
    let mapping = String::from_utf8(mapping.map_err(fail)?).map_err(|_| FAIL)?;
    let ranks = neighbours(&mapping, pmi.rank(), pmi.size()).ok_or(FAIL)?;
    Ok(ranks.into_iter().map(u32::cast_signed).collect())
}

fn max(length: usize) -> Result<c_int, c_int> {
    c_int::try_from(length).map_err(|_| FAIL)
}
