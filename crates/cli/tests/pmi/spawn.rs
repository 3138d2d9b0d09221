//! Jobs that tasks start on other hosts: `programs/spawn.c` has those of two jobs merge, and add their ranks up.
//!
//! The first job is on n0 alone, and has the room of n1 and n2 for others.

use crate::World;
use crate::mpi::over_ofi;
use crate::support::convoke::Ended;
use crate::support::ring::program;

/// The libraries that can: over UCX, MPICH opens no port.
const VERSIONS: [u32; 2] = [4, 5];

fn runs(world: &World, version: u32, words: &str) -> Ended {
    let run = over_ofi(world, 3, "spawn", version).words("-n 2 --all-hosts --label");
    world.end(run.arg(program("spawn", 5)).words(words))
}

#[test]
fn jobs_on_different_hosts_merge_and_one_that_was_spawned_spawns_another() {
    let world = World::up(3);
    for version in VERSIONS {
        let ended = runs(&world, version, "leaf").with_status(0);
        ended.says(&["[0] parent: 4 together", "[1:0] child: 4 together"]);
        let ended = runs(&world, version, "again").with_status(0);
        let grandchild = ["[1:0] parent: 3 together", "[2:0] child: 3 together"];
        let child = ["[0] parent: 4 together", "[1:0] child: 4 together"];
        ended.says(&[grandchild, child].concat());
    }
}

#[test]
fn jobs_on_different_hosts_connect_by_a_name() {
    let world = World::up(3);
    for version in VERSIONS {
        let ended = runs(&world, version, "port").with_status(0);
        let lines = ["[0] parent: 3 together", "[1:0] child: 3 together"];
        ended.says(&[lines, lines].concat());
    }
}

#[test]
fn what_goes_wrong_with_a_job_on_other_hosts_is_told_with_its_number() {
    let world = World::up(3);
    for version in VERSIONS {
        let aborted = runs(&world, version, "abort").with_status(7);
        assert!(aborted.stderr.contains(" of job 1 on n1 aborted with code 7"), "{aborted:?}");
        runs(&world, version, "missing").with_status(0).says(&["[0] refused"]);
        runs(&world, version, "toomany").with_status(0).says(&["[0] refused"]);
    }
}
