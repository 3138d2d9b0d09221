//! `libpmi.so.0`: the functions of Slurm's client library for PMI-1, over the protocol of PMI-1 (`reference/pmi2.md` §10,
//! `reference/pmi1.md`; include/pmi.h says what each does).
//!
//! Slurm's own asks `srun` by other means, so it can serve a program under `srun` alone. Codes are those that it returns.
//! `PMI_DEBUG=1` has the reasons said.
#![expect(unsafe_code, reason = "names of C are exported")]

mod arguments;
mod connection;
mod identity;
mod iterate;
mod keys;
mod life;
mod names;
mod spawn;
