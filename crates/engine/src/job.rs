//! A job on one member: its tasks here, its fence, its output and input, and its end.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use model::{
    AgentId, ExitStatus, IdSet, JobId, NodeId, PairName, Rank, Signal, StatusRuns, TaskMap, Time,
    Usage,
};
use proto::{Event, Fence, Lines, Ring};
use wire::{JobFault, JobSpec, Launch, MarkKind, Message, Milestone, Stream};

use crate::engine::{Engine, Phase};
use crate::head::stops;
use crate::{Effect, Spawn};

mod allgather;
mod apart;
mod callers;
mod exchange;
mod fetch;
mod groups;
mod input;
mod names;
mod output;
mod parts;
mod records;
mod ring;
mod spawn;

use allgather::Allgather;
use callers::Callers;
pub(crate) use exchange::is_exchange;
use exchange::{Brought, Exchange};
use fetch::Fetches;
use groups::Groups;
use input::JobInput;
pub(crate) use input::{INPUT_BYTES, Reader};
pub(crate) use output::OutputQueue;
use records::{Kept, Records};
use spawn::Progress;

/// A job as one member knows it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) spec: Arc<JobSpec>,
    /// Boxed, since a map has room for eleven in a node, and most agents have a task or two.
    tasks: BTreeMap<Rank, Box<Task>>,
    /// Tasks that are still to be created.
    to_spawn: VecDeque<Rank>,
    spawning: usize,
    launched: bool,
    pmi: pmi::Server,
    /// Where tasks connect to a port: boxed, since few do.
    callers: Option<Box<Callers>>,
    fence: Fence<Brought>,
    /// Once somebody here or below is in one: few jobs have any.
    ring: Option<Box<Ring>>,
    allgather: Option<Box<Allgather>>,
    /// Once somebody is in a ring or an allgather.
    look: Option<Box<apart::Look>>,
    exchange: Exchange<Brought>,
    /// What has gone up with the fence that is under way, and what has come down.
    brought_up: Vec<Bytes>,
    brought_down: Vec<Bytes>,
    fetches: Fetches,
    groups: Groups,
    stopping: Option<Stopping>,
    /// Of a job that a task has asked for, until its tasks were created.
    progress: Option<Box<Progress>>,
    faults_told: u32,
    /// A task here or below has failed, or was ended, and so will the job: what waits for it waits for
    /// the end.
    is_failing: bool,
    /// Children below which tasks may still run.
    children: BTreeSet<AgentId>,
    statuses: StatusRuns,
    sweep: Sweep,
    records: Records,
    /// When some task's unfinished line may be due.
    flush_at: Option<Time>,
    /// When some task may have to be taken for a deserter.
    check_at: Option<Time>,
    input: JobInput,
    reported: bool,
}

/// A task on this node.
#[derive(Debug, Default)]
struct Task {
    /// Whether it runs, as far as is known.
    spawned: bool,
    ended: Option<ExitStatus>,
    streams: [TaskStream; 2],
    /// Whether a program of it is connected to `PMI_PORT`.
    is_connected: bool,
    /// When it counts as having left the job, since its PMI connection is closed and it still runs.
    deserted_at: Option<Time>,
    /// Whether it broke the PMI protocol, which says all about its end.
    broke_pmi: bool,
    /// What is kept of it, where a record is wanted.
    kept: Option<Box<Kept>>,
}

#[derive(Debug, Default)]
struct TaskStream {
    lines: Lines,
    ended: bool,
}

/// The job is being ended by order.
#[derive(Debug)]
struct Stopping {
    kill_at: Option<Time>,
}

/// How far the node has been cleared of what the tasks left behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sweep {
    NotAsked,
    Asked,
    Done,
}

/// Tasks that are created without looking at anything else meanwhile.
const SPAWN_BATCH: usize = 16;

/// Faults of tasks that one member reports; all statuses arrive at the end.
const FAULTS_MAX: u32 = 16;

/// The variable that tells of which job a process is, also of one that its task has left behind.
pub const JOB_VARIABLE: &str = "CONVOKE_JOB";

