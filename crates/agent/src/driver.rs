//! The loop that binds an engine to the operating system: one thread, one place that sleeps.
//!
//! What has happened is told to the engine, what comes out is performed, to the end, after each
//! thing told. Reads are bounded per source and turn, so a task that floods us delays nobody by
//! more than a buffer, and what is not read holds its writer back. Messages of one turn leave
//! together at its end.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use engine::{Effect, Engine, Input, Outcome, PmiPort, Start};
use model::{AgentId, JobId, Rank, Time};
use os::machine::DescriptorLimit;
use os::process::{self, Reaped};
use os::{Clock, Interest, Pid, Ready, Signal};
use proto::Event;
use wire::{JobFault, JobSpec, Stream};

use crate::callers::Callers;
use crate::convert;
use crate::error_chain::error_chain;
use crate::front_end::FrontEnd;
use crate::helpers::Helpers;
use crate::identity::Identity;
use crate::links::Links;
use crate::output_files::{Hosts, OutputFileError, OutputFiles};
use crate::parent::Approach;
use crate::reactor::{Reactor, Watched};
use crate::signals::Signals;
use crate::source::{HelperPart, Source};
use crate::strays::Sweeps;
use crate::tasks::Tasks;
use crate::user_input::UserInput;
use crate::user_output::UserOutput;

/// How long to wait at the end for peers to take what we sent and close.
const DRAIN_BOUND: Duration = Duration::from_secs(1);

/// How long to try to kill what is below us.
const KILL_BOUND: Duration = Duration::from_secs(5);

/// How a process's part in a session ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// As the engine decided.
    Exit(u8),
    /// At once: for this reason.
    Abandon {
        /// The exit status.
        code: u8,
        /// Why.
        words: String,
    },
}

/// What the two roles have of their own.
pub(crate) enum Side<'a> {
    /// An agent.
    Agent,
    /// The head.
    Head(Box<HeadSide<'a>>),
}

/// The head's surroundings.
pub(crate) struct HeadSide<'a> {
    /// The user's standard input.
    pub(crate) input: UserInput,
    /// The user's standard output and error.
    pub(crate) output: UserOutput,
    /// Who formats what the user sees.
    pub(crate) front_end: &'a mut dyn FrontEnd,
}

/// An engine and all that it acts upon.
pub(crate) struct Driver<'a> {
    clock: Clock,
    engine: Engine,
    reactor: Reactor,
    own: AgentId,
    links: Links,
    tasks: Tasks,
    callers: Callers,
    helpers: Helpers,
    sweeps: Sweeps,
    signals: Signals,
    keeper_gone: Watched,
    /// Files of tasks' output that are written here.
    files: Option<OutputFiles>,
    side: Side<'a>,
    /// Set when the user had stopped us: the engine has yet to be told, before all else that has
    /// happened since, and by a clock that is read again.
    is_resumed: bool,
    end: Option<End>,
}

/// What a driver is made of.
pub(crate) struct Parts<'a> {
    /// The clock that the engine's times are of.
    pub(crate) clock: Clock,
    /// The engine.
    pub(crate) engine: Engine,
    /// The poller, with nothing in it but the boot channel.
    pub(crate) reactor: Reactor,
    /// Who we are.
    pub(crate) identity: Identity,
    /// The limit that tasks get back.
    pub(crate) descriptors: DescriptorLimit,
    /// Where signals arrive.
    pub(crate) signals: Signals,
    /// Files of tasks' output that the head writes.
    pub(crate) files: Option<OutputFiles>,
    /// Reads the end when the keeper has died.
    pub(crate) keeper_gone: OwnedFd,
    /// The role.
    pub(crate) side: Side<'a>,
}

