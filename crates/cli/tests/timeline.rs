//! `--timeline`: a real run leaves a file that says when what happened to each agent.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs what it is given, wherever it was to run; host n3 takes its time.
const SHELL: &str = "sh -c 'test $0 != n3 || sleep 0.7; exec sh -c \"$1\"' {host} {cmd}";

#[test]
fn every_agent_of_a_real_run_is_in_the_trace_from_its_shell_to_its_teardown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let output = run(&file, &["--hosts", "n[1-6]", "--tree", "kary:2", "--shell", SHELL, "true"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let trace = json(&file);
    for agent in 1..=6 {
        for phase in ["shell", "run", "teardown"] {
            assert!(us(&trace, agent, phase).is_some(), "{phase} of {agent} in {trace}");
        }
    }
    assert!(us(&trace, 3, "shell") > Some(700_000));
    let waits = events(&trace).filter(|event| event["name"] == "waiting for its shell");
    let hosts: Vec<&str> = waits.filter_map(|wait| wait["args"]["host"].as_str()).collect();
    assert!(hosts.contains(&"n3"), "{hosts:?}");
}

#[test]
fn a_real_parent_starts_the_next_set_when_the_slowest_of_a_set_is_up() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let options = ["--hosts", "n[1-5]", "--tree", "flat", "--batch", "3", "--shell", SHELL, "true"];
    let output = run(&file, &options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let trace = json(&file);
    let begin = |agent| at_us(&trace, agent, "shell").unwrap();
    let end = begin(3) + us(&trace, 3, "shell").unwrap();
    assert!((1..=3).all(|agent| begin(agent) < end - 500_000), "{trace}");
    assert!((4..=5).all(|agent| begin(agent) >= end), "{trace}");
}

#[test]
fn a_run_that_fails_leaves_a_timeline_of_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.html");
    let shell = "sh -c 'test $0 != n2 || exit 9; exec sh -c \"$1\"' {host} {cmd}";
    let output = run(&file, &["--hosts", "n[1-4]", "--shell", shell, "true"]);
    assert_eq!(output.status.code(), Some(252));
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("<li>n2: "), "{page}");
    assert!(page.contains("All joined: never."), "{page}");
}

#[test]
fn a_timeline_that_cannot_be_written_is_an_error_before_anything_starts() {
    let output = run(Path::new("/no/such/dir/t.json"), &["--launcher", "local", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: create `/no/such/dir/t.json`: No such file or directory (os error 2)\n"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_timeline_of_an_unknown_format_is_an_error_before_anything_starts() {
    let output = run(Path::new("t.svg"), &["--launcher", "local", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: use `--timeline`: `t.svg` ends neither in .json nor in .html\n"
    );
    assert!(output.stdout.is_empty());
}

#[expect(clippy::disallowed_methods, reason = "a test may fork")]
fn run(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
    command
        .args(["run", "--stdin", "none", "--timeline"])
        .arg(file)
        .args(args)
        .output()
        .expect("convoke runs")
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("a timeline")).expect("JSON")
}

fn events(trace: &Value) -> impl Iterator<Item = &Value> {
    trace["traceEvents"].as_array().expect("a list").iter()
}

/// How long a phase of an agent took.
fn us(trace: &Value, agent: u32, phase: &str) -> Option<u64> {
    phase_of(trace, agent, phase)?["dur"].as_u64()
}

/// When a phase of an agent began.
fn at_us(trace: &Value, agent: u32, phase: &str) -> Option<u64> {
    phase_of(trace, agent, phase)?["ts"].as_u64()
}

fn phase_of<'a>(trace: &'a Value, agent: u32, phase: &str) -> Option<&'a Value> {
    events(trace).find(|event| event["pid"] == agent && event["name"] == phase)
}
