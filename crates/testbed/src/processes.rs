//! Who runs on a host: for tests that hurt one process, and for those that count survivors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Testbed, TestbedError, command};

/// A process of a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostProcess {
    /// Its number on the host.
    pub pid: u32,
    /// Its parent's number on the host.
    pub parent: u32,
    /// Its state, as `ps` shows it: `S`, `R`, `T`, `Z` and so on.
    pub state: char,
    /// Its arguments, joined by spaces; the name in parentheses if it has none.
    pub command: String,
}

impl Testbed {
    /// The processes of `host`, by number, without the host's first process and without its sshd
    /// and what sshd needs per connection. A host that was killed has none.
    pub fn processes(&self, host: &str) -> Result<Vec<HostProcess>, TestbedError> {
        if self.is_dead(host)? {
            return Ok(Vec::new());
        }
        let proc = PathBuf::from(format!("/proc/{}/root/proc", self.pid(host)?));
        let mut processes = read_all(&proc)?;
        processes.retain(|process| process.pid != 1 && !process.command.starts_with("sshd:"));
        processes.sort_by_key(|process| process.pid);
        Ok(processes)
    }

    /// Every process of every host and of the head whose command contains `text`.
    pub fn find(&self, text: &str) -> Result<Vec<(String, HostProcess)>, TestbedError> {
        let mut found = Vec::new();
        for host in self.names() {
            let matching = self.processes(host)?.into_iter().filter(|p| p.command.contains(text));
            found.extend(matching.map(|process| (host.clone(), process)));
        }
        Ok(found)
    }

    /// Sends a signal, such as `KILL` or `STOP`, to a process of `host`.
    pub fn signal(&self, host: &str, pid: u32, signal: &str) -> Result<(), TestbedError> {
        let target = self.pid(host)?.to_string();
        let mut kill = Command::new("nsenter");
        kill.args(["-t", &target, "--pid", "--mount", "--", "/bin/sh", "-c"]);
        kill.arg(format!("kill -{signal} {pid}"));
        command::check(&format!("SIG{signal} to process {pid} of {host}"), &mut kill).map(drop)
    }
}

/// The processes that are listed in `proc`.
pub(crate) fn read_all(proc: &Path) -> Result<Vec<HostProcess>, TestbedError> {
    let entries = fs::read_dir(proc).map_err(|source| TestbedError::File {
        doing: "read",
        path: proc.to_owned(),
        source,
    })?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| read_process(proc, pid)).collect())
}

/// Reads one process, or nothing if it is gone.
fn read_process(proc: &Path, pid: u32) -> Option<HostProcess> {
    let dir = proc.join(pid.to_string());
    let stat = fs::read_to_string(dir.join("stat")).ok()?;
    // The name stands in parentheses and may hold any character.
    let (name, fields) =
        (stat.get(stat.find('(')?..=stat.rfind(')')?)?, &stat[stat.rfind(')')? + 2..]);
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let arguments = fs::read(dir.join("cmdline")).ok()?;
    let command = if arguments.is_empty() { name.to_owned() } else { joined(&arguments) };
    Some(HostProcess { pid, parent, state, command })
}

fn joined(arguments: &[u8]) -> String {
    let text = String::from_utf8_lossy(arguments);
    text.trim_end_matches('\0').replace('\0', " ")
}
