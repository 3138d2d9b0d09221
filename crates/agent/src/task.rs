//! One task: its process and the descriptors that it talks to us through.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bytes::Bytes;
use engine::{Input, PMI_FD};
use model::{JobId, Rank, Time};
use os::machine::DescriptorLimit;
use os::{Interest, Pid, Poller, Signal, SpawnSpec, Spawning, stream};
use rustix::io::Errno;
use wire::Stream;

use crate::byte_queue::FlushEnd;
use crate::command::Command;
use crate::outgoing::Outgoing;
use crate::reactor::{Chunk, Reactor};
use crate::source::{Source, TaskPart};
use crate::task_output::TaskOutput;
use crate::task_pmi::TaskPmi;
use crate::{convert, interpreter};

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// Descriptors of ours for one task, while it starts: two for each of three pipes and the PMI
/// connection. Half of them stay.
const DESCRIPTORS_PER_TASK: u64 = 8;

/// A task that was created.
#[derive(Debug)]
pub(crate) struct Task {
    job: JobId,
    rank: Rank,
    pid: Pid,
    is_running: bool,
    output: [Option<TaskOutput>; 2],
    stdin: Option<Outgoing>,
    pmi: Option<TaskPmi>,
}

/// Why a task could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// No pipe or socket could be made for it.
    #[error("open pipes for a task")]
    Pipes(#[source] io::Error),
    /// Its process could not be created.
    #[error(transparent)]
    Spawn(os::SpawnError),
}

/// More pieces than a socket's buffer holds.
const LAST_READS_MAX: u32 = 64;

/// What a task is created from.
#[derive(Debug)]
pub(crate) struct TaskSpec {
    /// Its job.
    pub(crate) job: JobId,
    /// Its number.
    pub(crate) rank: Rank,
    /// The job's command.
    pub(crate) command: Rc<Command>,
    /// Its own variables.
    pub(crate) env: Vec<CString>,
    /// Whether standard input is a pipe.
    pub(crate) stdin: bool,
    /// Whether standard error goes where standard output does.
    pub(crate) merged: bool,
    /// Whether it inherits its PMI connection.
    pub(crate) pmi: bool,
    /// What is standard input otherwise.
    pub(crate) null: Rc<OwnedFd>,
    /// The limit that the task gets back.
    pub(crate) descriptors: DescriptorLimit,
}

/// A task that is being created.
#[derive(Debug)]
pub(crate) struct NewTask(Spawning<(TaskSpec, Pipes)>);

impl NewTask {
    /// Begins to create the process, in a process group of its own.
    pub(crate) fn begin(spec: TaskSpec) -> Result<NewTask, TaskError> {
        let pipes = Pipes::open(&spec).map_err(TaskError::Pipes)?;
        Ok(NewTask(Spawning::begin((spec, pipes), |(spec, pipes)| spec.spawn_spec(pipes))))
    }

    /// Which task.
    pub(crate) fn task(&self) -> (JobId, Rank) {
        let (spec, _) = self.0.item();
        (spec.job, spec.rank)
    }

    /// Waits until its program runs.
    pub(crate) fn wait(self, poller: &Poller) -> Result<Task, TaskError> {
        let ((spec, pipes), pid) = self.0.wait();
        let (job, rank) = (spec.job, spec.rank);
        let output = |fd, stream| {
            Some(TaskOutput::new(fd, Source::Task(job, rank, TaskPart::Output(stream))))
        };
        let mut task = Task {
            job,
            rank,
            pid: pid.map_err(TaskError::Spawn)?,
            is_running: true,
            output: [
                output(pipes.stdout.read, Stream::Stdout),
                pipes.stderr.and_then(|pipe| output(pipe.read, Stream::Stderr)),
            ],
            stdin: None,
            pmi: None,
        };
        let stdin = pipes.stdin.map(|pipe| pipe.write);
        match task.watch(poller, stdin, pipes.pmi.map(|(ours, _)| ours)) {
            Ok(()) => Ok(task),
            Err(source) => {
                let _ = os::process::kill(task.pid, Signal::KILL); // reaped with the strays
                Err(TaskError::Pipes(source))
            }
        }
    }
}

