//! The PMI-1.2 server for the tasks of one job on one agent.
//!
//! A client costs one call per read and one reply per call, however many commands the read held. A barrier
//! costs one exchange per agent, and one reply per task when it comes back: puts wait here until then, and gets
//! are answered from what is here, so that no get ever travels (`reference/pmi1.md` §5, §6).
//!
//! A task that has finalized and is still there may initialise again, so a barrier waits for it; only when
//! its connection or process has ended does it take no further part. Releasing a barrier at `finalize` would let
//! tasks in their second cycle pass those that are still ending the first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;
use core::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use model::{IdSet, Rank, RankGroup};

use crate::group::Scope;
use crate::meetings::Meetings;
use crate::request::SpawnBlock;
use crate::spaces::Spaces;
use crate::{ClientError, Excerpt, GroupFault, JobInfo, LineBuffer, PairError, Request, reply};

/// The server's state.
#[derive(Debug)]
pub struct Server {
    info: JobInfo,
    /// Sorted by rank.
    clients: Vec<Client>,
    spaces: Spaces,
    /// Clients that are there and have not entered the barrier.
    barrier_waits_for: usize,
    barrier: Barrier,
    meetings: Meetings,
    /// The replies to the client whose bytes are being handled.
    replies: BytesMut,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
struct Client {
    rank: Rank,
    appnum: u32,
    state: ClientState,
    /// Waits for `barrier_out`.
    entered: bool,
    /// Its connection has ended as it should, or its process in any way: it enters no further barrier.
    left: bool,
    /// Its end or its fault has been reported, and nothing that it sends counts.
    condemned: bool,
    /// Its end is to end the job.
    is_missed: bool,
    lines: LineBuffer,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Barrier {
    Gathering,
    Exchanging,
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
        /// Whole lines.
        bytes: Bytes,
    },
    /// All tasks here have entered the barrier: exchange these pairs with the other agents of the job, then call
    /// `on_exchange_complete` with the concatenation of everybody's.
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
            barrier: Barrier::Gathering,
            meetings: Meetings::default(),
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
        let mut lines = mem::take(&mut self.clients[index].lines);
        lines.feed(data, |message| {
            if let Err(error) = message.and_then(|message| self.on_message(index, message)) {
                self.condemn(index, Effect::Violation { rank, error });
            }
            if self.clients[index].condemned {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        self.clients[index].lines = lines;
        self.flush_replies(rank);
    }

    /// Answers a task that has connected to `PMI_PORT` and has said its rank, and handles what it sent behind that.
    pub fn on_call(&mut self, rank: Rank, rest: &[u8]) {
        let appnum = self.clients[self.index(rank)].appnum;
        reply::initack(&mut self.replies, rank, self.info.size, appnum);
        self.flush_replies(rank);
        self.on_bytes(rank, rest);
    }

    /// Handles the end of a connection to `PMI_PORT`, after all its bytes. Where it was no abnormal one, a further
    /// program of the same task may connect, so barriers wait until the task's process has ended.
    pub fn on_call_ended(&mut self, rank: Rank) {
        let client = &self.clients[self.index(rank)];
        if client.state == ClientState::Active || !client.lines.unfinished().is_empty() {
            self.on_closed(rank);
        }
    }

    /// Handles the end of a client's connection, after all its bytes, which no other follows.
    pub fn on_closed(&mut self, rank: Rank) {
        let index = self.index(rank);
        let client = &self.clients[index];
        let unfinished = client.lines.unfinished();
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

    /// Handles the end of an exchange: `pairs` are those of all agents, and the barrier is over.
    pub fn on_exchange_complete(&mut self, pairs: Bytes) -> Result<(), PairError> {
        assert_eq!(self.barrier, Barrier::Exchanging, "an exchange ends that was not asked for");
        self.spaces.on_exchanged();
        self.meetings.on_exchange_of_all();
        self.spaces.merge(pairs)?;
        self.barrier = Barrier::Gathering;
        self.release();
        self.leave_if_all_left();
        Ok(())
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
        self.spaces.merge(pairs)?;
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

    fn has(&self, rank: Rank) -> bool {
        self.clients.binary_search_by_key(&rank, |client| client.rank).is_ok()
    }

    fn index(&self, rank: Rank) -> usize {
        self.clients
            .binary_search_by_key(&rank, |client| client.rank)
            .expect("only tasks on this node are spoken of")
    }

    fn on_message(&mut self, index: usize, message: &[u8]) -> Result<(), ClientError> {
        if message.iter().all(|byte| *byte == b' ') {
            return Ok(());
        }
        let request = Request::parse(message)?;
        self.clients[index].state = ClientState::Active;
        self.on_request(index, request)
    }

    fn on_request(&mut self, index: usize, request: Request<'_>) -> Result<(), ClientError> {
        match request {
            Request::Put { kvsname, key, value } => {
                let result = self.spaces.put(kvsname, key, value);
                reply::put_result(&mut self.replies, result);
            }
            Request::Get { kvsname, key } => self.on_get(kvsname, key),
            Request::BarrierIn { group } => return self.on_barrier_in(index, group),
            Request::Initack { .. } => return Err(ClientError::CallTwice),
            Request::Init { version } => self.on_init(version),
            Request::GetMaxes => self.on_get_maxes(),
            Request::GetAppnum => self.on_get_appnum(index),
            Request::GetMyKvsname => self.on_get_my_kvsname(),
            Request::GetUniverseSize => self.on_get_universe_size(),
            Request::Finalize => self.on_finalize(index),
            Request::Abort { code, message } => self.on_abort(index, code, message),
            Request::PublishName => self.reply(reply::PUBLISH_REFUSED),
            Request::LookupName => self.reply(reply::LOOKUP_REFUSED),
            Request::UnpublishName => self.reply(reply::UNPUBLISH_REFUSED),
            Request::Spawn(SpawnBlock::More) => {}
            Request::Spawn(SpawnBlock::Last) => self.reply(reply::SPAWN_REFUSED),
            Request::CreateKvs => self.on_create_kvs(index),
            Request::DestroyKvs { kvsname } => self.on_destroy_kvs(kvsname),
            Request::GetByIdx { kvsname, idx } => self.on_get_by_idx(kvsname, idx),
        }
        Ok(())
    }

    /// A client that asks for a later version is told ours, and decides by itself (§3).
    fn on_init(&mut self, version: i64) {
        self.reply(if version == 1 { reply::INIT } else { reply::INIT_REFUSED });
    }

    fn on_get_maxes(&mut self) {
        reply::text(
            &mut self.replies,
            format_args!(
                "cmd=maxes kvsname_max={} keylen_max={} vallen_max={} rc=0",
                JobInfo::KVSNAME_MAX,
                JobInfo::KEYLEN_MAX,
                JobInfo::VALLEN_MAX
            ),
        );
    }

    fn on_get_appnum(&mut self, index: usize) {
        let appnum = self.clients[index].appnum;
        reply::text(&mut self.replies, format_args!("cmd=appnum appnum={appnum} rc=0"));
    }

    fn on_get_my_kvsname(&mut self) {
        let line = format_args!("cmd=my_kvsname kvsname={} rc=0", self.info.kvsname);
        reply::text(&mut self.replies, line);
    }

    fn on_get_universe_size(&mut self) {
        let size = self.info.universe_size.map_or(-1, i64::from);
        reply::text(&mut self.replies, format_args!("cmd=universe_size size={size} rc=0"));
    }

    fn on_get(&mut self, kvsname: &[u8], key: &[u8]) {
        let value = self.spaces.get(kvsname).and_then(|space| space.get(key));
        let quoted = key.get(..JobInfo::KEYLEN_MAX).unwrap_or(key);
        reply::get_result(&mut self.replies, quoted, value);
    }

    fn on_barrier_in(&mut self, index: usize, group: Option<&[u8]>) -> Result<(), ClientError> {
        let (ranks, tag) = match Scope::parse(group, self.info.size)? {
            Scope::Whole => return self.on_barrier_of_all(index),
            Scope::World(tag) => (IdSet::range(0, self.info.size - 1), tag),
            Scope::Node(tag) => (self.clients.iter().map(|client| client.rank.0).collect(), tag),
            Scope::Ranks(ranks, tag) => (ranks, tag),
        };
        let rank = self.clients[index].rank;
        if !ranks.contains(rank.0) {
            let group = Excerpt::new(group.unwrap_or_default());
            return Err(ClientError::Group { group, fault: GroupFault::Stranger });
        }
        self.meetings.enter(&RankGroup { ranks, tag }, rank, || present(&self.clients))?;
        self.flush_replies(rank);
        self.meet();
        Ok(())
    }

    fn on_barrier_of_all(&mut self, index: usize) -> Result<(), ClientError> {
        let client = &mut self.clients[index];
        if client.entered {
            return Err(ClientError::BarrierTwice);
        }
        client.entered = true;
        self.barrier_waits_for -= 1;
        self.exchange_if_complete(index);
        Ok(())
    }

    fn on_finalize(&mut self, index: usize) {
        self.clients[index].state = ClientState::Finalized;
        self.reply(reply::FINALIZE);
    }

    fn on_abort(&mut self, index: usize, code: i32, message: &[u8]) {
        let rank = self.clients[index].rank;
        self.condemn(index, Effect::Abort { rank, code, message: Excerpt::new(message) });
    }

    fn on_create_kvs(&mut self, index: usize) {
        let name = self.spaces.create(self.clients[index].rank);
        reply::text(&mut self.replies, format_args!("cmd=newkvs kvsname={name} rc=0"));
    }

    fn on_destroy_kvs(&mut self, kvsname: &[u8]) {
        if self.spaces.destroy(kvsname) {
            self.reply(reply::KVS_DESTROYED);
        } else {
            self.reply(reply::KVS_NOT_DESTROYED);
        }
    }

    fn on_get_by_idx(&mut self, kvsname: &[u8], idx: i64) {
        let index = usize::try_from(idx).unwrap_or(usize::MAX);
        match self.spaces.get(kvsname) {
            Some(space) => reply::by_index(&mut self.replies, index, space.by_index(index)),
            None => reply::no_such_kvs_by_index(&mut self.replies, kvsname),
        }
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
        if !client.entered {
            self.barrier_waits_for -= 1;
        }
        let (rank, is_missed) = (client.rank, client.is_missed);
        if !is_missed {
            self.meetings.leave(rank);
            self.meet();
        }
        self.exchange_if_complete(index);
        self.leave_if_all_left();
    }
}

/// The barrier.
impl Server {
    /// Starts the exchange when `index` was the last that the barrier waited for.
    fn exchange_if_complete(&mut self, index: usize) {
        let complete = self.barrier_waits_for == 0 && self.barrier == Barrier::Gathering;
        if complete && self.clients.iter().any(|client| client.entered) {
            self.barrier = Barrier::Exchanging;
            self.flush_replies(self.clients[index].rank);
            let pairs = self.spaces.take_pending();
            self.effects.push_back(Effect::Exchange { pairs });
        }
    }

    /// Lets everybody out, in order of rank.
    fn release(&mut self) {
        for client in self.clients.iter_mut().filter(|client| client.entered) {
            client.entered = false;
            if !client.left {
                self.barrier_waits_for += 1;
            }
            let bytes = Bytes::from_static(reply::BARRIER_OUT);
            self.effects.push_back(Effect::Reply { rank: client.rank, bytes });
        }
    }

    fn leave_if_all_left(&mut self) {
        let idle = self.barrier_waits_for == 0 && self.barrier == Barrier::Gathering;
        if idle && self.clients.iter().all(|client| client.left) {
            self.effects.push_back(Effect::Leave);
        }
    }
}

/// Barriers of groups.
impl Server {
    /// Goes on with every group of which all tasks here have entered or have left.
    fn meet(&mut self) {
        let complete: Vec<RankGroup> = self.meetings.complete().cloned().collect();
        for group in complete {
            if group.ranks.iter().all(|rank| self.has(Rank(rank))) {
                self.release_group(&group);
            } else {
                let puts = self.spaces.puts();
                let pairs = self.spaces.put_after(self.meetings.exchange(&group, puts));
                self.effects.push_back(Effect::ExchangeGroup { group, pairs });
            }
        }
    }

    /// Lets everybody of a group out, in order of rank.
    fn release_group(&mut self, group: &RankGroup) {
        let mut line = BytesMut::new();
        reply::text(&mut line, format_args!("cmd=barrier_out tag={}", group.tag));
        let line = line.freeze();
        for rank in self.meetings.end(group).iter().map(Rank) {
            self.effects.push_back(Effect::Reply { rank, bytes: line.clone() });
        }
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

/// Those for which the barriers of groups wait.
fn present(clients: &[Client]) -> IdSet {
    let present = clients.iter().filter(|client| !client.left || client.is_missed);
    present.map(|client| client.rank.0).collect()
}

impl Client {
    fn new(rank: Rank, appnum: u32) -> Client {
        Client {
            rank,
            appnum,
            state: ClientState::NotPmi,
            entered: false,
            left: false,
            condemned: false,
            is_missed: false,
            lines: LineBuffer::default(),
        }
    }
}
