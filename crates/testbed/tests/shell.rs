//! The modelled shell takes the time it is told to, and names hosts as told.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use testbed::{clock, command};

#[test]
fn the_command_runs_with_the_hosts_name_after_the_latency() {
    let begun = clock::now();
    let output = shell(&["--latency-ms", "50", "n7", "echo $CONVOKE_TESTBED_HOST; cat; exit 3"]);
    assert_eq!((output.status.code(), words(&output.stdout)), (Some(3), "n7".to_owned()));
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[test]
fn launches_from_one_host_wait_for_each_other_and_those_from_two_do_not() {
    let dir = TempDir::new("gap");
    let same = elapsed(|| launch_together(&dir, &["a", "a", "a", "a"]));
    let apart = elapsed(|| launch_together(&dir, &["a", "b", "c", "d"]));
    assert!(same >= Duration::from_millis(400), "{same:?}");
    assert!(apart < same, "{apart:?} is not less than {same:?}");
}

#[test]
fn a_host_fails_in_the_words_it_is_given_and_the_others_do_not() {
    let failing = ["--fail", "n3:255:ssh: connect to host n3 port 22: Connection refused"];
    let output = shell(&[&failing[..], &["n3", "true"]].concat());
    assert_eq!(output.status.code(), Some(255));
    assert_eq!(words(&output.stderr), "ssh: connect to host n3 port 22: Connection refused");
    assert!(shell(&[&failing[..], &["n4", "true"]].concat()).status.success());
}

#[test]
fn noise_comes_before_the_command_and_the_words_of_a_command_are_joined() {
    let output = shell(&["--noise", "n1", "echo", "a  b"]);
    assert_eq!(words(&output.stdout), "Welcome to n1! You have new mail.\na b");
    assert!(words(&output.stderr).contains("stty"));
}

/// As those of sshd do. The command is the shell's own process, so it leads what it has begun.
#[test]
fn the_command_is_in_a_session_of_its_own() {
    let ran = shell(&["h1", "set -- $(cat /proc/$$/stat); echo $1 $6"]);
    let told = words(&ran.stdout);
    let (pid, session) = told.trim().split_once(' ').unwrap();
    assert_eq!(pid, session);
}

#[test]
fn a_wrong_option_is_explained() {
    let output = shell(&["--latency", "5", "n1", "true"]);
    assert_eq!(output.status.code(), Some(255));
    assert!(words(&output.stderr).contains("no option `--latency`"));
}

fn command_of(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testbed-shell"));
    command.args(arguments);
    command
}

fn shell(arguments: &[&str]) -> Output {
    command::capture(&mut command_of(arguments)).unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn elapsed(work: impl FnOnce()) -> Duration {
    let begun: Instant = clock::now();
    work();
    begun.elapsed()
}

/// Launches `true` once from each of these hosts, all at once, with a gap of 100 ms.
fn launch_together(dir: &TempDir, sources: &[&str]) {
    let children = sources.iter().map(|source| {
        let mut command = command_of(&["--gap-ms", "100", "--dir", dir.0.to_str().unwrap()]);
        command.args(["n9", "true"]).env("CONVOKE_TESTBED_HOST", source);
        command::start(&mut command).unwrap()
    });
    for mut child in children.collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
}

/// A directory that is removed again.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        let dir = std::env::temp_dir().join(format!("testbed-shell-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        TempDir(dir)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}