impl<'a> Driver<'a> {
    /// Puts a driver together. Nothing runs yet.
    pub(crate) fn new(parts: Parts<'a>) -> io::Result<Driver<'a>> {
        let reactor = parts.reactor;
        let signals = parts.signals;
        reactor
            .poller
            .add(&signals, Source::Signals.token(), Interest::READ)
            .map_err(crate::reactor::io_error)?;
        let mut keeper_gone = Watched::new(parts.keeper_gone, Source::Keeper);
        keeper_gone.wait_for(&reactor.poller, Some(Interest::READ))?;
        let own = parts.identity.own;
        Ok(Driver {
            clock: parts.clock,
            engine: parts.engine,
            reactor,
            own,
            links: Links::new(parts.identity),
            tasks: Tasks::new(own, parts.descriptors),
            callers: Callers::default(),
            helpers: Helpers::new(parts.descriptors),
            sweeps: Sweeps::default(),
            signals,
            keeper_gone,
            files: parts.files,
            side: parts.side,
            is_resumed: false,
            end: None,
        })
    }

    /// Looks for the parent of this agent. The end of the boot channel is the end of its shell.
    pub(crate) fn approach(&mut self, approach: Approach, boot: Option<Watched>) {
        let now = self.now();
        self.links.approach(now, &mut self.reactor, approach, boot);
    }

    /// Runs until the end, and leaves no process below us.
    pub(crate) fn run(&mut self) -> End {
        let result = self.run_until_end();
        let end = result.unwrap_or_else(|error| End::Abandon {
            code: crate::exit::INTERNAL,
            words: format!("wait for what happens: {error}"),
        });
        // What cannot be killed within the bound is left to the keeper, which tries longer.
        let _ = process::kill_all_descendants(KILL_BOUND, &mut |_, _| {});
        end
    }

    /// How the session ended, as the head's engine saw it.
    pub(crate) fn outcome(&self) -> &Outcome {
        self.engine.outcome()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.clock.now())
    }

    fn run_until_end(&mut self) -> io::Result<End> {
        let mut ready = Vec::new();
        self.drain(self.now());
        loop {
            self.flush();
            match self.end.take() {
                Some(End::Exit(code)) => return self.leave(code),
                Some(abandon @ End::Abandon { .. }) => return Ok(abandon),
                None => self.turn(&mut ready)?,
            }
        }
    }

    /// Writes what this turn has queued, to the user first: what was written may be asked for again.
    fn flush(&mut self) {
        if let Side::Head(head) = &mut self.side {
            head.output.flush(&mut self.reactor);
        }
        self.drain(self.now());
        self.links.flush(&mut self.reactor);
    }

    /// Waits once, and handles all that is ready.
    fn turn(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = self.timeout();
        self.reactor.poller.wait(timeout, ready)?;
        let now = self.now();
        if std::mem::take(&mut self.is_resumed) {
            self.engine.handle(now, Input::Resumed);
            self.drain(now);
        }
        for event in ready.drain(..) {
            self.on_ready(now, event);
            self.drain(now);
        }
        self.on_time(now);
        self.drain(now);
        Ok(())
    }

    /// Performs what the engine wants, tells what it tells, and hands it what came of that, until
    /// nothing is left.
    fn drain(&mut self, now: Time) {
        loop {
            while let Some(effect) = self.engine.poll_effect() {
                if !matches!(effect, Effect::Spawn(_)) {
                    // It may be about a task that is being created.
                    self.tasks.finish_spawns(&mut self.reactor);
                }
                self.perform(now, effect);
            }
            while let Some(event) = self.engine.poll_event() {
                self.tell(now, &event);
            }
            match self.reactor.next_input() {
                Some(input) if self.end.is_none() => self.engine.handle(now, input),
                Some(_) => {}
                None if self.tasks.finish_spawn(&mut self.reactor) => {}
                None => break,
            }
        }
        self.tasks.leave_session();
    }

    fn timeout(&self) -> Option<Duration> {
        let user = match &self.side {
            Side::Agent => None,
            Side::Head(head) if head.input.is_ready() || head.output.is_unflushed() => {
                Some(Time::ZERO)
            }
            Side::Head(head) => [head.input.poll_timeout(), head.front_end.poll_timeout()]
                .into_iter()
                .flatten()
                .min(),
        };
        let own = [
            self.links.poll_timeout(),
            self.helpers.poll_timeout(),
            self.tasks.poll_timeout(),
            self.callers.poll_timeout(),
            self.sweeps.poll_timeout(),
            user,
        ];
        if self.is_resumed {
            return Some(Duration::ZERO);
        }
        let first = own.into_iter().flatten().chain(self.engine.poll_timeout()).min();
        first.map(|at| at.since(self.now()))
    }

