//! This job and others.

use std::ffi::{c_int, c_void};

use client::{Spawn, SpawnCommand};
use ffi::{Array, Out, Room, Text, call};

use crate::connection::{ERR_INVALID_ARG, code, connection, required, write};

/// `struct MPID_Info`, of which an array is passed although it could be a list.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Info {
    handle: c_int,
    pobj_mutex: c_int,
    ref_count: c_int,
    next: *const Info,
    key: Text,
    value: Text,
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_GetId(id: Room, size: c_int) -> c_int {
    call(|| write(id, size, &connection()?.job_id().map_err(code)?))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_GetRank(rank: Out<c_int>) -> c_int {
    call(|| {
        let number = connection()?.place().rank.cast_signed();
        if rank.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        rank.set(number);
        Ok(())
    })
}

/// Nothing is said about how to reach the other job: its space of keys is read like our own.
#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_Connect(job: Text, _connection: *mut c_void) -> c_int {
    call(|| connection()?.connect(required(&job)?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_Disconnect(job: Text) -> c_int {
    call(|| connection()?.disconnect(required(&job)?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_Spawn(
    count: c_int,
    programs: Array<Text>,
    argument_counts: Array<c_int>,
    arguments: Array<Array<Text>>,
    tasks: Array<c_int>,
    info_counts: Array<c_int>,
    infos: Array<Array<Info>>,
    preput_count: c_int,
    preput: Array<Array<Info>>,
    job: Room,
    job_size: c_int,
    errors: Out<c_int>,
) -> c_int {
    call(|| {
        let pmi = connection()?;
        if count <= 0 || programs.is_null() || tasks.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let command = |index: usize| -> Result<SpawnCommand, c_int> {
            let arguments = of(&arguments, count, index, of_number(&argument_counts, count, index));
            let infos = of(&infos, count, index, of_number(&info_counts, count, index));
            let tasks = tasks.elements(count)[index];
            Ok(SpawnCommand {
                program: required(&programs.elements(count)[index])?.to_vec(),
                arguments: arguments.iter().map(owned).collect::<Result<_, _>>()?,
                tasks: u32::try_from(tasks).map_err(|_| ERR_INVALID_ARG)?,
                info: infos.iter().map(pair).collect::<Result<_, _>>()?,
            })
        };
        let commands = (0..count.cast_unsigned() as usize).map(command);
        // Here, other than there, each is a pointer to one.
        let preput = preput.elements(preput_count).iter().flat_map(|it| it.elements(1)).map(pair);
        let spawn = Spawn {
            commands: commands.collect::<Result<_, _>>()?,
            preput: preput.collect::<Result<_, _>>()?,
        };
        let (id, codes) = pmi.spawn(&spawn).map_err(code)?;
        job.write(job_size, &id);
        errors.set_all(c_int::MAX, &codes);
        Ok(())
    })
}

/// The elements that the command with this index has of something, in an array that may be null.
fn of<T>(arrays: &Array<Array<T>>, count: c_int, index: usize, length: c_int) -> &[T] {
    arrays.elements(count).get(index).map_or(&[], |array| array.elements(length))
}

fn of_number(numbers: &Array<c_int>, count: c_int, index: usize) -> c_int {
    numbers.elements(count).get(index).copied().unwrap_or(0)
}

fn owned(text: &Text) -> Result<Vec<u8>, c_int> {
    Ok(required(text)?.to_vec())
}

fn pair(info: &Info) -> Result<(Vec<u8>, Vec<u8>), c_int> {
    Ok((owned(&info.key)?, owned(&info.value)?))
}
