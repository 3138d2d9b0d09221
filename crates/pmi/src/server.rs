//! The PMI server for the tasks of one job on one agent.
//!
//! A client costs one call per read and one reply per call, however many commands the read held. A barrier
//! costs one exchange per agent, and one reply per task when it comes back: puts wait here until then, and gets
//! are answered from what is here, unless the exchange was too large to bring it (`reference/pmi1.md` §5, §6).
//!
//! What clients of PMI-1 call a barrier is the fence of PMI-2: tasks of one job may speak either, and meet.
//!
//! A task that has finalized and is still there may initialise again, so a barrier waits for it; only when
//! its connection or process has ended does it take no further part. Releasing a barrier at `finalize` would let
//! tasks in their second cycle pass those that are still ending the first.

mod allgather;
mod barrier;
mod names;
mod pmi1;
mod pmi2;
mod reads;
mod ring;
mod snapshots;
mod spawn;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;
use core::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use model::{NameRequest, PairName, Rank, RankGroup, RingStretch, SpawnRequest};

use allgather::InAllgather;
pub use barrier::Waits;
use barrier::{Stage, present};
use names::Pending;
use reads::Reads;
use ring::InRing;
use snapshots::Snapshots;
use spawn::Spawns;

use crate::asker::Asker;
use crate::meetings::Meetings;
use crate::node_attributes::NodeAttributes;
use crate::pmi1::reply;
use crate::spaces::{Limits, Spaces};
use crate::{ClientError, Excerpt, Introduction, JobInfo, Message, MessageBuffer, PairError};

/// The server's state.
#[derive(Debug)]
pub struct Server {
    info: JobInfo,
    /// Sorted by rank.
    clients: Vec<Client>,
    spaces: Spaces,
    /// Clients that are there and have not entered the barrier.
    barrier_waits_for: usize,
    barrier: Stage,
    meetings: Meetings,
    ring: Stage,
    allgather: Stage,
    attributes: NodeAttributes,
    reads: Reads,
    snapshots: Snapshots,
    /// The replies to the client whose bytes are being handled.
    replies: BytesMut,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
struct Client {
    rank: Rank,
    appnum: u32,
    state: ClientState,
    /// Waits for the end of the barrier.
    entered: Option<Asker>,
    /// The number of the snapshot that it has, 0 for none, if it reads them.
    snapshot: Option<u32>,
    /// Its connection has ended as it should, or its process in any way: it enters no further barrier.
    left: bool,
    /// Waits for the ring to be closed.
    ring: Option<Box<InRing>>,
    /// Waits for everybody's values.
    allgather: Option<Box<InAllgather>>,
    /// What it has asked the name service, in order.
    pending: VecDeque<Pending>,
    /// What it wants spawned: boxed, since few want anything.
    spawns: Option<Box<Spawns>>,
    /// Its end or its fault has been reported, and nothing that it sends counts.
    condemned: bool,
    /// Its end is to end the job.
    is_missed: bool,
    messages: MessageBuffer,
}

/// How far a client has come (§10).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientState {
    /// It has never sent a PMI message. Only its exit status counts.
    NotPmi,
    /// It speaks PMI and has not finalized. Its end is abnormal, whatever its exit status.
    Active,
    /// It has finalized. It may end, or initialise again.
    Finalized,
}

