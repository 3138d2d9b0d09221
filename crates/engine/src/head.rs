//! The head's government: who counts as a member, when the job starts, when it ends, with what
//! status.
//!
//! Nothing is launched before every agent that is needed has joined and found the program
//! (`roll_call.rs`): a node that can't take part must not cost a run that has had effects elsewhere. This
//! takes one message up and one down the tree, which overlap with nothing but are small against one
//! remote shell.
//!
//! Every node ends as joined or as failed with a cause. The first failure that leaves too few condemns
//! the session, but the others get a moment to be told of in the same breath.

mod user;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, JobId, Route, Signal, StatusRuns, TaskMap, Time};
use proto::Event;
use wire::{
    AgentLoss, Collective, JobFault, JobSpec, Launch, Message, Routes, StartFailure, Stdin,
};

use crate::child;
use crate::children::never_started;
use crate::job::INPUT_BYTES;
use crate::name_service::NameService;
use crate::orders::Orders;
use crate::roll_call::RollCall;
use crate::route::RouteTree;
use crate::spawner::Spawner;
use crate::{Effect, HeadConfig, Outcome, SpawnedFault, exit_code};

/// What the head knows and has decided.
#[derive(Debug)]
pub(crate) struct Head {
    /// What members sent up to their parent, which is this.
    pub(crate) inbox: VecDeque<Message>,
    pub(crate) outcome: Outcome,
    roll: RollCall,
    /// Whom the job runs on, once it is launched.
    members: IdSet,
    state: State,
    /// The shape of the routing tree, if it is not the spawn tree; once the members are known, the tree.
    shape: Option<Route>,
    routes: Option<RouteTree>,
    /// All that reports to the head in that tree has said that nothing runs any more.
    is_done: bool,
    /// Agents that have said so themselves, since their routing parent is gone.
    orphans_done: IdSet,
    /// How many tasks the job has as it was planned.
    tasks: u32,
    stdin: Stdin,
    stop_on_failure: bool,
    forward_signals: Vec<Signal>,
    /// What a fence pushes to everybody at most.
    push_bytes_max: u64,
    grace: Duration,
    join: JoinLimit,
    timeout_at: Option<Time>,
    /// Set while the user has stopped the front end: since when.
    stopped_at: Option<Time>,
    /// Set once the exit status is decided; the first cause counts, MPI_Abort's above all.
    decided: bool,
    /// The user's SIGTERM was passed on; tasks that do not heed it are killed then.
    kill_at: Option<Time>,
    input_offset: u64,
    input_open: bool,
    names: NameService,
    spawner: Spawner,
}

/// How far the session has come.
#[derive(Debug)]
enum State {
    /// Agents are joining. After a failure, others that fail are waited for until `condemned_at`.
    Joining { deadline: Time, told: bool, condemned_at: Option<Time> },
    /// The members are known, and take their places in the routing tree.
    Routing,
    /// The tasks run.
    Running,
    /// The tasks are being ended; agents that do not say so in time are left behind.
    Stopping { until: Time },
    /// The agents are leaving.
    Leaving,
}

/// How long agents may take to join.
#[derive(Clone, Copy, Debug)]
enum JoinLimit {
    /// So long in all.
    Fixed,
    /// So long after the last one joined: the more there are and the slower they come up, the longer
    /// it may take in all.
    Progress(Duration),
}

/// What a parent may need to tell that it has given up.
const MARGIN: Duration = Duration::from_secs(5);

/// After the first failure, how long other failures are waited for.
const CONDEMNED: Duration = Duration::from_secs(2);

/// How long members may take to answer that the join deadline has passed.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long after SIGKILL the end of all tasks may take to be told.
const KILLED: Duration = Duration::from_secs(3);