impl TaskSpec {
    fn spawn_spec<'a>(&'a self, pipes: &'a Pipes) -> SpawnSpec<'a> {
        let command = &self.command;
        let mut spec = SpawnSpec::new(command.program(), command.argv(), command.env(&self.env));
        spec.dir = Some(command.dir());
        let stdin = pipes.stdin.as_ref().map_or(self.null.as_fd(), |pipe| pipe.read.as_fd());
        let stdout = pipes.stdout.write.as_fd();
        let stderr = pipes.stderr.as_ref().map_or(stdout, |pipe| pipe.write.as_fd());
        spec.fds = [Some(stdin), Some(stdout), Some(stderr)];
        let pmi = pipes.pmi.iter().map(|(_, theirs)| (theirs.as_fd(), PMI_FD));
        spec.extra_fds = pmi.collect();
        spec.process_group = true;
        spec.descriptors_max = self.descriptors.lowered();
        spec.parent_death_signal = Some(Signal::KILL);
        spec
    }
}

impl Task {
    /// Its process number.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends `signal` to its process group, while its leader is not reaped: later the number may be
    /// another's.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_running {
            let _ = os::process::kill_group(self.pid, signal); // gone is fine
        }
    }

    /// Whether nothing can be heard from it any more.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_running && self.output.iter().all(Option::is_none) && self.pmi.is_none()
    }

    /// Reads its output, or leaves it in the kernel.
    pub(crate) fn read_output(&mut self, reactor: &mut Reactor, on: bool) {
        for stream in STREAMS {
            let Some(output) = &mut self.output[index(stream)] else { continue };
            if output.wait(&reactor.poller, on).is_err() {
                self.output_ended(reactor, stream);
            }
        }
    }

    /// Queues standard input and writes what it takes.
    pub(crate) fn write_stdin(&mut self, reactor: &mut Reactor, data: Bytes) {
        match &mut self.stdin {
            Some(stdin) => stdin.push(data),
            None => return,
        }
        self.flush_stdin(reactor);
    }

    /// Closes standard input behind what is queued.
    pub(crate) fn close_stdin(&mut self, reactor: &mut Reactor) {
        if let Some(stdin) = &mut self.stdin {
            stdin.close_when_empty();
            self.flush_stdin(reactor);
        }
    }

    /// Takes its PMI connection, which it has made itself.
    pub(crate) fn connect(&mut self, reactor: &mut Reactor, pmi: TaskPmi) {
        let source = Source::Task(self.job, self.rank, TaskPart::Pmi);
        match pmi.belonging_to(&reactor.poller, source) {
            Ok(pmi) => self.pmi = Some(pmi),
            Err(_) => self.pmi_closed(reactor),
        }
    }

    /// Queues bytes for its PMI client and writes what it takes.
    pub(crate) fn write_pmi(&mut self, reactor: &mut Reactor, data: Bytes) {
        let Some(pmi) = &mut self.pmi else { return };
        if pmi.write(&reactor.poller, data).is_err() {
            self.pmi_closed(reactor);
        }
    }

    /// The same with a descriptor for the client, or `otherwise` where there is none or the client takes none now.
    pub(crate) fn write_pmi_with(
        &mut self,
        reactor: &mut Reactor,
        file: Option<&OwnedFd>,
        data: Bytes,
        otherwise: Bytes,
    ) {
        let Some(pmi) = &mut self.pmi else { return };
        match file.map_or(Ok(false), |file| pmi.write_with(&reactor.poller, data, file)) {
            Ok(true) => (),
            Ok(false) => self.write_pmi(reactor, otherwise),
            Err(_) => self.pmi_closed(reactor),
        }
    }

    /// Handles a descriptor that is ready.
    pub(crate) fn on_ready(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        part: TaskPart,
        ready: os::Ready,
    ) {
        match part {
            TaskPart::Stdin => self.on_stdin(reactor, ready),
            TaskPart::Output(stream) => self.on_output(now, reactor, stream),
            TaskPart::Pmi => self.on_pmi(reactor, ready),
        }
    }

    /// Whether a stream of it is read at a pace.
    pub(crate) fn is_paced(&self) -> bool {
        self.output.iter().flatten().any(TaskOutput::is_paced)
    }

    /// Reads what is read at a pace.
    pub(crate) fn on_pace(&mut self, now: Time, reactor: &mut Reactor) {
        for stream in STREAMS {
            if self.output[index(stream)].as_ref().is_some_and(TaskOutput::is_paced) {
                self.on_output(now, reactor, stream);
            }
        }
    }

    /// Handles the end of the process.
    pub(crate) fn on_reaped(
        &mut self,
        reactor: &mut Reactor,
        status: os::ExitStatus,
        usage: os::process::Usage,
    ) {
        self.is_running = false;
        if self.is_paced() {
            self.read_output(reactor, true);
        }
        self.read_last_words(reactor);
        let (job, rank) = (self.job, self.rank);
        let (status, usage) = (convert::status(status), convert::usage(usage));
        reactor.report(Input::TaskExited { job, rank, status, usage });
    }

    fn watch(
        &mut self,
        poller: &Poller,
        stdin: Option<OwnedFd>,
        pmi: Option<OwnedFd>,
    ) -> io::Result<()> {
        for output in self.output.iter_mut().flatten() {
            output.wait(poller, true)?;
        }
        let source = |part| Source::Task(self.job, self.rank, part);
        if let Some(fd) = stdin {
            self.stdin = Some(Outgoing::new(poller, fd, source(TaskPart::Stdin), Interest::NONE)?);
        }
        if let Some(fd) = pmi {
            self.pmi = Some(TaskPmi::new(poller, fd, source(TaskPart::Pmi))?);
        }
        Ok(())
    }

    fn on_stdin(&mut self, reactor: &mut Reactor, ready: os::Ready) {
        if ready.hangup {
            self.stdin_closed(reactor);
        } else {
            self.flush_stdin(reactor);
        }
    }

    fn on_output(&mut self, now: Time, reactor: &mut Reactor, stream: Stream) {
        let (job, rank) = (self.job, self.rank);
        let Some(output) = &mut self.output[index(stream)] else { return };
        match output.read(now, reactor) {
            Ok(Chunk::Data(data)) => {
                reactor.report(Input::TaskOutput { job, rank, stream, data });
            }
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => self.output_ended(reactor, stream),
        }
    }

    fn output_ended(&mut self, reactor: &mut Reactor, stream: Stream) {
        self.output[index(stream)] = None;
        reactor.report(Input::TaskOutputEnd { job: self.job, rank: self.rank, stream });
    }

    fn on_pmi(&mut self, reactor: &mut Reactor, ready: os::Ready) {
        if let Some(pmi) = &mut self.pmi
            && ready.writable
            && pmi.flush(&reactor.poller).is_err()
        {
            self.pmi_closed(reactor);
        }
        if let Some(pmi) = &mut self.pmi
            && ready.readable
        {
            let read = pmi.on_readable(reactor, ready);
            self.on_pmi_read(reactor, read);
        }
    }

    /// Hands on what its PMI client sent before its end: an abort must not be heard after the exit
    /// that follows it. What the task has left behind may go on sending, so this has an end.
    fn read_last_words(&mut self, reactor: &mut Reactor) {
        for _ in 0..LAST_READS_MAX {
            let Some(pmi) = &mut self.pmi else { return };
            let read = pmi.read(reactor);
            if !self.on_pmi_read(reactor, read) {
                return;
            }
        }
    }

    /// Hands on what was read, and returns whether there may be more.
    fn on_pmi_read(&mut self, reactor: &mut Reactor, read: io::Result<Chunk>) -> bool {
        match read {
            Ok(Chunk::Data(data)) => {
                let (job, rank) = (self.job, self.rank);
                reactor.report(Input::TaskPmi { job, rank, data });
                return true;
            }
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => self.pmi_closed(reactor),
        }
        false
    }

    fn flush_stdin(&mut self, reactor: &mut Reactor) {
        let Some(stdin) = &mut self.stdin else { return };
        let Ok(flushed) = stdin.flush(&reactor.poller) else {
            return self.stdin_closed(reactor);
        };
        if flushed.bytes > 0 {
            let bytes = u32::try_from(flushed.bytes).unwrap_or(u32::MAX);
            let (job, rank) = (self.job, self.rank);
            reactor.report(Input::TaskInputWritten { job, rank, bytes });
        }
        if stdin.is_done() {
            self.stdin = None;
        } else if flushed.end == FlushEnd::Closed {
            self.stdin_closed(reactor);
        }
    }

    fn stdin_closed(&mut self, reactor: &mut Reactor) {
        self.stdin = None;
        reactor.report(Input::TaskInputClosed { job: self.job, rank: self.rank });
    }

    fn pmi_closed(&mut self, reactor: &mut Reactor) {
        self.pmi = None;
        reactor.report(Input::TaskPmiClosed { job: self.job, rank: self.rank });
    }
}

