//! MPI libraries as users have them, unmodified, on 1, 2 and 16 hosts with two ranks each.
//!
//! MPICH 4.0.2 of Debian runs on one host: over TCP its UCX often hangs in `MPI_Finalize`, whatever
//! launches it (pmodels/mpich#6596).

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testkit::fixture;

use crate::World;
use crate::support::convoke::{Convoke, Ended};
use crate::support::ring::{check_ring, pmi2, program, ring};
use crate::support::stand::profile_directory;

/// The most hosts.
pub(crate) const HOSTS: usize = 16;

#[test]
fn mpich_5_runs_over_libfabric_and_so_does_python_with_either() {
    let world = World::up(HOSTS);
    for hosts in [1, 2, HOSTS] {
        runs(&world, hosts, over_ofi(&world, hosts, "ofi", 5).arg(ring(5)));
    }
    for version in [4, 5] {
        let library = mpich(version).join("libmpi.so.12");
        let library = format!("MPI4PY_LIBMPI={}", library.display());
        let run = over_ofi(&world, 2, "ofi-python", version).args(["--env", &library]);
        let ended = runs(&world, 2, python(run));
        let library = format!("MPICH Version:      {version}.");
        assert!(ended.stderr.starts_with(&library), "{}", ended.stderr);
    }
}

/// UCX has no ports that strangers could connect to.
#[test]
fn two_halves_of_a_job_find_each_other_by_a_name_and_connect() {
    let world = World::up(HOSTS);
    for (version, hosts) in [(4, 2), (5, 1), (5, 2), (5, HOSTS)] {
        let run = over_ofi(&world, hosts, "names", version).arg(program("names", 5));
        let ended = world.end(run).with_status(0);
        let size = 2 * hosts;
        let sum = |first| (first..size).step_by(2).sum::<usize>();
        let line =
            |rank| format!("rank {rank} of {size}: the others' sum is {}", sum((rank + 1) % 2));
        let mut expected: Vec<String> = (0..size).map(line).collect();
        expected.sort();
        assert_eq!(ended.sorted_lines(), expected);
    }
    let run = on(&world, 2, "names-missing").arg(program("names", 5)).arg("missing");
    assert_eq!(world.end(run).with_status(0).text(), "not found\n".repeat(4));
}

#[test]
fn communicators_of_a_sessions_groups_work_on_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for hosts in [1, 2, HOSTS] {
        let program = program("sessions", 5);
        let ended = world.end(on(&world, hosts, "sessions").arg(program)).with_status(0);
        let size = 2 * hosts;
        let sum = |first| (first..size).step_by(2).sum::<usize>();
        let line = |rank| {
            let (half, all) = (sum(rank % 2), sum(0) + sum(1));
            format!("rank {rank} of {size}: half {half}, all {all}")
        };
        let mut expected: Vec<String> = (0..size).map(line).collect();
        expected.sort();
        assert_eq!(ended.sorted_lines(), expected);
    }
}

#[test]
fn ranks_that_are_dealt_to_the_hosts_in_turn_know_who_shares_one() {
    let world = World::up(HOSTS);
    let run = on(&world, HOSTS, "cyclic").words("--map-by node").arg(ring(5));
    let ended = runs(&world, HOSTS, run);
    for rank in 0..2 * HOSTS {
        let place = format!("rank {rank} of {} on n{}:", 2 * HOSTS, rank % HOSTS);
        assert!(ended.text().contains(&place), "{}", ended.text());
    }
}

/// Whatever the ranks are on: in turn, one by one, or two programs on hosts of their own.
#[test]
fn ranks_know_who_shares_their_host_whoever_said_where_they_go() {
    let world = World::up(3);
    let neighbours = program("neighbours", 5);
    let neighbours = neighbours.to_str().unwrap();
    let own = format!("--hosts n0,n2 -n 2 {neighbours} : --hosts n1:2,n0 {neighbours}");
    let ranks = |line: &str, expected: [(&str, &str); 3]| {
        let ended = world.end(world.convoke("neighbours").words(line)).with_status(0);
        let all = expected.map(|(host, ranks)| format!(" on {host}: {ranks}"));
        let said = ended.text();
        let shared = |line: &str| all.iter().any(|shared| line.ends_with(shared));
        assert!(said.lines().all(shared), "{line}: {said}");
        for (host, ranks) in expected {
            let count = said.lines().filter(|it| it.ends_with(&format!(" on {host}: {ranks}")));
            assert_eq!(count.count(), ranks.split(' ').count(), "{line}: {said}");
        }
    };
    let in_turn = format!("--hosts n0:3,n1:1,n2:2 --rank-by node {neighbours}");
    ranks(&in_turn, [("n0", "0 3 5"), ("n1", "1"), ("n2", "2 4")]);
    let mapped = format!("--hosts n[0-2] --rankmap 2,0,(1,2,1),0,0 {neighbours}");
    ranks(&mapped, [("n0", "1 4 5"), ("n1", "2"), ("n2", "0 3")]);
    ranks(&own, [("n0", "0 4"), ("n1", "2 3"), ("n2", "1")]);
}