impl Head {
    pub(crate) fn new(now: Time, n: u32, config: HeadConfig) -> Head {
        assert_eq!(config.job.is_movable, config.muster.is_movable(), "who looks a program up");
        // A start that fails or is silent is given up by its parent first, which names the cause.
        let start_timeout = Duration::from_millis(u64::from(config.session.start_timeout_ms));
        let patience =
            child::patience(start_timeout, config.session.retries_max).saturating_add(MARGIN);
        let (join, deadline) = match config.join_timeout {
            Some(limit) => (JoinLimit::Fixed, now + limit),
            None => (JoinLimit::Progress(patience), now + patience),
        };
        Head {
            inbox: VecDeque::new(),
            outcome: Outcome::default(),
            roll: RollCall::new(now, n, config.muster.clone()),
            members: IdSet::new(),
            state: State::Joining { deadline, told: false, condemned_at: None },
            shape: config.session.route,
            routes: None,
            is_done: false,
            orphans_done: IdSet::default(),
            tasks: config.job.map.len(),
            stdin: config.job.io.stdin,
            stop_on_failure: config.job.stop_on_failure,
            forward_signals: config.forward_signals.clone(),
            push_bytes_max: config.push_bytes_max,
            grace: grace(&config.job),
            join,
            timeout_at: config.timeout.map(|limit| now + limit),
            stopped_at: None,
            decided: false,
            kill_at: None,
            input_offset: 0,
            input_open: false,
            names: NameService::default(),
            spawner: Spawner::new(config),
        }
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        let state = match &self.state {
            State::Joining { deadline, condemned_at, .. } => {
                [Some(*deadline), *condemned_at, self.roll.timeout()].into_iter().flatten().min()
            }
            State::Stopping { until } => Some(*until),
            State::Routing | State::Running | State::Leaving => None,
        };
        [state, self.timeout_at, self.kill_at].into_iter().flatten().min()
    }

    pub(crate) fn on_message(&mut self, message: Message, orders: &mut Orders) {
        match message {
            Message::Joined(ids) => self.on_joined(&ids, orders),
            Message::StartFailed(failures) => {
                for failure in failures {
                    self.on_start_failed(failure, orders);
                }
                self.check_members(orders);
            }
            Message::JobFault(job, fault) => self.on_fault(job, *fault, orders),
            Message::Warning(job, warning) => {
                orders.events.push_back(Event::JobWarning(job, warning));
            }
            Message::NameRequest(job, rank, request) => {
                let reply = self.names.answer(*request, orders.jobs);
                orders.down.push(Message::NameReply(job, rank, Box::new(reply)));
            }
            Message::SpawnRequest(job, rank, request) => {
                let members = matches!(self.state, State::Running).then_some(&self.members);
                self.spawner.on_request((job, rank), *request, members, orders);
            }
            Message::Reached(job, milestone) => {
                let (members, known) = (&self.members, &mut self.outcome.spawned);
                self.spawner.on_reached((job, milestone), members, known, orders);
            }
            // The end of a task that failed counts as entering. Its fault was heard of before, and
            // where that ends the job nobody may go on without it.
            Message::Enter { job, fence, .. } => self.end_fence(job, fence, orders),
            Message::EnterPart(job, part) => match part.of {
                Collective::Fence if part.is_last => self.end_fence(job, part.number, orders),
                Collective::Fence => {}
                Collective::Allgather => {
                    if matches!(self.state, State::Running) {
                        orders.down.push(Message::ReleasePart(job, part));
                    }
                }
            },
            Message::RingEnter(job, ring, stretch) => {
                if matches!(self.state, State::Running) {
                    orders.down.push(Message::RingPlace(job, ring, Box::new(stretch.close())));
                }
            }
            Message::AllgatherEnter(job, allgather, values) => {
                if matches!(self.state, State::Running) {
                    orders.down.push(Message::AllgatherRelease(job, allgather, values));
                }
            }
            Message::InputCredit(_, bytes) if self.input_open => {
                orders.effects.push_back(Effect::ReadInput(bytes));
            }
            Message::InputClosed(_) => self.close_input(orders),
            Message::Done { job, statuses, .. } => self.on_done(job, &statuses, orders),
            Message::Routed => {
                if matches!(self.state, State::Routing) {
                    self.launch(orders);
                }
            }
            Message::Records(JobId::FIRST, records) => self.outcome.records.extend(records),
            Message::Records(job, records) => self.outcome.spawned.on_records(job, records),
            Message::Lost(loss) => self.on_lost(loss, orders),
            // Members send nothing else up.
            Message::InputCredit(..)
            | Message::Hello(_)
            | Message::Welcome(_)
            | Message::Job(_)
            | Message::JoinDeadline
            | Message::Launch(_)
            | Message::Release { .. }
            | Message::ReleasePart(..)
            | Message::Held(..)
            | Message::Fetch(..)
            | Message::Fetched(..)
            | Message::Output(_)
            | Message::GroupEnter { .. }
            | Message::GroupRelease { .. }
            | Message::GroupAwaited(..)
            | Message::NameReply(..)
            | Message::Spawn(_)
            | Message::SpawnReply(..)
            | Message::RingPlace(..)
            | Message::AllgatherRelease(..)
            | Message::OutputCredit(_)
            | Message::Input { .. }
            | Message::InputEnd(_)
            | Message::Signal(..)
            | Message::Stop { .. }
            | Message::Shutdown
            | Message::Bye(_)
            | Message::Marks(_)
            | Message::Ping { .. }
            | Message::Suspend(_)
            | Message::MoreWork(_)
            | Message::Work(_)
            | Message::Contacts(_)
            | Message::Resolve(_)
            | Message::Route(_)
            | Message::Attach(_)
            | Message::Received(_)
            | Message::Forward(_)
            | Message::Gone(_) => {}
        }
    }

