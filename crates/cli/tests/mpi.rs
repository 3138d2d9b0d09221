//! Unmodified MPI programs, PMI without MPI, and programs that know neither.
//!
//! Hosts are those of the modelled shell, so all processes share one machine, and its memory. MPICH
//! 4.0.2 of Debian is therefore only run where its ranks share a host: over TCP its `MPI_Finalize`
//! often hangs, whatever launches it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::path::PathBuf;

use insta::assert_snapshot;
use support::convoke::Convoke;
use support::ring::{check_ring, ring};
use support::stand::{mpi_program, on_hosts, open_mpi_program, profile_directory, testbed_program};
use testbed::as_ordinary_user;
use testkit::fixture;

mod mpich4 {
    use super::*;

    #[test]
    fn a_ring_closes_on_one_host() {
        let ended = on_hosts("mpich4", "a", "").words("-n 4").arg(ring(4)).run();
        check_ring(&ended.with_status(0), 4, &["a"]);
    }

    #[test]
    fn an_abort_gives_its_code() {
        let run = on_hosts("mpich4-abort", "a", "").words("-n 4").arg(ring(4));
        run.words("abort 7 2").run().with_status(7);
    }

    #[test]
    fn a_task_that_leaves_without_finalizing_ends_the_job() {
        let run = on_hosts("mpich4-leave", "a", "").words("-n 4").arg(ring(4));
        assert_snapshot!(run.words("leave 1").run().with_status(250).words());
    }
}

mod mpich5 {
    use super::*;

    #[test]
    fn a_ring_closes_on_one_host() {
        let ended = on_hosts("mpich5-1x4", "a", "").words("-n 4").arg(ring(5)).run();
        check_ring(&ended.with_status(0), 4, &["a"]);
    }

    #[test]
    fn a_ring_closes_over_two_hosts() {
        let ended = on_hosts("mpich5-2x2", "a,b", "").words("-n 4 --ppn 2").arg(ring(5));
        check_ring(&ended.run().with_status(0), 4, &["a", "b"]);
    }

    #[test]
    fn a_ring_closes_over_four_hosts_and_a_chain() {
        let run = on_hosts("mpich5-4x2", "a,b,c,d", "").words("-n 8 --ppn 2 --tree chain");
        let ended = run.arg(ring(5)).run();
        check_ring(&ended.with_status(0), 8, &["a", "b", "c", "d"]);
    }

    #[test]
    fn a_ring_closes_over_hosts_with_different_numbers_of_tasks() {
        let run = on_hosts("mpich5-uneven", "a:3,b:1,c:2", "").arg(ring(5));
        check_ring(&run.run().with_status(0), 6, &["a", "b", "c"]);
    }

    #[test]
    fn ranks_that_go_round_the_hosts_know_who_shares_one() {
        let run = on_hosts("mpich5-cyclic", "a:3,b:1,c:2", "").words("--map-by node").arg(ring(5));
        let ended = run.run().with_status(0);
        check_ring(&ended, 6, &["a", "b", "c"]);
        assert!(ended.text().contains("rank 4 of 6 on c"), "{}", ended.text());
    }

    #[test]
    fn several_programs_are_one_world_and_know_their_numbers() {
        let run = on_hosts("mpich5-apps", "a:2,b:2", "").words("-n 1").arg(ring(5));
        let run = run.words("appnum : -n 2").arg(ring(5)).words("appnum :").arg(ring(5));
        let ended = run.arg("appnum").run().with_status(0);
        for (rank, app) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
            let line = format!("rank {rank} is of app {app}\n");
            assert!(ended.text().contains(&line), "{}", ended.text());
        }
        assert!(ended.text().contains("rank 3 of 4 on b"), "{}", ended.text());
    }

    #[test]
    fn an_abort_gives_its_code_and_ends_the_others() {
        let run = on_hosts("mpich5-abort", "a,b", "").words("-n 4 --ppn 2").arg(ring(5));
        let ended = run.words("abort 7 3").run().with_status(7);
        let line = "task 3 on b aborted with code 7: ";
        assert!(ended.stderr.contains(line), "{}", ended.stderr);
    }

    #[test]
    fn a_task_that_leaves_without_finalizing_ends_the_job() {
        let run = on_hosts("mpich5-leave", "a,b", "").words("-n 4 --ppn 2").arg(ring(5));
        assert_snapshot!(run.words("leave 2").run().with_status(250).words());
    }

    #[test]
    fn a_rank_that_crashes_gives_its_signal() {
        let run = on_hosts("mpich5-crash", "a,b", "").words("-n 4 --ppn 2").arg(ring(5));
        let words = run.words("crash 1").run().with_status(139).words();
        assert_snapshot!(words.replace(", core dumped", ""));
    }

    #[test]
    fn a_status_after_finalize_is_the_jobs() {
        let run = on_hosts("mpich5-status", "a,b", "").words("-n 2").arg(ring(5));
        run.words("status 5").run().with_status(5);
    }
}