/// A task that ends closes its PMI connection first; its status, which says more, may take so long.
const EXIT_FOLLOWS_MAX: Duration = Duration::from_secs(1);

impl Job {
    pub(crate) fn new(
        spec: Arc<JobSpec>,
        node: Option<NodeId>,
        children: impl Iterator<Item = AgentId>,
    ) -> Job {
        let ranks: Vec<Rank> =
            node.map(|node| spec.map.ranks_on(node).iter().map(Rank).collect()).unwrap_or_default();
        let children: BTreeSet<AgentId> = children.collect();
        let mut info = pmi::JobInfo::new(
            spec.kvsname.clone(),
            spec.map.len(),
            ranks.iter().map(|&rank| pmi::LocalTask { rank, appnum: spec.app_of(rank) }).collect(),
        );
        info.universe_size = spec.universe_size;
        info.offer = spec.pmi;
        info.process_mapping = spec.map.process_mapping();
        if let Some(origin) = &spec.origin {
            info.spawner = Some(origin.kvsname.clone());
            info.preput = origin.preput.clone();
        }
        Job {
            tasks: ranks.iter().map(|rank| (*rank, Box::default())).collect(),
            to_spawn: ranks.iter().copied().collect(),
            spawning: 0,
            launched: false,
            pmi: pmi::Server::new(info),
            callers: None,
            fence: Fence::new(!ranks.is_empty(), children.iter().copied()),
            ring: None,
            allgather: None,
            look: None,
            exchange: Exchange::None,
            brought_up: Vec::new(),
            brought_down: Vec::new(),
            fetches: Fetches::default(),
            groups: Groups::default(),
            stopping: None,
            progress: None,
            faults_told: 0,
            is_failing: false,
            children,
            statuses: StatusRuns::default(),
            sweep: if ranks.is_empty() { Sweep::Done } else { Sweep::NotAsked },
            records: Records::default(),
            flush_at: None,
            check_at: None,
            input: JobInput::new(),
            reported: false,
            spec,
        }
    }

    /// Counts on one more child; nothing is launched yet.
    pub(crate) fn add_child(&mut self, agent: AgentId) {
        self.children.insert(agent);
        self.fence.add_child(agent);
        (self.ring, self.allgather) = (None, None);
    }

    /// Takes note of a fault on its way up.
    pub(crate) fn note_fault(&mut self, fault: &JobFault) {
        let is_of_task = fault.rank().is_some();
        self.is_failing |= is_of_task && stops(fault, self.spec.stop_on_failure);
    }

    /// Takes note of whether tasks below have ended since the job is being ended.
    pub(crate) fn note_order(&mut self, by_order: bool) {
        self.is_failing |= by_order;
    }

    /// Waits for these children and no others; nothing is launched yet.
    pub(crate) fn set_children(&mut self, children: BTreeSet<AgentId>) {
        self.fence = Fence::new(self.has_tasks(), children.iter().copied());
        (self.ring, self.allgather) = (None, None);
        self.children = children;
    }

    /// Handles that the job is ended before it was launched here: no task of it will ever run. Returns whether some
    /// were to run here.
    fn never_launch(&mut self) -> bool {
        let had_tasks = self.has_tasks();
        self.launched = true;
        self.tasks.clear();
        self.to_spawn.clear();
        self.sweep = Sweep::Done;
        self.end_collectives();
        had_tasks
    }

    /// No task here enters a fence, a ring or an allgather any more.
    fn end_collectives(&mut self) {
        self.fence.on_local_end();
        if let Some(ring) = &mut self.ring {
            ring.on_local_end();
        }
        if let Some(allgather) = &mut self.allgather {
            allgather.fence.on_local_end();
        }
    }

    /// Gives back the memory that queues kept for the next time.
    pub(crate) fn shrink(&mut self) {
        self.pmi.shrink();
        self.fence.shrink();
    }

    /// The rings of those who enter fences too.
    fn ring(&mut self) -> &mut Ring {
        self.ring.get_or_insert_with(|| Box::new(Ring::beside(&self.fence)))
    }

