//! What the exit status of `convoke run` says; the engine decides it where it can.
//!
//! | status | meaning |
//! | --- | --- |
//! | a task's own | a task failed first, with this status |
//! | 128 + n | a task was killed by signal n, or the user's signal n ended the job |
//! | the code's low 8 bits | MPI_Abort was called |
//! | 2 | the command line cannot be used |
//! | 124 | `--timeout` ended the job |
//! | 126 | the program or its directory cannot be used |
//! | 127 | there is no such program |
//! | 141 | nobody reads our output |
//! | 249 | output could not be written: a full disk, a file that cannot be opened |
//! | 250 | a task broke the PMI protocol, or left without finalizing |
//! | 251 | a node was lost |
//! | 252 | a node could not be reached or its agent did not start |
//! | 253 | Convoke itself failed |

pub(crate) use engine::exit_code::INTERNAL;

/// The command line, the host file or the placement cannot be used.
pub(crate) const USAGE: u8 = 2;
