//! Jobs that a program starts.

use std::ffi::c_int;

use client::{Spawn, SpawnCommand};
use ffi::{Array, Out, Pair, Text, call};

use crate::connection::{ERR_INVALID_ARG, connection, fail, required};

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
        if count <= 0 || programs.is_null() || tasks.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let command = |index: usize| -> Result<SpawnCommand, c_int> {
            let arguments = arguments.elements(count).get(index).map(Array::strings);
            let info_count = info_counts.elements(count).get(index).copied().unwrap_or(0);
            let infos = infos.elements(count).get(index);
            let infos = infos.map_or(&[][..], |array| array.elements(info_count));
            Ok(SpawnCommand {
                program: required(&programs.elements(count)[index])?.to_vec(),
                arguments: arguments.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect(),
                tasks: u32::try_from(tasks.elements(count)[index]).map_err(|_| ERR_INVALID_ARG)?,
                info: infos.iter().map(pair).collect::<Result<_, _>>()?,
            })
        };
        let commands = (0..count.cast_unsigned() as usize).map(command);
        let preput = preput.elements(preput_count).iter().map(pair);
        let spawn = Spawn {
            commands: commands.collect::<Result<_, _>>()?,
            preput: preput.collect::<Result<_, _>>()?,
        };
        errors.set_all(c_int::MAX, &pmi.spawn(&spawn).map_err(fail)?);
        Ok(())
    })
}

fn pair(pair: &Pair) -> Result<(Vec<u8>, Vec<u8>), c_int> {
    Ok((required(&pair.key)?.to_vec(), required(&pair.value)?.to_vec()))
}
