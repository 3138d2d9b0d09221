//! The world that engines live in: a queue of what is still to happen, and who hears of it.
//!
//! The world takes the driver's part. It hands every input to the engine that it is for, drains
//! the effects, and performs them by putting their consequences into the queue: nothing happens
//! inside of something else.

/// Adds a line to the log, if one is kept.
macro_rules! log {
    ($world:expr, $($words:tt)*) => {
        if $world.log.is_kept() {
            let line = format!($($words)*);
            $world.push_log(line);
        }
    };
}

mod callers;
mod compare;
mod deliveries;
mod effects;
mod faults;
mod finish;
mod links;
mod routes;
mod shells;
mod spawned;
mod state;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use engine::{Engine, Input, LinkId};
use model::{AgentId, IdSet, JobId, TaskMap, Time};
use proto::Event;
use wire::{Message, Stream};

use crate::checker::Checker;
use crate::fault::{Fault, When};
use crate::holders::Holders;
use crate::link::Link;
use crate::log::{Log, kind_hash};
use crate::machines::Machines;
use crate::process::{Process, ProcessId};
use crate::queue::Queue;
use crate::report::{Failure, Report};
use crate::rulebook::Rulebook;
use crate::script::Step;
use crate::session::Session;
use crate::sets::Sets;
use crate::shell::{Shell, ShellId};
use crate::sshd::Logins;
use crate::task_id::TaskId;

/// How long a driver takes for something on its own host.
const LOCAL_TIME: Duration = Duration::from_micros(50);

/// Wake-ups of one engine at one time before it counts as stuck.
const WAKES_MAX: u32 = 100;

/// The world.
pub(crate) struct World<'a> {
    session: &'a Session,
    machines: Machines<'a>,
    now: Time,
    steps: u64,
    queue: Queue<Happening>,
    processes: Vec<Process>,
    /// How many of the processes have not ended.
    running: usize,
    /// How many were killed, and their keepers are not done yet.
    unreaped: usize,
    links: Vec<Link>,
    shells: Vec<Shell>,
    logins: Option<Logins>,
    checker: Checker,
    rulebook: Rulebook,
    /// Agents that something has hurt.
    hurt: IdSet,
    /// Agents that ended while tasks of theirs ran.
    cut_short: IdSet,
    /// Agents on whose nodes the program was put.
    stored: IdSet,
    holders: Holders,
    sets: Sets,
    /// Faults by step, the next one last.
    step_faults: Vec<(u64, Fault)>,
    /// Who is apart from all others, and until when.
    partitions: Vec<(IdSet, Time)>,
    log: Log<'a>,
    kvsname: Rc<str>,
    /// Spawned jobs that cannot run.
    failing_jobs: BTreeSet<JobId>,
    /// Where the tasks of the first job run, as far as is known who is there.
    map: TaskMap,
    /// What tasks do that have no script of their own.
    script: Rc<[Step]>,
    /// The head's output: when its reader is free, what waits for it, which streams are closed.
    reader_free_at: Time,
    unwritten: u64,
    closed_outputs: [bool; 2],
    /// What each agent has written to files.
    filed: BTreeMap<AgentId, u64>,
    /// The user's input that the head has read, and how much more it wants.
    input_given: u64,
    input_wanted: u64,
    input_is_ended: bool,
    input_is_on_its_way: bool,
}

/// Something that is still to happen.
#[derive(Debug)]
enum Happening {
    /// An engine is told.
    Input(ProcessId, Input),
    /// An engine's time has come.
    Wake(ProcessId),
    /// A message is at this end of a link.
    Arrival(LinkId, usize, Message),
    /// A message at this end of a link has been received and decrypted.
    Receipt(LinkId, usize, Message),
    /// The other end of a link has closed it, and this end sees it.
    LinkDown(LinkId, usize),
    /// The kernel gives a link up at this end.
    LinkTimeout(LinkId, usize),
    /// A shell has got so far that its agents exist, or that it fails.
    ShellReady(ShellId),
    /// A host has taken a piece of the agent's program.
    ProgramPiece(ShellId),
    /// A shell has ended here.
    ShellEnded(ShellId, ShellEnd),
    /// A started agent calls its parent, for the how manieth time.
    Call(ProcessId, usize),
    /// A connection in a parent's accept queue waits for the parent's turn.
    Queued(ProcessId),
    /// Its turn has come: the parent accepts it, and is done with the handshake at this time.
    Accept(ProcessId, Time),
    /// A started agent has proved itself to its parent.
    Connected(ProcessId),
    /// An agent calls its routing parent.
    RouteCall(ProcessId, ProcessId),
    /// The two have proved themselves to each other.
    RouteConnected(ProcessId, ProcessId),
    /// A task does its next step.
    TaskStep(ProcessId, TaskId),
    /// A driver reads a task's output.
    ReadTask(ProcessId, TaskId, Stream),
    /// The keeper of a dead process kills all that was below.
    Reap(ProcessId),
    /// The keeper looks whether its agent has outlived its shell.
    Outlived(ProcessId),
    /// A task that was stopped goes on.
    ContinueTask(ProcessId, TaskId),
    /// A link that was cut is whole again.
    HealLink(LinkId),
    /// The two ends of a shell that was cut hear of each other again.
    HealShell(ShellId),
    /// A process must be gone.
    MustBeGone(ProcessId),
    /// All that was below a process that has ended must be gone.
    MustBeReaped(ProcessId),
    /// Every process must be gone, since the head has ended a while ago.
    MustBeEmpty,
    /// Every process must be gone, since the session has taken long enough.
    MustBeOver,
    /// The head reads the user's input.
    ReadInput,
    /// The reader of the head's output has taken so much.
    OutputRead(u32),
    /// Something goes wrong.
    Strike(Fault),
}

