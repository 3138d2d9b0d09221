//! Every message that agents of one session send each other.
//!
//! A message travels over one link between a parent and a child of the spawn tree or, if it is about
//! a job, of the routing tree. *Down* is away from the head, *up* is towards it. What a message means,
//! and who may send it when, is `proto`'s and
//! `engine`'s; here are only its fields. `docs/wire.md` describes them and is tied to this file
//! by a hash: change both together, and count [`crate::VERSION`] up.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use model::{
    AgentId, ExitStatus, IdSet, JobId, NameReply, NameRequest, PairName, Rank, RankGroup,
    RingPlace, RingStretch, Route, Signal, SpawnReply, SpawnRequest, StatusRuns, TaskMap, Tree,
    Usage,
};
use serde::{Deserialize, Serialize};

use crate::routed::{Contact, Forward, Received, Routes};
use crate::{JobSpec, Payload};

/// One message on a link.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Up, first on every link: the child proves that it holds the session's secret and asks for
    /// its part of the tree.
    Hello(Hello),
    /// Down, the answer to [`Message::Hello`]: the child's part of the tree.
    Welcome(Box<Welcome>),
    /// Down, after `Welcome`: a job to prepare.
    Job(Box<JobSpec>),
    /// Up: these agents have joined and can launch the job.
    Joined(IdSet),
    /// Up: these agents will not join.
    StartFailed(Vec<StartFailure>),
    /// Down: the join deadline has passed; report whoever is missing as failed.
    JoinDeadline,
    /// Down: every member has joined; launch the tasks.
    Launch(Box<Launch>),
    /// Up: the job can't run, or can't run on.
    JobFault(JobId, Box<JobFault>),
    /// Up: every task below has entered fence number `fence`.
    Enter {
        /// The job whose tasks fence.
        job: JobId,
        /// The fence's number within the job, from 0.
        fence: u32,
        /// What they contribute: the concatenation of the nodes' payloads.
        payload: Bytes,
    },
    /// Down: every task of the job has entered fence number `fence`.
    Release {
        /// The job whose tasks fence.
        job: JobId,
        /// The fence's number within the job, from 0.
        fence: u32,
        /// What all of them contributed.
        payload: Bytes,
    },
    /// Up: a piece of a task's output.
    Output(Output),
    /// Down: this many more bytes of output may be sent.
    OutputCredit(u32),
    /// Down: a piece of standard input, for whom the job says ([`IoSpec::stdin`](crate::IoSpec::stdin)).
    Input {
        /// The job.
        job: JobId,
        /// How many bytes of it went before.
        offset: u64,
        /// The piece.
        data: Bytes,
    },
    /// Down: standard input has ended.
    InputEnd(JobId),
    /// Up: all readers below together let this many more bytes of standard input be sent.
    InputCredit(JobId, u32),
    /// Up: nobody below reads standard input any more.
    InputClosed(JobId),
    /// Down: send a signal to every task.
    Signal(JobId, Signal),
    /// Down: end every task: SIGTERM, then SIGKILL after `grace_ms`.
    Stop {
        /// The job to end.
        job: JobId,
        /// Milliseconds between the two signals; 0 sends SIGKILL at once.
        grace_ms: u32,
    },
    /// Up: every task below has ended, and all of its output has been sent.
    Done {
        /// The job.
        job: JobId,
        /// How each task ended, folded.
        statuses: StatusRuns,
        /// Whether they were ended by order. The order may be slower on its way to the receiver, and
        /// nobody is to go on without those tasks meanwhile.
        by_order: bool,
    },
    /// Up: agents that had joined are gone.
    Lost(AgentLoss),
    /// Down: the session is over; end what is below and leave.
    Shutdown,
    /// Up, last on every link: all below are gone.
    Bye(Box<Stats>),
    /// Down, and up in answer: the sender is alive.
    Ping {
        /// The sender's next one comes within so many milliseconds.
        next_ms: u32,
    },
    /// Down: the front end is about to be stopped (true) or goes on (false); meanwhile the head
    /// sends no heartbeats and takes nothing.
    Suspend(bool),
    /// Up: this subtree has nobody left to start, and so many agents that can start some.
    MoreWork(u32),
    /// Down: more agents for the child to start.
    Work(Box<Work>),
    /// Up, before [`Message::Bye`] and only when [`SessionSpec::marks`] asks for it: when what
    /// happened to agents of this subtree.
    Marks(Vec<Mark>),
    /// Up, before [`Message::Done`] and only when [`IoSpec::records`](crate::IoSpec::records) asks for it: what is known of
    /// tasks that have ended.
    Records(JobId, Vec<TaskRecord>),
    /// Up: every task of the group below has entered the group's barrier, or has ended.
    GroupEnter {
        /// The job whose tasks meet.
        job: JobId,
        /// Who meets.
        group: Box<RankGroup>,
        /// What they contribute: the concatenation of the nodes' payloads.
        payload: Bytes,
    },
    /// Down: every task of the group has entered the group's barrier.
    GroupRelease {
        /// The job whose tasks meet.
        job: JobId,
        /// Who meets.
        group: Box<RankGroup>,
        /// What all of them contributed.
        payload: Bytes,
    },
    /// Down: others wait in the barrier of a group with tasks below. `GroupEnter` is due also when
    /// these end without entering.
    GroupAwaited(JobId, Box<RankGroup>),
    /// Up: something is not as the user may think, though the job goes on.
    Warning(JobId, JobWarning),
    /// Up: a task asks the session's name service.
    NameRequest(JobId, Rank, Box<NameRequest>),
    /// Down, to the node of the task that has asked: the answer.
    NameReply(JobId, Rank, Box<NameReply>),
    /// Up: a task wants programs started as a job of their own.
    SpawnRequest(JobId, Rank, Box<SpawnRequest>),
    /// Down, to the node of the task that has asked: what has become of it.
    SpawnReply(JobId, Rank, Box<SpawnReply>),
    /// Down, to those with tasks of it below: a job that a task has asked for, to prepare.
    Spawn(Box<JobSpec>),
    /// Up: all below have come so far with a job that a task has asked for.
    Reached(JobId, Milestone),
    /// Up: every task below has entered ring number so many, and is in this stretch of it.
    RingEnter(JobId, u32, Box<RingStretch>),
    /// Down, to one child: where the stretch of its subtree is in the ring of this number.
    RingPlace(JobId, u32, Box<RingPlace>),
    /// Up: every task below has entered allgather number so many, with what they bring.
    AllgatherEnter(JobId, u32, Bytes),
    /// Down: every task has entered the allgather of this number, with what all bring.
    AllgatherRelease(JobId, u32, Bytes),
    /// Up, before the last [`Message::Joined`] of a subtree: where its agents listen. Down, the answer
    /// to [`Message::Resolve`].
    Contacts(Vec<(AgentId, Contact)>),
    /// Either way: where does this agent listen?
    Resolve(AgentId),
    /// Down, when it is known who runs the job: the members of the routing tree.
    Route(Box<Routes>),
    /// First on a link that the routing tree needs. By [`Message::Forward`]: the edge between the two goes
    /// this way from here on, and the sender has received so much of it.
    Attach(Received),
    /// Between neighbours of the routing tree, now and then: so much was received, and need not be kept. By
    /// [`Message::Forward`] along the spawn tree: and the sender has no link to the receiver any more.
    Received(Received),
    /// Up: the routing edges of this subtree are there.
    Routed,
    /// Along the spawn tree, or the routing tree and a redundant link: a message between neighbours of the
    /// routing tree.
    Forward(Box<Forward>),
    /// Down: these agents are gone, and whoever passed messages on through them has to do without.
    Gone(IdSet),
    /// Down, instead of [`Message::Release`]: every task of the job has entered the fence of this number, and what they
    /// contributed stays with those on its way up. True if there is another value of some of it.
    Held(JobId, u32, bool),
    /// Up: a task below reads what none below has put.
    Fetch(JobId, Box<PairName>),
    /// Down, to those who have asked: the value, if anybody has put one.
    Fetched(JobId, Box<PairName>, Option<Bytes>),
    /// Up: a part of what tasks below bring, which is too much for one [`Message::Enter`] or
    /// [`Message::AllgatherEnter`]. The last of them stands for that.
    EnterPart(JobId, Part),
    /// Down: a part of what all tasks have brought, likewise instead of [`Message::Release`] or
    /// [`Message::AllgatherRelease`].
    ReleasePart(JobId, Part),
}

