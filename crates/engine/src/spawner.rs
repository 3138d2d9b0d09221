//! What the head decides about jobs that tasks have asked for (`MPI_Comm_spawn_multiple`).
//!
//! A job is placed in the slots that are free, on nodes that have an agent first. Others get one where it needs them
//! (`late.rs`), and if one of these does not come up, the job is refused. It is launched when
//! its programs were found on all of its nodes, and is answered for when all of its tasks were created. If anything
//! fails before that, the whole of it is ended and the task that asked is told why; nothing else is disturbed. From
//! then on it is connected with those that were there before: what goes wrong with it goes wrong with all (MPI-4.1
//! §11.10.4).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use model::{
    AgentId, HostList, IdSet, JobId, NodeId, PlacementError, Rank, Request, Slots, SoftCounts,
    SpawnProgram, SpawnReply, SpawnRequest, SpawnedTasks, TaskMap, place,
};
use proto::Event;
use wire::{App, IoSpec, JobFault, JobSpec, JobWarning, Launch, Message, Milestone, Origin, Stdin};

use crate::orders::Orders;
use crate::{HeadConfig, SpawnedJob, SpawnedJobs};

/// The jobs of a session that tasks have asked for, and the room that is left for others.
#[derive(Debug)]
pub(crate) struct Spawner {
    /// The first job, which others are made after, as it was launched.
    first: JobSpec,
    /// The names of the nodes, as the user wrote them.
    names: Vec<String>,
    /// The room on each node.
    slots: Vec<Slots>,
    /// Hosts that have no agent and get none, and how much room they would add.
    unused: Vec<(String, Slots)>,
    /// Agents that are started when a job needs them.
    reserve: IdSet,
    /// Those of them that are on their way.
    starting: IdSet,
    /// Jobs that are not over.
    jobs: BTreeMap<JobId, Spawned>,
    /// The number of the last job.
    last: JobId,
    refusals_told: u32,
}

/// A job that a task has asked for.
#[derive(Debug)]
struct Spawned {
    map: TaskMap,
    kvsname: String,
    programs: Vec<SpawnedTasks>,
    stage: Stage,
    /// Agents that it waits for, and what its nodes are told once they are there.
    awaited: IdSet,
    spec: Option<Box<JobSpec>>,
    /// What is kept of it from its launch on, where records are wanted.
    record: Option<Box<SpawnedJob>>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Some of its nodes have no agent yet.
    Gathering((JobId, Rank)),
    /// Its nodes know it. This task waits to be told what becomes of it.
    Starting((JobId, Rank)),
    /// Its tasks were created.
    Running,
    /// It could not be started, and is being ended.
    Failed,
}

/// Why nothing can be started any more.
const ENDING: &str = "the session is being ended";

/// Refusals that the user is told of; their tasks are told of each.
const REFUSALS_TOLD_MAX: u32 = 8;

/// What has room in a driver's numbers of descriptors.
const JOBS_MAX: u32 = 1 << 24;

impl Spawned {
    fn new(
        spec: JobSpec,
        programs: Vec<SpawnedTasks>,
        caller: (JobId, Rank),
        awaited: IdSet,
    ) -> Spawned {
        let (map, kvsname) = (spec.map.clone(), spec.kvsname.clone());
        let record = spec.io.records.then(|| Box::new(SpawnedJob::new(&spec, caller)));
        let (stage, spec) = (Stage::Gathering(caller), Some(Box::new(spec)));
        Spawned { map, kvsname, programs, stage, awaited, spec, record }
    }

    /// Lets its nodes know of it, once they have agents.
    fn begin(&mut self, orders: &mut Orders) {
        if let Stage::Gathering(caller) = self.stage
            && self.awaited.is_empty()
            && let Some(spec) = self.spec.take()
        {
            self.stage = Stage::Starting(caller);
            orders.down.push(Message::Spawn(spec));
        }
    }
}

impl Spawner {
    pub(crate) fn new(config: HeadConfig) -> Spawner {
        let mut spawner = Spawner {
            last: config.job.job,
            first: config.job,
            names: config.names,
            slots: config.muster.slots,
            unused: config.unused,
            reserve: IdSet::new(),
            starting: IdSet::new(),
            jobs: BTreeMap::new(),
            refusals_told: 0,
        };
        spawner.add_reserve(config.later);
        spawner
    }