/// How a shell ended.
#[derive(Clone, Debug)]
struct ShellEnd {
    kind: wire::ShellFailureKind,
    status: model::ExitStatus,
    words: &'static str,
}

impl World<'_> {
    /// Runs a session to its end.
    pub(crate) fn run<'a>(session: &'a Session, log: Log<'a>) -> Result<Report, Failure> {
        let mut world = World::new(session, log);
        world.begin();
        while world.step() {}
        world.finish()
    }

    /// Runs a session until so many things have happened, and describes what is there then.
    pub(crate) fn state_after<'a>(session: &'a Session, steps: u64, log: Log<'a>) -> String {
        let mut world = World::new(session, log);
        world.begin();
        while world.steps < steps && world.step() {}
        world.state()
    }

    /// Lets one thing happen, unless all is over.
    fn step(&mut self) -> bool {
        if self.running + self.unreaped == 0 || !self.checker.violations.is_empty() {
            return false;
        }
        let Some((time, happening)) = self.queue.pop() else { return false };
        self.now = time;
        self.happen(happening);
        self.steps += 1;
        self.strike_by_step();
        true
    }

    fn new<'a>(session: &'a Session, log: Log<'a>) -> World<'a> {
        let kvsname = session.head_config().job.kvsname.as_str().into();
        World {
            session,
            machines: Machines::new(&session.calibration, session.seed),
            now: Time::ZERO,
            steps: 0,
            queue: Queue::new(),
            processes: Vec::with_capacity(session.n as usize + 1),
            running: 0,
            unreaped: 0,
            links: Vec::new(),
            shells: Vec::new(),
            logins: session.sshd.map(Logins::new),
            checker: Checker::new(session.n, session.n_tasks()),
            rulebook: session.rulebook(),
            hurt: if session.keeps_time() { IdSet::new() } else { IdSet::range(0, session.n) },
            cut_short: IdSet::new(),
            stored: IdSet::new(),
            holders: Holders::new(session.n),
            sets: Sets::new(session.spec.batch, &session.tree, session.begun(), session.n),
            step_faults: Vec::new(),
            partitions: Vec::new(),
            log,
            kvsname,
            failing_jobs: BTreeSet::new(),
            map: session.task_map(),
            script: session.script_of_all().steps(),
            reader_free_at: Time::ZERO,
            unwritten: 0,
            closed_outputs: [false; 2],
            filed: BTreeMap::new(),
            input_given: 0,
            input_wanted: 0,
            input_is_ended: false,
            input_is_on_its_way: false,
        }
    }

    fn begin(&mut self) {
        for (when, fault) in &self.session.faults {
            match *when {
                When::Step(step) => self.step_faults.push((step, fault.clone())),
                When::At(time) => {
                    self.queue.push(Time::ZERO + time, Happening::Strike(fault.clone()));
                }
            }
        }
        self.queue.push(Time::ZERO + self.session.time_max, Happening::MustBeOver);
        self.step_faults.sort_by_key(|&(step, _)| std::cmp::Reverse(step));
        let engine = Engine::head(self.now, self.session.head_config());
        self.add_process(Process::new(AgentId::HEAD, engine, None));
    }

    /// Brings a process to life.
    fn add_process(&mut self, process: Process) -> ProcessId {
        let id = ProcessId(self.processes.len());
        self.processes.push(process);
        self.running += 1;
        self.drain(id);
        id
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Input(process, input) => self.tell(process, input),
            Happening::Wake(process) => self.wake(process),
            Happening::Arrival(link, end, message) => self.arrive(link, end, message),
            Happening::Receipt(link, end, message) => self.receive(link, end, message),
            Happening::LinkDown(link, end) => self.see_link_down(link, end),
            Happening::LinkTimeout(link, end) => self.link_timeout(link, end),
            Happening::ShellReady(shell) => self.shell_ready(shell),
            Happening::ProgramPiece(shell) => self.take_piece(shell),
            Happening::ShellEnded(shell, end) => self.shell_ended(shell, end),
            Happening::Call(process, tries) => self.call(process, tries),
            Happening::Queued(process) => self.await_turn(process),
            Happening::Accept(process, done) => self.accept(process, done),
            Happening::Connected(process) => self.connected(process),
            Happening::RouteCall(from, to) => self.route_call(from, to),
            Happening::RouteConnected(from, to) => self.route_connected(from, to),
            Happening::TaskStep(process, task) => self.task_step(process, task),
            Happening::ReadTask(process, task, stream) => self.read_task(process, task, stream),
            Happening::Reap(process) => self.reap(process),
            Happening::Outlived(process) => self.outlived(process),
            Happening::ContinueTask(process, task) => self.continue_task(process, task),
            Happening::HealLink(link) => self.heal_link(link),
            Happening::HealShell(shell) => self.heal_shell(shell),
            Happening::MustBeGone(process) => self.must_be_gone(process),
            Happening::MustBeReaped(process) => self.must_be_reaped(process),
            Happening::MustBeEmpty => self.must_be_empty(),
            Happening::MustBeOver => self.must_be_over(),
            Happening::ReadInput => self.read_input(),
            Happening::OutputRead(bytes) => self.output_read(bytes),
            Happening::Strike(fault) => self.strike(&fault),
        }
    }

    /// Lets something happen after `time`.
    fn after(&mut self, time: Duration, happening: Happening) {
        self.queue.push(self.now + time, happening);
    }

    /// Lets a process work for so long once it is done with what it works on. Returns when it is
    /// done.
    fn work(&mut self, id: ProcessId, begin: Time, work_us: f64) -> Time {
        let process = &mut self.processes[id.0];
        let begin = begin.max(process.busy_until);
        let done = self.machines.work(process.agent, begin, work_us) + process.slowed_by;
        process.busy_until = done;
        done
    }

    /// Tells an engine after the time that a driver takes.
    fn tell_soon(&mut self, process: ProcessId, input: Input) {
        self.after(LOCAL_TIME, Happening::Input(process, input));
    }

    /// Tells an engine, and performs what it answers.
    fn tell(&mut self, id: ProcessId, input: Input) {
        let process = &self.processes[id.0];
        if !process.is_running() {
            return;
        }
        if let Some(at) = process.paused_until(self.now) {
            return self.queue.push(at, Happening::Input(id, input));
        }
        self.note_input(id, &input);
        if id == ProcessId::HEAD {
            self.follow_user(&input);
        }
        self.processes[id.0].engine.handle(self.now, input);
        self.drain(id);
    }

    fn wake(&mut self, id: ProcessId) {
        let process = &mut self.processes[id.0];
        if !process.is_running() {
            return;
        }
        if let Some(at) = process.paused_until(self.now) {
            return self.queue.push(at, Happening::Wake(id));
        }
        process.armed = None;
        if process.engine.poll_timeout().is_some_and(|time| time <= self.now) {
            process.wakes = if process.last_wake == self.now { process.wakes + 1 } else { 1 };
            process.last_wake = self.now;
            if process.wakes > WAKES_MAX {
                let agent = process.agent;
                return self.checker.violate(format!("the timer of agent {agent} stands still"));
            }
            if id == ProcessId::HEAD {
                self.rulebook.on_wake(self.now);
            }
            process.engine.on_time(self.now);
            log!(self, "agent {} wakes", self.processes[id.0].agent);
        }
        self.drain(id);
    }

    /// Performs all that an engine wants, and comes back when it wants.
    fn drain(&mut self, id: ProcessId) {
        while let Some(event) = self.processes[id.0].engine.poll_event() {
            log!(self, "agent {} tells {event:?}", self.processes[id.0].agent);
            let agent = self.processes[id.0].agent;
            self.checker.refer(|reference| reference.on_event(agent, &event));
            self.sets.on_event(id, &event);
            self.holders.on_event(id, &event);
            if id == ProcessId::HEAD {
                self.follow_map(&event);
                self.compare(&event);
                self.checker.report.events.push((self.now, event));
            }
        }
        while let Some(effect) = self.processes[id.0].engine.poll_effect() {
            self.perform(id, effect);
        }
        self.processes[id.0].engine.shrink();
        self.arm(id);
    }

    /// The head has placed the tasks anew, since somebody is missing.
    fn follow_map(&mut self, event: &Event) {
        let outcome = self.processes[ProcessId::HEAD.0].engine.outcome();
        if let (Event::AllJoined(_), Some(map)) = (event, &outcome.map) {
            self.map.clone_from(map);
            self.checker.set_tasks(JobId::FIRST, map.len());
        }
    }

    fn arm(&mut self, id: ProcessId) {
        let process = &mut self.processes[id.0];
        let Some(time) = process.engine.poll_timeout().map(|time| time.max(self.now)) else {
            return;
        };
        if process.is_running() && process.armed.is_none_or(|armed| time < armed) {
            process.armed = Some(time);
            self.queue.push(time, Happening::Wake(id));
        }
    }

    fn note_input(&mut self, id: ProcessId, input: &Input) {
        let kind = if let Input::Message { message, .. } = input {
            kind_hash(message)
        } else {
            kind_hash(input)
        };
        self.checker.note([self.now.as_nanos(), id.0 as u64, kind, self.steps]);
        log!(self, "agent {} hears {input:?}", self.processes[id.0].agent);
    }

    fn push_log(&mut self, line: String) {
        self.log.push(format!("{} {} ns {line}", self.steps, self.now.as_nanos()));
    }
}