/// A part of what an exchange carries. Each is whole in itself.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Of which kind of exchange.
    pub of: Collective,
    /// The number of that within the job, from 0.
    pub number: u32,
    /// Whether it is the last on this link.
    pub is_last: bool,
    /// What it carries.
    pub payload: Payload,
}

/// What all tasks of a job enter and leave together, each bringing something for everybody.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum Collective {
    /// Of key-value pairs.
    Fence,
    /// Of a value each.
    Allgather,
}

/// How far a job that a task has asked for has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Milestone {
    /// Its programs were found: it can be launched.
    Prepared,
    /// Its tasks were created.
    Created,
}

/// The order to launch a job, now that it is known who is there.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The job.
    pub job: JobId,
    /// The agents that run its tasks. Others do without tasks, and who has not joined is not waited for.
    pub members: IdSet,
    /// Which task runs where, if not as the job says, since somebody is missing.
    pub map: Option<TaskMap>,
}

/// Agents that a child is to start beyond those that it was welcomed with.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The agents.
    pub below: IdSet,
    /// Their host names, in order, folded as a host list.
    pub names: String,
}

/// A moment in the life of an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Whose life it is.
    pub agent: AgentId,
    /// Who saw it, by its own clock: the agent or its spawn parent.
    pub by: AgentId,
    /// What happened.
    pub kind: MarkKind,
    /// Microseconds after the sender's `Welcome`, as far as clocks that nobody has set agree: each
    /// agent adds when it welcomed the child that the mark came from.
    pub at_us: u64,
}