    /// The children below which tasks may still run, as far as is known.
    pub(crate) fn children(&self) -> BTreeSet<AgentId> {
        self.children.clone()
    }

    /// Whether tasks below this child may still run, as far as is known.
    pub(crate) fn has_child(&self, agent: AgentId) -> bool {
        self.children.contains(&agent)
    }

    /// Whether the parent was told that all has ended.
    pub(crate) fn has_reported(&self) -> bool {
        self.reported
    }

    /// Somebody else has to be told that all has ended.
    pub(crate) fn report_again(&mut self) {
        self.reported = false;
    }

    /// The children below which tasks may still run, once the job is launched.
    pub(crate) fn unfinished_children(&self) -> impl Iterator<Item = AgentId> {
        self.children.iter().copied().filter(|_| self.launched)
    }

    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The apps that have tasks on this node, or may have them.
    pub(crate) fn apps(&self) -> Vec<u32> {
        if self.spec.is_movable {
            return (0..).zip(&self.spec.apps).map(|(app, _)| app).collect();
        }
        let mut apps: Vec<u32> = self.tasks.keys().map(|&rank| self.spec.app_of(rank)).collect();
        apps.dedup();
        apps
    }

    /// Whether nothing of the job is left on this node.
    pub(crate) fn is_clean(&self) -> bool {
        self.spawning == 0
            && self.tasks.values().all(|task| !task.spawned || task.ended.is_some())
            && (self.sweep == Sweep::Done || !self.launched)
    }

    /// When there is something to do; while nothing `is_read` of tasks, a stream's silence is ours.
    pub(crate) fn timeout(&self, is_read: bool) -> Option<Time> {
        let kill_at = self.stopping.as_ref().and_then(|stopping| stopping.kill_at);
        let flush_at = self.flush_at.filter(|_| is_read);
        let allgather = self.allgather.as_ref().and_then(|own| own.exchange.due_at());
        let due = [self.exchange.due_at(), allgather, self.groups.due_at(), self.call_due_at()];
        let look_at = self.look.as_ref().map(|look| look.at);
        [flush_at, self.check_at, kill_at, look_at].into_iter().chain(due).flatten().min()
    }

    /// What its tasks have exchanged under this key, where none of them is.
    pub(crate) fn exchanged(&mut self, key: Vec<u8>) -> Option<Bytes> {
        self.pmi.find(&PairName { space: Vec::new(), key })
    }

    pub(crate) fn id(&self) -> JobId {
        self.spec.job
    }

    /// Whether every local task that will ever run has run.
    fn tasks_have_ended(&self) -> bool {
        self.spawning == 0
            && self.to_spawn.is_empty()
            && self.tasks.values().all(|task| !task.spawned || task.ended.is_some())
    }

    fn streams_have_ended(&self) -> bool {
        self.tasks.values().all(|task| !task.spawned || task.streams.iter().all(|s| s.ended))
    }

    /// Whether tasks below this child may still run.
    pub(crate) fn waits_for(&self, child: AgentId) -> bool {
        self.launched && self.children.contains(&child)
    }

    /// The agents whose tasks may have written what this member, `own`, has not passed on.
    pub(crate) fn unfinished(&self, own: AgentId, output: &OutputQueue) -> IdSet {
        let agent_of = |rank: Rank| self.spec.map.node_of(rank).map(|node| node.agent().0);
        let mut unfinished: IdSet = output.ranks_of(self.id()).filter_map(agent_of).collect();
        let is_over = self.tasks_have_ended() && self.streams_have_ended();
        if self.launched && self.has_tasks() && !is_over {
            unfinished.insert(own.0);
        }
        unfinished
    }

    /// Whether nothing more will come up from this member, and the parent is to be told.
    fn is_due(&self, output: &OutputQueue) -> bool {
        self.launched
            && !self.reported
            && self.children.is_empty()
            && self.tasks_have_ended()
            && self.sweep == Sweep::Done
            && self.streams_have_ended()
            && output.ranks_of(self.id()).next().is_none()
    }
}

