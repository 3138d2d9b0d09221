//! One run of the command, from its words to the proof that nothing is left of it.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;
use testkit::{Marker, fixture};

use super::redact::redact;

/// How long a run may take that is not about time: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long what a run has started may outlive it.
const LEAVING: Duration = Duration::from_secs(5);

/// The command under test.
pub(crate) fn convoke_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_convoke"))
}

/// A run that is being put together.
pub(crate) struct Convoke {
    command: Command,
    marker: Marker,
    dir: TempDir,
    input: Vec<u8>,
    patience: Duration,
}

/// A run in progress.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    streams: [Receiver<Vec<u8>>; 2],
    /// What has come so far, of output and of error.
    seen: [Vec<u8>; 2],
    marker: Marker,
    begun: Instant,
    deadline: Instant,
    /// The run's files live as long as it does.
    _dir: TempDir,
}

/// A run that is over, and of which nothing is left.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit status; 128 and the signal's number if it was killed by one.
    pub(crate) status: i32,
    /// What it wrote to standard output.
    pub(crate) stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Convoke {
    /// `convoke run`, for the test of this name. Standard input is empty.
    pub(crate) fn new(test: &str) -> Convoke {
        let mut this = Convoke::wrapped(test, Command::new(convoke_path()));
        this.command.arg("run");
        this
    }

    /// Another program, which runs `convoke` somehow.
    pub(crate) fn wrapped(test: &str, mut command: Command) -> Convoke {
        let marker = Marker::new(test);
        command.env(Marker::VARIABLE, marker.value());
        // A test may itself be a task of a job.
        command.env_remove("PMI_RANK");
        let dir = tempfile::tempdir().unwrap();
        Convoke { command, marker, dir, input: Vec::new(), patience: PATIENCE }
    }

    /// A shell script in which `$CONVOKE` is the command and `$MISBEHAVE` the fixture.
    pub(crate) fn script(test: &str, shell: &str, script: &str) -> Convoke {
        let mut command = Command::new(shell);
        command.env("CONVOKE", convoke_path()).env("MISBEHAVE", fixture("misbehave"));
        command.args(["-c", script]);
        Convoke::wrapped(test, command)
    }

    /// The same, run by another program that takes it as its last arguments.
    pub(crate) fn under<A: AsRef<OsStr>>(
        mut self,
        program: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Convoke {
        let run = std::mem::replace(&mut self.command, Command::new(program));
        self.command.args(args).arg(run.get_program()).args(run.get_args());
        for (name, value) in run.get_envs() {
            match value {
                Some(value) => self.command.env(name, value),
                None => self.command.env_remove(name),
            };
        }
        self
    }

    /// A directory for the test's files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// One more argument.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Convoke {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Convoke {
        self.command.args(args);
        self
    }

    /// Arguments without blanks in them.
    pub(crate) fn words(self, words: &str) -> Convoke {
        self.args(words.split_ascii_whitespace())
    }

    /// The fixture that misbehaves, with these steps.
    pub(crate) fn misbehave<A: AsRef<OsStr>>(self, steps: impl IntoIterator<Item = A>) -> Convoke {
        self.arg(fixture("misbehave")).args(steps)
    }

    /// A variable of the command's own environment.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Convoke {
        self.command.env(name, value);
        self
    }

    /// Its current directory.
    pub(crate) fn current_dir(mut self, dir: &Path) -> Convoke {
        self.command.current_dir(dir);
        self
    }

    /// As the leader of a process group of its own, as a shell with job control starts it.
    pub(crate) fn in_group(mut self) -> Convoke {
        self.command.process_group(0);
        self
    }

    /// What a pipe on its standard input says.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Convoke {
        self.input = input.into();
        self
    }

    /// How long it may take at most.
    pub(crate) fn patience(mut self, patience: Duration) -> Convoke {
        self.patience = patience;
        self
    }

    /// Runs it to its end with its input in a pipe, which is closed behind it.
    pub(crate) fn run(mut self) -> Ended {
        let input = std::mem::take(&mut self.input);
        let mut running = self.start();
        let stdin = running.stdin.take();
        std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        running.finish()
    }

    /// Runs it to its end with this as its standard input.
    pub(crate) fn run_with_stdin(self, stdin: impl Into<Stdio>) -> Ended {
        self.start_with_stdin(stdin).finish()
    }

    /// Starts it with this as its standard input.
    pub(crate) fn start_with_stdin(mut self, stdin: impl Into<Stdio>) -> Running {
        self.command.stdin(stdin);
        self.begin()
    }

    /// Starts it with a pipe as its standard input.
    pub(crate) fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped());
        self.begin()
    }

    #[expect(clippy::disallowed_methods, reason = "tests run commands and watch the clock")]
    fn begin(mut self) -> Running {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let begun = Instant::now();
        Running {
            streams: [forward(child.stdout.take().unwrap()), forward(child.stderr.take().unwrap())],
            stdin: child.stdin.take(),
            child,
            seen: [Vec::new(), Vec::new()],
            marker: self.marker,
            begun,
            deadline: begun + self.patience,
            _dir: self.dir,
        }
    }
}