impl TaskError {
    /// The error number, and what failed in words, with the limit when one was reached.
    pub(crate) fn into_parts(self, descriptors: &DescriptorLimit) -> (i32, String) {
        let mut words = self.to_string();
        let errno = match &self {
            TaskError::Pipes(source) => source.raw_os_error().unwrap_or_default(),
            TaskError::Spawn(error) => convert::spawn_errno(error),
        };
        if errno == Errno::NOEXEC.raw_os_error()
            && let TaskError::Spawn(os::SpawnError::Exec { program, .. }) = &self
            && let Some(machine) = interpreter::machine_words(program)
        {
            words += &format!(" ({machine})");
        }
        if errno == Errno::AGAIN.raw_os_error() {
            words += ": the user (`ulimit -u`) or a control group may have no more processes there";
        }
        if errno != Errno::MFILE.raw_os_error() {
            return (errno, words);
        }
        let limit = descriptors.now;
        let need = DESCRIPTORS_PER_TASK;
        let words = format!(
            "{words}: {limit} descriptors are allowed (`ulimit -n`), and a task needs {need}"
        );
        (errno, words)
    }
}

/// Both ends of everything that connects us with a task that starts.
#[derive(Debug)]
struct Pipes {
    stdin: Option<stream::Pipe>,
    stdout: stream::Pipe,
    /// Absent where both outputs go through one.
    stderr: Option<stream::Pipe>,
    /// Absent where it connects by itself.
    pmi: Option<(OwnedFd, OwnedFd)>,
}

impl Pipes {
    /// Our ends do not block, the task's do.
    fn open(spec: &TaskSpec) -> io::Result<Pipes> {
        let stdin = spec.stdin.then(stream::pipe).transpose()?;
        let pipes = Pipes {
            stdin,
            stdout: stream::pipe()?,
            stderr: (!spec.merged).then(stream::pipe).transpose()?,
            pmi: spec.pmi.then(stream::socket_pair).transpose()?,
        };
        if let Some(stdin) = &pipes.stdin {
            stream::set_nonblocking(&stdin.write)?;
        }
        let stderr = pipes.stderr.as_ref().map(|pipe| &pipe.read);
        let pmi = pipes.pmi.as_ref().map(|(ours, _)| ours);
        for ours in [&pipes.stdout.read].into_iter().chain(stderr).chain(pmi) {
            stream::set_nonblocking(ours)?;
        }
        Ok(pipes)
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}