/// What the driver must do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Write these bytes to the client. That it may be gone is no error.
    Reply {
        /// The client.
        rank: Rank,
        /// Whole messages.
        bytes: Bytes,
    },
    /// Write these bytes to the client as those of [`Effect::Reply`], and a descriptor of the snapshot with them. The
    /// client does without where it gets none.
    ReplyWithSnapshot {
        /// The client.
        rank: Rank,
        /// Whole messages.
        bytes: Bytes,
    },
    /// Keep this snapshot in place of the one before, in memory that nobody can change. An empty one is none.
    KeepSnapshot(Bytes),
    /// Let these clients have an answer that is long in memory that nobody can change.
    ReplyInMemory {
        /// What is written to each as the bytes of [`Effect::Reply`], and a descriptor of the memory with it.
        replies: Vec<(Rank, Bytes)>,
        /// What is there: whole messages. A client to which no descriptor can be sent is written these.
        bytes: Bytes,
    },
    /// All tasks here have entered the barrier: exchange these pairs with the other agents of the job, then call
    /// `on_exchange_complete` with everybody's.
    Exchange {
        /// Pairs as [`Pairs`](crate::Pairs) reads them.
        pairs: Bytes,
    },
    /// All tasks of a group here have entered its barrier, or have left: exchange these pairs with the other agents
    /// that have tasks of it, then call `on_group_complete` with the concatenation of everybody's.
    ExchangeGroup {
        /// The group.
        group: RankGroup,
        /// Pairs as [`Pairs`](crate::Pairs) reads them.
        pairs: Bytes,
    },
    /// All tasks here are in a ring, or have left, and stand in it like this: have it closed with the other agents of
    /// the job, then call `on_ring_closed`.
    Ring(RingStretch),
    /// All tasks here are in an allgather, or have left: gather these values and those of the other agents of the job,
    /// then call `on_allgathered` with everybody's.
    Allgather(
        /// As [`Values`](crate::Values) encodes them.
        Bytes,
    ),
    /// Ask the session's name service, then call `on_name_reply` with its answer.
    Ask {
        /// Who asks.
        rank: Rank,
        /// What.
        request: NameRequest,
    },
    /// Get this pair from the agents above, then call `on_fetched` with its value.
    Fetch(PairName),
    /// Have these programs started as a job of their own, then call `on_spawn_reply`.
    Spawn {
        /// Who asks.
        rank: Rank,
        /// What.
        request: SpawnRequest,
    },
    /// No task here can enter a barrier again: count this agent as entered in every later exchange.
    Leave,
    /// A task wants the job to end.
    Abort {
        /// The task.
        rank: Rank,
        /// The code it gave; the low 8 bits make the exit status.
        code: i32,
        /// What else it said, made safe to show.
        message: Excerpt,
    },
    /// A client broke the protocol, and will get no further replies.
    Violation {
        /// The client.
        rank: Rank,
        /// What it did.
        error: ClientError,
    },
    /// A client's connection or process ended while it was active.
    ClosedActive {
        /// The client.
        rank: Rank,
    },
}

/// Replies are cut from a buffer of this size, which is used again when they have been written: a reply costs
/// no allocation of its own. A job that does not speak PMI has none.
const REPLIES_BYTES: usize = 4096;

impl Server {
    /// A server for the tasks in `info`, none of which has said anything.
    pub fn new(mut info: JobInfo) -> Server {
        assert!(
            info.kvsname.len() < JobInfo::KVSNAME_MAX,
            "name of the key-value space is too long"
        );
        let mut clients: Vec<Client> = mem::take(&mut info.tasks)
            .iter()
            .map(|task| Client::new(task.rank, task.appnum))
            .collect();
        clients.sort_unstable_by_key(|client| client.rank);
        let spaces = Spaces::new(&info);
        info.process_mapping = None; // it is in there
        Server {
            spaces,
            barrier_waits_for: clients.len(),
            clients,
            barrier: Stage::Gathering,
            meetings: Meetings::default(),
            ring: Stage::default(),
            allgather: Stage::default(),
            attributes: NodeAttributes::default(),
            reads: Reads::default(),
            snapshots: Snapshots::default(),
            replies: BytesMut::new(),
            effects: VecDeque::new(),
            info,
        }
    }

