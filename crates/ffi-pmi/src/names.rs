//! Names that are published to all jobs of a session.

use std::ffi::c_int;

use client::Error;
use ffi::{ERR_INVALID_ARG, Room, Text, call};

use crate::connection::{connection, fail, write};

/// The room that C's function cannot tell of: what MPI keeps for a port, `MPI_MAX_PORT_NAME` of MPICH and its kin.
const PORT_BYTES: c_int = 1024;

#[unsafe(no_mangle)]
extern "C" fn PMI_Publish_name(service: Text, port: Text) -> c_int {
    call(|| connection()?.publish(service.required()?, port.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Unpublish_name(service: Text) -> c_int {
    call(|| connection()?.unpublish(service.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Lookup_name(service: Text, port: Room) -> c_int {
    call(|| {
        let service = service.required()?;
        if port.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        write(port, PORT_BYTES, &connection()?.look_up(service).map_err(code)?)
    })
}

/// A name with a blank is the caller's mistake.
fn code(error: Error) -> c_int {
    if let Error::Text { .. } = error { ERR_INVALID_ARG } else { fail(error) }
}