    /// Numbers hosts that have no agent yet.
    fn add_reserve(&mut self, later: Vec<(String, Slots)>) {
        let last = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        for ((name, slots), agent) in later.into_iter().zip(last + 1..) {
            self.names.push(name);
            self.slots.push(slots);
            self.reserve.insert(agent);
        }
    }

    /// Those of these agents that were started for jobs that tasks have asked for.
    pub(crate) fn late(&self, agents: &IdSet) -> IdSet {
        agents.intersection(&self.starting)
    }

    /// Handles that some of those have joined.
    pub(crate) fn on_joined(&mut self, late: &IdSet, orders: &mut Orders) {
        self.starting = self.starting.difference(late);
        self.reserve = self.reserve.difference(late);
        for job in self.jobs.values_mut() {
            job.awaited = job.awaited.difference(late);
            job.begin(orders);
        }
    }

    /// Handles that agents will not join, or are lost. Nobody is started twice.
    pub(crate) fn on_missing(&mut self, agents: &IdSet, orders: &mut Orders) {
        self.starting = self.starting.difference(agents);
        self.reserve = self.reserve.difference(agents);
        let is_short = |job: &Spawned| !job.awaited.intersection(agents).is_empty();
        let short = self.jobs.iter().filter(|(_, job)| is_short(job));
        for id in short.map(|(id, _)| *id).collect::<Vec<_>>() {
            let Some(job) = self.jobs.remove(&id) else { continue };
            let missing = job.awaited.intersection(agents);
            let name = missing.first().and_then(|agent| self.names.get(agent as usize - 1));
            let words = format!("no agent came up on `{}`", name.map_or("", String::as_str));
            if let Stage::Gathering(caller) = job.stage {
                self.refuse(caller, words, orders);
            }
        }
    }

    /// Handles that the first job is launched, perhaps elsewhere than was planned.
    pub(crate) fn on_launch(&mut self, map: Option<&TaskMap>) {
        if let Some(map) = map {
            self.first.map = map.clone();
        }
    }

    /// The jobs that are not over.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Handles a task's request. `members` run jobs; without any, everything is being ended.
    pub(crate) fn on_request(
        &mut self,
        caller: (JobId, Rank),
        request: SpawnRequest,
        members: Option<&IdSet>,
        orders: &mut Orders,
    ) {
        let spec = match members {
            Some(members) => self.spec(caller.0, request, members),
            None => Err(ENDING.to_string()),
        };
        match spec {
            Ok((spec, programs)) => {
                let id = spec.job;
                self.last = id;
                let awaited = self.awaited(&spec.map);
                self.start(&awaited, orders);
                let mut job = Spawned::new(spec, programs, caller, awaited);
                job.begin(orders);
                self.jobs.insert(id, job);
            }
            Err(words) => self.refuse(caller, words, orders),
        }
    }

    /// Handles that all nodes of a job have come so far with it. From its launch on it is `known`.
    pub(crate) fn on_reached(
        &mut self,
        (id, milestone): (JobId, Milestone),
        members: &IdSet,
        known: &mut SpawnedJobs,
        orders: &mut Orders,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Stage::Starting(caller) = job.stage else { return };
        match milestone {
            Milestone::Prepared => {
                orders.events.push_back(Event::Launched(id));
                if let Some(record) = job.record.take() {
                    known.on_launch(id, *record);
                }
                let launch = Launch { job: id, members: members.clone(), map: None };
                orders.down.push(Message::Launch(Box::new(launch)));
            }
            Milestone::Created => {
                job.stage = Stage::Running;
                let (kvsname, programs) = (job.kvsname.clone(), job.programs.clone());
                reply(caller, SpawnReply::Started { kvsname, programs }, orders);
            }
        }
    }

