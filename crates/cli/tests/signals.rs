//! Signals to the front end: forwarded, ignored, and sent to its whole process group.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use support::convoke::Running;
use support::stand::on_hosts;
use support::watch::wait_until;

/// Tells which of these signals it hears, and ends when told to.
const LISTENS: &str = "for s in 10 12 14 37 64; do trap \"echo $s\" $s; done; trap 'exit 0' TERM; \
                       echo up; while :; do sleep 0.02; done";

#[test]
fn signals_of_the_list_reach_every_task_and_others_are_ignored() {
    for (options, sent, heard) in [
        ("", [10, 12, 14, 37, 64], &[10, 12][..]),
        ("--forward-signals none", [10, 12, 14, 37, 64], &[]),
        ("--forward-signals all", [10, 12, 14, 37, 64], &[10, 12, 14, 37, 64]),
        ("--forward-signals ALRM,RTMIN+3,RTMAX", [10, 12, 14, 37, 64], &[14, 37, 64]),
    ] {
        let run = on_hosts("list", "a,b", "").words("-n 2").words(options);
        let mut running = run.args(["sh", "-c", LISTENS]).start();
        running.wait_for_output("`up` of each task", |text| text == b"up\nup\n");
        let mut expected = "up\nup\n".to_owned();
        for signal in sent {
            send(&running, signal);
            if heard.contains(&signal) {
                expected += &format!("{signal}\n{signal}\n");
                running.wait_for_output("the signal", |text| text == expected.as_bytes());
            }
        }
        send(&running, 15);
        assert_eq!(running.finish().with_status(0).text(), expected, "{options}");
    }
}

#[test]
fn a_signal_that_cannot_be_forwarded_is_refused_by_name() {
    for (list, words) in [
        ("KILL", "SIGKILL cannot be forwarded"),
        ("USR1,TERM", "SIGTERM cannot be forwarded"),
        ("USR3", "`USR3` is neither a signal's name"),
        ("", "`` is neither a signal's name"),
    ] {
        let run = on_hosts("bad-list", "a", "").args(["--forward-signals", list, "true"]);
        let ended = run.run().with_status(2);
        assert!(ended.stderr.contains(words), "{list}: {}", ended.stderr);
    }
}

#[test]
fn a_signal_to_the_whole_process_group_is_one_signal() {
    let run = on_hosts("group", "a,b", "").in_group().words("-n 2 --grace 60s");
    let script = "trap 'echo told; sleep 0.5; echo done; exit 0' TERM; echo up; \
                  while :; do sleep 0.02; done";
    let mut running = run.args(["sh", "-c", script]).start();
    running.wait_for_output("`up` of each task", |text| text == b"up\nup\n");
    let _ = kill_process_group(pid(&running), Signal::TERM);
    assert_eq!(
        running.finish().with_status(0).sorted_lines(),
        ["done", "done", "told", "told", "up", "up"]
    );
}

/// The keeper of the front end, which is of its group, passes signals on to it: they come both ways.
#[test]
fn a_process_group_that_is_stopped_again_and_again_goes_on_each_time_it_is_continued() {
    let run = on_hosts("stops", "a,b", "").in_group().words("-n 1 --grace 60s");
    let mut running = run.args(["sh", "-c", "while :; do echo tick; sleep 0.02; done"]).start();
    for _ in 0..20 {
        let before = running.output().len();
        running.wait_for_output("a tick", |text| text.len() > before);
        kill_process_group(pid(&running), Signal::TSTP).unwrap();
        let stat = format!("/proc/{}/stat", running.pid());
        let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
        assert!(wait_until(Duration::from_secs(20), is_stopped), "it does not stop");
        kill_process_group(pid(&running), Signal::CONT).unwrap();
    }
    let _ = kill_process_group(pid(&running), Signal::TERM);
    running.finish();
}

fn pid(running: &Running) -> Pid {
    Pid::from_raw(i32::try_from(running.pid()).unwrap_or_default()).expect("a process")
}

fn send(running: &Running, number: i32) {
    let pid = running.pid();
    testkit::send_signal(pid, number).expect("it runs");
}