/// What happened to an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum MarkKind {
    /// Its parent began to start it; once for each try.
    Started,
    /// Its parent had a link to it.
    LinkUp,
    /// Its parent had its `Hello` and answered.
    Welcomed,
    /// It had looked its program up, and had joined.
    Joined,
    /// Its parent heard that it had joined.
    JoinHeard,
    /// It was told to launch.
    Launched,
    /// Its tasks were created.
    Spawned,
    /// Its tasks had ended.
    TasksEnded,
    /// It was told to leave.
    Leaving,
    /// Its parent heard its farewell.
    Left,
    /// Its parent gave it up: it did not join, or was lost.
    GivenUp,
}

/// A child's first words on a link.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Which start of this agent it came from, counted from 0.
    pub attempt: u32,
    /// The process number of the agent on its node.
    pub pid: u32,
}

/// A child's part of the tree and the session's parameters.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// How the child splits what is below it.
    pub tree: Tree,
    /// The agents that it must start, itself excluded.
    pub below: IdSet,
    /// The host names of `below`, in order, folded as a host list.
    pub names: String,
    /// The child's own host name, as the user wrote it.
    pub own_name: String,
    /// What holds for every agent of the session.
    pub session: SessionSpec,
}

/// Parameters of a session, the same on every agent.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// How a parent starts an agent: `bootstrap`'s own encoding, opaque to the engine.
    pub bootstrap: Vec<u8>,
    /// How many agents one command of the bootstrapper starts at the most: 1 for a remote shell.
    pub bulk_max: u32,
    /// Starts in flight per parent.
    pub window: u32,
    /// How many leaves a parent starts before it waits for all of them; absent: it does not wait.
    pub batch: Option<u32>,
    /// How often a start is tried again after a passing failure.
    pub retries_max: u32,
    /// How long a started agent may take to join before the start is given up, in milliseconds.
    pub start_timeout_ms: u32,
    /// The shortest time between two heartbeats, in milliseconds; a parent of many children takes
    /// longer, so that their answers do not keep it awake.
    pub heartbeat_ms: u32,
    /// After how many milliseconds without an acknowledgement the kernel closes a link.
    pub link_timeout_ms: u32,
    /// Whether agents keep marks of what happens when, and send them up at the end.
    pub marks: bool,
    /// The way of a job's messages; absent: that of all others, the spawn tree.
    pub route: Option<Route>,
    /// How many redundant links each member opens where they take another.
    pub redundancy: u8,
    /// Whether every agent is told where all others listen, or has to ask.
    pub pushes_contacts: bool,
}

/// What is known of a task that has ended.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task.
    pub rank: Rank,
    /// Its process number on its node.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// Microseconds from its creation to its end.
    pub wall_us: u64,
    /// What it used.
    pub usage: Usage,
    /// Of one that failed: the last lines that it wrote to standard error.
    pub last_words: Bytes,
}

