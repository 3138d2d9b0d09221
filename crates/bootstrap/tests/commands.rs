//! Commands on real shells and real processes.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use bootstrap::boot::BootReader;
use bootstrap::{
    AgentProgram, Bootstrapper, Command, FailureKind, Helper, Request, RequestReader, ShellFailure,
    ShellTemplate, StartError, diagnose, quote, start,
};
use os::net::Listener;
use os::process::{ExitStatus, pidfd, try_wait};
use os::stream::ReadOutcome;
use os::{Interest, Poller};

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "csh", "tcsh", "fish"];

#[test]
fn a_quoted_word_is_the_same_in_every_shell_there_is() {
    let every: Vec<u8> = (1..=127).filter(|byte| !b"\n\r".contains(byte)).collect();
    let words: [&[u8]; 7] = [
        b"plain/word-1.2",
        b"",
        b"it's \"a\" $HOME `x` \\ \\\\ ! !! * ~ # {a,b} %",
        b"\\",
        b"'",
        b"!x",
        &every,
    ];
    for shell in installed_shells() {
        for word in words {
            let script = [b"exec printf %s ".to_vec(), quote(word)].concat();
            let output = output_of(&shell, script);
            assert_eq!(output.as_bytes(), word, "{shell} {:?}", String::from_utf8_lossy(word));
        }
    }
}

#[test]
fn every_login_shell_starts_the_agent_and_passes_it_the_boot_line() {
    let dir = tempfile::tempdir().unwrap();
    let agent = program(dir.path(), "my agent's", "echo \"$# $1\"; head -n 1; exit 5");
    for shell in installed_shells() {
        let template = format!("sh -c '{shell} -c \"$1\" >&2' {{host}} {{cmd}}");
        let shell = Bootstrapper::Shell(ShellTemplate::parse(&template).unwrap());
        let mut helper = run(&shell, &agent, b"payload");
        assert!(helper.unsent.is_empty());
        let output = read_to_end(&helper.stderr);
        assert!(output.starts_with("1 __agent\n"), "{template}: {output}");
        let boot = BootReader::new().push(output.as_bytes()).unwrap().unwrap();
        assert_eq!(boot.payload, b"payload");
        drop(helper.streams.take());
        assert_eq!(wait(&helper), ExitStatus::Exited(5));
    }
}

#[test]
fn a_helper_has_a_session_of_its_own_and_keeps_its_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let script = "read -r line < /proc/self/stat; set -- $line; exec >&2; echo $1 $6; cat";
    let agent = program(dir.path(), "agent", script);
    let mut helper = run(&Bootstrapper::Local, &agent, b"\x01");
    let pid = helper.pid;
    wait_readable(helper.stderr.as_fd());
    assert_eq!(try_wait(pidfd(helper.pid).unwrap()).unwrap(), None);
    drop(helper.streams.take());
    assert_eq!(read_to_end(&helper.stderr), format!("{pid} {pid}\nCONVOKE-BOOT-1 01\n"));
    wait(&helper);
}

#[test]
fn what_a_helper_asks_for_is_found_behind_what_else_it_prints() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "read -r boot; head -c 1000000 /dev/zero; echo CONVOKE-ASKS-1 link; echo printed >&2";
    let agent = program(dir.path(), "agent", script);
    let helper = run(&Bootstrapper::Local, &agent, b"");
    let mut reader = RequestReader::default();
    let asked = read_to_end(helper.streams.as_ref().unwrap());
    assert_eq!(reader.push(asked.as_bytes()).unwrap().request, Request::Link);
    assert_eq!(read_to_end(&helper.stderr), "printed\n");
    assert_eq!(wait(&helper), ExitStatus::Exited(0));
}

#[test]
fn what_every_shell_says_of_a_missing_or_unusable_agent_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let agent = program(dir.path(), "agent", "");
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o644)).unwrap();
    let missing = dir.path().join("missing").into_os_string();
    for shell in installed_shells() {
        let shell = Bootstrapper::Shell(
            ShellTemplate::parse(&format!("sh -c '{shell} -c \"$1\"' {{host}} {{cmd}}")).unwrap(),
        );
        for (agent, kind) in
            [(&missing, FailureKind::NoBinary), (&agent, FailureKind::NotExecutable)]
        {
            let failure = failure_of(&shell, "n1", agent);
            assert_eq!(failure.kind, kind, "{shell:?}: {}", failure.words);
        }
    }
}

