//! One command that starts many agents without standard input, as `srun` and its kind do. Its local
//! stand-in runs them all on this machine, whatever the hosts are called.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::convoke::{Convoke, Running};
use support::watch::running_as;
use testkit::Survivor;

const UP: &str = "echo up; sleep 1000";

#[test]
fn every_task_runs_once_and_the_one_that_reads_input_gets_it() {
    for tree in ["flat", "chain", "kary:2"] {
        let run = bulk("ranks", "n[1-6]").words("-n 12 --ppn 2 --label --tree").arg(tree);
        let run = run.args(["sh", "-c", "read line; echo $PMI_RANK of $PMI_SIZE $line"]);
        let ended = run.input("hello\n").run().with_status(0);
        let expected =
            |rank: u32| format!("[{rank}] {rank} of 12{}", [" hello", ""][(rank != 0) as usize]);
        let mut expected: Vec<String> = (0..12).map(expected).collect();
        expected.sort();
        assert_eq!((ended.sorted_lines(), ended.stderr.as_str()), (expected, ""), "{tree}");
    }
}

#[test]
fn one_command_starts_all_agents_and_none_has_standard_input() {
    let running = start("one", "--tree flat");
    assert_eq!(running_as(running.marker(), "convoke __bulk").len(), 1);
    let agents = running_as(running.marker(), "convoke __agent");
    assert_eq!(agents.len(), 2 * 4, "four agents, and a keeper each");
    for agent in agents {
        let stdin = fs::read_link(format!("/proc/{}/fd/0", agent.pid)).unwrap();
        assert_eq!(stdin.to_str(), Some("/dev/null"));
    }
    kill_process(pid(running.pid()), Signal::INT).unwrap();
    running.finish().with_status(130);
}

#[test]
fn what_tells_agents_who_they_are_is_kept_from_tasks() {
    let ended = bulk("secret", "a,b").words("-n 2").misbehave(["show"]).run().with_status(0);
    for word in ["CONVOKE_BOOT", "CONVOKE_BULK_INDEX"] {
        assert!(!ended.text().contains(word), "{}", ended.text());
    }
}

#[test]
fn a_failed_task_gives_its_status_and_stops_the_others() {
    let script = "test $PMI_RANK != 2 || exit 7; sleep 1000";
    let ended = bulk("status", "n[1-4]").args(["sh", "-c", script]).run().with_status(7);
    assert_eq!(ended.stderr, "task 2 on n3 exited with status 7\n");
}

#[test]
fn an_agent_that_is_killed_is_named_though_its_command_lives_on() {
    let running = start("agent", "--tree flat");
    kill(&agent(&running, 2));
    lost(running, "error: lost node n3: ");
}

#[test]
fn a_keeper_that_is_killed_loses_its_node_alone() {
    let running = start("keeper", "--tree flat");
    kill(&keeper(&running, 2));
    lost(running, "error: lost node n3: ");
}

#[test]
fn when_the_command_is_killed_all_agents_are_lost() {
    let running = start("command", "--tree flat");
    kill(&running_as(running.marker(), "convoke __bulk")[0]);
    let words = "error: lost nodes n[1-4] (4 of 4): their bulk launcher (`convoke __bulk`) was \
                 killed by signal 9 (SIGKILL)\n";
    let stderr = lost(running, words);
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
}

#[test]
fn when_one_of_several_commands_is_killed_it_is_one_fault_of_its_nodes() {
    let run = bulk("inner-command", "n[1-6]").words("--tree kary:2");
    let mut running = run.args(["sh", "-c", UP]).start();
    running.wait_for_output("`up` of each task", |text| text == "up\n".repeat(6).as_bytes());
    let inner =
        running_as(running.marker(), "convoke __bulk 2").into_iter().max_by_key(|it| it.pid);
    kill(&inner.unwrap());
    let stderr = lost(running, "error: lost nodes n[");
    let words = "] (2 of 6): their bulk launcher (`convoke __bulk`) was killed by signal 9";
    assert!(stderr.contains(words), "{stderr}");
    assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
}

#[test]
fn when_the_front_end_is_killed_nothing_is_left() {
    let running = start("front-end", "--tree flat");
    kill_process(pid(running.pid()), Signal::KILL).unwrap();
    running.finish().with_status(137);
}

#[test]
fn a_program_that_is_missing_is_one_failure_of_all_nodes() {
    let run = bulk("missing", "n[1-4]").words("--agent-path /nowhere/convoke true");
    let ended = run.run().with_status(252);
    let words = "error: could not start an agent on 4 of 4 nodes: n[1-4]\n";
    assert!(ended.stderr.starts_with(words), "{}", ended.stderr);
}

fn bulk(test: &str, hosts: &str) -> Convoke {
    Convoke::new(&format!("bulk-{test}")).words("--launcher local-bulk --hosts").arg(hosts)
}

/// A job on four hosts, each of whose tasks has said that it is up.
fn start(test: &str, options: &str) -> Running {
    let run = bulk(test, "n[1-4]").words(options);
    let mut running = run.args(["sh", "-c", UP]).start();
    running.wait_for_output("`up` of each task", |text| text == "up\n".repeat(4).as_bytes());
    running
}

/// Checks that the job ends at once, with these first words, and returns all of them.
fn lost(running: Running, words: &str) -> String {
    let ended = running.finish().with_status(251);
    assert!(ended.stderr.starts_with(words), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
    ended.stderr
}

fn kill(process: &Survivor) {
    kill_process(pid(process.pid), Signal::KILL).unwrap();
}

fn agent(running: &Running, index: u32) -> Survivor {
    of_start(running, index, |name| name != "convoke-keeper")
}

fn keeper(running: &Running, index: u32) -> Survivor {
    of_start(running, index, |name| name == "convoke-keeper")
}

/// The process of this name among those of the agent with this index.
fn of_start(running: &Running, index: u32, is_named: impl Fn(&str) -> bool) -> Survivor {
    let is_of_start =
        |process: &Survivor| process.variable("CONVOKE_BULK_INDEX") == Some(index.to_string());
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut agents = running_as(running.marker(), "convoke __agent").into_iter();
    agents.find(|it| is_of_start(it) && is_named(name(it.pid).trim_end())).unwrap()
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}