/// Why an agent did not join.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct StartFailure {
    /// The agents that the cause keeps away.
    pub agents: IdSet,
    /// What kept them away.
    pub cause: StartCause,
    /// What the remote shell said, printable and bounded.
    pub words: String,
    /// Milliseconds from the first start to the last failure.
    pub elapsed_ms: u32,
    /// How often it was started.
    pub attempts: u32,
    /// The agent that started it.
    pub by: AgentId,
}

/// What kept an agent from joining.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum StartCause {
    /// The shell ended with this status.
    Shell(ShellFailureKind, ExitStatus),
    /// The shell could not be run here: the error number.
    NoShell(i32),
    /// Neither the shell nor the agent said anything until the start's deadline.
    Silent,
    /// It was still being started, or waited for its turn, at the join deadline.
    Deadline,
}

/// Kinds of failure of a remote shell, as far as its words tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum ShellFailureKind {
    /// The connection was closed during the key exchange: sshd's MaxStartups. Passing.
    Busy,
    /// Nobody listens there.
    Refused,
    /// No route, or no answer of the network.
    Unreachable,
    /// The host's name is not known.
    UnknownHost,
    /// The user was not let in.
    Auth,
    /// The host's key is not the known one.
    HostKey,
    /// There is no agent program there.
    NoBinary,
    /// The agent program there can't be run.
    NotExecutable,
    /// Anything else.
    Other,
    /// A signal killed the agent; its keeper says so.
    AgentKilled(Signal),
}

/// Why a job can't run, or can't run on.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum JobFault {
    /// The program can't be run on a node, seen before anything was launched.
    Program {
        /// The node's agent.
        agent: AgentId,
        /// The number of the app whose program it is.
        app: u32,
        /// The error number (`ENOENT`, `EACCES`, `ENOTDIR`).
        errno: i32,
        /// What was looked for, and where.
        words: String,
    },
    /// The working directory can't be entered on a node.
    Directory {
        /// The node's agent.
        agent: AgentId,
        /// The error number.
        errno: i32,
        /// The directory.
        words: String,
    },
    /// Output could not be written.
    Output {
        /// Who was to write it: the head, or the agent of the tasks' node.
        agent: AgentId,
        /// The error number.
        errno: i32,
        /// Where to.
        words: String,
    },
    /// A task could not be created.
    Spawn {
        /// The task.
        rank: Rank,
        /// The error number.
        errno: i32,
        /// The step that failed.
        words: String,
    },
    /// A task failed: a signal or a status other than zero.
    Task {
        /// The task.
        rank: Rank,
        /// How it ended.
        status: ExitStatus,
    },
    /// A task ended, or closed its PMI connection, between PMI's init and finalize.
    Unfinalized {
        /// The task.
        rank: Rank,
        /// How it ended, if it did.
        status: Option<ExitStatus>,
    },
    /// A task called PMI's abort.
    Abort {
        /// The task.
        rank: Rank,
        /// The code it gave.
        code: i32,
        /// The message it gave.
        message: String,
    },
    /// A task broke the PMI protocol.
    Pmi {
        /// The task.
        rank: Rank,
        /// What was wrong.
        words: String,
    },
}

/// Something about a job that is not as the user may think.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum JobWarning {
    /// Somebody who had connected to a node's `PMI_PORT` was turned away.
    RefusedCall {
        /// The node's agent.
        agent: AgentId,
        /// Why.
        words: String,
    },
    /// A task wanted others spawned, and got none.
    SpawnRefused {
        /// The task.
        rank: Rank,
        /// Why.
        words: String,
    },
    /// A program of Open MPI: each of its tasks will believe that it is alone.
    OpenMpi {
        /// The agent of the node where that was seen.
        agent: AgentId,
        /// The number of the app whose program it is.
        app: u32,
        /// What the program is linked with.
        library: String,
    },
}

impl JobFault {
    /// The task whose fault it is, if it is one's.
    pub fn rank(&self) -> Option<Rank> {
        match self {
            JobFault::Spawn { rank, .. }
            | JobFault::Task { rank, .. }
            | JobFault::Unfinalized { rank, .. }
            | JobFault::Abort { rank, .. }
            | JobFault::Pmi { rank, .. } => Some(*rank),
            JobFault::Program { .. } | JobFault::Directory { .. } | JobFault::Output { .. } => None,
        }
    }
}