    /// Handles bytes that a client sent, cut anywhere. What comes after the end of its task, from a process
    /// that the task left behind, does not count.
    pub fn on_bytes(&mut self, rank: Rank, data: &[u8]) {
        let index = self.index(rank);
        if self.clients[index].condemned || self.clients[index].left {
            return;
        }
        if self.replies.capacity() == 0 {
            self.replies.reserve(REPLIES_BYTES);
        }
        let mut messages = mem::take(&mut self.clients[index].messages);
        messages.feed(data, |message| {
            if let Err(error) = message.and_then(|message| self.on_message(index, message)) {
                self.condemn(index, Effect::Violation { rank, error });
            }
            if self.clients[index].condemned {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        self.clients[index].messages = messages;
        self.flush_replies(rank);
    }

    /// Answers a task that has connected to `PMI_PORT` and has said its rank, and handles what it sent behind that.
    pub fn on_call(&mut self, call: &Introduction) {
        let rank = call.rank;
        if call.by_initack {
            let appnum = self.clients[self.index(rank)].appnum;
            reply::initack(&mut self.replies, rank, self.info.size, appnum);
            self.flush_replies(rank);
        }
        self.on_bytes(rank, &call.bytes);
    }

    /// Handles the end of a connection to `PMI_PORT`, after all its bytes. Where it was no abnormal one, a further
    /// program of the same task may connect, so barriers wait until the task's process has ended.
    pub fn on_call_ended(&mut self, rank: Rank) {
        let client = &self.clients[self.index(rank)];
        if client.state == ClientState::Active || !client.messages.unfinished().is_empty() {
            self.on_closed(rank);
        }
    }

    /// Handles the end of a client's connection, after all its bytes, which no other follows.
    pub fn on_closed(&mut self, rank: Rank) {
        let index = self.index(rank);
        let client = &self.clients[index];
        let unfinished = client.messages.unfinished();
        if !client.left && !unfinished.is_empty() {
            let error = ClientError::Unfinished(Excerpt::new(unfinished));
            self.condemn(index, Effect::Violation { rank, error });
        }
        self.on_gone(index);
    }

    /// Handles the end of a task's process. First hand in every byte that it sent before. Barriers do not wait for it
    /// any more, also in a job that goes on although a task ended abnormally; but where it `is_missed`, since the job
    /// is to end, its groups are not let out without it.
    pub fn on_task_exit(&mut self, rank: Rank, is_missed: bool) {
        let index = self.index(rank);
        self.clients[index].is_missed = is_missed;
        self.on_gone(index);
        self.leave(index);
    }

    /// Handles the end of an exchange: `pairs` are those of all agents, in one part or several, and the barrier is over.
    pub fn on_exchange_complete(&mut self, pairs: &[Bytes]) -> Result<(), PairError> {
        self.spaces.on_exchanged();
        self.spaces.merge(pairs)?;
        self.end_barrier();
        Ok(())
    }

    /// Handles the end of an exchange in which every agent has kept the pairs that came to it, here these. Where one
    /// of all pairs `is_stale`, since there is another value of it somewhere, all are forgotten here: who was asked
    /// last knows. Either way whoever reads what is not here has it fetched.
    pub fn on_exchange_held(&mut self, pairs: &[Bytes], is_stale: bool) -> Result<(), PairError> {
        self.spaces.on_exchanged();
        self.spaces.hold(if is_stale { &[] } else { pairs })?;
        if is_stale {
            self.spaces.forget();
        }
        self.end_barrier();
        Ok(())
    }

    fn end_barrier(&mut self) {
        self.meetings.on_exchange_of_all();
        if mem::take(&mut self.barrier) == Stage::Exchanging {
            self.release();
            self.leave_if_all_left();
        }
    }

    /// Handles that the job's tasks have exchanged these pairs, on a member that has none of them and answers others.
    pub fn on_exchange_elsewhere(&mut self, pairs: Vec<Bytes>) {
        self.spaces.keep(pairs);
    }

    /// Handles that somewhere tasks wait in the barrier of a group with tasks here: once these have entered, or have
    /// left, [`Effect::ExchangeGroup`] says so.
    pub fn on_group_awaited(&mut self, group: &RankGroup) {
        self.meetings.ask(group, || present(&self.clients));
        self.meet();
    }

    /// Handles the end of a group's exchange: `pairs` are those of all its agents, and its barrier is over.
    pub fn on_group_complete(&mut self, group: &RankGroup, pairs: Bytes) -> Result<(), PairError> {
        assert!(self.meetings.is_exchanging(group), "an exchange ends that was not asked for");
        self.spaces.merge(&[pairs])?;
        self.release_group(group);
        Ok(())
    }

    /// How far a client has come.
    pub fn state(&self, rank: Rank) -> ClientState {
        self.clients[self.index(rank)].state
    }

    /// Returns the next effect. Call until `None` after every `on_*` call.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Gives back the memory that the queue of effects kept for the next time.
    pub fn shrink(&mut self) {
        self.effects.shrink_to_fit();
    }

    fn has(&self, rank: Rank) -> bool {
        self.clients.binary_search_by_key(&rank, |client| client.rank).is_ok()
    }

    fn index(&self, rank: Rank) -> usize {
        self.clients
            .binary_search_by_key(&rank, |client| client.rank)
            .expect("only tasks on this node are spoken of")
    }

    /// Sends a client what others have answered, if it is still there.
    fn answer_late(&mut self, index: usize, write: impl FnOnce(&mut BytesMut)) {
        let client = &self.clients[index];
        if !client.left && !client.condemned {
            let mut bytes = BytesMut::new();
            write(&mut bytes);
            self.effects.push_back(Effect::Reply { rank: client.rank, bytes: bytes.freeze() });
        }
    }

    fn on_message(&mut self, index: usize, message: Message<'_>) -> Result<(), ClientError> {
        match message {
            Message::Line(line) if line.iter().all(|byte| *byte == b' ') => Ok(()),
            Message::Line(line) => self.on_line(index, line),
            Message::Frame(body) => self.on_frame(index, body),
        }
    }

    fn on_abort(&mut self, index: usize, code: i32, message: &[u8]) {
        let rank = self.clients[index].rank;
        self.condemn(index, Effect::Abort { rank, code, message: Excerpt::new(message) });
    }

    /// Handles the end of a client's connection or process, whichever is seen first.
    fn on_gone(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.condemned || client.left {
            return;
        }
        if client.state == ClientState::Active {
            let rank = client.rank;
            return self.condemn(index, Effect::ClosedActive { rank });
        }
        self.leave(index);
    }

    /// No barrier waits for this client any more.
    fn leave(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if mem::replace(&mut client.left, true) {
            return;
        }
        if client.entered.is_none() {
            self.barrier_waits_for -= 1;
        }
        let (rank, is_missed) = (client.rank, client.is_missed);
        self.attributes.leave(rank);
        self.read_snapshots(index, false);
        if !is_missed {
            self.meetings.leave(rank);
            self.meet();
        }
        self.close_ring_if_complete();
        self.gather_if_complete();
        self.exchange_if_complete(index);
        self.leave_if_all_left();
    }
}

/// Effects.
impl Server {
    fn reply(&mut self, line: &[u8]) {
        self.replies.extend_from_slice(line);
    }

    /// Turns the replies collected for `rank` into one effect.
    fn flush_replies(&mut self, rank: Rank) {
        if !self.replies.is_empty() {
            let bytes = self.replies.split().freeze();
            self.effects.push_back(Effect::Reply { rank, bytes });
        }
    }

    /// Reports a client for the one thing that ends its part in the job.
    fn condemn(&mut self, index: usize, effect: Effect) {
        self.flush_replies(self.clients[index].rank);
        let client = &mut self.clients[index];
        if !client.condemned {
            client.condemned = true;
            self.effects.push_back(effect);
        }
    }
}

impl Client {
    /// How long what it puts and gets like this may be. Only our own library asks for snapshots.
    fn limits(&self, asker: &Asker) -> Limits {
        match asker {
            _ if self.snapshot.is_some() => Limits::LIBRARY,
            Asker::Line => Limits::PMI1,
            Asker::Frame { .. } => Limits::PMI2,
        }
    }

    fn new(rank: Rank, appnum: u32) -> Client {
        Client {
            rank,
            appnum,
            state: ClientState::NotPmi,
            entered: None,
            snapshot: None,
            ring: None,
            allgather: None,
            pending: VecDeque::new(),
            spawns: None,
            left: false,
            condemned: false,
            is_missed: false,
            messages: MessageBuffer::default(),
        }
    }
}