mod open_mpi {
    use super::*;

    #[test]
    fn tasks_that_will_believe_that_they_are_alone_are_told_of_before_they_run() {
        let (run, program) = open_mpi_ring("open-mpi", "a,b,c");
        let record = tempfile::NamedTempFile::new().unwrap();
        let ended = run.arg("--json").arg(record.path()).arg(&program).run().with_status(0);
        assert_eq!(ended.text().matches("rank 0 of 1 on ").count(), 3);
        let warning = ended.stderr.lines().take(2).collect::<Vec<_>>().join("\n");
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(record.path()).unwrap()).unwrap();
        let recorded = record["warnings"][0].as_str().unwrap();
        assert_eq!(format!("warning: {recorded}"), warning);
        assert_snapshot!(warning.replace(&*program.to_string_lossy(), "ring"));
    }

    #[test]
    fn a_job_of_one_task_and_programs_of_others_are_not_warned_of() {
        let (run, program) = open_mpi_ring("open-mpi-one", "a");
        let ended = run.arg(program).run().with_status(0);
        assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
        for program in [ring(4), ring(5), "/bin/echo".into()] {
            let ended = on_hosts("no-open-mpi", "a:2", "").arg(program).run().with_status(0);
            assert_eq!(ended.stderr, "");
        }
    }

    /// The library leaves directories where temporary files go.
    fn open_mpi_ring(test: &str, hosts: &str) -> (Convoke, PathBuf) {
        let run = on_hosts(test, hosts, "");
        let program = open_mpi_program("ring", run.dir());
        let tmpdir = format!("TMPDIR={}", run.dir().display());
        (run.args(["--env", &tmpdir]), program)
    }
}

mod pmi {
    use super::*;

    #[test]
    fn sixty_four_clients_on_one_host_exchange_their_cards() {
        exchange("pmi-1x64", "a:64", 64);
    }

    #[test]
    fn sixty_four_clients_on_four_hosts_exchange_their_cards() {
        exchange("pmi-4x16", "a:16,b:16,c:16,d:16", 64);
    }

    #[test]
    fn clients_on_hosts_with_different_numbers_of_tasks_exchange_their_cards() {
        exchange("pmi-uneven", "a:5,b:1,c:9", 15);
    }

    fn exchange(test: &str, hosts: &str, tasks: u32) {
        let run = on_hosts(test, hosts, "").args(["-n", &tasks.to_string()]);
        let ended = run.arg(fixture("pmi-client")).arg("all").run().with_status(0);
        assert!(ended.text().starts_with("rank0 "), "{}", ended.text());
    }
}

mod plain_programs {
    use super::*;

    #[test]
    fn a_program_without_pmi_runs_once_for_each_rank() {
        let run = on_hosts("plain", "a,b", "").words("-n 4 --ppn 2");
        let ended = run.args(["sh", "-c", "echo $PMI_RANK of $PMI_SIZE on $(hostname)"]).run();
        let lines = ended.with_status(0).sorted_lines();
        assert_eq!(lines, ["0 of 4 on a", "1 of 4 on a", "2 of 4 on b", "3 of 4 on b"]);
    }

    #[test]
    fn an_environment_of_any_size_that_a_process_can_have_reaches_the_tasks_whole() {
        // Of 2 MiB, which are a quarter of the usual limit of the stack, 65 kB are left for the rest.
        let value = "long \u{e9}=\t".repeat(14_100);
        let run = Convoke::new("long-env").words("--launcher local --hosts a,b -n 2");
        let run = (0..16).fold(run, |run, n| run.env(format!("LONG_{n:02}"), &value));
        let run = run.args(["sh", "-c", "env | grep ^LONG_ | sort | cksum"]).run();
        let lines = run.with_status(0).sorted_lines();
        assert_eq!(lines[0], lines[1]);
        let bytes: usize = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(bytes, 16 * ("LONG_00=\n".len() + value.len()));
    }

