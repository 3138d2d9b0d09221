//! Each client in each dialect over each interface (`PMI_FD` and `PMI_PORT`) on 1, 2 and 16 hosts, two ranks on each. MPI
//! programs pass a token round a ring and add up; the others read a card of every rank.

use crate::World;
use crate::libraries;
use crate::mpi::{HOSTS, on, on_intel, over_ofi, runs};
use crate::support::convoke::Convoke;
use crate::support::ring::{pmi1, pmi2, ring};
use crate::support::stand::client_libraries;

/// The options that have tasks find their connection in either way.
pub(crate) const INTERFACES: [&str; 2] = ["", "--pmi-port"];

#[test]
fn mpich_5_runs_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        runs(world, hosts, on(world, hosts, "mpich5").words(interface).arg(ring(5)));
    });
}

#[test]
fn mpich_4_runs_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        runs(world, hosts, over_ofi(world, hosts, "mpich4", 4).words(interface).arg(ring(5)));
    });
}

/// What MPICH has compiled runs with any library of its ABI.
#[test]
fn intel_mpi_runs_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        runs(world, hosts, on_intel(world, hosts, "intel").words(interface).arg(ring(5)));
    });
}

/// Intel MPI with a library of PMI that it loads by itself, by the functions of Slurm's.
#[test]
fn intel_mpi_runs_with_our_libraries_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        for (dialect, library) in [("1", "libpmi.so.0"), ("2", "libpmi2.so.0")] {
            let library = client_libraries().join("lib").join(library);
            let run =
                on_intel(world, hosts, "intel-ours").args(["--pmi", dialect]).words(interface);
            runs(world, hosts, with_library(run, dialect, &library.to_string_lossy()).arg(ring(5)));
        }
    });
}

#[test]
fn intel_mpi_runs_with_slurms_library() {
    everywhere(&[""], |world, hosts, _| {
        let run = on_intel(world, hosts, "intel-slurm").words("--pmi 2");
        let library = libraries::of_slurm("pmi2");
        runs(world, hosts, with_library(run, "2", &library.to_string_lossy()).arg(ring(5)));
    });
}

#[test]
fn programs_with_our_libraries_run_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        for (dialect, program) in [("1", pmi1()), ("2", pmi2())] {
            let run = libraries::on(world, hosts, "ours").args(["--pmi", dialect]);
            libraries::runs(world, hosts, run.words(interface).arg(program));
        }
    });
}

#[test]
fn programs_with_slurms_library_run_over_either_interface() {
    everywhere(&INTERFACES, |world, hosts, interface| {
        let run = on(world, hosts, "slurm").words("--pmi 2").words(interface).arg(pmi2());
        let ended = world.end(run).with_status(0);
        let well = ended.text().matches(": well, with Slurm's library\n").count();
        assert_eq!(well, 2 * hosts, "{}", ended.text());
    });
}

fn everywhere(interfaces: &[&str], run: impl Fn(&World, usize, &str)) {
    let world = World::up(HOSTS);
    for hosts in [1, 2, HOSTS] {
        for interface in interfaces {
            run(&world, hosts, interface);
        }
    }
}

fn with_library(run: Convoke, dialect: &str, library: &str) -> Convoke {
    run.args(["--env", &format!("I_MPI_PMI=pmi{dialect}")])
        .args(["--env", &format!("I_MPI_PMI_LIBRARY={library}")])
}
