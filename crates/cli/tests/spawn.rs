//! MPI programs that have others started while they run, on hosts of the modelled shell.
//!
//! MPICH connects jobs over libfabric here.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use support::convoke::{Convoke, Running};
use support::ring::program;
use support::stand::{misbehave, on_hosts, script};
use support::watch::{running_as, wait_until};

/// Two tasks that do this, on a host with slots for others.
fn parents(test: &str, words: &str) -> Convoke {
    let run = on_hosts(test, "a:8", "").words("-n 2");
    let run = run.words("--env MPIR_CVAR_CH4_NETMOD=ofi");
    run.arg(program("spawn", 5)).words(words)
}

#[test]
fn a_spawned_job_and_its_parents_add_up() {
    let ended = parents("spawn", "leaf").run().with_status(0);
    ended.says(&["parent: 4 together", "child: 4 together"]);
}

#[test]
fn several_programs_are_one_job_and_know_their_numbers() {
    let ended = parents("spawn-apps", "apps").run().with_status(0);
    let lines = ["parent: 4 together", "child: 4 together", "app 0: apps", "app 1: apps"];
    ended.says(&lines);
}

#[test]
fn one_that_was_spawned_spawns_others() {
    let ended = parents("spawn-again", "again").run().with_status(0);
    let lines = ["parent: 3 together", "child: 3 together"];
    ended.says(&[&lines[..], &["parent: 4 together", "child: 4 together"]].concat());
}

#[test]
fn labels_tell_the_jobs_apart() {
    let run = on_hosts("spawn-label", "a:4", "").words("-n 1 --label");
    let ended = run.arg(program("spawn", 5)).words("leaf").run().with_status(0);
    ended.says(&["[0] parent: 3 together", "[1:0] child: 3 together"]);
}