    /// Handles that all tasks of a job have entered a fence.
    fn end_fence(&self, id: JobId, fence: u32, orders: &mut Orders) {
        if let Some(job) = orders.jobs.get(id).filter(|_| matches!(self.state, State::Running)) {
            orders.down.extend(job.end_of_fence(fence, self.push_bytes_max));
        }
    }

    /// Handles that nothing of a job runs any more.
    fn on_done(&mut self, job: JobId, statuses: &StatusRuns, orders: &mut Orders) {
        if job == JobId::FIRST {
            self.outcome.statuses.merge(statuses);
            self.is_done = true;
            self.spawner.on_first_done();
        } else {
            orders.events.push_back(Event::JobDone(job));
            self.outcome.spawned.on_statuses(job, statuses);
            self.spawner.on_done(job);
        }
        self.check_done(orders);
    }

    /// Handles that nothing runs any more at and below an agent whose routing parent is gone.
    pub(crate) fn on_orphan_done(
        &mut self,
        agent: AgentId,
        statuses: &StatusRuns,
        orders: &mut Orders,
    ) {
        self.outcome.statuses.merge(statuses);
        self.orphans_done.insert(agent.0);
        self.check_done(orders);
    }

    /// Ends the session once nothing runs any more, also where nobody passes it on.
    fn check_done(&mut self, orders: &mut Orders) {
        let orphans = self.routes.as_ref().map(|routes| routes.orphans(self.roll.failed()));
        let awaited = orphans.unwrap_or_default().difference(&self.orphans_done);
        if !self.is_done || !awaited.is_empty() || !self.spawner.is_idle() {
            return;
        }
        // Who was left behind may have tasks that run.
        if !matches!(self.state, State::Leaving) {
            orders.events.push_back(Event::JobDone(JobId::FIRST));
        }
        self.end(orders);
    }

    fn on_joined(&mut self, ids: &IdSet, orders: &mut Orders) {
        // Who was told of as lost stays so, though its parent may have started it again meanwhile.
        let ids = &self.roll.without_failed(ids);
        self.roll.on_joined(orders.now, ids);
        orders.events.push_back(Event::AgentsJoined(ids.clone()));
        self.on_progress(orders.now);
        self.check_members(orders);
        if matches!(self.state, State::Running) {
            let late = self.spawner.late(ids);
            self.members = self.members.union(&late);
            self.outcome.members = self.members.clone();
            self.spawner.on_joined(&late, orders);
        }
    }

    /// Gives the rest more time to join: what has become known of some may have let others begin.
    pub(crate) fn on_progress(&mut self, now: Time) {
        if let (State::Joining { deadline, told: false, .. }, JoinLimit::Progress(patience)) =
            (&mut self.state, self.join)
        {
            *deadline = now + patience;
        }
    }

