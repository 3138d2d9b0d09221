//! Who descends from whom, from `/proc`.
//!
//! A scan costs some 10 to 20 µs for each process of the machine. The kernel's own lists of children are
//! cheaper but optional (CONFIG_PROC_CHILDREN), and exact only while nothing runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};

use crate::Pid;

/// One process as `/proc` showed it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its parent.
    pub parent: Pid,
    /// Its process group.
    pub group: Pid,
    /// Its session.
    pub session: Pid,
    /// `R`, `S`, `D`, `T`, `Z` and so on.
    pub state: char,
}

/// Every descendant of `root`, parents before their children. Those whose parent died belong to
/// whoever adopted them.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants_of(root: Pid) -> io::Result<Vec<Process>> {
    let mut others = all_processes()?;
    let mut family = BTreeSet::from([root]);
    let mut found = Vec::new();
    loop {
        let n_before = found.len();
        others.retain(|process| {
            let related = family.contains(&process.parent) && process.pid != root;
            if related {
                family.insert(process.pid);
                found.push(*process);
            }
            !related
        });
        if found.len() == n_before {
            return Ok(found);
        }
    }
}

fn all_processes() -> io::Result<Vec<Process>> {
    let entries = fs::read_dir("/proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(read_process).collect())
}

/// `None` when it has gone meanwhile.
fn read_process(pid: Pid) -> Option<Process> {
    // The fields we want are in the first 100 bytes or so; a name has at most 15 (proc(5)).
    let mut buffer = [0; 512];
    let n = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&buffer[..n]))
}

/// The name is in parentheses and may hold anything, parentheses and spaces too.
fn parse_stat(pid: Pid, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some(Process {
        pid,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_parser() {
        let process = parse_stat(7, "7 (a) R 1 (b) S 3 4 5 0 -1").unwrap();
        let expected = Process { pid: 7, parent: 3, group: 4, session: 5, state: 'S' };
        assert_eq!(process, expected);
        assert_eq!(parse_stat(7, "garbage"), None);
    }
}
