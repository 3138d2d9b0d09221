//! Some ranks of a job that meet without the others.

use serde::{Deserialize, Serialize};

use crate::IdSet;

/// Ranks that meet, and a number that tells meetings of the same ranks apart.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct RankGroup {
    /// The ranks.
    pub ranks: IdSet,
    /// The number, as the ranks agreed on it.
    pub tag: i32,
}