    fn on_start_failed(&mut self, failure: StartFailure, orders: &mut Orders) {
        self.roll.on_missing(&failure.agents);
        orders.events.push_back(Event::StartFailed(failure.clone()));
        self.spawner.on_missing(&failure.agents, orders);
        self.outcome.start_failures.push(failure);
        self.on_progress(orders.now);
        self.check_hope(exit_code::NOT_STARTED, orders.now);
    }

    fn on_lost(&mut self, mut loss: AgentLoss, orders: &mut Orders) {
        if !matches!(self.state, State::Joining { .. }) {
            // Whoever launches starts nobody again.
            loss.agents = loss.agents.union(&core::mem::take(&mut loss.again));
        }
        self.roll.on_missing(&loss.agents);
        self.roll.on_again(&loss.again);
        orders.events.push_back(Event::AgentLost(loss.clone()));
        self.spawner.on_missing(&loss.agents, orders);
        let hit = self.members_of(&loss.agents);
        if !matches!(self.state, State::Routing) {
            self.outcome.incomplete = self.outcome.incomplete.union(&self.cut_off(&hit));
        }
        self.outcome.losses.push(loss);
        match self.state {
            State::Joining { .. } => {
                self.on_progress(orders.now);
                self.check_hope(exit_code::AGENT_LOST, orders.now);
                self.check_members(orders);
            }
            // Who has no tasks is not needed.
            State::Routing | State::Running | State::Stopping { .. } | State::Leaving
                if hit.is_empty() => {}
            State::Routing => {
                self.decide(exit_code::AGENT_LOST);
                self.end(orders);
            }
            State::Running => {
                self.decide(exit_code::AGENT_LOST);
                self.stop(self.grace, orders);
            }
            State::Stopping { .. } | State::Leaving => self.decide(exit_code::AGENT_LOST),
        }
        if self.routes.is_some() && !hit.is_empty() && matches!(self.state, State::Stopping { .. })
        {
            orders.down.push(Message::Gone(hit));
            self.check_done(orders);
        }
    }

    /// These agents and all whose output went through them, as long as some may have been on its way.
    fn cut_off(&self, gone: &IdSet) -> IdSet {
        let Some(routes) = self.routes.as_ref().filter(|_| !self.is_done) else {
            return gone.clone();
        };
        let below = gone.iter().map(|id| routes.subtree(AgentId(id)));
        below.fold(gone.clone(), |all, below| all.union(&below))
    }

    fn members_of(&self, agents: &IdSet) -> IdSet {
        self.members.intersection(agents)
    }

    /// Handles that somebody will not be there. Where that ends the session, it gives the status, and
    /// other failures have a moment to become known.
    fn check_hope(&mut self, code: u8, now: Time) {
        if let State::Joining { condemned_at, .. } = &mut self.state
            && self.roll.is_hopeless()
        {
            condemned_at.get_or_insert(now + CONDEMNED);
            self.decide(code);
        }
    }

    /// Launches the job once those are there whom it needs; ends the session where they can't be, once
    /// all have joined or failed.
    fn check_members(&mut self, orders: &mut Orders) {
        if !matches!(self.state, State::Joining { .. }) {
            return;
        }
        if self.roll.is_hopeless() || !self.outcome.faults.is_empty() {
            if self.roll.undecided().is_empty() {
                self.end(orders);
            }
        } else if self.roll.is_complete(orders.now) {
            self.settle_members(orders);
        }
    }

    /// Fixes who runs the job, and what runs where.
    fn settle_members(&mut self, orders: &mut Orders) {
        let (members, map) = match self.roll.members() {
            Ok(members) => members,
            Err(error) => {
                self.outcome.shortage = Some(error);
                self.decide(exit_code::NOT_STARTED);
                return self.end(orders);
            }
        };
        let late = self.roll.late();
        if !late.is_empty() {
            self.on_start_failed(never_started(late, AgentId::HEAD), orders);
        }
        self.members = members.clone();
        self.outcome.members = members.clone();
        self.outcome.map = map;
        orders.events.push_back(Event::AllJoined(members));
        self.route(orders);
    }