    /// Handles a fault of a job, if it is one that has kept the job from starting. Returns whether it is.
    pub(crate) fn on_fault(&mut self, id: JobId, fault: &JobFault, orders: &mut Orders) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let (caller, words) = match (job.stage, words_of(fault, &self.names)) {
            (Stage::Starting(caller), Some(words)) => (caller, words),
            (Stage::Gathering(_) | Stage::Starting(_) | Stage::Running, _) => return false,
            (Stage::Failed, _) => return true, // what has failed on a node may fail on others, too
        };
        job.stage = Stage::Failed;
        orders.events.push_back(Event::Stopping(id));
        orders.down.push(Message::Stop { job: id, grace_ms: 0 });
        self.refuse(caller, words, orders);
        true
    }

    /// The node of a task of a job that runs.
    pub(crate) fn node_of(&self, id: JobId, rank: Rank) -> Option<NodeId> {
        self.jobs.get(&id)?.map.node_of(rank)
    }

    /// Handles that nothing of a job runs any more.
    pub(crate) fn on_done(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// Handles that the first job is over.
    pub(crate) fn on_first_done(&mut self) {
        self.first.map = TaskMap::new();
    }

    /// Tells all who still wait that nothing will come of it, since everything is being ended.
    pub(crate) fn give_up(&mut self, orders: &mut Orders) {
        for job in self.jobs.values_mut() {
            if let Stage::Gathering(caller) | Stage::Starting(caller) = job.stage {
                job.stage = Stage::Failed;
                reply(caller, SpawnReply::Refused(ENDING.to_string()), orders);
            }
        }
        self.jobs.retain(|_, job| job.spec.is_none()); // nobody else knows of those
    }

    /// The agents that a job needs and that have not joined.
    fn awaited(&self, map: &TaskMap) -> IdSet {
        let agents: IdSet = map.nodes().iter().map(|node| NodeId(node).agent().0).collect();
        agents.intersection(&self.reserve)
    }

    /// Starts those of these agents that are not on their way.
    fn start(&mut self, agents: &IdSet, orders: &mut Orders) {
        for agent in agents.difference(&self.starting).iter() {
            let name = self.names.get(agent as usize - 1).cloned().unwrap_or_default();
            orders.late.push((AgentId(agent), name));
        }
        self.starting = self.starting.union(agents);
    }

    fn refuse(&mut self, caller: (JobId, Rank), words: String, orders: &mut Orders) {
        if self.refusals_told < REFUSALS_TOLD_MAX {
            self.refusals_told += 1;
            let warning = JobWarning::SpawnRefused { rank: caller.1, words: words.clone() };
            orders.events.push_back(Event::JobWarning(caller.0, warning));
        }
        reply(caller, SpawnReply::Refused(words), orders);
    }

    /// How many tasks of all jobs each node has. One that could not be started leaves its room to whoever tries again.
    fn used(&self) -> Vec<u32> {
        let mut used = alloc::vec![0; self.names.len()];
        let jobs = self.jobs.values().filter(|job| !matches!(job.stage, Stage::Failed));
        let maps = jobs.map(|job| &job.map).chain([&self.first.map]);
        maps.for_each(|map| count(&mut used, map));
        used
    }

    /// The job that a task asks for, with how many tasks of each program, or why there is none.
    fn spec(
        &self,
        by: JobId,
        request: SpawnRequest,
        members: &IdSet,
    ) -> Result<(JobSpec, Vec<SpawnedTasks>), String> {
        if self.last.0 + 1 >= JOBS_MAX {
            return Err(format!("a session has no more than {JOBS_MAX} jobs"));
        }
        let job = JobId(self.last.0 + 1);
        let (map, programs) = self.place(&request, members)?;
        let mut first_rank = Rank(0);
        let mut apps = Vec::new();
        for (program, tasks) in request.programs.iter().zip(&programs) {
            apps.push(self.app(first_rank, program)?);
            first_rank.0 += tasks.created;
        }
        let spec = JobSpec {
            job,
            apps,
            map,
            is_movable: false,
            kvsname: format!("{}.{}", self.first.kvsname, job.0),
            origin: Some(Origin { kvsname: self.kvsname_of(by), preput: request.preput }),
            io: IoSpec { stdin: Stdin::Nobody, ..self.first.io.clone() },
            ..self.first.clone()
        };
        Ok((spec, programs))
    }

    fn kvsname_of(&self, job: JobId) -> String {
        let spawned = self.jobs.get(&job).map(|job| &job.kvsname);
        spawned.unwrap_or(&self.first.kvsname).clone()
    }

    /// A program as the first of the first job would run, but for what is said of it: `wdir` and `path`.
    fn app(&self, first_rank: Rank, program: &SpawnProgram) -> Result<App, String> {
        let model = self.first.apps.first().ok_or("the first job has no program")?;
        let mut argv: Vec<Bytes> = program.argv.iter().cloned().map(Bytes::from).collect();
        let name = argv.first_mut().filter(|name| !name.is_empty()).ok_or("it names no program")?;
        if let Some(path) = program.info("path") {
            *name = [path, b"/", name].concat().into();
        }
        let dir = match program.info("wdir") {
            Some(dir) if dir.starts_with(b"/") => Bytes::copy_from_slice(dir),
            Some(dir) => [&model.dir, &b"/"[..], dir].concat().into(),
            None => model.dir.clone(),
        };
        Ok(App { first_rank, argv, env: model.env.clone(), dir })
    }

    /// Places each program in the room that those before it have left, with as many tasks as it permits. What those
    /// behind it need at least is kept for them.
    fn place(
        &self,
        request: &SpawnRequest,
        members: &IdSet,
    ) -> Result<(TaskMap, Vec<SpawnedTasks>), String> {
        let mut used = self.used();
        let wanted: Vec<Wanted> =
            request.programs.iter().map(Wanted::of).collect::<Result<_, _>>()?;
        let mut needed: u64 = wanted.iter().map(|wanted| u64::from(wanted.least)).sum();
        self.check_universe(needed, &used)?;
        let (mut map, mut programs) = (TaskMap::new(), Vec::new());
        for (program, wanted) in request.programs.iter().zip(&wanted) {
            needed -= u64::from(wanted.least);
            let nodes = self.nodes_for(program, members)?;
            let slots: Vec<Slots> = nodes.iter().map(|node| self.free(*node, &used)).collect();
            let free = self.free_of_universe(&used).map(|free| free.saturating_sub(needed));
            let room = [free, room_of(&slots)].into_iter().flatten().min();
            let created = wanted.most(room);
            let tasks = Request { tasks: Some(created), ..Request::default() };
            let too_large = |_| PlacementError::TooLarge(request.tasks());
            let placed = place(&slots, &tasks)
                .and_then(|placed| placed.over(&nodes).map_err(too_large))
                .map_err(|error| self.why_too_few(&error))?;
            count(&mut used, &placed);
            map.append(&placed).map_err(|error| too_large(error).to_string())?;
            programs.push(SpawnedTasks { asked: program.tasks, created });
        }
        if map.is_empty() { Err(no_tasks()) } else { Ok((map, programs)) }
    }

    fn check_universe(&self, needed: u64, used: &[u32]) -> Result<(), String> {
        let (Some(universe), Some(free)) = (self.first.universe_size, self.free_of_universe(used))
        else {
            return Ok(());
        };
        if needed <= free {
            return Ok(());
        }
        let hint = self.hint();
        Err(format!("{needed} tasks do not fit: {free} of {universe} slots are free{hint}"))
    }

    fn why_too_few(&self, error: &PlacementError) -> String {
        let is_full = matches!(error, PlacementError::TooManyTasks { .. });
        format!("{error}{}", if is_full { self.hint() } else { String::new() })
    }

    /// What would give more room, behind words that say that there is too little.
    fn hint(&self) -> String {
        if self.unused.is_empty() {
            return String::new();
        }
        let hosts = counted(self.unused.len() as u64, "host");
        let slots = self.unused.iter().map(|(_, slots)| slots.given.map(u64::from));
        let room = match slots.sum::<Option<u64>>() {
            Some(slots) => format!("the {} of {hosts}", counted(slots, "slot")),
            None => hosts,
        };
        format!("; `--all-hosts` adds {room} without tasks")
    }

    /// How many of all slots are free, where it is known how many there are.
    fn free_of_universe(&self, used: &[u32]) -> Option<u64> {
        let used: u64 = used.iter().copied().map(u64::from).sum();
        Some(u64::from(self.first.universe_size?).saturating_sub(used))
    }

    /// The room that is left on a node; nothing says how much where no node has slots.
    fn free(&self, node: NodeId, used: &[u32]) -> Slots {
        if self.slots.iter().all(|slots| slots.given.is_none()) {
            return Slots::default();
        }
        let index = node.0 as usize;
        let given = self.slots.get(index).and_then(|slots| slots.given).unwrap_or(1);
        Slots::of(given.saturating_sub(used.get(index).copied().unwrap_or_default()))
    }

    /// The nodes that a program may run on: those that have agents or get them, or those of them that it names.
    fn nodes_for(&self, program: &SpawnProgram, members: &IdSet) -> Result<Vec<NodeId>, String> {
        let agents = members.iter().chain(self.reserve.iter());
        let there: Vec<NodeId> = agents.map(|agent| NodeId(agent - 1)).collect();
        let Some(hosts) = program.info("host").or_else(|| program.info("hosts")) else {
            return Ok(there);
        };
        let hosts = core::str::from_utf8(hosts).map_err(|error| error.to_string())?;
        let hosts: HostList = hosts.parse().map_err(|error| format!("`{hosts}`: {error}"))?;
        let find = |name: &str| {
            let is_it =
                |node: &NodeId| self.names.get(node.0 as usize).is_some_and(|it| it == name);
            let found = there.iter().copied().find(is_it);
            found.ok_or_else(|| self.why_not(name))
        };
        hosts.nodes().iter().map(|node| find(&node.name)).collect()
    }

    /// Why no task runs on a host.
    fn why_not(&self, name: &str) -> String {
        let is_it = |(host, _): &&(String, Slots)| host == name;
        match self.unused.iter().find(is_it) {
            Some((_, slots)) => {
                let slots = slots.given.map(|slots| counted(slots.into(), "slot"));
                let room = slots.map_or("it".into(), |slots| format!("its {slots}"));
                format!("no agent runs on `{name}`, which has no tasks: `--all-hosts` adds {room}")
            }
            None if self.names.iter().any(|host| host == name) => {
                format!("no agent runs on `{name}`: it is a spare, or did not come up")
            }
            None => format!("`{name}` is no host of the session: name it in `--hosts`"),
        }
    }
}

