//! Our client libraries, in the place of Slurm's and by themselves. `programs/pmi1.c` and `programs/pmi2.c` have every rank
//! meet all others, and check what crosses hosts.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::World;
use crate::matrix::INTERFACES;
use crate::mpi::{self, HOSTS};
use crate::support::convoke::Convoke;
use crate::support::ring::{pmi1, pmi2};
use crate::support::stand::{client_libraries, compiled};

#[test]
fn programs_compiled_for_slurms_libraries_run_with_ours_on_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for program in [pmi1(), pmi2()] {
        for (hosts, options) in [(1, ""), (2, "--pmi-port"), (HOSTS, "--map-by node")] {
            runs(&world, hosts, on(&world, hosts, "ours").words(options).arg(&program));
        }
    }
}

#[test]
fn programs_compiled_with_our_headers_run() {
    let world = World::up(2);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ours");
    fs::create_dir_all(&dir).unwrap();
    for (name, package) in [("pmi1", "pmi"), ("pmi2", "pmi2")] {
        let flags = said(
            Command::new("pkg-config")
                .args(["--cflags", "--libs", package])
                .env("PKG_CONFIG_PATH", client_libraries().join("lib/pkgconfig")),
        );
        let mut words = vec!["-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror"];
        words.extend(flags.split_whitespace());
        let program = compiled(name, Path::new("gcc"), &words, dir.join(name));
        runs(&world, 2, on(&world, 2, "our-headers").arg(program));
    }
}

#[test]
fn every_function_of_slurms_libraries_is_in_ours_and_what_is_more_is_in_our_headers() {
    for name in ["pmi", "pmi2"] {
        let theirs = functions(&of_slurm(name));
        let soname = format!("lib{name}.so.0");
        let library = client_libraries().join("lib").join(&soname);
        let ours = functions(&library);
        let missing: Vec<&String> = theirs.difference(&ours).collect();
        assert!(missing.is_empty() && theirs.len() > 20, "{name}: {missing:?} of {theirs:?}");
        let header = client_libraries().join(format!("include/{name}.h"));
        let header = fs::read_to_string(header).unwrap();
        for function in &ours {
            assert!(header.contains(&format!("int {function}(")), "{name}: {function}");
        }
        assert_eq!(ours.len(), header.matches("\nint PMI").count(), "{name}: {ours:?}");
        let dynamic = said(Command::new("readelf").arg("-d").arg(&library));
        assert!(dynamic.contains(&format!("soname: [{soname}]")), "{dynamic}");
    }
}

#[test]
fn a_program_that_is_started_alone_is_a_job_of_one() {
    for program in [pmi1(), pmi2()] {
        let mut alone = alone(&program);
        let text = said(alone.env("MPI_LOCALRANKID", "0").env("MPI_LOCALNRANKS", "1"));
        assert!(text.starts_with("rank 0 of 1 on "), "{text}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test runs a program")]
fn a_server_that_is_gone_is_a_code_and_no_signal() {
    for (program, words) in [(pmi1(), "init returned -1"), (pmi2(), "init returned 14")] {
        let (ours, other) = UnixStream::pair().unwrap();
        fcntl_setfd(&ours, FdFlags::empty()).unwrap();
        drop(other);
        let mut alone = alone(&program);
        alone.env("PMI_FD", ours.as_raw_fd().to_string()).env("PMI_DEBUG", "1");
        let Output { status, stderr, .. } = alone.output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        let reason = "error: send `init` to the PMI server: Broken pipe";
        assert!(stderr.starts_with(reason), "{stderr}");
    }
}

#[test]
fn gets_with_our_libraries_are_no_messages_on_any_number_of_hosts() {
    let world = World::up(HOSTS);
    for (pmi, library) in [("-DPMI=1", "-lpmi"), ("-DPMI=2", "-lpmi2")] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("local{library}"));
        let program = compiled("local", Path::new("gcc"), &[pmi, library], program);
        // Of so many tasks, up to a hundred thousand keys in all.
        for (hosts, keys) in [(1, "50000"), (2, "1000"), (HOSTS, "50")] {
            let run = on(&world, hosts, "local").arg(&program).arg(keys);
            let ended = world.end(run).with_status(0);
            let well = ended.text().matches(": well\n").count();
            assert_eq!(well, 2 * hosts, "{}", ended.text());
        }
    }
}

