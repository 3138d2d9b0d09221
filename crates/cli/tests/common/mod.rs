//! What tests of the whole command on many hosts share: a testbed, runs with a deadline, the
//! processes of a job by their roles, and a look for what is left.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use testbed::{HEAD, HostProcess, Testbed, clock, command};

#[path = "../support/pty.rs"]
mod pty;

use pty::Pty;

/// The command under test.
const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");

/// Longer than anything here may take, on a busy machine.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// How soon after the end of the command nothing may be left (`docs/faults.md`).
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(2);

/// One testbed at a time: its processes share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// Hosts that are this test's alone.
pub(crate) struct Hosts {
    pub(crate) bed: Testbed,
    /// Of the terminal at which the latest run sits, if it sits at one.
    keyboard: Mutex<Option<Pty>>,
    _alone: MutexGuard<'static, ()>,
}

/// What a process is to a job.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Role {
    FrontEnd,
    FrontEndKeeper,
    /// The client of a remote shell.
    Shell,
    Agent,
    Keeper,
    /// A task, or what it started.
    Task,
    /// What an agent or the front end has just made, and what has not begun to be a program yet.
    Newborn,
}

/// A process that belongs to a job.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) host: String,
    pub(crate) role: Role,
    pub(crate) process: HostProcess,
}

/// The command, while it runs.
pub(crate) struct Run<'a> {
    hosts: &'a Hosts,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    stderr: JoinHandle<String>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct End {
    /// As a shell tells it.
    pub(crate) status: i32,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

impl Hosts {
    /// Makes `count` hosts when no other test has any.
    pub(crate) fn up(count: usize) -> Hosts {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Hosts { bed: Testbed::up(count).unwrap(), keyboard: Mutex::default(), _alone }
    }

    /// Starts a job on all hosts.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run<'_> {
        let mut convoke = self.bed.command(HEAD, CONVOKE).unwrap();
        convoke.args(self.on_all(arguments)).stdin(Stdio::null());
        self.start(convoke)
    }

    /// Starts a job on all hosts, as the leader of the session of a terminal.
    pub(crate) fn run_at_terminal(&self, arguments: &[&str]) -> Run<'_> {
        let (keyboard, end) = Pty::open();
        *self.keyboard.lock().unwrap() = Some(keyboard);
        let mut setsid = self.bed.command(HEAD, "setsid").unwrap();
        setsid.args(["--ctty", "--wait", CONVOKE]).args(self.on_all(arguments)).stdin(end);
        self.start(setsid)
    }

    /// Types at the terminal of the latest run.
    pub(crate) fn type_in(&self, text: &str) {
        self.keyboard.lock().unwrap().as_mut().unwrap().type_in(text);
    }

    fn on_all(&self, arguments: &[&str]) -> Vec<String> {
        let run = ["run".to_owned(), "--hosts".to_owned(), self.bed.host_list()];
        run.into_iter().chain(arguments.iter().map(|argument| argument.to_string())).collect()
    }

    /// Starts the command on the head.
    fn start(&self, mut command: Command) -> Run<'_> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command::start(&mut command).unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Run { hosts: self, child, lines, seen: Vec::new(), stderr }
    }

    /// Every process of the jobs that run, and what they left.
    pub(crate) fn members(&self) -> Vec<Member> {
        let hosts = self.bed.hosts().iter().map(String::as_str).chain([HEAD]);
        hosts.flat_map(|host| self.members_on(host)).collect()
    }

    /// Those of one host. What has ended and waits to be reaped is not counted, nor is an sshd that
    /// is just ending and has lost its arguments.
    pub(crate) fn members_on(&self, host: &str) -> Vec<Member> {
        let mut processes = self.bed.processes(host).unwrap();
        processes.retain(|process| process.state != 'Z' && process.command != "(sshd)");
        let member = |process: &HostProcess| Member {
            host: host.to_owned(),
            role: role(process, &processes),
            process: process.clone(),
        };
        processes.iter().map(member).collect()
    }

    /// The member of this role on this host, which must be there.
    pub(crate) fn member(&self, host: &str, role: Role) -> Member {
        let members = self.members_on(host);
        let found = members.iter().find(|member| member.role == role);
        found.unwrap_or_else(|| panic!("no {role:?} on {host}: {members:#?}")).clone()
    }

    /// Sends a signal. A process that is gone is no error.
    pub(crate) fn signal(&self, member: &Member, signal: &str) {
        drop(self.bed.signal(&member.host, member.process.pid, signal));
    }

    /// Kills, and returns whether there was somebody to kill.
    pub(crate) fn has_killed(&self, member: &Member) -> bool {
        self.bed.signal(&member.host, member.process.pid, "KILL").is_ok()
    }

    /// Waits until nothing of any job is left, and returns how long that took and what is left
    /// after all.
    pub(crate) fn survivors(&self, limit: Duration) -> (Duration, Vec<Member>) {
        let begun = clock::now();
        let mut left = Vec::new();
        clock::wait_until(limit, || {
            left = self.members();
            left.is_empty()
        });
        (begun.elapsed(), left)
    }

    /// Ends what is left, so that the next run starts with nothing.
    pub(crate) fn clear(&self) {
        for host in self.bed.hosts().iter().map(String::as_str).chain([HEAD]) {
            for process in self.bed.processes(host).unwrap_or_default() {
                drop(self.bed.signal(host, process.pid, "KILL"));
            }
        }
    }
}

