//! Hosts on loopback addresses need no root, are told apart by their names, and leave nothing.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use testbed::{Loopback, as_ordinary_user, clock, command};

/// More hosts than one sshd has addresses.
const HOSTS: &str = "18";

/// Tells of each host by which address it was reached, as whom, and with what home.
const VISIT: &str = r#"
for host in n0 n16 n17; do
    ssh -F "$TESTBED_SSH_CONFIG" $host 'set -- $SSH_CONNECTION; echo $3 $(id -u) $HOME'
done
echo "${TESTBED_SSH_CONFIG%/*}"
"#;

#[test]
fn an_ordinary_user_reaches_every_host_by_its_name() {
    let output = capture(&mut as_user(&["run", HOSTS, "sh", "-c", VISIT]));
    let text = words(&output);
    let lines: Vec<&str> = text.lines().collect();
    let [first, second, third, dir] = lines[..] else { panic!("{text}") };
    let me = if rustix::process::geteuid().is_root() {
        4711
    } else {
        rustix::process::geteuid().as_raw()
    };
    for (line, address) in [(first, "127.77.0.1"), (second, "127.77.0.17"), (third, "127.77.0.18")]
    {
        assert_eq!(line, format!("{address} {me} {dir}"));
    }
}

#[test]
fn the_programs_status_is_given_and_its_files_are_removed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let output = capture(
        testbed(&["--loopback", "run", "1", "sh", "-c", "exit 7"]).env("TMPDIR", temp_dir.path()),
    );
    assert_eq!(output.status.code(), Some(7), "{}", words(&output));
    assert_eq!(fs::read_dir(temp_dir.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_when_the_owner_is_killed() {
    const SCRIPT: &str = r#"
        ssh -F "$TESTBED_SSH_CONFIG" n0 'sleep 4322' &
        ssh -F "$TESTBED_SSH_CONFIG" n1 'setsid sleep 4322 & echo up'
        wait
    "#;
    let temp_dir = tempfile::tempdir().unwrap();
    let mut owner = command::start(
        testbed(&["--loopback", "run", "2", "sh", "-c", SCRIPT])
            .env("TMPDIR", temp_dir.path())
            .stdout(Stdio::piped()),
    )
    .unwrap();
    wait_for_line(&mut owner);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let files = || fs::read_dir(temp_dir.path()).unwrap().count();
    assert!(clock::wait_until(Duration::from_secs(10), || files() == 0), "files are left");
    let gone = || running(&["sleep", "4322"]) + running_with(temp_dir.path()) == 0;
    assert!(clock::wait_until(Duration::from_secs(10), gone), "processes are left");
}

#[test]
fn the_sshds_end_with_a_keeper_that_is_killed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut owner = command::start(
        testbed(&["--loopback", "run", "2", "sh", "-c", "echo up; exec sleep 4323"])
            .env("TMPDIR", temp_dir.path())
            .stdout(Stdio::piped()),
    )
    .unwrap();
    wait_for_line(&mut owner);
    assert!(running_with(temp_dir.path()) > 0);
    let children = format!("/proc/{0}/task/{0}/children", owner.id());
    let children = fs::read_to_string(children).unwrap();
    let is_keeper = |pid: &&str| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .unwrap()
            .windows(13)
            .any(|it| it == b"keep-loopback")
    };
    let keeper = children.split_ascii_whitespace().find(is_keeper).unwrap();
    command::check("kill", Command::new("kill").args(["-9", keeper])).unwrap();
    let gone = || running_with(temp_dir.path()) == 0;
    assert!(clock::wait_until(Duration::from_secs(10), gone), "an sshd is left");
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = || running(&["sleep", "4323"]) == 0;
    assert!(clock::wait_until(Duration::from_secs(10), gone), "the program is left");
}

#[test]
fn what_needs_real_hosts_is_refused_with_what_there_is() {
    let up = capture(&mut as_user(&["--loopback", "up", "2"]));
    assert!(words(&up).contains("hosts in the background need root"), "{}", words(&up));
    let none = capture(&mut testbed(&["--loopback", "run", "0", "true"]));
    assert!(words(&none).contains("room for 1 to 1022 hosts, not for 0"), "{}", words(&none));
    let beds = Loopback::up(Path::new("/bin/false"), 1);
    assert!(beds.is_err(), "a keeper that says nothing is no testbed");
}

fn testbed(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
    command.args(arguments);
    command
}

fn as_user(arguments: &[&str]) -> Command {
    let mut command = as_ordinary_user(Path::new(env!("CARGO_BIN_EXE_testbed")));
    command.args(arguments);
    command
}

fn capture(command: &mut Command) -> Output {
    command::capture(command).unwrap()
}

fn wait_for_line(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
}

/// How many processes have these arguments.
fn running(arguments: &[&str]) -> usize {
    let wanted = arguments.iter().map(|argument| format!("{argument}\0")).collect::<String>();
    command_lines().filter(|line| *line == wanted).count()
}

/// How many processes have this path among their arguments.
fn running_with(path: &Path) -> usize {
    command_lines().filter(|line| line.contains(&*path.to_string_lossy())).count()
}

fn command_lines() -> impl Iterator<Item = String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn words(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}
