//! What a node or a job tells of itself.

use std::ffi::c_int;

use ffi::{Out, Room, Text, call};

use crate::connection::{ERR_OTHER, code, connection, write};

#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_GetNodeAttr(
    name: Text,
    value: Room,
    size: c_int,
    found: Out<c_int>,
    waits: c_int,
) -> c_int {
    call(|| {
        let attribute = connection()?.node_attribute(name.required()?, waits != 0);
        give(attribute.map_err(code)?, value, size, found)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_GetJobAttr(
    name: Text,
    value: Room,
    size: c_int,
    found: Out<c_int>,
) -> c_int {
    call(|| {
        let attribute = connection()?.job_attribute(name.required()?);
        give(attribute.map_err(code)?, value, size, found)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_PutNodeAttr(name: Text, value: Text) -> c_int {
    call(|| connection()?.put_node_attribute(name.required()?, value.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_GetNodeAttrIntArray(
    name: Text,
    array: Out<c_int>,
    length: c_int,
    count: Out<c_int>,
    found: Out<c_int>,
) -> c_int {
    call(|| {
        let attribute = connection()?.node_attribute(name.required()?, false);
        give_numbers(attribute.map_err(code)?, array, length, count, found)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_GetJobAttrIntArray(
    name: Text,
    array: Out<c_int>,
    length: c_int,
    count: Out<c_int>,
    found: Out<c_int>,
) -> c_int {
    call(|| {
        let attribute = connection()?.job_attribute(name.required()?);
        give_numbers(attribute.map_err(code)?, array, length, count, found)
    })
}

/// Slurm's answers with the size of the job, whatever its header says.
#[unsafe(no_mangle)]
extern "C" fn PMI2_Info_GetSize(size: Out<c_int>) -> c_int {
    call(|| {
        let count = connection()?.place().size.cast_signed();
        size.give(|| Ok(count))
    })
}

fn give(
    attribute: Option<Vec<u8>>,
    value: Room,
    size: c_int,
    found: Out<c_int>,
) -> Result<(), c_int> {
    found.set(c_int::from(attribute.is_some()));
    attribute.map_or(Ok(()), |attribute| write(value, size, &attribute))
}

/// Numbers stand between commas.
fn give_numbers(
    attribute: Option<Vec<u8>>,
    array: Out<c_int>,
    length: c_int,
    count: Out<c_int>,
    found: Out<c_int>,
) -> Result<(), c_int> {
    found.set(c_int::from(attribute.is_some()));
    let Some(attribute) = attribute else { return Ok(()) };
    let text = String::from_utf8(attribute).map_err(|_| ERR_OTHER)?;
    let numbers: Result<Vec<c_int>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    let written = array.set_all(length, &numbers.map_err(|_| ERR_OTHER)?);
    count.set(c_int::try_from(written).map_err(|_| ERR_OTHER)?);
    Ok(())
}
