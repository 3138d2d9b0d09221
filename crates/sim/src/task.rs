//! A simulated task: it goes through its script and reacts to signals.
//!
//! It does no more than one step at a time, so that faults fall between any two. What it does to
//! the outside comes out as [`Act`]s, which the world performs.

use std::collections::BTreeMap;
use std::mem;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use model::{ExitStatus, PmiDialect, Rank, Signal, Time, Usage};
use pmi::AllgatherPiece;
use wire::Stream;

use crate::pmi_words::{self, Words};
use crate::random::Random;
use crate::script::{Grouping, Spawned, Step};

/// What a pipe holds before its writer has to wait.
pub(crate) const PIPE_BYTES: u64 = 65_536;

/// What stands before the body of a frame of PMI-2.
pub(crate) const PREFIX_BYTES: usize = 6;

/// How long a step takes.
const STEP_TIME: Duration = Duration::from_micros(10);

/// What a task does to the outside.
pub(crate) enum Act {
    /// Let it go on after this time.
    Wake(Duration),
    /// There is something in the pipe of this stream.
    Wrote(Stream),
    /// It has sent this over PMI.
    Pmi(Bytes),
    /// It has entered its fence of this number.
    EnteredFence(usize),
    /// It has left its fence of this number.
    LeftFence(usize),
    /// It is in its ring of this number, with this number in it and between these ranks.
    InRing(usize, [u32; 3]),
    /// It has got what all tasks brought into an allgather, but for these.
    Gathered(Vec<u32>),
    /// It has entered its group's barrier.
    EnteredMeeting(Meeting),
    /// It has left it, of which these are the members.
    LeftMeeting(Meeting, Vec<u32>),
    /// It has been refused a job.
    Refused(String),
    /// It has taken what was in its standard input.
    TookInput,
    /// It has ended.
    Ended(ExitStatus),
    /// It has missed a card, which is its neighbour's fault if that has failed.
    NoCard(String),
    /// It has seen something that must not be.
    Wrong(String),
}

/// One barrier of one group: how ranks are grouped, the tag, the first member, and how often the
/// group met so before.
pub(crate) type Meeting = (Grouping, i32, u32, u32);

/// What a task waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    /// For its next step's turn, which is on its way.
    Turn,
    /// For something over PMI.
    Pmi,
    /// For room in a pipe.
    Room,
    /// For standard input.
    Input,
    /// For its end.
    End,
}

/// A task.
pub(crate) struct Task {
    rank: Rank,
    n_tasks: u32,
    /// The number of its program.
    program: u32,
    dialect: PmiDialect,
    kvsname: Rc<str>,
    /// The space of the job that has spawned its own.
    parent: Option<Rc<str>>,
    script: Rc<[Step]>,
    /// The next step.
    at: usize,
    /// How much of the next step is done: bytes written, or 1 once its request is sent.
    done: u64,
    /// The request of the next fence or allgather is sent.
    has_begun: bool,
    ignores_term: bool,
    /// How many fences it has entered.
    pub(crate) fences: usize,
    /// How many rings it has been in.
    rings: usize,
    /// How often it has met its group under a tag.
    meetings: BTreeMap<(Grouping, i32), u32>,
    pub(crate) waits_for: Wait,
    /// Until when it is stopped, and what is to end it then.
    pub(crate) stopped_until: Time,
    pub(crate) pending: Option<Signal>,
    pub(crate) strays: u32,
    pub(crate) ended: Option<ExitStatus>,
    pub(crate) pipes: [Pipe; 2],
    pub(crate) input: InputPipe,
    pub(crate) pmi: PmiConnection,
}

/// A pipe that a task writes to.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// The driver is about to read.
    pub(crate) has_reader_coming: bool,
    /// The driver has seen its end.
    pub(crate) is_over: bool,
}

/// A task's standard input.
#[derive(Default)]
pub(crate) struct InputPipe {
    /// A pipe, rather than `/dev/null`.
    pub(crate) exists: bool,
    /// Bytes that the engine has written.
    pub(crate) given: u64,
    /// Bytes of these that the pipe has taken.
    pub(crate) taken: u64,
    /// Bytes of these that the task has read.
    pub(crate) read: u64,
    /// To be closed once all is taken.
    pub(crate) ends: bool,
    /// The driver has seen that nobody reads.
    pub(crate) is_broken: bool,
}

/// The task's end of its PMI connection.
#[derive(Default)]
pub(crate) struct PmiConnection {
    received: Bytes,
    /// The ranks of which it has heard in an allgather that is not over, and those that were missing.
    gathered: u32,
    missing: Vec<u32>,
    /// It has connected, where it does so itself.
    pub(crate) is_connected: bool,
    /// What it sends once its greeting is answered, where it speaks PMI-2.
    pub(crate) unsent: Bytes,
    /// The engine was told that the task has closed it.
    pub(crate) is_over: bool,
}

