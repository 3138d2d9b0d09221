//! The description of a session to simulate.

mod output;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use engine::HeadConfig;
use model::{
    AgentId, IdSet, JobId, Muster, Order, PmiDialect, Rank, Request, Signal, Slots, TaskMap, Tree,
};
use wire::{App, IoSpec, JobSpec, OutputSpec, SessionSpec, Stdin};

use crate::barrier::Barrier;
use crate::calibration::Calibration;
use crate::distribution::Distribution;
use crate::fault::{Fault, ShellPlan, When};
use crate::launch::Launch;
use crate::log::Log;
use crate::report::{Failure, Report};
use crate::rulebook::Rulebook;
use crate::script::Script;
use crate::sshd::Sshd;
use crate::world::World;

/// A session to simulate: `Session::of(64).tree("kary:8").tasks(4).script(Script::mpi()).run()`.
///
/// What is not said: one task a node that exits with 0 at once, a binomial tree, shells that take
/// 100 ms and keep their host for 5 ms, links of 1 ms, and drivers that do not see when a host is free
/// for another start, as real ones are.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) n: u32,
    pub(crate) calibration: Calibration,
    pub(crate) costs: Costs,
    pub(crate) seed: u64,
    pub(crate) faults: Vec<(When, Fault)>,
    pub(crate) input_bytes: u64,
    /// The task that gets it.
    reader: Stdin,
    /// Tasks that fail do not end the others.
    pub(crate) goes_on: bool,
    /// Every message is encoded and decoded on its way.
    pub(crate) encodes: bool,
    /// The head is told of every task what it used and, if it failed, what it said last.
    records: bool,
    pub(crate) pmi_port: bool,
    pmi2_every: Option<u32>,
    /// Where output goes, and how much the disks of some agents take.
    pub(crate) output: OutputSpec,
    pub(crate) disks: BTreeMap<AgentId, u64>,
    /// The session's end at the latest, whatever happens.
    pub(crate) time_max: Duration,
    /// After its parent or the head is gone, an agent is gone within this time.
    pub(crate) orphan_time_max: Duration,
    /// Hosts tell their engine when they are free for another start.
    pub(crate) tells_started: bool,
    /// The gap of starts on hosts where it is not the usual one.
    gaps: BTreeMap<AgentId, Duration>,
    pub(crate) tree: Tree,
    /// Agents that can't listen for routing children.
    pub(crate) deaf: IdSet,
    tasks: Vec<u32>,
    programs_from: Vec<Rank>,
    /// The order in which placed tasks are counted.
    pub(crate) ranking: Option<Order>,
    pub(crate) spares: u32,
    /// The last nodes, which get an agent when a spawn needs them.
    later: u32,
    pub(crate) nodes_min: Option<u32>,
    /// The job has as many tasks, whoever is missing.
    pub(crate) is_fixed: bool,
    script: Script,
    scripts: BTreeMap<Rank, Script>,
    /// What tasks of spawned jobs do, by number.
    spawned: Vec<Script>,
    /// Slots on each node that the first job leaves free.
    room: u32,
    pub(crate) shells: BTreeMap<AgentId, Vec<ShellPlan>>,
    /// What all names are of, if they are of one.
    pub(crate) sshd: Option<Sshd>,
    pub(crate) barriers: Vec<Barrier>,
    /// Agents that no address of their parents answers.
    over_shells: IdSet,
    /// Agents on whose nodes the program is not, and tasks that can't be created: error numbers.
    pub(crate) missing_programs: BTreeMap<AgentId, i32>,
    pub(crate) failing_spawns: BTreeMap<Rank, i32>,
    /// Agents on whose nodes their own program is not, how long it is, and how many bytes a second a
    /// node can send of it.
    pub(crate) lacking: IdSet,
    pub(crate) program_bytes: u64,
    pub(crate) upload: Option<u64>,
    pub(crate) spec: SessionSpec,
    grace: Duration,
    join_timeout: Option<Duration>,
    pub(crate) children_max: u32,
    push_bytes_max: u64,
    timeout: Option<Duration>,
}

/// The most that is waited longer for what costs alone make late: a year, which time can hold.
const LATE_MAX: Duration = Duration::from_secs(365 * 86_400);

/// What things take that are no machine's.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From the death of an agent until its keeper, if that lives, has killed all that was below.
    pub keeper: Duration,
    /// Bytes a second that the reader of the head's output takes.
    pub reader: Option<u64>,
}