/// With the OpenSSH client that is installed here, if any.
#[test]
fn what_ssh_says_of_a_server_that_refuses_or_hangs_up_is_understood() {
    if which("ssh").is_none() {
        return;
    }
    let listener = Listener::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let args = ["-F", "/dev/null", "-p", &listener.port().to_string()].map(str::to_owned).to_vec();
    let ssh = Bootstrapper::Ssh { args };
    let helper = run(&ssh, OsStr::new("/x"), b"");
    wait_readable(listener.as_fd());
    drop(listener.accept().unwrap().unwrap());
    assert_eq!(failure(&ssh, &helper).kind, FailureKind::Busy);

    drop(listener);
    assert_eq!(failure_of(&ssh, "127.0.0.1", OsStr::new("/x")).kind, FailureKind::Refused);
    let failure = failure_of(&ssh, "no-such-host.invalid", OsStr::new("/x"));
    assert_eq!(failure.kind, FailureKind::UnknownHost, "{}", failure.words);
}

#[test]
fn a_missing_program_is_named_with_where_it_was_looked_for() {
    let template = Bootstrapper::Shell(ShellTemplate::parse("no-such-rsh {host}").unwrap());
    let command = template.command(&["n1"], &as_it_is(OsStr::new("/x")), b"").unwrap();
    let error = start(&command, None).unwrap_err();
    let StartError::Resolve(cause) = error else { panic!("{error}") };
    assert!(cause.to_string().starts_with("no program `no-such-rsh` in /"), "{cause}");
}

fn run(bootstrapper: &Bootstrapper, agent: &OsStr, payload: &[u8]) -> Helper {
    start(&bootstrapper.command(&["127.0.0.1"], &as_it_is(agent), payload).unwrap(), None).unwrap()
}

fn as_it_is(agent: &OsStr) -> AgentProgram {
    AgentProgram { path: agent.to_owned(), fallback: None }
}

fn failure_of(bootstrapper: &Bootstrapper, host: &str, agent: &OsStr) -> ShellFailure {
    failure(
        bootstrapper,
        &start(&bootstrapper.command(&[host], &as_it_is(agent), b"").unwrap(), None).unwrap(),
    )
}

fn failure(bootstrapper: &Bootstrapper, helper: &Helper) -> ShellFailure {
    let stderr = read_to_end(&helper.stderr);
    diagnose(bootstrapper, wait(helper), stderr.as_bytes())
}

fn which(program: &str) -> Option<String> {
    let path = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    let found = os::which(OsStr::new(program), path, Path::new("/")).ok()?;
    Some(found.to_str().unwrap().to_owned())
}

fn installed_shells() -> Vec<String> {
    SHELLS.iter().filter_map(|name| which(name)).collect()
}

fn output_of(shell: &str, script: Vec<u8>) -> String {
    let words = ["sh", "-c", "exec \"$0\" -c \"$1\" >&2", shell].map(OsString::from);
    let argv = words.into_iter().chain([OsString::from_vec(script)]).collect();
    let command =
        Command { program: "sh".into(), argv, env_add: vec![], stdin: None, after_delivery: None };
    let helper = start(&command, None).unwrap();
    let output = read_to_end(&helper.stderr);
    assert_eq!(wait(&helper), ExitStatus::Exited(0), "{shell}: {output}");
    output
}

fn program(dir: &Path, name: &str, script: &str) -> OsString {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.into_os_string()
}

fn read_to_end(fd: &OwnedFd) -> String {
    let mut bytes = Vec::new();
    loop {
        wait_readable(fd.as_fd());
        let mut buffer = [0; 4096];
        match os::stream::read(fd, &mut buffer).unwrap() {
            ReadOutcome::Data(n) => bytes.extend_from_slice(&buffer[..n]),
            ReadOutcome::WouldBlock => {}
            ReadOutcome::Eof => return String::from_utf8(bytes).unwrap(),
        }
    }
}

fn wait(helper: &Helper) -> ExitStatus {
    let pidfd = pidfd(helper.pid).unwrap();
    wait_readable(pidfd.as_fd());
    try_wait(&pidfd).unwrap().expect("the helper has ended")
}

fn wait_readable(fd: std::os::fd::BorrowedFd<'_>) {
    let mut poller = Poller::new().unwrap();
    let mut ready = Vec::new();
    poller.add(fd, 0, Interest::READ).unwrap();
    poller.wait(Some(Duration::from_secs(20)), &mut ready).unwrap();
    assert!(!ready.is_empty(), "nothing happened in time");
}
