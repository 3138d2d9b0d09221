//! Looks at the processes of a run from outside.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use testkit::{Marker, Survivor};

/// How often to look again.
const STEP: Duration = Duration::from_millis(20);

/// Waits until `holds`, and returns whether it did in time.
#[expect(clippy::disallowed_methods, reason = "what other processes do can only be looked at")]
pub(crate) fn wait_until(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(STEP);
    }
    true
}

/// The TCP ports on which processes with the marker listen.
pub(crate) fn listening_ports(marker: &Marker) -> BTreeSet<u16> {
    let sockets: BTreeSet<String> =
        marker.survivors().iter().flat_map(|process| sockets_of(process.pid)).collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| listener(line, &sockets))
        .collect()
}

/// The processes with the marker whose command contains `text`.
pub(crate) fn running_as(marker: &Marker, text: &str) -> Vec<Survivor> {
    let mut all = marker.survivors();
    all.retain(|process| process.command.contains(text));
    all
}

/// The most memory that any process with the marker whose command contains `text` has had so far.
pub(crate) fn peak_rss_kib(marker: &Marker, text: &str) -> u64 {
    let matching = running_as(marker, text).into_iter();
    matching.filter_map(|process| peak_kib_of(process.pid)).max().unwrap_or_default()
}

/// The most memory that a process has had so far.
pub(crate) fn peak_kib_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The inodes of the sockets that a process holds.
fn sockets_of(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let names = links.filter_map(|link| link.to_str().map(str::to_owned));
    names
        .filter_map(|name| Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

/// The port of a line of `/proc/net/tcp`, if it is a listener among `sockets` (proc(5)).
fn listener(line: &str, sockets: &BTreeSet<String>) -> Option<u16> {
    const LISTENS: &str = "0A";
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    if *state != LISTENS || !sockets.contains(*inode) {
        return None;
    }
    u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
}