impl Session {
    /// A session of `n` nodes.
    pub fn of(n: u32) -> Session {
        Session {
            n,
            calibration: usual_machines(),
            costs: Costs { keeper: Duration::from_millis(20), reader: None },
            seed: 0,
            faults: Vec::new(),
            input_bytes: 0,
            reader: Stdin::Task(Rank(0)),
            encodes: false,
            records: false,
            pmi_port: false,
            pmi2_every: None,
            output: OutputSpec::default(),
            disks: BTreeMap::new(),
            time_max: Duration::from_secs(600),
            orphan_time_max: Duration::from_secs(2),
            tells_started: false,
            gaps: BTreeMap::new(),
            tree: Tree::Binomial,
            programs_from: Vec::new(),
            ranking: None,
            deaf: IdSet::new(),
            tasks: vec![1; usize::try_from(n).unwrap_or(usize::MAX)],
            spares: 0,
            later: 0,
            nodes_min: None,
            is_fixed: false,
            script: Script::new(),
            scripts: BTreeMap::new(),
            spawned: Vec::new(),
            room: 0,
            shells: BTreeMap::new(),
            sshd: None,
            barriers: Vec::new(),
            over_shells: IdSet::new(),
            missing_programs: BTreeMap::new(),
            failing_spawns: BTreeMap::new(),
            lacking: IdSet::new(),
            program_bytes: 0,
            upload: None,
            // The times are those of `cli::setup`.
            spec: SessionSpec {
                bootstrap: Vec::new(),
                bulk_max: 1,
                window: 1_000,
                batch: None,
                retries_max: 5,
                start_timeout_ms: 30_000,
                heartbeat_ms: 2_500,
                link_timeout_ms: 6_500,
                marks: false,
                route: None,
                redundancy: 0,
                pushes_contacts: true,
            },
            goes_on: false,
            grace: Duration::from_secs(1),
            join_timeout: None,
            children_max: u32::MAX,
            push_bytes_max: u64::MAX,
            timeout: None,
        }
    }

    /// The spawn tree, by its name.
    ///
    /// # Panics
    /// When no tree has this name.
    #[must_use]
    pub fn tree(self, name: &str) -> Session {
        Session { tree: name.parse().expect("a tree's name"), ..self }
    }

    /// The tree over which its agents start each other.
    pub fn spawn_tree(&self) -> &Tree {
        &self.tree
    }

    /// Engines are told when their hosts are free for another start, as no real driver can tell.
    #[must_use]
    pub fn told(self) -> Session {
        Session { tells_started: true, ..self }
    }

    /// How long a start keeps this agent's host from the next.
    #[must_use]
    pub fn gap(mut self, agent: AgentId, gap: Duration) -> Session {
        self.gaps.insert(agent, gap);
        self
    }

    /// How many tasks a node gets.
    #[must_use]
    pub fn tasks(mut self, tasks: u32) -> Session {
        self.tasks.fill(tasks);
        self
    }

    /// How many tasks the first nodes get; the others get none.
    #[must_use]
    pub fn tasks_on(mut self, tasks: &[u32]) -> Session {
        self.tasks.fill(0);
        for (node, &tasks) in self.tasks.iter_mut().zip(tasks) {
            *node = tasks;
        }
        self
    }

    /// Has tasks speak PMI-2 whose rank is a multiple of `every`, and the others PMI-1.
    #[must_use]
    pub fn pmi2_every(mut self, every: u32) -> Session {
        self.pmi2_every = Some(every);
        self
    }

    /// The first ranks of the job's second program, its third, …
    #[must_use]
    pub fn programs_from(mut self, first_ranks: &[Rank]) -> Session {
        self.programs_from = first_ranks.to_vec();
        self
    }

    /// What every task does.
    #[must_use]
    pub fn script(self, script: Script) -> Session {
        Session { script, ..self }
    }

    /// What this task does instead.
    #[must_use]
    pub fn task(mut self, rank: Rank, script: Script) -> Session {
        self.scripts.insert(rank, script);
        self
    }

    /// What tasks of spawned jobs do, by number, and how many of them each node has room for.
    #[must_use]
    pub fn spawned(self, scripts: &[Script], room: u32) -> Session {
        Session { spawned: scripts.to_vec(), room, ..self }
    }