impl Engine {
    /// Passes the order on and obeys it; all that is sent for it counts as the launch's.
    pub(crate) fn launch(&mut self, launch: Launch) {
        let id = launch.job;
        if self.jobs.get(id).is_none_or(|own| own.launched) {
            return;
        }
        if id != JobId::FIRST {
            return self.launch_spawned(launch);
        }
        self.phase = Phase::Launch;
        self.tell_below(Message::Launch(Box::new(launch.clone())));
        self.end_starts();
        self.settle_job(id, launch.map);
        self.grant_edges();
        self.mark(self.id, MarkKind::Launched);
        if !self.is_head() {
            self.events.push_back(Event::Launched(id));
        }
        self.open_input(id);
        self.spawn_tasks(id);
        self.seek_redundant();
    }

    /// Brings the job to what it is now that it is known who is there.
    fn settle_job(&mut self, id: JobId, map: Option<TaskMap>) {
        let children = self.job_children();
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(map) = map {
            let spec = Arc::new(JobSpec { map, ..(*job.spec).clone() });
            let callers = job.callers.take();
            *job = Job::new(spec, self.id.node(), children.iter().copied());
            job.callers = callers;
        }
        job.launched = true;
        let gone: Vec<AgentId> = job.children.difference(&children).copied().collect();
        for agent in gone {
            self.on_child_done(id, agent, StatusRuns::default());
        }
    }

    /// Creates no more tasks.
    fn create_no_more(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        for rank in core::mem::take(&mut job.to_spawn) {
            self.on_input_closed(id, Reader::Task(rank));
        }
    }

    /// Creates the next tasks.
    fn spawn_tasks(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        while job.spawning < SPAWN_BATCH {
            let Some(rank) = job.to_spawn.pop_front() else { break };
            job.spawning += 1;
            let stdin = job.spec.io.stdin.reaches(rank);
            let (app, env) = (job.spec.app_of(rank), task_env(job, rank));
            let spawn = Spawn { job: Arc::clone(&job.spec), rank, app, env, stdin };
            self.effects.push_back(Effect::Spawn(spawn));
        }
        let (has_begun, has_all) = (job.to_spawn.is_empty(), job.spawning == 0);
        if has_begun {
            self.release_input(id);
        }
        if has_begun && has_all {
            self.on_milestone(id, Milestone::Created);
        }
        if has_begun && has_all && id == JobId::FIRST && self.phase == Phase::Launch {
            self.phase = Phase::Run;
            self.mark(self.id, MarkKind::Spawned);
        }
    }

    pub(crate) fn on_spawned(&mut self, id: JobId, rank: Rank, result: Result<u32, (i32, String)>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.spawning = job.spawning.saturating_sub(1);
        match result {
            Ok(pid) => {
                let Some(task) = job.tasks.get_mut(&rank) else { return };
                task.spawned = true;
                // What it wrote may have ended before we hear that it began.
                task.streams[Stream::Stderr as usize].ended |= job.spec.io.output.merged;
                if job.spec.io.records {
                    task.keep(self.now, pid);
                }
                self.events.push_back(Event::TaskStarted { job: id, rank, pid });
                if let Some(stopping) = &job.stopping {
                    let signal = stopping.kill_at.map_or(Signal::KILL, |_| Signal::TERM);
                    self.effects.push_back(Effect::SignalTasks { job: id, signal });
                }
            }
            Err((errno, words)) => {
                self.create_no_more(id);
                self.on_input_closed(id, Reader::Task(rank));
                self.fault(id, JobFault::Spawn { rank, errno, words });
            }
        }
        self.spawn_tasks(id);
        self.after_task_end(id);
    }

