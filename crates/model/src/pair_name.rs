//! Which pair of a job's key-value spaces is meant.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The name of a pair within a job.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct PairName {
    /// The name of its space; empty for the job's own.
    pub space: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}
