//! What running processes cost, read from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The state of an established connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// One process, as it is at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// Its command line, as it is stored.
    pub(crate) command_line: Vec<u8>,
    /// Bytes resident at most so far.
    pub(crate) peak_bytes: u64,
    /// Bytes resident, shared ones included.
    pub(crate) resident_bytes: u64,
    /// Bytes resident, each shared page divided by its users.
    pub(crate) proportional_bytes: u64,
    /// How often it has gone to sleep, and so was woken.
    pub(crate) wake_ups: u64,
    /// Established TCP connections.
    pub(crate) links: usize,
}

/// All processes that run `program`, in order of their numbers.
pub(crate) fn running(program: &Path) -> Vec<Process> {
    let links = established();
    let mut processes: Vec<Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| runs(*pid, program))
        .filter_map(|pid| read(pid, &links))
        .collect();
    processes.sort_by_key(|process| process.pid);
    processes
}

fn runs(pid: u32, program: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
}

/// Reads one process, or nothing if it is gone.
fn read(pid: u32, links: &BTreeSet<String>) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(Process {
        pid,
        command_line: fs::read(format!("/proc/{pid}/cmdline")).ok()?,
        peak_bytes: field(&status, "VmHWM:")? * 1024,
        resident_bytes: field(&status, "VmRSS:")? * 1024,
        proportional_bytes: field(&memory, "Pss:")? * 1024,
        wake_ups: field(&status, "voluntary_ctxt_switches:")?,
        links: sockets(pid).filter(|inode| links.contains(inode)).count(),
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn sockets(pid: u32) -> impl Iterator<Item = String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    descriptors.filter_map(|entry| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(inode.to_owned())
    })
}

/// The inodes of all established connections of this network namespace.
fn established() -> BTreeSet<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let lines: Vec<String> = tables
        .into_iter()
        .flatten()
        .flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.iter().filter_map(|line| established_inode(line)).collect()
}

fn established_inode(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words.get(3) == Some(&ESTABLISHED)).then(|| words.get(9).map(|inode| (*inode).to_owned()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_is_found_with_its_link() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _link = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let own = running(&std::env::current_exe().unwrap());
        let own = own.iter().find(|process| process.pid == std::process::id()).unwrap();
        assert!(own.links >= 1 && own.peak_bytes >= own.resident_bytes);
    }
}