impl Task {
    pub(crate) fn new(
        rank: Rank,
        n_tasks: u32,
        program: u32,
        dialect: PmiDialect,
        kvsname: Rc<str>,
        script: Rc<[Step]>,
        has_input: bool,
    ) -> Task {
        Task {
            rank,
            n_tasks,
            program,
            dialect,
            kvsname,
            parent: None,
            script,
            at: 0,
            done: 0,
            has_begun: false,
            ignores_term: false,
            fences: 0,
            rings: 0,
            meetings: BTreeMap::new(),
            waits_for: Wait::Turn,
            stopped_until: Time::ZERO,
            pending: None,
            strays: 0,
            ended: None,
            pipes: Default::default(),
            input: InputPipe { exists: has_input, ..InputPipe::default() },
            pmi: PmiConnection::default(),
        }
    }

    /// It belongs to a job that a task of the job with this key-value space has spawned.
    pub(crate) fn spawned_by(self, kvsname: &str) -> Task {
        Task { parent: Some(kvsname.into()), ..self }
    }

    /// Its standard error is its standard output.
    pub(crate) fn merge_outputs(&mut self) {
        let mut script = self.script.to_vec();
        for step in &mut script {
            if let Step::Output(stream, _) = step {
                *stream = Stream::Stdout;
            }
        }
        self.script = script.into();
        self.pipes[stream_index(Stream::Stderr)].is_over = true;
    }

    pub(crate) fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether a process of it, or one that it left behind, lives.
    pub(crate) fn is_anything_left(&self) -> bool {
        self.is_running() || self.strays > 0
    }

    /// What it has used: of the processor what its steps took, and memory by its rank.
    pub(crate) fn usage(&self) -> Usage {
        let user_us = u64::try_from(STEP_TIME.as_micros()).unwrap_or(u64::MAX) * self.at as u64;
        let rss_max_kib = 1_000 + u64::from(self.rank.0);
        Usage { user_us, rss_max_kib, ..Usage::default() }
    }

    /// Takes what came over PMI.
    pub(crate) fn receive(&mut self, data: &Bytes) {
        // What its connecting is answered with is no answer to what it has asked.
        if !data.starts_with(b"cmd=initack ") {
            self.pmi.append(data);
        }
    }

    /// Whether `signal` ends it.
    pub(crate) fn dies_of(&self, signal: Signal) -> bool {
        let ends =
            [Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::TERM];
        signal == Signal::KILL || (ends.contains(&signal) && !self.ignores_term)
    }

