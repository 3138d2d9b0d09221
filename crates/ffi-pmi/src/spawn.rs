//! Jobs that a program starts.

use std::ffi::c_int;

use client::Spawn;
use ffi::{Array, Commands, Out, Pair, Text, call, pairs};

use crate::connection::{connection, fail};

#[unsafe(no_mangle)]
extern "C" fn PMI_Spawn_multiple(
    count: c_int,
    programs: Array<Text>,
    arguments: Array<Array<Text>>,
    tasks: Array<c_int>,
    info_counts: Array<c_int>,
    infos: Array<Array<Pair>>,
    preput_count: c_int,
    preput: Array<Pair>,
    errors: Out<c_int>,
) -> c_int {
    call(|| {
        let pmi = connection()?;
        let commands = Commands { count, programs, tasks, info_counts, infos };
        let arguments = |index| {
            let words = arguments.elements(count).get(index).map(Array::strings);
            Ok(words.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect())
        };
        let spawn = Spawn {
            commands: commands.read(arguments)?,
            preput: pairs(preput.elements(preput_count))?,
        };
        errors.set_all(c_int::MAX, &pmi.spawn(&spawn).map_err(fail)?);
        Ok(())
    })
}
