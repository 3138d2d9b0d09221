//! What an engine tells its driver to do. The driver performs effects in order and decides nothing.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use model::{AgentId, JobId, Rank, Signal};
use wire::{Contact, JobSpec, Message, SessionSpec, Stream};

use crate::{CallerId, LinkId, StartId};

/// What the driver must do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Run the bootstrapper once, for all of `agents`. [`crate::Input::ShellEnded`] or
    /// [`crate::Input::ShellNotRun`] follows when it ends, or could not be run.
    Start(Start),
    /// Send the agent's program down the shell of a start that asked for it. [`crate::Input::Delivery`]
    /// follows as it is taken.
    SendProgram(StartId),
    /// End the helper that a start runs, and all that it started. `ShellEnded` follows.
    KillShell(StartId),
    /// Send a message on each of these links.
    Send {
        /// The links; encode once, send to all.
        links: Vec<LinkId>,
        /// The message.
        message: Message,
    },
    /// Have the kernel close a link, `LinkDown` for us, whose peer has acknowledged nothing for so
    /// many milliseconds, be there anything to acknowledge or not. `None`: the peer's process may be
    /// stopped and take nothing, but its host must answer probes within [`HOST_SILENT_MAX`].
    SetLinkTimeout(LinkId, Option<u32>),
    /// Listen for agents that are no spawn children. [`crate::Input::Listening`] follows.
    Listen,
    /// Look for an agent at its addresses. [`crate::Input::LinkUp`] or [`crate::Input::NotConnected`]
    /// follows.
    Connect {
        /// Whom.
        peer: AgentId,
        /// Where it listens.
        contact: Contact,
    },
    /// Send what is queued, then close the link. No `LinkDown` follows.
    Close(LinkId),
    /// Look the programs and directories up of those of the job's apps that have tasks here, make
    /// its files where this member writes them, and listen for its tasks if they are to connect.
    /// [`crate::Input::Prepared`] follows.
    Prepare {
        /// The job.
        job: Arc<JobSpec>,
        /// This node's name, as the user wrote it.
        host: String,
        /// The apps' numbers.
        apps: Vec<u32>,
    },
    /// Create a task. [`crate::Input::Spawned`] follows.
    Spawn(Spawn),
    /// Send a signal to the process groups of a job's tasks on this node.
    SignalTasks {
        /// The job.
        job: JobId,
        /// The signal.
        signal: Signal,
    },
    /// Kill whatever the job's tasks have left behind on this node: every descendant that is not a
    /// helper. Listen for them no longer. [`crate::Input::Swept`] follows.
    Sweep(JobId),
    /// Read what this node's tasks write (true), or leave it in the kernel (false), for all streams,
    /// also of tasks that are yet to be created. To begin with, all are read.
    ReadTasks(bool),
    /// Write to a task's standard input. [`crate::Input::TaskInputWritten`] follows as it is taken.
    WriteTask {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// The bytes.
        data: Bytes,
    },
    /// Close a task's standard input once all is written.
    CloseTaskInput {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
    },
    /// Write to a task's PMI connection.
    PmiSend {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// The bytes.
        data: Bytes,
    },
    /// Keep these bytes in memory that nobody can change, in place of those before, for tasks of the
    /// job to map. None are to be kept where they are empty.
    KeepSnapshot {
        /// The job.
        job: JobId,
        /// The bytes.
        data: Bytes,
    },
    /// Write to a task's PMI connection, and send a descriptor of what is kept for its job with the
    /// bytes. The task does without where that fails.
    PmiSendSnapshot {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// The bytes.
        data: Bytes,
    },
    /// Give tasks a long answer in memory that nobody can change.
    PmiSendInMemory {
        /// The job.
        job: JobId,
        /// What to write to the PMI connection of each, with a descriptor of the memory.
        replies: Vec<(Rank, Bytes)>,
        /// What is there. A task to which no descriptor can be sent is written these bytes instead.
        data: Bytes,
    },
    /// Write to a connection that is no task's yet, whose program says more only then.
    AnswerCaller {
        /// The connection.
        caller: CallerId,
        /// The bytes: few enough for the empty buffer of a socket.
        data: Bytes,
    },
    /// Take a connection for that of a task from here on: [`crate::Input::TaskPmi`] brings what comes
    /// behind what it has said.
    AdmitCaller {
        /// The connection.
        caller: CallerId,
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
    },
    /// Close the connection of who has no business here. Nothing follows.
    DropCaller(CallerId),
    /// Head: write a piece of a task's output for the user. [`crate::Input::OutputWritten`] follows.
    WriteOutput {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// Which stream.
        stream: Stream,
        /// The bytes.
        data: Bytes,
    },
    /// Write a piece of a task's output to its file, at once and behind all that was written before.
    /// [`crate::Input::NotWritten`] follows only if that fails.
    WriteFile {
        /// The job.
        job: JobId,
        /// The task.
        rank: Rank,
        /// Which stream.
        stream: Stream,
        /// The bytes.
        data: Bytes,
    },
    /// Forget a job's files: nothing more is written to them.
    CloseFiles(JobId),
    /// Head: read up to this many more bytes of the user's standard input.
    ReadInput(u32),
    /// Head: read no more standard input; what is unread stays with the user.
    StopInput,
    /// Stop this process as SIGTSTP would have, once what is queued is sent.
    /// [`crate::Input::Resumed`] follows when it goes on.
    SuspendSelf,
    /// Everything is over: send what is queued, then exit with this status. The last effect.
    Exit(u8),
    /// Kill every process below this one, at once, then exit with this status. The last effect.
    Abandon {
        /// The exit status.
        code: u8,
        /// Why, for standard error.
        words: String,
    },
}

/// One run of the bootstrapper.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Start {
    /// Its number.
    pub start: StartId,
    /// The agents that it brings up, with their host names; one unless the bootstrapper is bulk.
    pub agents: Vec<(AgentId, String)>,
    /// Which try this is, from 0.
    pub attempt: u32,
    /// The session's parameters, with the bootstrapper's.
    pub session: Arc<SessionSpec>,
}

/// A task to create.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spawn {
    /// The job.
    pub job: Arc<JobSpec>,
    /// The task.
    pub rank: Rank,
    /// The number of its app.
    pub app: u32,
    /// Variables to set over its app's environment, `NAME=value` each.
    pub env: Vec<Bytes>,
    /// Whether standard input is a pipe (else `/dev/null`).
    pub stdin: bool,
}

/// For how long the host of a peer that is stopped may answer no probes before the link to it is
/// given up: the bound on the life of an agent that is cut off from a front end that is stopped.
pub const HOST_SILENT_MAX: Duration = Duration::from_secs(20);

/// The descriptor number of a task's PMI connection (`PMI_FD`).
pub const PMI_FD: i32 = 3;
