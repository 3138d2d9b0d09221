//! The exit statuses of the front end that are its own.
//!
//! One rule: a task's own status where a task failed first, `128 + n` for a signal, the code of
//! MPI_Abort; else one of these. They are out of the way of what programs use.

use wire::JobFault;

/// The job's time limit ended it, as `timeout(1)` says it.
pub const TIMED_OUT: u8 = 124;
/// The program or its directory can't be used, as shells say it.
pub const CANNOT_RUN: u8 = 126;
/// There is no such program, as shells say it.
pub const NOT_FOUND: u8 = 127;
/// Nobody reads our output: what SIGPIPE would have given.
pub const OUTPUT_CLOSED: u8 = 128 + 13;
/// Output could not be written, for another reason than that nobody reads it.
pub const NOT_WRITTEN: u8 = 249;
/// A task broke the PMI protocol, or ended with status 0 between PMI's init and finalize.
pub const PMI_BROKEN: u8 = 250;
/// An agent that had joined was lost.
pub const AGENT_LOST: u8 = 251;
/// An agent could not be started.
pub const NOT_STARTED: u8 = 252;
/// Convoke itself failed.
pub const INTERNAL: u8 = 253;

/// "No such file or directory", on every Linux.
const ENOENT: i32 = 2;

/// The status that a fault gives the job if it comes first.
pub fn of_fault(fault: &JobFault) -> u8 {
    match fault {
        JobFault::Program { errno, .. } | JobFault::Spawn { errno, .. } => {
            if *errno == ENOENT {
                NOT_FOUND
            } else {
                CANNOT_RUN
            }
        }
        JobFault::Directory { .. } => CANNOT_RUN,
        JobFault::Output { .. } => NOT_WRITTEN,
        JobFault::Task { status, .. } => status.code(),
        JobFault::Unfinalized { status, .. } => {
            status.map(|status| status.code()).filter(|code| *code != 0).unwrap_or(PMI_BROKEN)
        }
        JobFault::Abort { code, .. } => of_abort(*code),
        JobFault::Pmi { .. } => PMI_BROKEN,
    }
}

/// The low 8 bits are what an exit status can carry; an abort is never a success.
fn of_abort(code: i32) -> u8 {
    match code.to_le_bytes()[0] {
        0 => 1,
        low => low,
    }
}