#[test]
fn what_can_not_be_started_is_an_error_to_the_caller_who_goes_on() {
    for (words, why) in [("missing", "/no/such/program"), ("toomany", "1000 tasks do not fit")] {
        let ended = parents("spawn-refused", words).run().with_status(0);
        ended.says(&["refused"]);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}

#[test]
fn a_refusal_names_the_option_that_would_add_the_hosts_without_tasks() {
    let run = |hosts| {
        let run = on_hosts("spawn-idle", hosts, "").words("-n 1 --route kary:2");
        run.arg(script("spawn.bash"))
    };
    let ended = run("a:2,b:1").words("echo b").run().with_status(0);
    let why = "no agent runs on `b`, which has no tasks: `--all-hosts` adds its 1 slot";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    let ended = run("a:1,b:1,c:2").words("echo a").run().with_status(0);
    let why =
        "1 tasks do not fit: 0 of 1 slots are free; `--all-hosts` adds the 3 slots of 2 hosts";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[test]
fn fewer_tasks_than_were_asked_for_are_started_where_the_caller_permits_it_and_are_told_apart() {
    let ended = parents("spawn-soft", "soft").run().with_status(0);
    ended.says(&["6 came, 14 did not", "parent: 8 together", "child: 8 together"]);
}

#[test]
fn jobs_connect_by_a_name() {
    let ended = parents("spawn-port", "port").run().with_status(0);
    let lines = ["parent: 3 together", "child: 3 together"];
    ended.says(&[lines, lines].concat());
}

#[test]
fn an_abort_of_one_that_was_spawned_ends_all_and_is_told_with_its_job() {
    let ended = parents("spawn-abort", "abort").run().with_status(7);
    let is_told = |line: &str| line.starts_with("task ") && line.contains(" of job 1 on ");
    assert!(ended.stderr.lines().any(is_told), "{}", ended.stderr);
}

#[test]
fn many_one_after_another_end_well() {
    let ended = parents("spawn-many", "many 10").run().with_status(0);
    ended.says(&["done", "done"]);
}

#[test]
fn a_task_reads_what_its_parents_have_put_on_a_host_without_any_of_them() {
    let run = on_hosts("spawn-read", "a:2,b:2,c:2", "")
        .words("-n 3 --all-hosts")
        .arg(script("spawn.bash"));
    let ended = run.words("read c").run().with_status(0);
    let values = [0, 1, 2].map(|rank| format!("rc=0 value=of-rank-{rank}"));
    let missing = "rc=1 msg=key_card-3_not_found value=unknown";
    let lines: Vec<&str> = values.iter().map(String::as_str).chain([missing]).collect();
    ended.says(&lines);
}

#[test]
fn a_host_without_tasks_gets_an_agent_when_a_job_needs_it_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("record");
    let run = on_hosts("spawn-grow", "a:1,b:1,c:300", "").words("-n 1 --json").arg(&json);
    let run = run.arg(script("spawn.bash")).words("many 20 c");
    let mut running = run.start();
    running.write(b"\n\n");
    let ended = running.finish().with_status(0);
    assert_eq!((ended.text(), &*ended.stderr), ("first\nlast\n".to_owned(), ""));
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let hosts = record["nodes"].as_array().unwrap().iter().map(|node| &node["host"]);
    assert_eq!(hosts.collect::<Vec<_>>(), ["a", "c"], "nobody needed b");
    assert_eq!(record["spawned"].as_array().unwrap().len(), 20);
}

/// A task on a that has another write a line on b.
fn echoes(test: &str, options: &str) -> Convoke {
    on_hosts(test, "a:1,b:1", "").words("-n 1").words(options)
}

#[test]
fn output_of_a_spawned_job_is_in_files_of_its_own_and_each_of_its_tasks_is_recorded() {
    for place in ["", "--output-local"] {
        let dir = tempfile::tempdir().unwrap();
        let (out, json) = (dir.path().join("out"), dir.path().join("record"));
        let run = echoes("spawn-files", place).arg("--output").arg(&out).arg("--json").arg(&json);
        let ended = run.arg(script("spawn.bash")).words("echo b").run().with_status(0);
        assert_eq!((ended.text(), ended.stderr), (String::new(), String::new()));
        let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        assert_eq!((&*text("0.out"), &*text("job1.0.out")), ("a parent\n", "a child\n"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 4, "two of each");
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!((&record["tasks"], &record["ranks"][0]["job"]), (&json!(1), &json!(0)));
        let job = &record["spawned"][0];
        assert_eq!((&job["job"], &job["tasks"]), (&json!(1), &json!(1)));
        assert_eq!(job["spawner"], json!({"job": 0, "rank": 0}));
        assert_eq!(job["apps"][0]["command"], json!(["echo", "a child"]));
        let rank = &job["ranks"][0];
        assert_eq!((&rank["job"], &rank["host"]), (&json!(1), &json!("b")));
        assert_eq!((&rank["state"], &rank["exit_code"]), (&json!("exited"), &json!(0)));
        assert!(rank["pid"].as_u64().unwrap() > 1);
    }
}

#[test]
fn a_host_that_was_added_gives_its_files_its_name() {
    for place in ["", "--output-local"] {
        let dir = tempfile::tempdir().unwrap();
        let run = echoes("spawn-host-files", place);
        let run = run.arg("--outfile-pattern").arg(dir.path().join("%h"));
        run.arg(script("spawn.bash")).words("echo b").run().with_status(0);
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!((&*text("a"), &*text("job1.b")), ("a parent\n", "a child\n"), "{place}");
    }
}

#[test]
fn files_of_a_spawned_job_that_can_not_be_made_are_an_error_to_the_caller_who_goes_on() {
    for (place, on) in [("", ""), ("--output-local", " on b")] {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("1");
        fs::write(&blocked, "no directory").unwrap();
        let run = echoes("spawn-no-files", place).arg("--outfile-pattern");
        let run = run.arg(dir.path().join("%j/%r")).arg(script("spawn.bash"));
        let ended = run.words("echo b").run().with_status(0);
        let why = format!("could not write `{}/0`{on} (os error 20)", blocked.display());
        assert!(ended.stderr.contains(&why), "{}", ended.stderr);
        let text = fs::read_to_string(dir.path().join("0/0")).unwrap();
        assert!(text.starts_with("refused: ") && text.ends_with("a parent\n"), "{text}");
    }
}

/// Each process of the session, with how many descriptors it has.
fn processes(running: &Running) -> Vec<(u32, usize)> {
    let descriptors = |pid: u32| fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count);
    let all = running.marker().survivors().into_iter();
    all.map(|process| (process.pid, descriptors(process.pid).unwrap_or_default())).collect()
}

#[test]
fn three_hundred_one_after_another_leave_no_process_and_no_descriptor() {
    let run = on_hosts("spawn-300", "a:1,b:300,c:300,d:300", "").words("-n 1 --all-hosts");
    let mut running = run.arg(script("spawn.bash")).words("many 300 b,c,d").start();
    running.wait_for_output("the first", |text| text == b"first\n");
    let (mut before, mut looks) = (processes(&running), 0);
    let is_settled = || {
        let last = std::mem::replace(&mut before, processes(&running));
        looks = if last == before { looks + 1 } else { 0 };
        looks == 20
    };
    assert!(wait_until(Duration::from_secs(10), is_settled), "{before:?}");
    running.write(b"\n");
    running.wait_for_output("the last", |text| text == b"first\nlast\n");
    let is_as_before = || processes(&running) == before;
    let is_well = wait_until(Duration::from_secs(10), is_as_before);
    assert!(is_well, "before: {before:?}, then: {:?}", processes(&running));
    running.write(b"\n");
    running.finish().with_status(0);
}

/// Whose each daemon is, as its environment tells: a job's, or nobody's.
fn daemons(running: &Running) -> Vec<String> {
    let all = running.marker().survivors().into_iter();
    let daemons = all.filter(|process| process.command.ends_with("misbehave hang"));
    let mut jobs: Vec<String> =
        daemons.map(|process| process.variable("CONVOKE_JOB").unwrap_or_default()).collect();
    jobs.sort();
    jobs
}

/// Of two jobs on one host, what one leaves is told by its environment. On a host of its own, all of it ends with it.
#[test]
fn what_a_spawned_job_leaves_behind_ends_with_it_and_the_first_jobs_processes_live_on() {
    for (host, unmarked) in [("a", &[""][..]), ("b", &[])] {
        let run = on_hosts("spawn-leave", "a:4,b:4", "").words("-n 1 --all-hosts");
        let run = run.arg(script("spawn.bash")).args(["leave", host]).arg(misbehave());
        let mut running = run.start();
        running.wait_for_output("what is left", |text| text.ends_with(b"left\nleft\n"));
        let job = running.output().lines().next().unwrap().to_owned();
        let left = [unmarked, &[job.as_str()]].concat();
        let is_swept = wait_until(Duration::from_secs(10), || daemons(&running) == left);
        assert!(is_swept, "{:?}, and not {left:?}", daemons(&running));
        let living = running.marker().survivors();
        for text in ["sleep 1000", "spawn.bash leave"] {
            assert!(living.iter().any(|process| process.command.contains(text)), "{living:?}");
        }
        running.write(b"\n");
        running.finish().with_status(0).says(&[&job, "left", "left", "on"]);
    }
}

/// A process that starts one program after another has no environment to be told by in between.
#[test]
fn what_spawned_jobs_leave_behind_ends_with_them_while_it_starts_other_programs() {
    let run = on_hosts("spawn-restless", "a:100", "").words("-n 1");
    let run = run.arg(script("spawn.bash")).args(["restless", "60", "a"]).arg(misbehave());
    let mut running = run.start();
    running.wait_for_output("the last", |text| text.ends_with(b"last\n"));
    let restless = || running_as(running.marker(), " restless:");
    let is_swept = wait_until(Duration::from_secs(10), || restless().is_empty());
    assert!(is_swept, "{:?}", restless());
    running.write(b"\n");
    running.finish().with_status(0).says(&["last"]);
}