impl Run<'_> {
    /// Waits until that many lines of output are equal to `text`.
    pub(crate) fn wait_for_lines(&mut self, count: usize, text: &str) {
        let deadline = clock::now() + RUN_LIMIT;
        while self.seen.iter().filter(|line| *line == text).count() < count {
            let left = deadline.saturating_duration_since(clock::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => self.give_up(),
            }
        }
    }

    /// Waits for the end; within [`RUN_LIMIT`], or the test fails.
    pub(crate) fn end(self) -> End {
        self.end_within(RUN_LIMIT)
    }

    /// Waits for the end; within `limit`, or the test fails.
    pub(crate) fn end_within(mut self, limit: Duration) -> End {
        let mut ended = None;
        let has_ended = clock::wait_until(limit, || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        if !has_ended {
            self.give_up();
        }
        self.seen.extend(self.lines.iter());
        let status = status_of(ended.unwrap());
        End { status, stdout: self.seen, stderr: self.stderr.join().unwrap() }
    }

    /// Fails, with all that is known.
    fn give_up(&mut self) -> ! {
        let members: Vec<String> = self.hosts.members().iter().map(describe).collect();
        self.hosts.clear();
        drop(self.child.wait());
        self.seen.extend(self.lines.iter());
        let stderr = std::mem::replace(&mut self.stderr, std::thread::spawn(String::new));
        let (stdout, stderr) = (self.seen.join("\n"), stderr.join().unwrap());
        panic!("no end in time\noutput: {stdout}\nerrors: {stderr}\nleft:\n{}", members.join("\n"));
    }
}

/// One line about a process.
pub(crate) fn describe(member: &Member) -> String {
    let Member { host, role, process } = member;
    format!("{host} {role:?} {} ({}) {}", process.pid, process.state, process.command)
}

/// Since `begun`, in seconds with two decimals.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// The time, for measurements.
pub(crate) fn now() -> Instant {
    clock::now()
}

fn status_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

/// What the process is, by its own command and its parent's.
fn role(process: &HostProcess, all: &[HostProcess]) -> Role {
    let above = |process: &HostProcess| all.iter().find(|other| other.pid == process.parent);
    let is_alike = |other: &&HostProcess| kind(other) == kind(process);
    let parent = above(process).filter(is_alike);
    let grandparent = parent.and_then(above).filter(is_alike);
    match (kind(process), parent, grandparent) {
        ("front end" | "agent", Some(_), Some(_)) => Role::Newborn,
        ("front end", Some(_), None) => Role::FrontEnd,
        ("front end", None, _) => Role::FrontEndKeeper,
        ("agent", Some(_), None) => Role::Agent,
        ("agent", None, _) => Role::Keeper,
        ("shell", _, _) => Role::Shell,
        _ => Role::Task,
    }
}

fn kind(process: &HostProcess) -> &'static str {
    match process.command.strip_prefix(CONVOKE) {
        Some(arguments) if arguments.starts_with(" run") => "front end",
        Some(_) => "agent",
        None if process.command.contains("convoke __agent") => "shell",
        None => "task",
    }
}