/// How many tasks a program may have.
struct Wanted {
    /// `maxprocs`.
    tasks: u32,
    soft: Option<SoftCounts>,
    /// The fewest.
    least: u32,
}

impl Wanted {
    /// What the caller says, where that permits any number at all.
    fn of(program: &SpawnProgram) -> Result<Wanted, String> {
        let tasks = program.tasks;
        let Some(text) = program.info("soft") else {
            return Ok(Wanted { tasks, soft: None, least: tasks });
        };
        let text = String::from_utf8_lossy(text);
        let soft: SoftCounts =
            text.parse().map_err(|error| format!("info key `soft` (`{text}`): {error}"))?;
        let least = soft.smallest().filter(|least| *least <= tasks).ok_or_else(|| {
            format!("info key `soft` (`{text}`) permits none of the numbers from 1 to {tasks}")
        })?;
        Ok(Wanted { tasks, soft: Some(soft), least })
    }

    /// The most that may be where there is room for so many; the fewest where there is too little.
    fn most(&self, room: Option<u64>) -> u32 {
        let Some(soft) = &self.soft else { return self.tasks };
        let limit = room.and_then(|room| u32::try_from(room).ok()).unwrap_or(u32::MAX);
        soft.largest_at_most(self.tasks.min(limit)).unwrap_or(self.least)
    }
}

