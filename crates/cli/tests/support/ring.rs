//! The program that passes a token round a ring, and what it must say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::convoke::Ended;
use super::stand::{compiled, mpi_program};

/// The ring, compiled once for all tests of one MPICH, where cargo keeps what tests make.
pub(crate) fn ring(version: u32) -> PathBuf {
    program("ring", version)
}

/// What is compiled, by its name and its MPICH.
static PROGRAMS: Mutex<BTreeMap<(String, u32), PathBuf>> = Mutex::new(BTreeMap::new());

/// The same of another program. None may run it while another compiles it.
pub(crate) fn program(name: &str, version: u32) -> PathBuf {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let compile = || {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mpich{version}"));
        std::fs::create_dir_all(&dir).unwrap();
        mpi_program(name, version, &dir)
    };
    programs.entry((name.to_owned(), version)).or_insert_with(compile).clone()
}

/// The program of PMI-1 for Slurm's library, compiled once.
pub(crate) fn pmi1() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| for_slurm("pmi1", "-lpmi")).clone()
}

/// The program of PMI-2, compiled once.
pub(crate) fn pmi2() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| for_slurm("pmi2", "-lpmi2")).clone()
}

fn for_slurm(name: &str, library: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    compiled(name, Path::new("gcc"), &[library], program)
}

/// Checks that every rank has met its neighbour and all others, and that each host is used.
pub(crate) fn check_ring(ended: &Ended, size: u32, hosts: &[&str]) {
    let sum = size * (size - 1) / 2;
    let mut lines = ended.text().lines().map(str::to_owned).collect::<Vec<_>>();
    for rank in 0..size {
        let before = (rank + size - 1) % size;
        let (start, end) =
            (format!("rank {rank} of {size} on "), format!(": before {before}, sum {sum}"));
        let found = lines.iter().position(|line| line.starts_with(&start) && line.ends_with(&end));
        let line = lines.remove(found.unwrap_or_else(|| panic!("no rank {rank}: {ended:?}")));
        let host = line[start.len()..].split(':').next().unwrap();
        assert!(hosts.contains(&host), "{line}");
    }
    assert!(lines.is_empty(), "{lines:?}");
}