#[test]
fn the_longest_keys_and_values_and_groups_of_ranks_meet_over_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for (hosts, options) in [(1, ""), (2, "--pmi-port"), (HOSTS, ""), (HOSTS, "--map-by node")] {
        let run = on(&world, hosts, "pmi-check").words(options).arg(fixture("pmi-check"));
        let ended = world.end(run).with_status(0);
        assert_eq!(ended.text().matches(": well\n").count(), 2 * hosts, "{}", ended.text());
    }
}

#[test]
fn programs_of_slurms_pmi_2_library_exchange_over_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for (hosts, options) in [(1, ""), (2, "--pmi auto"), (HOSTS, "--map-by node")] {
        let ended = world.end(on(&world, hosts, "pmi2").words(options).arg(pmi2())).with_status(0);
        assert_eq!(
            ended.text().matches(": well, with Slurm's library\n").count(),
            2 * hosts,
            "{}",
            ended.text()
        );
    }
    let aborted = world.end(on(&world, 2, "pmi2-abort").arg(pmi2()).arg("abort")).with_status(1);
    let words = "task 3 on n1 aborted with code 1: enough";
    assert!(aborted.stderr.contains(words), "{}", aborted.stderr);
}

#[test]
fn a_program_that_speaks_what_is_not_offered_ends_with_the_option_that_helps() {
    let world = World::up(2);
    let run = |test, options| on(&world, 2, test).words(options);
    let words = "PMI-2 is what `--pmi` leaves out: use `--pmi auto`";
    let ended = world.end(run("pmi-1", "--pmi 1").arg(pmi2())).with_status(250);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let words = "PMI-1 is what `--pmi` leaves out: use `--pmi auto`";
    let ended = world.end(run("pmi-2", "--pmi 2").arg(ring(5))).with_status(250);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    // Each is alone then, and says so.
    let ended = world.end(run("pmi-none", "--pmi none").arg(ring(5))).with_status(0);
    assert_eq!(ended.text().matches("rank 0 of 1 on n").count(), 4, "{}", ended.text());
}

#[test]
fn mpich_4_runs_on_one_host() {
    let world = World::up(1);
    runs(&world, 1, on(&world, 1, "mpich4").arg(ring(4)));
}

#[test]
fn an_mpi_program_behind_another_ssh_connects_to_the_port() {
    let world = World::up(2);
    let script = "exec ssh $(hostname) env PMI_PORT=$PMI_PORT PMI_ID=$PMI_ID $0";
    let run = on(&world, 2, "port-ssh").words("--pmi-port sh -c").arg(script);
    runs(&world, 2, run.arg(ring(5)));
}

/// The front end has two children, so three of its heartbeats take 12 s. SIGTSTP is a shell's ^Z.
#[test]
fn a_job_that_is_stopped_for_longer_than_heartbeats_take_goes_on_and_ends() {
    let world = World::up(2);
    let run = on(&world, 2, "stopped").in_group().words("--tree flat").arg(ring(5));
    let mut running = run.words("pause 4").start();
    let sums = |text: &[u8]| String::from_utf8_lossy(text).matches(", sum 6\n").count() == 4;
    running.wait_for_output("a sum of each rank", sums);
    // The one that has entered the network stops and goes on with its child, but must not be stopped itself.
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let child = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(child).unwrap(), Signal::TSTP).unwrap();
    let states = world.on("n0", "sleep 14; ps -C ring-5 -o s=; ssh n1 ps -C ring-5 -o s=");
    let group = Pid::from_raw(running.pid().cast_signed()).unwrap();
    kill_process_group(group, Signal::CONT).unwrap();
    check_ring(&running.finish().with_status(0), 4, &["n0", "n1"]);
    assert_eq!(states, "T\nT\nT\nT");
}

