//! This job and others.

use std::ffi::{c_int, c_void};

use client::Spawn;
use ffi::{Array, AsPair, Commands, Out, Room, Text, call, pairs};

use crate::connection::{code, connection, write};

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

impl AsPair for Info {
    fn key(&self) -> &Text {
        &self.key
    }

    fn value(&self) -> &Text {
        &self.value
    }
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_GetId(id: Room, size: c_int) -> c_int {
    call(|| write(id, size, &connection()?.job_id().map_err(code)?))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_GetRank(rank: Out<c_int>) -> c_int {
    call(|| {
        let number = connection()?.place().rank.cast_signed();
        rank.give(|| Ok(number))
    })
}

/// Nothing is said about how to reach the other job: its space of keys is read like our own.
#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_Connect(job: Text, _connection: *mut c_void) -> c_int {
    call(|| connection()?.connect(job.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Job_Disconnect(job: Text) -> c_int {
    call(|| connection()?.disconnect(job.required()?).map_err(code))
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
        let commands = Commands { count, programs, tasks, info_counts, infos };
        let words =
            |index| arguments.within(count, index, argument_counts.number(count, index)).iter();
        let spawn = Spawn {
            commands: commands.read(|index| words(index).map(owned).collect())?,
            // Here, other than there, each is a pointer to one.
            preput: pairs(preput.elements(preput_count).iter().flat_map(|it| it.elements(1)))?,
        };
        let (id, codes) = pmi.spawn(&spawn).map_err(code)?;
        job.write(job_size, &id);
        errors.set_all(c_int::MAX, &codes);
        Ok(())
    })
}

fn owned(text: &Text) -> Result<Vec<u8>, c_int> {
    Ok(text.required()?.to_vec())
}
