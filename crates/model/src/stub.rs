//! Placeholder, replaced by the real types within the hour.
use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{NodeId, Rank};

/// A signal number.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize)]
pub struct Signal(pub u8);

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It exited with this status.
    Exited(u8),
    /// A signal ended it.
    Signaled {
        /// Which.
        signal: Signal,
        /// Whether it dumped core.
        core: bool,
    },
}

/// Statuses by rank.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StatusRuns(BTreeMap<Rank, ExitStatus>);

/// Which task runs where.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct TaskMap(pub alloc::vec::Vec<(NodeId, u32, u32)>);