    pub(crate) fn on_task_exited(
        &mut self,
        id: JobId,
        rank: Rank,
        status: ExitStatus,
        usage: Usage,
    ) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(task) = job.tasks.get_mut(&rank).filter(|task| task.ended.is_none()) else {
            return;
        };
        task.ended = Some(status);
        task.keep_end(self.now, usage);
        job.statuses.insert(rank, status);
        self.events.push_back(Event::TaskEnded { job: id, rank, status });
        let unfinalized = job.pmi.state(rank) == pmi::ClientState::Active && !task.broke_pmi;
        // Where a task that failed ends the job, nobody of its groups may go on without it.
        let failed = status != ExitStatus::Exited(0) || unfinalized;
        job.pmi.on_task_exit(rank, failed && job.spec.stop_on_failure);
        self.on_input_closed(id, Reader::Task(rank));
        if status != ExitStatus::Exited(0) {
            self.task_fault(id, JobFault::Task { rank, status });
        } else if unfinalized {
            self.task_fault(id, JobFault::Unfinalized { rank, status: Some(status) });
        }
        self.drain_pmi(id);
        self.after_task_end(id);
    }

    /// Reports a task's fault, unless it is the job's end that made it fail.
    fn task_fault(&mut self, id: JobId, fault: JobFault) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.stopping.is_none() && job.faults_told < FAULTS_MAX {
            job.faults_told += 1;
            if let Some(task) = fault.rank().and_then(|rank| job.tasks.get_mut(&rank)) {
                task.keep_fault();
            }
            self.fault(id, fault);
        }
    }

    fn after_task_end(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.launched && job.has_tasks() && job.tasks_have_ended() && job.sweep == Sweep::NotAsked
        {
            job.sweep = Sweep::Asked;
            job.callers = None;
            job.end_collectives();
            self.effects.push_back(Effect::Sweep(id));
            self.mark(self.id, MarkKind::TasksEnded);
            self.drain_collectives(id);
        }
    }

    pub(crate) fn on_swept(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.sweep = Sweep::Done;
        }
    }

    pub(crate) fn on_child_done(&mut self, id: JobId, agent: AgentId, statuses: StatusRuns) {
        // Where messages take several ways, word of a loss may be slower than what follows from it.
        let is_lost = self.place.is_some() && !self.is_job_child_there(agent);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.children.remove(&agent) {
            job.statuses.merge(&statuses);
            if !is_lost {
                job.fence.on_child_end(agent);
                if let Some(ring) = &mut job.ring {
                    ring.on_child_end(agent);
                }
                if let Some(allgather) = &mut job.allgather {
                    allgather.fence.on_child_end(agent);
                }
            }
            self.on_input_closed(id, Reader::Child(agent));
            self.drain_collectives(id);
            self.on_child_left_groups(id, agent);
        }
    }

    /// Handles that a child is gone, and all below it for the jobs.
    pub(crate) fn on_child_gone(&mut self, agent: AgentId) {
        for id in self.jobs.ids() {
            self.on_child_done(id, agent, StatusRuns::default());
        }
    }

    /// Tells the parent, once, of each job that has ended below and here.
    pub(crate) fn report_done(&mut self) {
        let is_routed = self.place.is_some();
        while let Some(id) = self.jobs.find(|job| job.is_due(&self.output))
            && let Some(job) = self.jobs.get_mut(id)
        {
            job.reported = true;
            // They may have to be told again, to another, where the parent may get lost.
            let kept = if is_routed { job.statuses.clone() } else { StatusRuns::default() };
            let statuses = core::mem::replace(&mut job.statuses, kept);
            let by_order = job.stopping.is_some();
            if !self.is_head() {
                self.events.push_back(Event::JobDone(id));
            }
            self.send_records(id);
            self.up_job(Message::Done { job: id, statuses, by_order });
            if id != JobId::FIRST {
                self.forget_job(id);
            }
        }
    }

    pub(crate) fn signal_tasks(&mut self, job: JobId, signal: Signal) {
        if self.jobs.get(job).is_some_and(|own| own.launched && own.has_tasks()) {
            self.effects.push_back(Effect::SignalTasks { job, signal });
        }
    }

    /// Ends the tasks: SIGTERM, and SIGKILL after `grace`. A stopped task is made to go on, since it
    /// could not act on SIGTERM.
    pub(crate) fn stop_job(&mut self, id: JobId, grace: Duration) {
        let now = self.now;
        self.create_no_more(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if !job.launched && (id != JobId::FIRST || self.place.is_some()) {
            // The order to launch takes another way, and may be late or have got lost.
            let had_tasks = job.never_launch();
            if id != JobId::FIRST && had_tasks {
                job.sweep = Sweep::Asked;
                self.effects.push_back(Effect::Sweep(id)); // what was prepared
            }
        }
        self.end_phase_of(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if grace.is_zero() {
            job.stopping = Some(Stopping { kill_at: None });
            self.signal_tasks(id, Signal::KILL);
            self.hurry_children();
        } else if job.stopping.is_none() {
            job.stopping = Some(Stopping { kill_at: Some(now + grace) });
            self.signal_tasks(id, Signal::TERM);
            self.signal_tasks(id, Signal::CONT);
        }
        self.events.push_back(Event::Stopping(id));
        self.after_task_end(id);
    }

    /// What is sent from here on is counted as the end's, once the session's first job ends.
    pub(crate) fn end_phase_of(&mut self, id: JobId) {
        if id == JobId::FIRST {
            self.phase = Phase::End;
        }
    }

    /// Kills what is left of jobs here.
    pub(crate) fn kill_jobs(&mut self) {
        for id in self.jobs.ids() {
            if self.jobs.get(id).is_some_and(|job| !job.is_clean()) {
                self.stop_job(id, Duration::ZERO);
            }
        }
    }

    /// Does what the passing of time asks for.
    pub(crate) fn check_jobs(&mut self) {
        for id in self.jobs.ids() {
            self.check_job(id);
        }
    }

    fn check_job(&mut self, id: JobId) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(stopping) = &mut job.stopping
            && stopping.kill_at.is_some_and(|at| at <= now)
        {
            stopping.kill_at = None;
            self.signal_tasks(id, Signal::KILL);
            self.hurry_children();
        }
        self.finish_exchange(id);
        self.finish_allgather(id);
        self.check_groups(id);
        self.check_callers(id);
        self.check_deserters(id);
        self.check_apart(id);
        let is_read = self.output.is_read;
        let flush_at = self.jobs.get(id).filter(|_| is_read).and_then(|job| job.flush_at);
        if flush_at.is_some_and(|at| at <= now) {
            self.flush_lines(id, |lines| lines.flush_at().is_some_and(|at| at <= now));
            self.send_output();
        }
    }
}