impl Running {
    /// What all its processes have in their environment.
    pub(crate) fn marker(&self) -> &Marker {
        &self.marker
    }

    /// The process that was started.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until its output, so far, is as `holds` wants it.
    pub(crate) fn wait_for_output(&mut self, what: &str, holds: impl Fn(&[u8]) -> bool) {
        self.wait_for(0, what, holds);
    }

    /// Waits until what it has said on standard error, so far, is as `holds` wants it.
    pub(crate) fn wait_for_error(&mut self, what: &str, holds: impl Fn(&[u8]) -> bool) {
        self.wait_for(1, what, holds);
    }

    fn wait_for(&mut self, stream: usize, what: &str, holds: impl Fn(&[u8]) -> bool) {
        while !holds(&self.seen[stream]) {
            let left = self.left();
            match self.streams[stream].recv_timeout(left) {
                Ok(bytes) => self.seen[stream].extend(bytes),
                Err(_) => panic!("{what} has not come; {}", self.story()),
            }
        }
    }

    /// Standard output so far.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.seen[0]).into_owned()
    }

    /// Writes to its standard input.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes its standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, and until nothing with its marker is left.
    ///
    /// # Panics
    /// When it is late, with what it has said, or when something is left.
    pub(crate) fn finish(mut self) -> Ended {
        let status = self.wait();
        let took = self.begun.elapsed();
        self.drain();
        let left = self.marker.wait_until_gone(LEAVING);
        assert!(left.is_empty(), "left behind: {left:?}; {}", self.story());
        let [stdout, stderr] = std::mem::take(&mut self.seen);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ended { status, stdout, stderr, took }
    }

    fn wait(&mut self) -> i32 {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        let left = Timespec::try_from(self.left()).unwrap();
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        if poll(&mut fds, Some(&left)).unwrap() == 0 {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            panic!("it does not end; {}", self.story());
        }
        let status = self.child.wait().unwrap();
        status.code().or(status.signal().map(|signal| 128 + signal)).unwrap()
    }

    /// Takes what is still to come, until nobody holds the other end.
    fn drain(&mut self) {
        for index in [0, 1] {
            let deadline = self.deadline.max(self.begun + self.begun.elapsed() + LEAVING);
            loop {
                match self.streams[index].recv_timeout(deadline.saturating_duration_since(now())) {
                    Ok(bytes) => self.seen[index].extend(bytes),
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                        panic!("somebody holds stream {}; {}", index + 1, self.story())
                    }
                }
            }
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(now())
    }

    /// What is known of it, for a failed test.
    fn story(&mut self) -> String {
        for (seen, stream) in self.seen.iter_mut().zip(&self.streams) {
            seen.extend(stream.try_iter().flatten());
        }
        let [stdout, stderr] = &self.seen;
        let survivors: Vec<String> =
            self.marker.survivors().iter().map(ToString::to_string).collect();
        format!(
            "running: {survivors:#?}\n--- stdout\n{}\n--- stderr\n{}",
            shortened(stdout),
            shortened(stderr)
        )
    }
}

impl Drop for Running {
    /// A test that fails leaves nothing either.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            for pid in self.marker.survivors().iter().filter_map(|it| i32::try_from(it.pid).ok()) {
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            }
        }
    }
}

impl Ended {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The lines of standard output, in order.
    pub(crate) fn sorted_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Checks that these are the lines of standard output, in whatever order.
    ///
    /// # Panics
    /// If not, with all that is known of it.
    #[track_caller]
    pub(crate) fn says(&self, lines: &[&str]) {
        let mut lines = lines.to_vec();
        lines.sort_unstable();
        assert_eq!(self.sorted_lines(), lines, "{self:?}");
    }

    /// Itself, if the status is `status`.
    ///
    /// # Panics
    /// If not, with all that was said.
    #[track_caller]
    pub(crate) fn with_status(self, status: i32) -> Ended {
        let Ended { status: found, stdout, stderr, .. } = &self;
        assert_eq!(*found, status, "stdout: {}\nstderr: {stderr}", shortened(stdout));
        self
    }

    /// Its words of error and its status, without what differs from run to run.
    pub(crate) fn words(&self) -> String {
        redact(&format!("{}[status {}]", self.stderr, self.status))
    }
}

#[expect(clippy::disallowed_methods, reason = "tests watch the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Reads to the end on a thread; the channel closes with the stream.
fn forward(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 || sender.send(buffer[..bytes].to_vec()).is_err() {
                return Ok(());
            }
        }
    });
    receiver
}

fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 4000;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
    if bytes.len() > SHOWN { format!("{text}... ({} bytes)", bytes.len()) } else { text }
}

/// Where `name` lies beside the command under test.
pub(crate) fn sibling(name: &str) -> PathBuf {
    convoke_path().with_file_name(name)
}