    /// The last so many nodes get an agent, and tasks, when a spawn needs them.
    #[must_use]
    pub fn later(self, later: u32) -> Session {
        Session { later, ..self }
    }

    /// What things take on the machines, as measured.
    ///
    /// # Panics
    /// When the calibration is impossible.
    #[must_use]
    pub fn calibration(self, calibration: Calibration) -> Session {
        if let Err(error) = calibration.validate() {
            panic!("{error}");
        }
        Session { calibration, ..self }
    }

    /// What things take on the machines, as a change of what is set.
    #[must_use]
    pub fn calibrate(self, change: impl FnOnce(&mut Calibration)) -> Session {
        let mut calibration = self.calibration.clone();
        change(&mut calibration);
        self.calibration(calibration)
    }

    /// Shells that always take this latency and this gap.
    #[must_use]
    pub fn shells_take(self, latency: Duration, gap: Duration) -> Session {
        self.calibrate(|calibration| calibration.launch = Launch::constant(latency, gap))
    }

    /// Links that always take this long, one way.
    #[must_use]
    pub fn links_take(self, latency: Duration) -> Session {
        let latency_us = Distribution::constant(latency.as_secs_f64() * 1e6);
        self.calibrate(|calibration| calibration.link.latency_us = latency_us)
    }

    /// All names are of one sshd. Once it is through with a login, the rest takes the shells' latency.
    #[must_use]
    pub fn sshd(self, sshd: Sshd) -> Session {
        Session { sshd: Some(sshd), ..self }
    }

    /// What things take that are no machine's.
    #[must_use]
    pub fn costs(mut self, change: impl FnOnce(&mut Costs)) -> Session {
        change(&mut self.costs);
        self
    }

    /// The session's parameters.
    #[must_use]
    pub fn spec(mut self, change: impl FnOnce(&mut SessionSpec)) -> Session {
        change(&mut self.spec);
        self
    }

    /// Seeds whatever looks random.
    #[must_use]
    pub fn seed(self, seed: u64) -> Session {
        Session { seed, ..self }
    }

    /// The task that gets the user's input, where it is not task 0.
    #[must_use]
    pub fn reader(self, reader: Rank) -> Session {
        Session { reader: Stdin::Task(reader), ..self }
    }

    /// Every task gets the user's input.
    #[must_use]
    pub fn all_read(self) -> Session {
        Session { reader: Stdin::All, ..self }
    }

    /// The user has so many bytes of standard input, for task 0 or for whom [`Session::reader`] names.
    #[must_use]
    pub fn input(self, input_bytes: u64) -> Session {
        Session { input_bytes, ..self }
    }

    /// Every message is encoded, decoded, and compared with what was sent, on its way.
    #[must_use]
    pub fn encoded(self) -> Session {
        Session { encodes: true, ..self }
    }

    /// The head is to have a record of each task.
    #[must_use]
    pub fn records(self) -> Session {
        Session { records: true, ..self }
    }

    /// Fences that bring more bytes push nothing: it is fetched by those who read it.
    #[must_use]
    pub fn push_max(self, push_bytes_max: u64) -> Session {
        Session { push_bytes_max, ..self }
    }

    /// Tasks that fail do not end the others.
    #[must_use]
    pub fn on_failure_continue(self) -> Session {
        Session { goes_on: true, ..self }
    }

