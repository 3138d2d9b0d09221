//! Jobs that tasks start on other hosts: `programs/spawn.c` has those of two jobs merge, and add their ranks up.
//!
//! The first job is on n0 alone, and has the room of n1 and n2 for others.

use crate::World;
use crate::mpi::{on_intel, over_ofi};
use crate::support::convoke::Ended;
use crate::support::ring::program;

/// A library that can: over UCX, MPICH opens no port.
#[derive(Clone, Copy, Debug)]
enum Library {
    Mpich(u32),
    Intel,
}

const LIBRARIES: [Library; 3] = [Library::Mpich(4), Library::Mpich(5), Library::Intel];

fn runs(world: &World, library: Library, words: &str) -> Ended {
    let run = match library {
        Library::Mpich(version) => over_ofi(world, 3, "spawn", version),
        // Without this its MPI_Open_port crashes, whatever launches it.
        Library::Intel => on_intel(world, 3, "spawn").words("--env I_MPI_SPAWN=on"),
    };
    let run = run.words("-n 2 --label");
    world.end(run.arg(program("spawn", 5)).words(words))
}

#[test]
fn jobs_on_different_hosts_merge_and_one_that_was_spawned_spawns_another() {
    let world = World::up(3);
    for library in LIBRARIES {
        let ended = runs(&world, library, "leaf").with_status(0);
        ended.says(&["[0] parent: 4 together", "[1:0] child: 4 together"]);
        let ended = runs(&world, library, "again").with_status(0);
        let grandchild = ["[1:0] parent: 3 together", "[2:0] child: 3 together"];
        let child = ["[0] parent: 4 together", "[1:0] child: 4 together"];
        ended.says(&[grandchild, child].concat());
    }
}

#[test]
fn several_programs_are_one_job_and_soft_permits_fewer_tasks_than_were_asked_for() {
    let world = World::up(3);
    for library in LIBRARIES {
        let ended = runs(&world, library, "apps").with_status(0);
        let lines = ["[0] parent: 4 together", "[1:0] child: 4 together"];
        ended.says(&[&lines[..], &["[1:0] app 0: apps", "[1:1] app 1: apps"]].concat());
        let ended = runs(&world, library, "soft").with_status(0);
        let lines = ["[0] parent: 6 together", "[1:0] child: 6 together"];
        let came = match library {
            Library::Mpich(_) => "[0] 4 came, 16 did not",
            Library::Intel => "[0] 4 came, 0 did not", // it gives all the code of the first
        };
        ended.says(&[&lines[..], &[came]].concat());
    }
}

#[test]
fn jobs_on_different_hosts_connect_by_a_name() {
    let world = World::up(3);
    for library in LIBRARIES {
        let ended = runs(&world, library, "port").with_status(0);
        let lines = ["[0] parent: 3 together", "[1:0] child: 3 together"];
        ended.says(&[lines, lines].concat());
    }
}

#[test]
fn what_goes_wrong_with_a_job_on_other_hosts_is_told_with_its_number() {
    let world = World::up(3);
    for library in LIBRARIES {
        let aborted = runs(&world, library, "abort").with_status(7);
        assert!(aborted.stderr.contains(" of job 1 on n1 aborted with code 7"), "{aborted:?}");
        runs(&world, library, "missing").with_status(0).says(&["[0] refused"]);
        runs(&world, library, "toomany").with_status(0).says(&["[0] refused"]);
    }
}