    #[test]
    fn a_variable_of_any_size_that_a_process_can_have_reaches_the_tasks_and_a_larger_one_is_named()
    {
        /// `LONG=`, the value, and the terminating zero.
        const STRING_BYTES_MAX: usize = 128 << 10;
        let run = |bytes: usize| {
            let value = "x".repeat(bytes - "LONG=".len() - 1);
            let run = Convoke::new("long-variable").words("--launcher local --hosts a,b");
            let file = run.dir().join("programs");
            let line = format!("-n 2 --env LONG={value} sh -c 'echo ${{#LONG}}'\n");
            std::fs::write(&file, line).unwrap();
            (run.arg("--configfile").arg(file).run(), value.len())
        };
        let (ended, bytes) = run(STRING_BYTES_MAX);
        assert_eq!(ended.with_status(0).sorted_lines(), vec![bytes.to_string(); 2]);
        let (refused, _) = run(STRING_BYTES_MAX + 1);
        let words = "`LONG` takes 131073 bytes, and Linux takes 131072 at most";
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert_eq!(refused.text(), "");
    }

    #[test]
    fn an_environment_that_no_task_can_have_is_told_before_anything_is_launched() {
        // What starts the agent has room for itself.
        let shell = "env -i sh -c 'ulimit -s 1024; exec sh -c \"$1\"' {host} {cmd}";
        let run = Convoke::new("huge-env").args(["--hosts", "a,b", "-n", "2", "--shell", shell]);
        let run = (0..4).fold(run, |run, n| run.env(format!("LONG_{n}"), "x".repeat(100_000)));
        let ended = run.words("sh -c").arg("echo $PMI_RANK").run();
        let words = "arguments and environment take 4";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(ended.stderr.contains("`LONG_0` 100008 of them"), "{}", ended.stderr);
        assert_eq!(ended.text(), "");
    }

    #[test]
    fn a_script_may_run_an_mpi_program_of_its_own_size() {
        let run = Convoke::new("inner").words("--launcher local --hosts a:2 -n 2 --stdin none");
        let script = "test $PMI_RANK -gt 0 || $CONVOKE run --launcher local --hosts b:3 -n 3 \
                      sh -c 'echo $PMI_RANK of $PMI_SIZE'";
        let run = run.env("CONVOKE", support::convoke::convoke_path()).args(["sh", "-c", script]);
        let lines = run.run().with_status(0).sorted_lines();
        assert_eq!(lines, ["0 of 3", "1 of 3", "2 of 3"]);
    }

    #[test]
    fn two_jobs_at_once_on_the_same_hosts_know_nothing_of_each_other() {
        let start = |test: &str| {
            let run = on_hosts(test, "a:8,b:8", "").words("-n 16");
            run.arg(fixture("pmi-client")).arg("all").start()
        };
        let jobs = [start("twin-1"), start("twin-2")];
        for job in jobs {
            assert!(job.finish().with_status(0).text().starts_with("rank0 "));
        }
    }
}

/// What `cargo xtask demo` does for who is not root.
#[test]
fn an_ordinary_user_runs_a_ring_of_32_on_eight_loopback_hosts() {
    const SCRIPT: &str = r#"exec convoke run --ssh-arg=-F --ssh-arg="$TESTBED_SSH_CONFIG" \
        --hosts n0,n1,n2,n3,n4,n5,n6,n7 --ppn 4 --tree kary:2 --show-tree ring-5"#;
    mpi_program("ring", 5, &profile_directory());
    let run = Convoke::wrapped("loopback", as_ordinary_user(&testbed_program("testbed")));
    let ended = run.words("--loopback run 8 sh -c").arg(SCRIPT).run();
    let ended = ended.with_status(0);
    for host in 0..8 {
        assert!(ended.stderr.contains(&format!("n{host}")), "{}", ended.stderr);
    }
    let shared_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    check_ring(&ended, 32, &[shared_name.trim()]);
}