    /// Does the next step, or finds that it has to wait.
    pub(crate) fn step(&mut self) -> Vec<Act> {
        let Some(step) = self.script.get(self.at).cloned() else {
            return vec![Act::Ended(ExitStatus::Exited(0))];
        };
        if matches!(step, Step::Fence | Step::Allgather { .. }) && mem::take(&mut self.has_begun) {
            self.done = 1;
        }
        match step {
            Step::Output(stream, bytes) => self.write(stream, bytes),
            Step::Wait(time) => self.next_after(time, vec![]),
            Step::ReadStdin => self.read_input(),
            Step::Pmi(line, None) => self.next_with(Act::Pmi(format!("{line}\n").into())),
            Step::Pmi(line, Some(reply)) => self.ask(pmi_words::line(&line, &reply)),
            Step::PmiInit => self.ask(pmi_words::init(self.dialect, self.rank)),
            Step::PutCard => self.put(&card_key(self.rank), &card(self.rank)),
            Step::PutPage(number) => {
                self.put(&page_key(self.rank, number), &page(self.rank, number))
            }
            Step::Publish => {
                let words = pmi_words::publish(self.dialect, &service(self.rank), &card(self.rank));
                self.ask(words)
            }
            Step::LookUp(distance) => {
                let neighbour = Rank((self.rank.0 + distance) % self.n_tasks);
                let words = pmi_words::look_up(self.dialect, &service(neighbour));
                self.check(words, "port", &card(neighbour))
            }
            Step::Unpublish => self.ask(pmi_words::unpublish(self.dialect, &service(self.rank))),
            Step::CheckProgram => {
                let answer = format!("cmd=appnum appnum={} ", self.program);
                self.ask(pmi_words::line("cmd=get_appnum", &answer))
            }
            Step::CheckCard(distance) => {
                self.check_card(Rank((self.rank.0 + distance) % self.n_tasks))
            }
            Step::CheckPage(distance, number) => {
                let neighbour = Rank((self.rank.0 + distance) % self.n_tasks);
                let key = page_key(neighbour, number);
                let words = pmi_words::get(self.dialect, &self.kvsname, &key);
                self.check(words, "value", &page(neighbour, number))
            }
            Step::CheckMember(grouping) => {
                let members = grouping.members(self.rank, self.n_tasks);
                let next = members.iter().find(|member| **member > self.rank.0);
                self.check_card(Rank(*next.unwrap_or(&members[0])))
            }
            Step::Meet(groups) => self.meet(&groups),
            Step::Ring => self.ring(),
            Step::BeginAllgather { least, most } => {
                let acts = self.allgather(least..=most);
                self.go_on(acts)
            }
            Step::Allgather { least, most } => self.allgather(least..=most),
            Step::BeginFence => {
                let acts = self.fence();
                self.go_on(acts)
            }
            Step::Fence => self.fence(),
            Step::Spawn(program, tasks) => self.spawn(program, tasks),
            Step::CheckParentCard => {
                let parent = self.parent.clone().unwrap_or_else(|| self.kvsname.clone());
                let words = pmi_words::get(self.dialect, &parent, &card_key(Rank(0)));
                self.check(words, "value", &card(Rank(0)))
            }
            Step::PmiFinalize => self.ask(pmi_words::finalize(self.dialect)),
            Step::Abort(code) => {
                self.waits_for = Wait::End;
                vec![Act::Pmi(pmi_words::abort(self.dialect, code).request.into())]
            }
            Step::LeaveStray => {
                self.strays += 1;
                self.next_after(STEP_TIME, vec![])
            }
            Step::IgnoreTerm => {
                self.ignores_term = true;
                self.next_after(STEP_TIME, vec![])
            }
            Step::Exit(status) => vec![Act::Ended(ExitStatus::Exited(status))],
            Step::Die(signal) => vec![Act::Ended(ExitStatus::Signaled { signal, core: false })],
            Step::Hang => self.wait_for(Wait::End),
        }
    }

    fn next_after(&mut self, time: Duration, mut acts: Vec<Act>) -> Vec<Act> {
        self.at += 1;
        self.done = 0;
        self.waits_for = Wait::Turn;
        acts.push(Act::Wake(time));
        acts
    }

    /// Has sent what the next fence or allgather is to wait for.
    fn go_on(&mut self, acts: Vec<Act>) -> Vec<Act> {
        self.has_begun = true;
        self.next_after(STEP_TIME, acts)
    }

    fn next_with(&mut self, act: Act) -> Vec<Act> {
        self.next_after(STEP_TIME, vec![act])
    }

    fn wait_for(&mut self, wait: Wait) -> Vec<Act> {
        self.waits_for = wait;
        vec![]
    }

    fn write(&mut self, stream: Stream, bytes: u64) -> Vec<Act> {
        let pipe = &mut self.pipes[stream_index(stream)];
        let fits = (bytes - self.done).min(PIPE_BYTES - (pipe.written - pipe.read));
        pipe.written += fits;
        self.done += fits;
        if self.done == bytes {
            return self.next_with(Act::Wrote(stream));
        }
        self.waits_for = Wait::Room;
        vec![Act::Wrote(stream)]
    }

    fn read_input(&mut self) -> Vec<Act> {
        let input = &mut self.input;
        if input.taken > input.read {
            input.read = input.taken;
            return vec![Act::TookInput, Act::Wake(STEP_TIME)];
        }
        let is_over = !input.exists || (input.ends && input.given == input.read);
        if is_over { self.next_after(STEP_TIME, vec![]) } else { self.wait_for(Wait::Input) }
    }

    /// Sends a request, then waits for a reply that starts with the answer.
    fn ask(&mut self, Words { request, answer }: Words) -> Vec<Act> {
        if self.done == 0 {
            self.done = 1;
            self.waits_for = Wait::Pmi;
            return vec![Act::Pmi(request.into())];
        }
        match self.pmi.message() {
            Some(reply) if reply.starts_with(&answer) => self.next_after(STEP_TIME, vec![]),
            Some(reply) => {
                let words = format!("rank {} asked {request:?}, heard {reply:?}", self.rank.0);
                vec![Act::Wrong(words)]
            }
            None => self.wait_for(Wait::Pmi),
        }
    }

