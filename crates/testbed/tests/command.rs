//! The `testbed` command keeps hosts in the background, and they vanish however it ends.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use testbed::{clock, command};

#[test]
fn a_background_testbed_runs_commands_and_is_taken_down() {
    assert!(words(&testbed("plain", &["up", "2"])).contains("2 hosts are up"));
    assert_eq!(words(&testbed("plain", &["exec", "head", "ssh", "n1", "hostname"])), "n1");
    assert!(words(&testbed("plain", &["up", "2"])).contains("up already"));
    assert_eq!(
        words(&testbed("plain", &["cut", "n7"])),
        "error: cut n7: the testbed has no host `n7`"
    );
    testbed("plain", &["down"]);
    assert!(clock::wait_until(Duration::from_secs(5), || !testbed("plain", &["hosts"])
        .status
        .success()));
}

#[test]
fn nothing_is_left_of_a_testbed_whose_process_was_killed() {
    testbed("killed", &["up", "3"]);
    let host_pid = words(&testbed("killed", &["pid", "n2"]));
    let server = server_pid("killed");
    assert!(fs::exists(format!("/proc/{host_pid}")).unwrap());
    command::check("kill", Command::new("kill").args(["-9", &server])).unwrap();
    let gone = || !fs::exists(format!("/proc/{host_pid}")).unwrap();
    assert!(clock::wait_until(Duration::from_secs(5), gone));
}

#[test]
fn a_program_run_on_fresh_hosts_gives_its_status() {
    let output = testbed("once", &["run", "1", "sh", "-c", "ssh n0 'exit 7'"]);
    assert_eq!(output.status.code(), Some(7));
}

fn testbed(name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
    command::capture(command.args(["--name", &full_name(name)]).args(arguments)).unwrap()
}

/// Apart from testbeds of other runs at the same time.
fn full_name(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// The process that serves the testbed of this name.
fn server_pid(name: &str) -> String {
    let wanted = format!("--name\0{}\0serve\0", full_name(name));
    let pids = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let serves = |pid: &String| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&wanted)
    };
    pids.map(|pid| pid.to_string_lossy().into_owned()).find(serves).unwrap()
}