    /// The time between SIGTERM and SIGKILL.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Session {
        Session { grace, ..self }
    }

    /// How long all agents may take to join.
    #[must_use]
    pub fn join_timeout(self, time: Duration) -> Session {
        Session { join_timeout: Some(time), ..self }
    }

    /// How many children an agent's limits allow in an adaptive tree.
    #[must_use]
    pub fn children_max(self, children_max: u32) -> Session {
        Session { children_max, ..self }
    }

    /// How long the job may run.
    #[must_use]
    pub fn timeout(self, time: Duration) -> Session {
        Session { timeout: Some(time), ..self }
    }

    /// No address of their parents answers these agents: their links run over their shells, so no
    /// kernel notices that one is cut, and it ends with the shell.
    #[must_use]
    pub fn over_shells(self, over_shells: IdSet) -> Session {
        Session { over_shells, ..self }
    }

    /// The program can't be run on this agent's node: the error number.
    #[must_use]
    pub fn no_program_on(mut self, agent: AgentId, errno: i32) -> Session {
        self.missing_programs.insert(agent, errno);
        self
    }

    /// The agents' own program is not on these agents' nodes: it is so many bytes long, and a node can
    /// send so many of them in a second.
    #[must_use]
    pub fn lacking(self, agents: IdSet, program_bytes: u64, upload: u64) -> Session {
        Session { lacking: agents, program_bytes, upload: Some(upload), ..self }
    }

    /// This task can't be created: the error number.
    #[must_use]
    pub fn no_spawn_of(mut self, rank: Rank, errno: i32) -> Session {
        self.failing_spawns.insert(rank, errno);
        self
    }

    /// Something goes wrong.
    #[must_use]
    pub fn fault(mut self, when: When, fault: Fault) -> Session {
        self.faults.push((when, fault));
        self
    }

    /// An agent (0: the head) is killed.
    #[must_use]
    pub fn crash(self, agent: AgentId, when: When) -> Session {
        self.fault(when, Fault::Crash(agent))
    }

    /// The session must be over within this time, the last process gone.
    #[must_use]
    pub fn ends_within(self, time_max: Duration) -> Session {
        Session { time_max, ..self }
    }

    /// An agent that has nobody above it must be gone within this time.
    #[must_use]
    pub fn orphans_end_within(self, orphan_time_max: Duration) -> Session {
        Session { orphan_time_max, ..self }
    }

    /// Runs the session.
    ///
    /// # Panics
    /// When something happens that must not be.
    pub fn run(&self) -> Report {
        match self.try_run() {
            Ok(report) => report,
            Err(failure) => panic!("{failure}\nsession: {self:?}"),
        }
    }

    /// Runs the session; a failed run is run again to write its log.
    pub fn try_run(&self) -> Result<Report, Failure> {
        World::run(self, Log::None).or_else(|_| World::run(self, Log::tail()))
    }

    /// Runs the session and passes on each line of its log.
    pub fn run_logged(&self, sink: &mut dyn FnMut(&str)) -> Result<Report, Failure> {
        World::run(self, Log::All(sink))
    }

    /// Runs the session until so many things have happened, passes on each line of its log, and
    /// describes what is there then.
    pub fn state_after(&self, steps: u64, sink: &mut dyn FnMut(&str)) -> String {
        World::state_after(self, steps, Log::All(sink))
    }

    pub(crate) fn rulebook(&self) -> Rulebook {
        Rulebook::new(self.n, self.muster(), self.timeout, self.grace)
    }

    /// Whether no shell is to end by itself once it has started an agent. Over a fast link such an
    /// agent may have joined before, and is lost.
    pub(crate) fn shells_last(&self) -> bool {
        let plans = self.shells.values().flatten().chain(self.barriers.iter().map(Barrier::plan));
        !plans.into_iter().any(|plan| *plan == ShellPlan::EndsEarly)
    }

    /// Whether nothing is to make the job fail once all have joined.
    pub(crate) fn tasks_work(&self) -> bool {
        let has_errors = !(self.missing_programs.is_empty() && self.failing_spawns.is_empty());
        let has_room = self.disks.is_empty();
        self.scripts.is_empty() && self.timeout.is_none() && !has_errors && has_room
    }

    /// The gap of starts on this agent's host, where it was set apart.
    pub(crate) fn gap_of(&self, agent: AgentId) -> Option<Duration> {
        self.gaps.get(&agent).copied()
    }

    /// Whether the job may run for some time only.
    pub(crate) fn has_timeout(&self) -> bool {
        self.timeout.is_some()
    }

    /// Whether nodes may be added.
    pub(crate) fn grows(&self) -> bool {
        self.later > 0
    }

    /// How many nodes are there from the beginning.
    pub(crate) fn begun(&self) -> u32 {
        self.n - self.later
    }

    /// How many of these are no spares.
    pub(crate) fn planned(&self) -> u32 {
        self.begun() - self.spares
    }

    /// How many tasks the job has if nobody is missing.
    pub(crate) fn n_tasks(&self) -> u32 {
        self.task_map().len()
    }

    /// The number of this task's program.
    pub(crate) fn program_of(&self, rank: Rank) -> u32 {
        u32::try_from(self.programs_from.iter().filter(|&&first| first <= rank).count())
            .unwrap_or(u32::MAX)
    }

    /// The numbers of the programs that have tasks on this agent's node, or may have them.
    pub(crate) fn programs_on(&self, agent: AgentId) -> Vec<u32> {
        if self.programs_from.is_empty() || self.muster().is_movable() {
            return (0..).zip(0..=self.programs_from.len()).map(|(program, _)| program).collect();
        }
        let node = usize::try_from(agent.0).unwrap_or(usize::MAX) - 1;
        let before: u32 = self.tasks[..node].iter().sum();
        let ranks = before..before + self.tasks[node];
        let programs: BTreeSet<u32> = ranks.map(|rank| self.program_of(Rank(rank))).collect();
        programs.into_iter().collect()
    }

    /// What every task does that has no script of its own.
    pub(crate) fn script_of_all(&self) -> &Script {
        &self.script
    }

    pub(crate) fn spawned_script(&self, number: usize) -> &Script {
        &self.spawned[number]
    }

    /// Whether the job may come to run elsewhere than was planned.
    pub(crate) fn is_movable(&self) -> bool {
        self.muster().is_movable()
    }

    pub(crate) fn own_script(&self, rank: Rank) -> Option<&Script> {
        self.scripts.get(&rank)
    }

    pub(crate) fn head_config(&self) -> HeadConfig {
        let name = |node| format!("n{node}");
        let begun = self.begun();
        HeadConfig {
            names: (0..begun).map(name).collect(),
            tree: self.tree,
            session: self.spec.clone(),
            job: self.job(),
            later: (begun..self.n).map(|node| (name(node), Slots::of(self.room))).collect(),
            unused: Vec::new(),
            muster: self.muster(),
            join_timeout: self.join_timeout,
            children_max: self.children_max,
            reports_started: self.tells_started,
            push_bytes_max: self.push_bytes_max,
            forward_signals: vec![Signal::USR1, Signal::USR2],
            timeout: self.timeout,
            seed: self.seed,
        }
    }

    /// What a task speaks.
    pub(crate) fn dialect_of(&self, rank: Rank) -> PmiDialect {
        match self.pmi2_every {
            Some(every) if rank.0.is_multiple_of(every) => PmiDialect::Two,
            Some(_) | None => PmiDialect::One,
        }
    }

    fn job(&self) -> JobSpec {
        let apps = [Rank(0)].iter().chain(&self.programs_from).map(app_from).collect();
        JobSpec {
            is_movable: self.muster().is_movable(),
            pmi_port: self.pmi_port,
            io: self.io(),
            stop_on_failure: !self.goes_on,
            grace_ms: u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX),
            ..JobSpec::new(JobId(0), apps, self.task_map())
        }
    }

    fn io(&self) -> IoSpec {
        let stdin = if self.input_bytes > 0 { self.reader } else { Stdin::Nobody };
        IoSpec { stdin, output: self.output.clone(), records: self.records }
    }

    /// A node has as many slots as it is to have tasks, one at least, and room for others.
    fn muster(&self) -> Muster {
        let begun = self.tasks.iter().take(self.begun() as usize);
        Muster {
            slots: begun.map(|&tasks| Slots::of(tasks.max(1) + self.room)).collect(),
            spares: self.spares,
            nodes_min: self.nodes_min,
            request: Request {
                tasks: self.is_fixed.then(|| self.n_tasks()),
                ranking: self.ranking,
                ..Request::default()
            },
        }
    }

    /// Where the tasks run if nobody is missing.
    pub(crate) fn task_map(&self) -> TaskMap {
        let planned = usize::try_from(self.planned()).unwrap_or(usize::MAX);
        let counts = self.tasks.iter().take(planned).copied();
        let map = TaskMap::from_counts(counts);
        let ranked = map.and_then(|map| self.ranking.map_or(Ok(map.clone()), |it| it.ranked(&map)));
        ranked.expect("fewer tasks than a map can hold")
    }
}

/// The program whose first rank is this one, which its name tells.
fn app_from(first_rank: &Rank) -> App {
    App {
        first_rank: *first_rank,
        argv: vec![format!("/bin/scripted-{first_rank}").into()],
        env: Vec::new(),
        dir: Bytes::from_static(b"/"),
    }
}

/// Shells that take 100 ms and keep their host for 5 ms, links of 1 ms.
fn usual_machines() -> Calibration {
    let mut machines = Calibration::constant(Duration::from_millis(100), Duration::from_millis(5));
    machines.link.latency_us = Distribution::constant(1_000.0);
    machines
}
