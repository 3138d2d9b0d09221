//! What a server tells its clients about their job.

use alloc::string::String;
use alloc::vec::Vec;

use model::{NameValue, PmiOffer, Rank};

/// A job as one agent's PMI server sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobInfo {
    /// The name of the job's key-value space. Unique among jobs on a node, since MPICH names its
    /// shared memory after it (`reference/pmi1.md` §3); without blanks and `=`, below 256 bytes.
    pub kvsname: String,
    /// Tasks in the whole job.
    pub size: u32,
    /// What `get_universe_size` answers; `None` leaves MPI_UNIVERSE_SIZE unset.
    pub universe_size: Option<u32>,
    /// What its tasks may speak.
    pub offer: PmiOffer,
    /// `PMI_process_mapping` (§8). Withheld when it is longer than a value may be: clients then compare
    /// host names.
    pub process_mapping: Option<String>,
    /// The name of the job whose task has spawned it.
    pub spawner: Option<String>,
    /// What its key-value space begins with.
    pub preput: Vec<NameValue>,
    /// The tasks on this node, in any order.
    pub tasks: Vec<LocalTask>,
}

/// One task on this node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocalTask {
    /// Its rank.
    pub rank: Rank,
    /// Which colon-separated part of the command it belongs to.
    pub appnum: u32,
}

impl JobInfo {
    /// The longest name of a key-value space, with its final NUL, that clients make room for.
    pub const KVSNAME_MAX: usize = 256;
    /// Keys are shorter than this. What every known server announces; MPICH uses keys of up to 40 bytes.
    pub const KEYLEN_MAX: usize = 64;
    /// Values are shorter than this. The most that clients with a line buffer of 1,024 bytes may be told (§5).
    pub const VALLEN_MAX: usize = 1024;

    /// A job with no mapping and no universe size.
    pub fn new(kvsname: String, size: u32, tasks: Vec<LocalTask>) -> JobInfo {
        JobInfo {
            kvsname,
            size,
            universe_size: None,
            offer: PmiOffer::Auto,
            process_mapping: None,
            spawner: None,
            preput: Vec::new(),
            tasks,
        }
    }
}