#[test]
fn a_benchmark_of_intel_mpi_runs() {
    let world = World::up(2);
    let benchmark = on_intel(&world, 2, "intel-imb").arg(impi().join("bin/IMB-MPI1"));
    let ended = world.end(benchmark.words("-npmin 4 -iter 3 -msglog 3 allreduce"));
    assert!(ended.with_status(0).text().contains("# All processes entering MPI_Finalize"));
}

#[test]
fn an_abort_and_a_death_under_intel_mpi_end_the_job_and_are_told() {
    let world = World::up(2);
    let run = |test| on_intel(&world, 2, test).arg(ring(5));
    let aborted = world.end(run("intel-abort").words("abort 7 3")).with_status(7);
    assert!(aborted.stderr.contains("task 3 on n1 aborted with code 7"), "{}", aborted.stderr);
    let died = world.end(run("intel-crash").words("crash 2"));
    assert!(died.stderr.contains("task 2 on n1"), "{}", died.stderr);
    let left = world.end(run("intel-leave").words("leave 1")).with_status(250);
    assert!(left.stderr.contains("task 1 on n0"), "{}", left.stderr);
}

#[test]
fn mpi4py_runs_over_mpich_5_on_any_number_of_hosts() {
    let world = World::up(HOSTS);
    let library = target().join("mpich5/lib/libmpi.so.12");
    for hosts in [1, 2, HOSTS] {
        let run = on(&world, hosts, "mpi4py-mpich5");
        let run = run.words("--env").arg(format!("MPI4PY_LIBMPI={}", library.display()));
        let ended = runs(&world, hosts, python(run));
        assert!(ended.stderr.starts_with("MPICH Version:      5."), "{}", ended.stderr);
    }
}

#[test]
fn mpi4py_runs_over_intel_mpi_on_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for hosts in [1, 2, HOSTS] {
        let ended = runs(&world, hosts, python(on_intel(&world, hosts, "mpi4py-intel")));
        assert!(ended.stderr.starts_with("Intel(R) MPI Library"), "{}", ended.stderr);
    }
    world.end(python(on_intel(&world, 2, "mpi4py-abort")).arg("abort")).with_status(7);
}

/// Runs the ring with two ranks on each of the first hosts.
#[track_caller]
pub(crate) fn runs(world: &World, hosts: usize, run: Convoke) -> Ended {
    let ended = world.end(run).with_status(0);
    let names: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check_ring(&ended, u32::try_from(2 * hosts).unwrap(), &names);
    ended
}

pub(crate) fn on(world: &World, hosts: usize, test: &str) -> Convoke {
    world.convoke(test).args(["--hosts", &format!("n[0-{}]:2", hosts - 1)])
}

/// With Intel's library, over TCP between hosts.
pub(crate) fn on_intel(world: &World, hosts: usize, test: &str) -> Convoke {
    let lib = format!("LD_LIBRARY_PATH={}", impi().join("lib").display());
    on(world, hosts, test).args(["--env", &lib, "--env", "FI_PROVIDER=tcp"])
}

fn python(run: Convoke) -> Convoke {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/ring.py");
    run.arg(impi().join("bin/python")).arg(script)
}

/// Where `cargo xtask setup` puts Intel MPI and mpi4py.
fn impi() -> PathBuf {
    let impi = target().join("impi");
    assert!(impi.exists(), "no Intel MPI in `{}`: run `cargo xtask setup`", impi.display());
    impi
}

fn target() -> PathBuf {
    profile_directory().parent().map(Path::to_owned).unwrap_or_default()
}

/// With a release of MPICH from PyPI, over libfabric. With its provider `tcp` alone, `MPI_Init` at times waits for ever
/// on many hosts, while all connections are up and no byte is under way (docs/pmi.md).
pub(crate) fn over_ofi(world: &World, hosts: usize, test: &str, version: u32) -> Convoke {
    let lib = format!("LD_LIBRARY_PATH={}", mpich(version).display());
    let run = on(world, hosts, test).args(["--env", &lib, "--env", "MPIR_CVAR_CH4_NETMOD=ofi"]);
    run.args(["--env", "FI_PROVIDER=tcp;ofi_rxm"])
}

/// The libraries of a release of MPICH from PyPI.
fn mpich(version: u32) -> PathBuf {
    target().join(format!("mpich{version}/lib"))
}