    fn spawn(&mut self, program: Spawned, tasks: u32) -> Vec<Act> {
        let words = pmi_words::spawn(self.dialect, program, tasks);
        if self.rank.0 > 0 {
            return self.next_after(STEP_TIME, vec![]);
        }
        if self.done == 0 {
            return self.ask(words);
        }
        let Some(reply) = self.pmi.message() else { return self.wait_for(Wait::Pmi) };
        let runs = matches!(program, Spawned::Script(_));
        match (reply.starts_with(&words.answer), runs) {
            (true, false) => vec![Act::Wrong(format!("{program:?} was started: {reply:?}"))],
            (false, true) => self.next_with(Act::Refused(reply)),
            (true, true) | (false, false) => self.next_after(STEP_TIME, vec![]),
        }
    }

    fn check_card(&mut self, neighbour: Rank) -> Vec<Act> {
        let words = pmi_words::get(self.dialect, &self.kvsname, &card_key(neighbour));
        self.check(words, "value", &card(neighbour))
    }

    fn put(&mut self, key: &str, value: &str) -> Vec<Act> {
        self.ask(pmi_words::put(self.dialect, &self.kvsname, key, value))
    }

    /// Asks for what a neighbour has told, and checks the field that it is to be in.
    fn check(&mut self, words: Words, field: &str, value: &str) -> Vec<Act> {
        if self.done == 0 {
            return self.ask(words);
        }
        let expected = format!("{field}={value}");
        match self.pmi.message() {
            Some(reply) if reply.split([' ', ';']).any(|field| field == expected) => {
                self.next_after(STEP_TIME, vec![])
            }
            Some(reply) => {
                vec![Act::NoCard(format!("rank {} got a wrong card: {reply:?}", self.rank.0))]
            }
            None => self.wait_for(Wait::Pmi),
        }
    }

    /// Enters all barriers in one piece, then waits for as many ends, in any order.
    fn meet(&mut self, groups: &[(Grouping, i32)]) -> Vec<Act> {
        let groups: Vec<_> = groups
            .iter()
            .map(|&(grouping, tag)| (grouping, tag, grouping.members(self.rank, self.n_tasks)))
            .filter(|(_, _, members)| members.len() > 1)
            .collect();
        if self.done == 0 {
            return self.enter_meetings(&groups);
        }
        let mut acts = Vec::new();
        while let Some(reply) = self.pmi.message() {
            let tag = reply.strip_prefix("cmd=barrier_out tag=").and_then(|tag| tag.parse().ok());
            let group = groups.iter().find(|group| Some(group.1) == tag);
            let Some((grouping, tag, members)) = group.cloned() else {
                return vec![Act::Wrong(format!("rank {} heard {reply:?}", self.rank.0))];
            };
            let round = self.meetings.entry((grouping, tag)).or_default();
            acts.push(Act::LeftMeeting((grouping, tag, members[0], *round), members));
            *round += 1;
            self.done += 1;
        }
        if self.done == 1 + groups.len() as u64 {
            return self.next_after(STEP_TIME, acts);
        }
        self.waits_for = Wait::Pmi;
        acts
    }

    fn enter_meetings(&mut self, groups: &[(Grouping, i32, Vec<u32>)]) -> Vec<Act> {
        if groups.is_empty() {
            return self.next_after(STEP_TIME, vec![]);
        }
        self.done = 1;
        self.waits_for = Wait::Pmi;
        let mut lines = String::new();
        let mut acts = Vec::new();
        for (grouping, tag, members) in groups {
            let list: Vec<String> = members.iter().map(u32::to_string).collect();
            lines += &format!("cmd=barrier_in group={}:{tag}\n", list.join(","));
            let round = self.meetings.get(&(*grouping, *tag)).copied().unwrap_or(0);
            acts.push(Act::EnteredMeeting((*grouping, *tag, members[0], round)));
        }
        acts.push(Act::Pmi(lines.into()));
        acts
    }

    /// Both values of a task are its rank.
    fn ring(&mut self) -> Vec<Act> {
        if self.done == 0 {
            return self.ask(pmi_words::ring(self.rank));
        }
        let Some(reply) = self.pmi.message() else { return self.wait_for(Wait::Pmi) };
        let number = |field: &str| {
            let value =
                reply.split(';').find_map(|text| text.strip_prefix(field)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok())
        };
        let parts = (number("ring-count"), number("ring-left"), number("ring-right"));
        let (Some(count), Some(left), Some(right)) = parts else {
            return vec![Act::Wrong(format!("rank {} heard {reply:?} of a ring", self.rank))];
        };
        self.rings += 1;
        self.next_with(Act::InRing(self.rings - 1, [count, left, right]))
    }