/// Which stream of a task.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a task's output. On the wire: a fixed header and raw bytes, see [`crate::frame`].
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The job.
    pub job: JobId,
    /// The task.
    pub rank: Rank,
    /// Which of its streams.
    pub stream: Stream,
    /// How many bytes of the stream went before.
    pub offset: u64,
    /// What comes before `data`: the beginning of a line that came earlier. Nothing, once it was sent.
    pub lead: Bytes,
    /// The piece: whole lines where possible.
    pub data: Bytes,
}

impl Output {
    /// How many bytes of the stream there are.
    #[expect(clippy::len_without_is_empty, reason = "no piece is empty")]
    pub fn len(&self) -> usize {
        self.lead.len() + self.data.len()
    }

    /// Them all.
    pub fn into_bytes(self) -> Bytes {
        if self.lead.is_empty() { self.data } else { [self.lead, self.data].concat().into() }
    }
}

/// Agents that had joined and are gone.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct AgentLoss {
    /// The agent that was lost.
    pub agent: AgentId,
    /// It, and those below it that are lost with it.
    pub agents: IdSet,
    /// Those below it that its parent starts again: the job is not launched yet.
    pub again: IdSet,
    /// How it was noticed.
    pub cause: LossCause,
    /// What its shell said, printable and bounded.
    pub words: String,
}

/// How the loss of an agent was noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum LossCause {
    /// Its side closed its link: its process is gone, whatever ended it.
    LinkClosed,
    /// Nothing came from it for this many milliseconds.
    Silent(u32),
    /// Its shell ended first.
    Shell(ExitStatus),
    /// It broke the protocol.
    Misbehaved,
    /// The network to it is cut, or its host is down: nothing was acknowledged for this many
    /// milliseconds.
    LinkCut(u32),
    /// A signal killed it; its keeper says so.
    Killed(Signal),
}

/// What a subtree did, counted in the core. Merged on the way up.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Agents that these counts are of.
    pub agents: u32,
    /// Messages sent, by phase (see `proto::Phase`).
    pub messages: [u64; 5],
    /// Payload bytes sent, by phase.
    pub bytes: [u64; 5],
    /// Of these, what tasks have exchanged.
    pub exchanged: Exchanged,
    /// The most links that one agent held.
    pub links_max: u32,
    /// Starts that were tried again.
    pub retries: u32,
    /// Links that run over the streams of remote shells.
    pub shell_links: u32,
    /// Starts whose hosts had to be sent the agent's program.
    pub deliveries: u32,
    /// The longest time from the start of an agent to its joining, in microseconds.
    pub join_us_max: u64,
    /// Reads of values that were not pushed.
    pub reads: Reads,
    /// Agents whose tasks may have written more than was passed on: they had not said that all has
    /// ended when it was time to leave.
    pub unfinished: IdSet,
}

impl Stats {
    /// Adds another subtree's counts.
    pub fn merge(&mut self, other: &Stats) {
        self.agents = self.agents.saturating_add(other.agents);
        for (sum, count) in self.messages.iter_mut().zip(other.messages) {
            *sum = sum.saturating_add(count);
        }
        for (sum, count) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(count);
        }
        self.exchanged.add(other.exchanged.messages, other.exchanged.bytes);
        self.links_max = self.links_max.max(other.links_max);
        self.retries = self.retries.saturating_add(other.retries);
        self.shell_links = self.shell_links.saturating_add(other.shell_links);
        self.deliveries = self.deliveries.saturating_add(other.deliveries);
        self.reads.merge(&other.reads);
        self.join_us_max = self.join_us_max.max(other.join_us_max);
        self.unfinished = self.unfinished.union(&other.unfinished);
    }
}

/// What was sent for the fences, rings, allgathers and barriers of tasks, and for their reads of what no fence has pushed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Messages.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
}

impl Exchanged {
    /// Counts more.
    pub fn add(&mut self, messages: u64, bytes: u64) {
        self.messages = self.messages.saturating_add(messages);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Who has answered the tasks' reads of values that stayed where they were put.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Reads {
    /// The reader's own agent, which had the value or waited for it.
    pub own: u64,
    /// One above that, likewise.
    pub way: u64,
    /// The head.
    pub head: u64,
    /// The head, that nobody has put one.
    pub missing: u64,
}

impl Reads {
    fn merge(&mut self, other: &Reads) {
        self.own = self.own.saturating_add(other.own);
        self.way = self.way.saturating_add(other.way);
        self.head = self.head.saturating_add(other.head);
        self.missing = self.missing.saturating_add(other.missing);
    }
}
