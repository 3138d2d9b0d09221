//! What a driver tells its engine: all that can happen to an agent or to the head.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use model::{AgentId, ExitStatus, JobId, Rank, Signal, Usage};
use wire::{Contact, JobFault, Message, ShellFailureKind, Stream};

use crate::{CallerId, Delivery, LinkId, StartId};

/// What ended a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEnd {
    /// The peer's side closed it, since its process is gone.
    Closed,
    /// The network: the peer's host acknowledged nothing for as long as it may, or cannot be
    /// reached.
    Cut,
    /// The peer broke the protocol.
    Misbehaved,
}

/// Where a job's tasks on this node connect to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PmiPort {
    /// The port of the loopback address.
    pub port: u16,
    /// The user whose processes they are.
    pub uid: u32,
}

/// Something that has happened. After each one, drain [`crate::Engine::poll_effect`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Input {
    /// A link whose other end holds the session's secret and claims to be `peer`: for an agent its
    /// parent, anyone's child, or an answer to [`crate::Effect::Connect`].
    LinkUp {
        /// The driver's number for the link; never used again after it is down.
        link: LinkId,
        /// Who the other end is.
        peer: AgentId,
        /// Whether it runs over the streams of the shell that started the child, so that it ends
        /// with it. For the user's eyes: nothing is decided by it.
        over_shell: bool,
    },
    /// A message came.
    Message {
        /// On which link.
        link: LinkId,
        /// The message.
        message: Message,
    },
    /// Bytes came, though no whole message yet.
    Alive(LinkId),
    /// A link is closed or broken, or its bytes were not of the protocol.
    LinkDown {
        /// Which.
        link: LinkId,
        /// What ended it.
        end: LinkEnd,
        /// Why, for the user.
        words: String,
    },
    /// The answer to [`crate::Effect::Listen`]: where others reach this process. Without an address, if it
    /// cannot listen.
    Listening(Contact),
    /// No link to an agent came of [`crate::Effect::Connect`].
    NotConnected(AgentId),
    /// An agent could not reach its parent at any address.
    ConnectFailed(String),
    /// This host has done its part of a start, whatever becomes of it, and is free for the next.
    /// Only from a driver that can tell, see [`crate::HeadConfig::reports_started`].
    Started(StartId),
    /// The host of a start asks for the agent's program, or gets it.
    Delivery(StartId, Delivery),
    /// A bootstrapper's helper has ended.
    ShellEnded {
        /// Which start it ran.
        start: StartId,
        /// What its words say it failed of.
        kind: ShellFailureKind,
        /// How it ended.
        status: ExitStatus,
        /// Its last words, printable and bounded.
        words: String,
    },
    /// A bootstrapper's helper could not be run.
    ShellNotRun {
        /// Which start.
        start: StartId,
        /// The error number.
        errno: i32,
        /// What failed.
        words: String,
    },
    /// The answer to [`crate::Effect::Prepare`].
    Prepared {
        /// The job.
        job: JobId,
        /// What keeps it from running here: the first program or directory that is not as it must be.
        fault: Option<JobFault>,
        /// Where its tasks here are to connect to, if they are to ([`wire::JobSpec::pmi_port`]).
        pmi_port: Option<PmiPort>,
        /// The apps whose programs are linked with a library of Open MPI, and which.
        open_mpi: Vec<(u32, String)>,
    },
    /// The answer to [`crate::Effect::Spawn`]: the process number, or the error number and the step
    /// that failed.
    Spawned {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// How it went.
        result: Result<u32, (i32, String)>,
    },
    /// A task has written to its standard output or error.
    TaskOutput {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// Which stream.
        stream: Stream,
        /// The bytes.
        data: Bytes,
    },
    /// The last writer of a task's stream is gone.
    TaskOutputEnd {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// Which stream.
        stream: Stream,
    },
    /// A task has ended.
    TaskExited {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// How.
        status: ExitStatus,
        /// What it used.
        usage: Usage,
    },
    /// Bytes came from a task's PMI connection.
    TaskPmi {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// The bytes.
        data: Bytes,
    },
    /// A task's PMI connection is closed.
    TaskPmiClosed {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
    },
    /// Somebody has connected to a job's [`PmiPort`].
    Caller {
        /// The job.
        job: JobId,
        /// The driver's number for the connection.
        caller: CallerId,
        /// Whose process it is, if that is known: the number of the user.
        uid: Option<u32>,
    },
    /// Bytes came from who has connected, and is not admitted yet.
    CallerData(JobId, CallerId, Bytes),
    /// Who had connected has hung up.
    CallerGone(JobId, CallerId),
    /// The task's standard input has taken so many bytes.
    TaskInputWritten {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// How many.
        bytes: u32,
    },
    /// Nobody reads the task's standard input any more.
    TaskInputClosed {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
    },
    /// The answer to [`crate::Effect::Sweep`].
    Swept(JobId),
    /// Agent: the keeper is gone.
    KeeperGone,
    /// Agent: the shell that started this agent is gone.
    ShellGone,
    /// Agent: somebody sent it a signal that means to end.
    Terminated(Signal),
    /// Head: a piece of the user's standard input.
    UserInput(Bytes),
    /// Head: the user's standard input has ended.
    UserInputEnd,
    /// Head: so many bytes of output have been written.
    OutputWritten(u32),
    /// A file of tasks' output, or the user's own, could not be written. Once is enough.
    NotWritten {
        /// The error number.
        errno: i32,
        /// Where to.
        words: String,
    },
    /// Head: nobody reads our output any more.
    OutputClosed(Stream),
    /// Head: the user sent a signal.
    UserSignal(Signal),
    /// Head: this process goes on after a suspension.
    Resumed,
}
