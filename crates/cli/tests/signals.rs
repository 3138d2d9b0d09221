//! Signals to the front end: forwarded, ignored, and sent to its whole process group.

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::convoke::{Convoke, Running};
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
    let run = in_group(on_hosts("group", "a,b", "").words("-n 2 --grace 60s"));
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

#[test]
fn a_stop_and_a_continue_by_kill_reach_the_tasks_whoever_they_are_sent_to() {
    for to_group in [false, true] {
        let run = in_group(on_hosts("stop-kill", "a,b", "").words("-n 2"));
        let mut running = run.args(["sh", "-c", "echo up; read line; echo $line"]).start();
        running.wait_for_output("`up` of each task", |text| text.ends_with(b"up\n"));
        let stop = |signal| {
            let sent = match to_group {
                true => kill_process_group(pid(&running), signal),
                false => kill_process(pid(&running), signal),
            };
            let _ = sent;
        };
        stop(Signal::TSTP);
        let front_end = running.pid();
        assert!(wait_until(PATIENCE, || is_stopped(front_end)), "to the group: {to_group}");
        assert!(wait_until(PATIENCE, || stopped(&running) >= 4), "to the group: {to_group}");
        stop(Signal::CONT);
        assert!(wait_until(PATIENCE, || stopped(&running) == 0), "to the group: {to_group}");
        running.write(b"on\n");
        running.close_stdin();
        running.finish().with_status(1);
    }
}

/// How long what was told may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// `run` as the leader of its own process group, as a shell with job control starts it.
fn in_group(run: Convoke) -> Convoke {
    run.under("setsid", ["--wait"])
}

fn pid(running: &Running) -> Pid {
    Pid::from_raw(i32::try_from(running.pid()).unwrap_or_default()).expect("a process")
}

fn send(running: &Running, number: i32) {
    let pid = running.pid();
    testkit::send_signal(pid, number).expect("it runs");
}

/// How many processes of the run are stopped.
fn stopped(running: &Running) -> usize {
    running.marker().survivors().iter().filter(|it| is_stopped(it.pid)).count()
}

/// Whether a process is stopped (proc(5), field 3 of `stat`).
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
}
