//! Names that are published to all jobs of a session. What `MPI_Info` adds is ignored, as by Slurm.

use std::ffi::{c_int, c_void};

use ffi::{Room, Text, call};

use crate::connection::{code, connection, write};

#[unsafe(no_mangle)]
extern "C" fn PMI2_Nameserv_publish(service: Text, _info: *const c_void, port: Text) -> c_int {
    call(|| connection()?.publish(service.required()?, port.required()?).map_err(code))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Nameserv_lookup(
    service: Text,
    _info: *const c_void,
    port: Room,
    size: c_int,
) -> c_int {
    call(|| write(port, size, &connection()?.look_up(service.required()?).map_err(code)?))
}

#[unsafe(no_mangle)]
extern "C" fn PMI2_Nameserv_unpublish(service: Text, _info: *const c_void) -> c_int {
    call(|| connection()?.unpublish(service.required()?).map_err(code))
}