/// The room that nodes have together, where something says it.
fn room_of(slots: &[Slots]) -> Option<u64> {
    slots.iter().map(|slots| slots.given.map(u64::from)).sum()
}

/// Adds the tasks of a job to those that each node has.
fn count(used: &mut [u32], map: &TaskMap) {
    for (used, tasks) in used.iter_mut().zip(map.counts()) {
        *used = used.saturating_add(tasks);
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn no_tasks() -> String {
    "it asks for no tasks".to_string()
}

fn reply((job, rank): (JobId, Rank), reply: SpawnReply, orders: &mut Orders) {
    orders.down.push(Message::SpawnReply(job, rank, Box::new(reply)));
}

/// Why a job could not be started, if a fault says that.
fn words_of(fault: &JobFault, names: &[String]) -> Option<String> {
    match fault {
        JobFault::Program { words, .. } => Some(format!("its program: {words}")),
        JobFault::Directory { words, .. } => Some(format!("its directory: {words}")),
        JobFault::Spawn { rank, words, .. } => Some(format!("its task {rank}: {words}")),
        JobFault::Output { agent, errno, words } => {
            let node = agent.node().and_then(|node| names.get(node.0 as usize));
            let place = node.map(|name| format!(" on {name}")).unwrap_or_default();
            Some(format!("its output: could not write {words}{place} (os error {errno})"))
        }
        JobFault::Task { .. }
        | JobFault::Unfinalized { .. }
        | JobFault::Abort { .. }
        | JobFault::Pmi { .. } => None,
    }
}
