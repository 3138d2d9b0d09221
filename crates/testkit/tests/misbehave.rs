//! The fixture does what its name says, and what it leaves behind is found.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![expect(clippy::disallowed_methods, reason = "a test may start its fixtures with std")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::{FloodLine, Marker};

#[test]
fn steps_are_performed_in_order_up_to_an_exit() {
    let output = misbehave(&["say:one", "partial:two", "exit:3", "say:three"]);
    assert_eq!((output.status.code(), text(&output)), (Some(3), "one\ntwo".to_owned()));
}

#[test]
fn a_signal_ends_the_task_even_where_rust_handles_it() {
    for signal in [6, 9, 11, 15] {
        let output = misbehave(&[&format!("signal:{signal}")]);
        assert_eq!(output.status.signal(), Some(signal));
    }
}

#[test]
fn an_ignored_signal_does_not_end_the_task() {
    let mut task = command(&["ignore:15", "say:ready", "count-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(task.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&task), Signal::TERM).unwrap();
    drop(task.stdin.take());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\nstdin bytes=0 fnv=cbf29ce484222325\n");
    assert!(task.wait().unwrap().success());
}

#[test]
fn a_flood_is_whole_in_both_ways_of_buffering() {
    for mode in ["line", "block"] {
        let output = misbehave(&[&format!("flood:1000:100:{mode}")]);
        let text = text(&output);
        let lines: Vec<_> = text.lines().map(FloodLine::parse).collect();
        let expected: Vec<_> = (0..1000).map(|index| Some(FloodLine { rank: 0, index })).collect();
        assert_eq!((text.len(), lines), (100_000, expected));
    }
}

#[test]
fn arguments_and_environment_are_shown_escaped() {
    let mut command = command(&["show", "a\nb", ""]);
    command.env("CONVOKE_SHOWN", "1=2 \"");
    let text = text(&command.output().unwrap());
    assert!(text.contains("\narg a\\nb\narg \n"), "{text}");
    assert!(text.contains("\nenv CONVOKE_SHOWN=1=2 \\\"\n"), "{text}");
}

#[test]
fn a_daemon_is_found_until_it_is_killed() {
    let marker = Marker::new("daemon");
    let mut command = command(&["daemon"]);
    assert!(command.env(Marker::VARIABLE, marker.value()).status().unwrap().success());

    let survivors = marker.wait_until_gone(Duration::ZERO);
    assert_eq!(survivors.len(), 1, "{survivors:?}");
    assert!(survivors[0].command.ends_with("misbehave hang"), "{survivors:?}");

    let pid = Pid::from_raw(survivors[0].pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(marker.survivors(), survivors, "it ignores SIGTERM");
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(marker.wait_until_gone(Duration::from_secs(5)), []);
}

#[test]
fn a_process_is_found_while_it_starts_other_programs() {
    let marker = Marker::new("restless");
    let mut command = command(&["restless:50000"]);
    let mut task = command.env(Marker::VARIABLE, marker.value()).spawn().unwrap();
    for _ in 0..1000 {
        let survivors = marker.survivors();
        assert!(
            survivors.len() == 1 && survivors[0].command.contains(" restless:"),
            "{survivors:?}"
        );
    }
    task.kill().unwrap();
    task.wait().unwrap();
    assert_eq!(marker.survivors(), []);
}

fn misbehave(steps: &[&str]) -> Output {
    command(steps).output().unwrap()
}

fn command(steps: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_misbehave"));
    command.args(steps).stdin(Stdio::null()).env_remove("PMI_RANK");
    command
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}