/// Rank 0 tells how long they took once all have checked all values.
#[test]
fn values_of_all_come_whole_in_each_form_in_messages_and_in_memory_that_tasks_share() {
    let world = World::up(HOSTS);
    for (hosts, form, bytes) in [1, 2, HOSTS]
        .into_iter()
        .flat_map(|hosts| ["gets", "allgather", "ifence", "iallgather"].map(|form| (hosts, form)))
        .flat_map(|(hosts, form)| ["64", "65536"].map(|bytes| (hosts, form, bytes)))
    {
        let run = on(&world, hosts, "values").arg(testkit::fixture("pmi-init")).args([form, bytes]);
        let ended = world.end(run).with_status(0);
        let text = ended.text();
        let fronts: Vec<_> = text.lines().map(|line| line.split(' ').next()).collect();
        assert_eq!(fronts, [Some("median"), Some("max")], "{hosts}, {form}: {ended:?}");
    }
}

/// Two ranks on n0 spawn a job of three on the last host, where there is room.
#[test]
fn programs_and_the_jobs_that_they_spawn_with_our_libraries_read_and_find_each_other() {
    let world = World::up(3);
    for (pmi, library) in [("-DPMI=1", "-lpmi"), ("-DPMI=2", "-lpmi2")] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jobs{library}"));
        let program = compiled("jobs", Path::new("gcc"), &[pmi, library], program);
        for (hosts, host) in [("n0:5", "n0"), ("n0:2,n1:3,n2:3", "n2")] {
            for interface in INTERFACES {
                let run = world.convoke("jobs").args(["--hosts", hosts, "--env", &own_libraries()]);
                let run = run.words("-n 2 --all-hosts").words(interface);
                let ended = world.end(run.arg(&program).arg(host)).with_status(0);
                let parents = (0..2).map(|rank| format!("parent {rank} of 2: well"));
                let children = (0..3).map(|rank| format!("child {rank} of 3: well"));
                assert_eq!(ended.sorted_lines(), children.chain(parents).collect::<Vec<_>>());
                for why in ["/no/such/program", "1002 tasks do not fit"] {
                    assert!(ended.stderr.contains(why), "{}", ended.stderr);
                }
            }
        }
    }
}

/// With Slurm's library and with ours.
#[test]
fn tasks_that_know_their_neighbours_in_a_ring_gather_over_connections_of_their_own() {
    let world = World::up(HOSTS);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-ring");
    let program = compiled("own_ring", Path::new("gcc"), &["-lpmi2"], program);
    for hosts in [1, 2, HOSTS] {
        for run in [on(&world, hosts, "own-ring"), mpi::on(&world, hosts, "own-ring-slurm")] {
            let ended = world.end(run.arg(&program)).with_status(0);
            assert_eq!(ended.text().matches(": all cards\n").count(), 2 * hosts, "{ended:?}");
        }
    }
}

#[test]
fn an_abort_through_our_library_ends_the_job_and_is_told() {
    let world = World::up(2);
    let aborted = world.end(on(&world, 2, "abort").arg(pmi2()).arg("abort")).with_status(1);
    let words = "task 3 on n1 aborted with code 1: enough";
    assert!(aborted.stderr.contains(words), "{}", aborted.stderr);
}

/// Slurm's library of this name, as Debian has it.
pub(crate) fn of_slurm(name: &str) -> PathBuf {
    let system = said(Command::new("gcc").arg("-print-multiarch"));
    Path::new("/usr/lib").join(system.trim()).join(format!("lib{name}.so.0"))
}

/// Two ranks on each of the first hosts, with our libraries.
pub(crate) fn on(world: &World, hosts: usize, test: &str) -> Convoke {
    let hosts = format!("n[0-{}]:2", hosts - 1);
    world.convoke(test).args(["--hosts", &hosts, "--env", &own_libraries()])
}

/// The variable with which programs find our libraries.
fn own_libraries() -> String {
    format!("LD_LIBRARY_PATH={}", client_libraries().join("lib").display())
}

#[track_caller]
pub(crate) fn runs(world: &World, hosts: usize, run: Convoke) {
    let ended = world.end(run).with_status(0);
    let well = ended.text().matches(": well, with Convoke's library\n").count();
    assert_eq!(well, 2 * hosts, "{}", ended.text());
}

/// A program with our libraries, and without a launcher.
fn alone(program: &Path) -> Command {
    let mut alone = Command::new(program);
    alone.env("LD_LIBRARY_PATH", client_libraries().join("lib"));
    alone
}

/// The functions that a library exports and that are called as PMI's are.
fn functions(library: &Path) -> BTreeSet<String> {
    let symbols = said(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let names = symbols.lines().filter_map(|line| line.split(' ').nth(2));
    let all: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(all.iter().all(|name| name.starts_with("PMI")), "{all:?}");
    all
}

/// What a program writes, which must succeed.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a test runs a program")]
fn said(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}