    /// Has the members take their places in the routing tree, if that is another than the spawn tree.
    fn route(&mut self, orders: &mut Orders) {
        let Some(shape) = self.shape else { return self.launch(orders) };
        let members = self.members.clone();
        self.state = State::Routing;
        self.routes = Some(RouteTree::new(shape, AgentId::HEAD, members.clone()));
        let routes = Routes { members, contacts: Vec::new() };
        orders.down.push(Message::Route(Box::new(routes)));
    }

    fn launch(&mut self, orders: &mut Orders) {
        self.state = State::Running;
        orders.events.push_back(Event::Launched(JobId::FIRST));
        let (members, map) = (self.members.clone(), self.outcome.map.clone());
        self.spawner.on_launch(map.as_ref());
        let tasks = map.as_ref().map_or(self.tasks, TaskMap::len);
        let launch = Launch { job: JobId::FIRST, members, map };
        orders.down.push(Message::Launch(Box::new(launch)));
        let is_read = match self.stdin {
            Stdin::Nobody => false,
            Stdin::Task(rank) => rank.0 < tasks,
            Stdin::All => true,
        };
        if is_read {
            self.input_open = true;
            orders.effects.push_back(Effect::ReadInput(INPUT_BYTES));
        }
    }

    fn on_fault(&mut self, job: JobId, fault: JobFault, orders: &mut Orders) {
        if self.spawner.on_fault(job, &fault, orders) {
            return;
        }
        let is_joining = matches!(self.state, State::Joining { .. });
        // A node that comes up twice tells twice what it lacks.
        let is_known = is_joining && self.outcome.faults.contains(&fault);
        let is_outside = node_of(&fault).is_some_and(|agent| !self.members.contains(agent.0));
        if is_known || !is_joining && is_outside {
            return;
        }
        orders.events.push_back(Event::JobFault(job, fault.clone()));
        let code = exit_code::of_fault(&fault);
        if matches!(fault, JobFault::Abort { .. })
            && !self.all_faults().any(|known| matches!(known, JobFault::Abort { .. }))
        {
            self.decided = false;
        }
        self.decide(code);
        let stops = stops(&fault, self.stop_on_failure);
        if job == JobId::FIRST {
            self.outcome.faults.push(fault);
        } else {
            let node = fault.rank().and_then(|rank| self.spawner.node_of(job, rank));
            self.outcome.spawned_faults.push(SpawnedFault { job, node, fault });
        }
        match self.state {
            State::Running if stops => self.stop(self.grace, orders),
            State::Joining { .. }
            | State::Routing
            | State::Running
            | State::Stopping { .. }
            | State::Leaving => {}
        }
    }

    fn all_faults(&self) -> impl Iterator<Item = &JobFault> {
        let spawned = self.outcome.spawned_faults.iter().map(|spawned| &spawned.fault);
        self.outcome.faults.iter().chain(spawned)
    }

    /// The first cause gives the status.
    fn decide(&mut self, code: u8) {
        if !self.decided {
            self.decided = true;
            self.outcome.code = code;
        }
    }

    /// Ends the tasks; once they have ended, the session ends.
    fn stop(&mut self, grace: Duration, orders: &mut Orders) {
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        self.state = State::Stopping { until: orders.now + grace + KILLED };
        self.kill_at = None;
        for job in self.running_jobs() {
            orders.events.push_back(Event::Stopping(job));
            orders.down.push(Message::Stop { job, grace_ms });
        }
        self.spawner.give_up(orders);
        self.close_input(orders);
    }

    /// The jobs of which something may still run.
    fn running_jobs(&self) -> impl Iterator<Item = JobId> {
        let first = (!self.is_done).then_some(JobId::FIRST);
        first.into_iter().chain(self.spawner.jobs())
    }

    fn signal(&self, signal: Signal, orders: &mut Orders) {
        orders.down.extend(self.running_jobs().map(|job| Message::Signal(job, signal)));
    }

    /// Ends the session.
    fn end(&mut self, orders: &mut Orders) {
        self.close_input(orders);
        self.state = State::Leaving;
        self.timeout_at = None;
        self.kill_at = None;
        orders.down.push(Message::Shutdown);
    }

