//! The host that we run on.

use std::fs;
use std::thread;

use model::Node;

/// This host's name as the kernel knows it, or `localhost`.
pub fn this_host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() || name == "(none)" { "localhost".into() } else { name.into() }
}

/// This host with a slot for each core that our affinity and our cgroup leave us.
pub(crate) fn node() -> Node {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let slots = u32::try_from(cores).unwrap_or(u32::MAX);
    Node { name: this_host_name(), slots: Some(slots), slots_max: None }
}
