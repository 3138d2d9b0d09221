//! `libpmi2.so.0`: the functions of Slurm's client library for PMI-2, and extensions (`reference/pmi2.md` §10;
//! include/pmi2.h says what each does).
//!
//! Codes are those that Slurm's library returns: 14 for whatever the server or the connection refuses. Where that would
//! crash, for null or without `PMI2_Init`, there is a code, too. `PMI2_DEBUG=1` has the reasons said.
#![expect(unsafe_code, reason = "names of C are exported")]

mod attributes;
mod connection;
mod extensions;
mod job;
mod keys;
mod life;
mod names;
