//! What a process has used of its node.

use serde::{Deserialize, Serialize};

/// What a process and those of its children that it waited for have used (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in its own code, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// The most memory that it held at once, in KiB. The kernel counts from before the program was
    /// executed, so this is never less than its starter held.
    pub rss_max_kib: u64,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// How often it gave its processor up to wait for something.
    pub voluntary_switches: u64,
    /// How often its processor was taken away.
    pub involuntary_switches: u64,
}