impl Engine {
    /// Reports tasks that closed their PMI connection between init and finalize, and live on: the
    /// others would wait for them for ever.
    fn check_deserters(&mut self, id: JobId) {
        let now = self.now;
        let Some(job) =
            self.jobs.get_mut(id).filter(|job| job.check_at.is_some_and(|at| at <= now))
        else {
            return;
        };
        let mut deserters = Vec::new();
        job.check_at = None;
        for (rank, task) in &mut job.tasks {
            match task.deserted_at.filter(|_| task.ended.is_none()) {
                Some(at) if at <= now => {
                    task.deserted_at = None;
                    deserters.push(*rank);
                }
                Some(at) => job.check_at = Some(job.check_at.map_or(at, |check| check.min(at))),
                None => {}
            }
        }
        for rank in deserters {
            self.task_fault(id, JobFault::Unfinalized { rank, status: None });
        }
    }
}

/// The variables that tell a task who it is (`reference/pmi1.md` §2).
fn task_env(job: &Job, rank: Rank) -> Vec<Bytes> {
    let local_rank = job.tasks.range(..rank).count();
    let env = pmi::TaskEnv {
        transport: job.transport(),
        rank,
        size: job.spec.map.len(),
        local_rank: u32::try_from(local_rank).unwrap_or(u32::MAX),
        local_size: u32::try_from(job.tasks.len()).unwrap_or(u32::MAX),
        is_spawned: job.spec.origin.is_some(),
        host_name: None,
    };
    let own = (JOB_VARIABLE, job.spec.kvsname.clone());
    let all = env.variables().into_iter().chain([own]);
    all.map(|(name, value)| format!("{name}={value}").into()).collect()
}