    /// Takes the values of all ranks, which come in order, in one message or several.
    fn allgather(&mut self, bytes: RangeInclusive<u32>) -> Vec<Act> {
        if self.done == 0 {
            return self.ask(pmi_words::allgather(&gathered_value(self.rank.0, &bytes)));
        }
        while let Some(body) = self.pmi.body() {
            let piece = AllgatherPiece::parse(&body);
            let Some(piece) = piece.filter(|piece| piece.first == self.pmi.gathered) else {
                return vec![Act::Wrong(format!("rank {} heard {body:?}", self.rank))];
            };
            for value in piece.values() {
                let rank = self.pmi.gathered;
                let expected = gathered_len(rank, &bytes);
                let is_own = value.len() == expected && is_gathered(rank, value);
                if !is_own && !value.is_empty() {
                    let words = format!("rank {} got {value:?} of rank {rank}", self.rank);
                    return vec![Act::Wrong(words)];
                }
                if value.len() < expected {
                    self.pmi.missing.push(rank);
                }
                self.pmi.gathered += 1;
            }
            if !piece.more && self.pmi.gathered == self.n_tasks {
                self.pmi.gathered = 0;
                let missing = mem::take(&mut self.pmi.missing);
                return self.next_with(Act::Gathered(missing));
            }
        }
        self.wait_for(Wait::Pmi)
    }

    fn fence(&mut self) -> Vec<Act> {
        let is_new = self.done == 0;
        let before = self.at;
        let mut acts = self.ask(pmi_words::fence(self.dialect));
        if is_new {
            acts.insert(0, Act::EnteredFence(self.fences));
            self.fences += 1;
        }
        if self.at != before {
            acts.insert(0, Act::LeftFence(self.fences - 1));
        }
        acts
    }
}

impl Pipe {
    /// Bytes that the driver can read.
    pub(crate) fn available(&self) -> u64 {
        self.written - self.read
    }
}

impl InputPipe {
    /// Moves what fits into the pipe. Returns how much.
    pub(crate) fn fill(&mut self) -> u64 {
        let fits = (self.given - self.taken).min(PIPE_BYTES - (self.taken - self.read));
        self.taken += fits;
        fits
    }
}

impl PmiConnection {
    /// The next line, or the body of the next frame.
    fn message(&mut self) -> Option<String> {
        self.body().map(|body| String::from_utf8_lossy(&body).into_owned())
    }

    fn body(&mut self) -> Option<Bytes> {
        let prefix = self.received.get(..PREFIX_BYTES).map(String::from_utf8_lossy);
        let length = prefix.and_then(|prefix| prefix.trim().parse::<usize>().ok());
        let (start, end, next) = match length {
            Some(length) => (PREFIX_BYTES, PREFIX_BYTES + length, PREFIX_BYTES + length),
            None => {
                let end = self.received.iter().position(|&byte| byte == b'\n')?;
                (0, end, end + 1)
            }
        };
        if end > self.received.len() {
            return None;
        }
        let body = self.received.slice(start..end);
        self.received.advance(next);
        Some(body)
    }

    /// What all tasks of a node get is there once.
    fn append(&mut self, data: &Bytes) {
        self.received = if self.received.is_empty() {
            data.clone()
        } else {
            [&self.received[..], &data[..]].concat().into()
        };
    }
}

pub(crate) fn stream_index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

fn card_key(rank: Rank) -> String {
    format!("card-{rank}")
}

fn page_key(rank: Rank, number: u32) -> String {
    format!("page-{number}-of-{rank}")
}

/// A value as long as every client can put, and which LZ4 can make as short as a card of MPICH over UCX: a third.
fn page(rank: Rank, number: u32) -> String {
    let mut random = Random::new(rank.0.into(), number.into());
    let letters: Vec<char> = ('A'..='z').collect();
    let front: String = (0..300).map(|_| *random.pick(&letters)).collect();
    front.chars().cycle().take(1_000).collect()
}

fn service(rank: Rank) -> String {
    format!("service-{rank}")
}

/// What a task brings into an allgather: its rank again and again, so long that it is within these bounds.
fn gathered_value(rank: u32, bytes: &RangeInclusive<u32>) -> String {
    format!("{rank}:").chars().cycle().take(gathered_len(rank, bytes)).collect()
}

fn gathered_len(rank: u32, bytes: &RangeInclusive<u32>) -> usize {
    (bytes.start() + rank % (bytes.end() - bytes.start() + 1)) as usize
}

fn is_gathered(rank: u32, value: &[u8]) -> bool {
    let digits = format!("{rank}:");
    value.chunks(digits.len()).all(|piece| digits.as_bytes().starts_with(piece))
}

/// The value that a task puts: long enough to be worth carrying.
fn card(rank: Rank) -> String {
    format!("address-of-{:0>40}", rank.0)
}