    fn on_time(&mut self, now: Time) {
        self.links.on_time(now, &mut self.reactor);
        self.helpers.on_time(now);
        self.tasks.on_time(now, &mut self.reactor);
        self.callers.on_time(now, &self.reactor);
        if self.sweeps.poll_timeout().is_some_and(|at| at <= now) {
            self.sweep(now);
        }
        if let Side::Head(head) = &mut self.side {
            if head.input.is_ready() {
                head.input.on_ready(now, &mut self.reactor);
            }
            head.input.on_time(now, &mut self.reactor);
            if head.front_end.poll_timeout().is_some_and(|at| at <= now) {
                let text = head.front_end.on_time(now);
                head.output.push(Stream::Stderr, text, 0);
            }
        }
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.on_time(now);
        }
    }

    fn on_ready(&mut self, now: Time, ready: Ready) {
        let Some(source) = Source::of(ready.token) else { return };
        match source {
            Source::Listener => self.links.on_listener(now, &mut self.reactor),
            Source::Link(link) => self.links.on_ready(now, &mut self.reactor, link, ready),
            Source::Task(job, rank, part) => {
                self.tasks.on_ready(now, &mut self.reactor, (job, rank), part, ready);
            }
            Source::PmiPort(job) => self.callers.on_listener(now, &mut self.reactor, job),
            Source::PmiCaller(caller) => {
                self.callers.on_ready(&mut self.reactor, caller, ready);
            }
            Source::Helper(start, part) => self.on_helper(now, start, part, ready),
            Source::Signals => self.on_signals(now),
            Source::Keeper => self.on_keeper_gone(),
            Source::Boot => self.links.on_boot(&mut self.reactor),
            Source::UserInput => {
                if let Side::Head(head) = &mut self.side {
                    head.input.on_ready(now, &mut self.reactor);
                }
            }
            Source::UserOutput(stream) => {
                if let Side::Head(head) = &mut self.side {
                    head.output.on_ready(&mut self.reactor, stream);
                }
            }
        }
    }

    fn on_helper(&mut self, now: Time, start: engine::StartId, part: HelperPart, ready: Ready) {
        if let Some(streams) = self.helpers.on_ready(now, &mut self.reactor, start, part, ready) {
            self.links.adopt(&mut self.reactor, streams);
        }
    }

    fn on_keeper_gone(&mut self) {
        // Told once: an end stays ready for ever.
        let _ = self.keeper_gone.wait_for(&self.reactor.poller, None);
        match &self.side {
            Side::Agent => self.reactor.report(Input::KeeperGone),
            Side::Head(_) => self.abandon(crate::exit::KILLED, "the keeper was killed".to_owned()),
        }
    }

    fn on_signals(&mut self, now: Time) {
        while let Some(signal) = self.signals.next(now) {
            if signal == Signal::CHLD {
                self.reap();
                self.sweep(now);
                continue;
            }
            let told = convert::model_signal(signal);
            match &mut self.side {
                Side::Agent => self.reactor.report(Input::Terminated(told)),
                Side::Head(head) => {
                    if signal == Signal::CONT {
                        head.input.on_continued(now, &mut self.reactor);
                    }
                    self.reactor.report(Input::UserSignal(told));
                }
            }
        }
    }

    /// Takes the status of every process that has ended: tasks, helpers, and what was adopted.
    fn reap(&mut self) {
        while let Ok(Reaped::Ended(pid, status, usage)) = process::reap_any() {
            if !self.tasks.on_reaped(&mut self.reactor, pid, status, usage) {
                self.helpers.on_reaped(&mut self.reactor, pid, status);
            }
        }
    }

    fn sweep(&mut self, now: Time) {
        if self.sweeps.poll_timeout().is_none() {
            return;
        }
        let helpers: BTreeSet<Pid> = self.helpers.pids().collect();
        let others = self.tasks.pids_but_of(&self.sweeps.jobs());
        self.sweeps.go_on(now, &mut self.reactor, &helpers, &others);
    }

    fn tell(&mut self, now: Time, event: &Event) {
        if let Side::Head(head) = &mut self.side {
            let text = head.front_end.on_event(now, event);
            head.output.push(Stream::Stderr, text, 0);
        }
    }

    fn perform(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Start(start) => self.start(&start),
            Effect::SendProgram(start) => self.helpers.send_program(now, &self.reactor, start),
            Effect::KillShell(start) => self.helpers.kill(now, start),
            Effect::Send { links, message } => {
                self.links.send(&mut self.reactor, &links, &message);
            }
            Effect::SetLinkTimeout(link, timeout_ms) => self.links.set_timeout(link, timeout_ms),
            Effect::Listen => self.links.report_addresses(&mut self.reactor),
            Effect::Connect { peer, contact } => {
                self.links.seek(now, &mut self.reactor, peer, contact.into());
            }
            Effect::Close(link) => self.links.close(link),
            Effect::Prepare { job, host, apps } => self.prepare(&job, host, &apps),
            Effect::Spawn(spawn) => self.tasks.spawn(&mut self.reactor, &spawn),
            Effect::SignalTasks { job, signal } => {
                self.tasks.signal(job, convert::os_signal(signal));
            }
            Effect::Sweep(job) => {
                self.callers.close(job);
                let mark = self.tasks.forget_job(job);
                self.sweeps.begin(now, job, mark);
                self.reap();
                self.sweep(now);
            }
            Effect::ReadTasks(on) => self.tasks.read_output(&mut self.reactor, on),
            Effect::WriteTask { job, rank, data } => {
                if let Some(task) = self.tasks.get(job, rank) {
                    task.write_stdin(&mut self.reactor, data);
                }
            }
            Effect::CloseTaskInput { job, rank } => {
                if let Some(task) = self.tasks.get(job, rank) {
                    task.close_stdin(&mut self.reactor);
                }
            }
            Effect::PmiSend { job, rank, data } => {
                if let Some(task) = self.tasks.get(job, rank) {
                    task.write_pmi(&mut self.reactor, data);
                }
            }
            Effect::KeepSnapshot { job, data } => self.tasks.keep_snapshot(job, &data),
            Effect::PmiSendSnapshot { job, rank, data } => {
                self.tasks.write_pmi_with_snapshot(&mut self.reactor, job, rank, data);
            }
            Effect::PmiSendInMemory { job, replies, data } => {
                self.tasks.write_pmi_in_memory(&mut self.reactor, job, replies, &data);
            }
            Effect::AnswerCaller { caller, data } => {
                self.callers.answer(&self.reactor, caller, data);
            }
            Effect::AdmitCaller { caller, job, rank } => {
                if let Some(pmi) = self.callers.take(caller)
                    && let Some(task) = self.tasks.get(job, rank)
                {
                    task.connect(&mut self.reactor, pmi);
                }
            }
            Effect::DropCaller(caller) => drop(self.callers.take(caller)),
            Effect::WriteFile { job, rank, stream, data } => {
                self.write_file((job, rank), stream, &data);
            }
            Effect::CloseFiles(job) => {
                self.files.iter_mut().for_each(|files| files.forget(job));
            }
            Effect::WriteOutput { .. }
            | Effect::ReadInput(_)
            | Effect::StopInput
            | Effect::SuspendSelf => self.perform_for_user(now, effect),
            Effect::Exit(code) => self.end = Some(End::Exit(code)),
            Effect::Abandon { code, words } => self.abandon(code, words),
        }
    }

    fn perform_for_user(&mut self, now: Time, effect: Effect) {
        let Side::Head(head) = &mut self.side else { return };
        if let Effect::WriteOutput { job, rank, stream, data } = effect {
            let credit = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let text = head.front_end.on_output(job, rank, stream, data);
            head.output.push(stream, text, credit);
        } else if let Effect::ReadInput(bytes) = effect {
            head.input.grant(now, &mut self.reactor, bytes);
        } else if effect == Effect::StopInput {
            head.input.stop(&mut self.reactor);
        } else if effect == Effect::SuspendSelf {
            self.suspend(now);
        }
    }

    fn prepare(&mut self, job: &Arc<JobSpec>, host: String, apps: &[u32]) {
        let (fault, pmi_port) = match self.prepare_all(job, host, apps) {
            Ok(pmi_port) => (None, pmi_port),
            Err(fault) => (Some(fault), None),
        };
        let open_mpi = self.tasks.open_mpi(job, apps);
        self.reactor.report(Input::Prepared { job: job.job, fault, pmi_port, open_mpi });
    }

    /// Stops at the first fault.
    fn prepare_all(
        &mut self,
        job: &Arc<JobSpec>,
        host: String,
        apps: &[u32],
    ) -> Result<Option<PmiPort>, JobFault> {
        let agent = self.own;
        self.tasks.prepare(job, apps)?;
        self.create_files(job, host).map_err(|error| {
            let (errno, words) = error.into_parts();
            JobFault::Output { agent, errno, words }
        })?;
        let open = || self.callers.open(&self.reactor, job.job);
        (job.pmi_port && !apps.is_empty()).then(open).transpose().map_err(|error| {
            let errno = error.source.raw_os_error().unwrap_or_default();
            let (app, words) = (apps.first().copied().unwrap_or_default(), error_chain(&error));
            JobFault::Program { agent, app, errno, words }
        })
    }

    /// Makes the files of a job's tasks that are written here.
    fn create_files(&mut self, job: &Arc<JobSpec>, host: String) -> Result<(), OutputFileError> {
        if let Some(node) = self.own.node().filter(|_| job.io.output.local) {
            let new = || OutputFiles::new(Hosts::Own(node, host));
            self.files.get_or_insert_with(new);
        }
        self.files.as_mut().map_or(Ok(()), |files| files.create(Arc::clone(job)))
    }

    fn write_file(&mut self, of: (JobId, Rank), stream: Stream, data: &[u8]) {
        let Some(files) = &mut self.files else { return };
        if let Err(error) = files.write(of, stream, data) {
            let (errno, words) = error.into_parts();
            self.reactor.report(Input::NotWritten { errno, words });
        }
    }

    fn suspend(&mut self, now: Time) {
        self.links.flush(&mut self.reactor);
        self.signals.stop_self();
        if let Side::Head(head) = &mut self.side {
            head.input.on_continued(now, &mut self.reactor);
        }
        self.is_resumed = true;
    }

    fn start(&mut self, start: &Start) {
        self.helpers.start(&mut self.reactor, &mut self.links, start);
    }

    fn abandon(&mut self, code: u8, words: String) {
        self.end = Some(End::Abandon { code, words });
    }

    /// Sends what is queued, to the peers within a bound, to the user as long as they like.
    fn leave(&mut self, code: u8) -> io::Result<End> {
        let deadline = self.now() + DRAIN_BOUND;
        let mut ready = Vec::new();
        self.links.close_all();
        self.flush();
        loop {
            let now = self.now();
            let is_sent = self.links.is_quiet() || now >= deadline;
            if is_sent && self.is_output_written() {
                return Ok(End::Exit(code));
            }
            let timeout = (!is_sent).then(|| deadline.since(now));
            self.reactor.poller.wait(timeout, &mut ready)?;
            for event in ready.drain(..) {
                if self.is_interruption(event) {
                    return Ok(End::Exit(code));
                }
                self.on_ready(self.now(), event);
            }
            while self.reactor.next_input().is_some() {}
        }
    }

    fn is_output_written(&self) -> bool {
        match &self.side {
            Side::Agent => true,
            Side::Head(head) => head.output.is_empty(),
        }
    }

    /// Whether somebody does not want to wait for the rest.
    fn is_interruption(&mut self, ready: Ready) -> bool {
        if Source::of(ready.token) != Some(Source::Signals) {
            return false;
        }
        let enough = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        let (now, mut is_enough) = (self.now(), false);
        while let Some(signal) = self.signals.next(now) {
            is_enough |= enough.contains(&signal);
        }
        self.reap();
        is_enough
    }
}
