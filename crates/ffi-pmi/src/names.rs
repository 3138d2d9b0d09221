//! Names that are published to all jobs of a session.

use std::ffi::c_int;

use client::Error;
use ffi::{Room, Text, call};

use crate::connection::{ERR_INVALID_ARG, connection, fail, required, write};

/// The room that C's function cannot tell of: what MPI keeps for a port, `MPI_MAX_PORT_NAME` of MPICH and its kin.
const PORT_BYTES: c_int = 1024;

#[unsafe(no_mangle)]
extern "C" fn PMI_Publish_name(service: Text, port: Text) -> c_int {
    call(|| connection()?.publish(required(&service)?, required(&port)?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Unpublish_name(service: Text) -> c_int {
    call(|| connection()?.unpublish(required(&service)?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI_Lookup_name(service: Text, port: Room) -> c_int {
    call(|| {
        let service = required(&service)?;
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
