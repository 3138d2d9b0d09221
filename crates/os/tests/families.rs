//! Processes that outlive their parents, and what ends them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use os::process::{ExitStatus, kill, kill_pidfd, pidfd, try_wait, try_wait_stopped};
use os::stream::{Pipe, ReadOutcome, pipe};
use os::{Clock, Interest, Pid, Poller, Signal, SpawnSpec, spawn};

const BOUND: Duration = Duration::from_secs(20);

#[test]
fn orphans_stopped_and_stubborn_processes_are_all_killed_and_reaped() {
    let mut fixture = Fixture::start("reaper");
    fixture.expect("clean");
    assert_eq!(fixture.end(), ExitStatus::Exited(0));
}

#[test]
fn a_child_with_a_death_signal_dies_with_its_parent() {
    let mut fixture = Fixture::start("fenced");
    fixture.expect("pid");
    fixture.expect("pid");
    kill_pidfd(&fixture.pidfd, Signal::KILL).unwrap();
    fixture.end();
}

#[test]
fn a_keeper_ends_as_its_agent_and_leaves_nothing() {
    for (order, expected) in [("x", ExitStatus::Exited(7)), ("k", killed())] {
        let mut fixture = Kept::start("kept");
        fixture.order(order);
        assert_eq!(fixture.end(), expected);
    }
}

#[test]
fn when_the_agent_is_killed_the_keeper_kills_its_tasks() {
    let fixture = Kept::start("kept-apart");
    kill(fixture.agent, Signal::KILL).unwrap();
    assert_eq!(fixture.end(), killed());
}

#[test]
fn the_keeper_says_on_standard_error_which_signal_killed_its_agent() {
    let mut fixture = Kept::start("kept-apart");
    kill(fixture.agent, Signal::KILL).unwrap();
    let words = os::keeper::KILLED_WORDS.split(' ').next().unwrap();
    assert_eq!(fixture.inner.expect(words), Signal::KILL.0);
    assert_eq!(fixture.end(), killed());
}

#[test]
fn an_agent_that_hangs_is_killed_once_its_shell_is_gone() {
    let mut fixture = Kept::start("kept-apart");
    kill(fixture.agent, Signal::STOP).unwrap();
    fixture.inner.hang_up();
    assert_eq!(fixture.end(), killed());
}

#[test]
fn when_the_keeper_is_killed_the_agent_kills_its_tasks() {
    for what in ["kept", "kept-apart"] {
        let fixture = Kept::start(what);
        kill(fixture.keeper, Signal::KILL).unwrap();
        assert_eq!(fixture.end(), killed());
    }
}

#[test]
fn the_keeper_passes_signals_on_and_names_itself_as_the_sender() {
    let mut fixture = Kept::start("kept");
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::TSTP, "SIGTSTP")] {
        kill(fixture.keeper, signal).unwrap();
        assert_eq!(fixture.inner.expect(name), fixture.keeper);
    }
    fixture.order("x");
    fixture.end();
}

#[test]
fn the_keeper_stops_with_its_agent_and_continues_it() {
    let mut fixture = Kept::start("kept");
    for signal in [Signal::STOP, Signal::TTIN] {
        kill(fixture.agent, signal).unwrap();
        assert_eq!(fixture.inner.stop(), signal);
        kill(fixture.keeper, Signal::CONT).unwrap();
        fixture.order("p");
        fixture.inner.expect("pong");
    }
    fixture.order("x");
    assert_eq!(fixture.end(), ExitStatus::Exited(7));
}

fn killed() -> ExitStatus {
    ExitStatus::Signaled { signal: Signal::KILL, core_dumped: false }
}

/// A fixture that is an agent with a keeper, and three tasks.
struct Kept {
    inner: Fixture,
    keeper: Pid,
    agent: Pid,
}

impl Kept {
    fn start(what: &str) -> Kept {
        let mut inner = Fixture::start(what);
        let keeper = inner.expect("keeper");
        let agent = inner.expect("agent");
        for _task in 0..3 {
            inner.expect("pid");
        }
        assert_eq!(keeper, inner.pid);
        Kept { inner, keeper, agent }
    }

    fn order(&mut self, order: &str) {
        os::stream::write(&self.inner.stdin.write, order.as_bytes()).unwrap();
    }

    fn end(self) -> ExitStatus {
        self.inner.end()
    }
}

/// A running fixture program. All of its family holds its standard output.
struct Fixture {
    pid: Pid,
    pidfd: OwnedFd,
    stdin: Pipe,
    stdout: Pipe,
    lines: Vec<String>,
    partial: Vec<u8>,
}

impl Fixture {
    fn start(what: &str) -> Fixture {
        let program = CString::new(env!("CARGO_BIN_EXE_os-fixture")).unwrap();
        let what = CString::new(what).unwrap();
        let (stdin, stdout) = (pipe().unwrap(), pipe().unwrap());
        let mut spec = SpawnSpec::new(&program, vec![&program, &what], vec![]);
        let out = Some(stdout.write.as_fd());
        spec.fds = [Some(stdin.read.as_fd()), out, out];
        spec.process_group = true;
        let pid = spawn(&spec).unwrap();
        let pidfd = pidfd(pid).unwrap();
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        let stdout = Pipe { read: stdout.read, write: null.into() };
        Fixture { pid, pidfd, stdin, stdout, lines: Vec::new(), partial: Vec::new() }
    }

    /// Reads until a line that starts with `word`, and returns its number.
    fn expect(&mut self, word: &str) -> Pid {
        loop {
            let of_word = |line: &String| line.split(' ').next() == Some(word);
            if let Some(index) = self.lines.iter().position(of_word) {
                let line = self.lines.remove(index);
                return line.rsplit(' ').next().unwrap().parse().unwrap();
            }
            assert!(self.read_more(), "the end came before `{word}`");
        }
    }

    fn read_more(&mut self) -> bool {
        wait_readable(self.stdout.read.as_fd());
        let mut buffer = [0; 4096];
        let ReadOutcome::Data(n) = os::stream::read(&self.stdout.read, &mut buffer).unwrap() else {
            return false;
        };
        self.partial.extend_from_slice(&buffer[..n]);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line = self.partial.drain(..=end).collect::<Vec<_>>();
            self.lines.push(String::from_utf8(line).unwrap().trim().to_owned());
        }
        true
    }

    /// Closes its standard input.
    fn hang_up(&mut self) {
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        self.stdin.write = null.into();
    }

    /// Waits until the whole family is gone.
    fn end(mut self) -> ExitStatus {
        while self.read_more() {}
        wait_readable(self.pidfd.as_fd());
        try_wait(&self.pidfd).unwrap().expect("the fixture has ended")
    }

    /// Waits until the program itself has stopped. No descriptor tells of that.
    fn stop(&self) -> Signal {
        let clock = Clock::new();
        loop {
            if let Some(signal) = try_wait_stopped(&self.pidfd).unwrap() {
                return signal;
            }
            assert!(u128::from(clock.now()) < BOUND.as_nanos(), "the program did not stop");
            Poller::new().unwrap().wait(Some(Duration::from_millis(1)), &mut Vec::new()).unwrap();
        }
    }
}

fn wait_readable(fd: std::os::fd::BorrowedFd<'_>) {
    let mut poller = Poller::new().unwrap();
    let mut ready = Vec::new();
    poller.add(fd, 0, Interest::READ).unwrap();
    poller.wait(Some(BOUND), &mut ready).unwrap();
    assert!(!ready.is_empty(), "nothing happened in time");
}