    /// Ends what is going on, whatever it is.
    fn interrupt(&mut self, grace: Duration, orders: &mut Orders) {
        match self.state {
            State::Joining { .. } | State::Routing => self.end(orders),
            State::Running => self.stop(grace, orders),
            State::Stopping { .. } | State::Leaving => {}
        }
    }

    /// Handles that the user's reader took some output: what tasks wrote before they were stopped is
    /// waited for as long as it goes on.
    pub(crate) fn on_output_written(&mut self, orders: &mut Orders) {
        self.extend_stopping(orders.now);
    }

    fn extend_stopping(&mut self, now: Time) {
        if let State::Stopping { until } = &mut self.state {
            *until = (*until).max(now + KILLED);
        }
    }

    pub(crate) fn on_stopped(&mut self, now: Time) {
        self.stopped_at = Some(now);
    }

    /// Handles that the front end goes on; returns for how long it was stopped. That does not count as
    /// time in which agents might have joined.
    pub(crate) fn on_going_on(&mut self, now: Time) -> Option<Duration> {
        let pause = now.since(self.stopped_at.take()?);
        if let State::Joining { deadline, condemned_at, .. } = &mut self.state {
            *deadline = *deadline + pause;
            *condemned_at = condemned_at.map(|at| at + pause);
        }
        Some(pause)
    }

    pub(crate) fn on_resumed(&mut self, orders: &mut Orders) {
        self.extend_stopping(orders.now);
        orders.down.push(Message::Suspend(false));
    }

    /// The exit status when the head must end at once.
    pub(crate) fn abandoned(&mut self) -> u8 {
        self.decide(exit_code::INTERNAL);
        self.outcome.code
    }

    pub(crate) fn on_time(&mut self, orders: &mut Orders) {
        let now = orders.now;
        if self.roll.timeout().is_some_and(|at| at <= now) {
            self.roll.on_time(now);
            self.check_members(orders);
        }
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.timeout_at = None;
            self.outcome.timed_out = true;
            self.decide(exit_code::TIMED_OUT);
            self.interrupt(self.grace, orders);
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            self.decide(128 + self.outcome.signal.unwrap_or(Signal::TERM).0);
            self.stop(Duration::ZERO, orders);
        }
        match &mut self.state {
            State::Joining { condemned_at: Some(at), .. } if *at <= now => self.end(orders),
            State::Joining { deadline, told: told @ false, .. } if *deadline <= now => {
                *told = true;
                *deadline = now + LAST_WORDS;
                orders.down.push(Message::JoinDeadline);
            }
            State::Joining { deadline, .. } if *deadline <= now => self.give_up_missing(orders),
            State::Stopping { until } if *until <= now => self.end(orders),
            State::Joining { .. }
            | State::Routing
            | State::Running
            | State::Stopping { .. }
            | State::Leaving => {}
        }
    }

    /// Those of whom nobody has said anything: their parents hang too.
    fn give_up_missing(&mut self, orders: &mut Orders) {
        self.on_start_failed(never_started(self.roll.undecided(), AgentId::HEAD), orders);
        self.check_members(orders);
    }
}

/// The agent of the node that can't run the job, if that is the fault.
fn node_of(fault: &JobFault) -> Option<AgentId> {
    match *fault {
        JobFault::Program { agent, .. }
        | JobFault::Directory { agent, .. }
        | JobFault::Output { agent, .. } => Some(agent).filter(|agent| *agent != AgentId::HEAD),
        JobFault::Spawn { .. }
        | JobFault::Task { .. }
        | JobFault::Unfinalized { .. }
        | JobFault::Abort { .. }
        | JobFault::Pmi { .. } => None,
    }
}

/// Whether a fault ends a job that runs.
pub(crate) fn stops(fault: &JobFault, stop_on_failure: bool) -> bool {
    match fault {
        JobFault::Task { .. } | JobFault::Unfinalized { .. } => stop_on_failure,
        JobFault::Program { .. }
        | JobFault::Directory { .. }
        | JobFault::Output { .. }
        | JobFault::Spawn { .. }
        | JobFault::Abort { .. }
        | JobFault::Pmi { .. } => true,
    }
}

fn grace(job: &JobSpec) -> Duration {
    Duration::from_millis(u64::from(job.grace_ms))
}
