//! What each agent sends, and the links that it holds, until a job is launched: for every number of agents up
//! to 300, every planned tree and every route, against formulas.
//!
//! Agents are joined by links that take no time, so that nothing of this depends on chance.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use engine::route::RouteTree;
use engine::tree::branches;
use engine::{AgentConfig, Effect, Engine, HeadConfig, Input, LinkId};
use model::{AgentId, IdSet, JobId, Muster, Rank, Route, TaskMap, Time, Tree};
use wire::{App, Contact, Hello, JobSpec, Launch, Message, SessionSpec, Welcome};

const N_MAX: u32 = 300;

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "two-level", "greedy"];

const ROUTES: [Route; 6] = [
    Route::Kary(1),
    Route::Kary(2),
    Route::Kary(3),
    Route::Kary(16),
    Route::Binomial,
    Route::Direct,
];

/// Trees take turns with routes, so that every number of agents meets each of either; few, and some numbers
/// more, meet every pair.
#[test]
fn messages_links_and_bytes_of_each_agent_are_those_of_the_formulas() {
    check_all(|n, turn| n <= 24 || matches!(n, 64 | 100 | N_MAX) || n as usize % 6 == turn);
}

#[test]
#[ignore = "takes a minute"]
fn they_are_so_for_every_number_of_agents_and_every_pair_of_a_tree_and_a_route() {
    check_all(|_, _| true);
}

/// Checks these, by the number of agents and by how far the route is behind the tree in its list.
fn check_all(is_wanted: impl Fn(u32, usize) -> bool + Copy + Send) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                for n in (1..=N_MAX).skip(first).step_by(threads) {
                    check_pairs(n, |turn| is_wanted(n, turn));
                }
            });
        }
    });
}

fn check_pairs(n: u32, is_wanted: impl Fn(usize) -> bool) {
    for (number, tree) in TREES.into_iter().enumerate() {
        for turn in (0..ROUTES.len()).filter(|turn| is_wanted(*turn)) {
            let route = ROUTES[(number + turn) % ROUTES.len()];
            let redundancy = u8::try_from(n % 3).unwrap();
            check(n, tree.parse().expect("a tree"), route, redundancy);
        }
    }
}

/// Holds what a session does against what it is to do.
fn check(n: u32, tree: Tree, route: Route, redundancy: u8) {
    let told = format!("{route} over {tree} of {n}, redundancy {redundancy}");
    let session = session(route, redundancy);
    let job = job(n);
    let spent = Network::launch(n, tree, &session, &job);
    let places = Places::of(n, tree, route, redundancy);
    for id in 0..=n {
        let (due, links) = places.due(id, &session, &job);
        let own = &spent[id as usize];
        assert_eq!(own.messages, due.messages, "messages of {id}: {told}");
        assert_eq!(own.bytes, due.bytes, "bytes of {id}: {told}");
        assert_eq!(own.links, links, "links of {id}: {told}");
    }
}

/// Where each agent is in the trees, by formulas of its own.
struct Places {
    n: u32,
    routes: RouteTree,
    redundancy: u8,
    /// By agent: its spawn parent, and what it hands to each child.
    parents: Vec<u32>,
    children: Vec<Vec<(AgentId, Tree, IdSet)>>,
    /// By agent: how many are at and below it, which are consecutive.
    sizes: Vec<u32>,
    /// By agent: how many others it calls for the routing tree, and how many call it.
    called: Vec<usize>,
    callers: Vec<usize>,
}

impl Places {
    fn of(n: u32, tree: Tree, route: Route, redundancy: u8) -> Places {
        let slots = n as usize + 1;
        let (mut parents, mut children) = (vec![0; slots], vec![Vec::new(); slots]);
        let mut sizes = vec![n + 1; slots];
        let mut todo = vec![(0_u32, tree, IdSet::range(1, n))];
        while let Some((id, tree, below)) = todo.pop() {
            for branch in branches(&tree, &below) {
                parents[branch.child.0 as usize] = id;
                sizes[branch.child.0 as usize] = 1 + u32::try_from(branch.below.len()).unwrap();
                todo.push((branch.child.0, branch.tree, branch.below.clone()));
                children[id as usize].push((branch.child, branch.tree, branch.below));
            }
        }
        let routes = RouteTree::new(route, AgentId::HEAD, IdSet::range(1, n));
        let (called, callers) = (vec![0; slots], vec![0; slots]);
        let mut places =
            Places { n, routes, redundancy, parents, children, sizes, called, callers };
        places.count_calls();
        places
    }

    fn count_calls(&mut self) {
        for id in 0..=self.n {
            for called in self.called_by(AgentId(id)) {
                self.called[id as usize] += 1;
                self.callers[called.0 as usize] += 1;
            }
        }
    }

    fn are_spawn_neighbours(&self, one: AgentId, other: AgentId) -> bool {
        let is_child = |child: AgentId, parent: AgentId| {
            child.0 > 0 && self.parents[child.0 as usize] == parent.0
        };
        is_child(one, other) || is_child(other, one)
    }

    /// Whom an agent calls for the routing tree.
    fn called_by(&self, id: AgentId) -> Vec<AgentId> {
        let parent = self.routes.parent(id);
        let before = (0..id.0).rev().map(AgentId).filter(|&other| Some(other) != parent);
        let called = parent.into_iter().chain(before.take(self.redundancy.into()));
        called.filter(|&other| !self.are_spawn_neighbours(id, other)).collect()
    }

    /// What an agent sends, and how many links it holds.
    fn due(&self, id: u32, session: &SessionSpec, job: &JobSpec) -> (Spent, usize) {
        let own = AgentId(id);
        let (children, route_children) = (&self.children[id as usize], self.routes.children(own));
        let (spawned, routed) = (children.len() as u64, route_children.len());
        let mut due = Spent::default();
        for (child, tree, below) in children {
            let names: Vec<String> = below.iter().map(|id| format!("n{id}")).collect();
            let names = model::fold_names(names.iter().map(String::as_str));
            let (own_name, session) = (format!("n{}", child.0), session.clone());
            let welcome = Welcome { tree: *tree, below: below.clone(), names, own_name, session };
            due.add(1, Message::Welcome(Box::new(welcome)).size());
        }
        due.add(spawned, Message::Job(Box::new(job.clone())).size());
        // A member sends one list of the contacts of its subtree, and each hears of all once.
        due.add(spawned, 6 + set(1, self.n) + contacts(0, self.n));
        if id > 0 {
            let last = id + self.sizes[id as usize] - 1;
            due.add(1, Message::Hello(Hello { attempt: 0, pid: 1 }).size());
            // It tells of itself at once, and of all below together.
            due.add(1, 6 + set(id, id));
            if last > id {
                due.add(1, 6 + set(id + 1, last));
            }
            due.add(1, 6 + contacts(id, last));
            due.add(1, 6);
        }
        let (called, callers) = (self.called[id as usize], self.callers[id as usize]);
        due.add(called as u64, 6 + 2);
        let members = IdSet::range(1, self.n);
        let launch = Launch { job: JobId(0), members, map: None };
        due.add(routed, Message::Launch(Box::new(launch)).size());
        let window = ((4 << 20) / routed.max(1)).clamp(64 << 10, 1 << 20);
        due.add(routed, 6 + varint(window));
        (due, usize::from(id > 0) + children.len() + called + callers)
    }
}

/// The bytes of a number: seven bits in each.
fn varint(number: u64) -> u64 {
    u64::from((64 - number.leading_zeros()).div_ceil(7).max(1))
}

/// The bytes of a set that is one range.
fn set(first: u32, last: u32) -> u64 {
    1 + varint(first.into()) + varint(last.into())
}

/// The bytes of a list of the contacts of these, without an address: those are copied as often as there
/// are contacts, for every agent, and would take most of the test's time.
fn contacts(first: u32, last: u32) -> u64 {
    let each = (first..=last).map(|id| varint(id.into()) + 1);
    varint(u64::from(last - first + 1)) + each.sum::<u64>()
}

trait Size {
    fn size(&self) -> u64;
}

impl Size for Message {
    fn size(&self) -> u64 {
        wire::encoded_len(self) as u64
    }
}

/// What an agent has spent; signs of life are left out, which tell nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Spent {
    messages: u64,
    bytes: u64,
    links: usize,
}

impl Spent {
    fn add(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += messages * bytes;
    }
}

/// Engines, and links without latency between them.
#[derive(Default)]
struct Network {
    engines: Vec<Option<Engine>>,
    links: Vec<[usize; 2]>,
    todo: VecDeque<(usize, Input)>,
    spent: Vec<Spent>,
    launched: usize,
}

impl Network {
    /// Brings a session up until its job is launched everywhere and all links are there.
    fn launch(n: u32, tree: Tree, session: &SessionSpec, job: &JobSpec) -> Vec<Spent> {
        let config = HeadConfig {
            names: (1..=n).map(|id| format!("n{id}")).collect(),
            tree,
            session: session.clone(),
            job: job.clone(),
            later: vec![],
            unused: vec![],
            muster: Muster::strict(n),
            join_timeout: None,
            children_max: u32::MAX,
            reports_started: false,
            push_bytes_max: u64::MAX,
            forward_signals: vec![],
            timeout: None,
            seed: 1,
        };
        let slots = n as usize + 1;
        let mut network = Network { spent: vec![Spent::default(); slots], ..Network::default() };
        network.engines.resize_with(slots, || None);
        network.engines[0] = Some(Engine::head(Time::ZERO, config));
        network.drain(0);
        while let Some((at, input)) = network.todo.pop_front() {
            let engine = network.engines[at].as_mut().expect("it was started");
            engine.handle(Time::ZERO, input);
            network.drain(at);
        }
        assert_eq!(network.launched, n as usize, "all run their tasks");
        network.spent
    }

    fn drain(&mut self, at: usize) {
        while let Some(effect) = self.engines[at].as_mut().and_then(Engine::poll_effect) {
            self.perform(at, effect);
        }
    }

    fn perform(&mut self, at: usize, effect: Effect) {
        if let Effect::Start(start) = effect {
            for (agent, _) in start.agents {
                self.start(at, agent);
            }
        } else if let Effect::Send { links, message } = effect {
            self.send(at, &links, &message);
        } else if let Effect::Listen = effect {
            self.todo.push_back((at, Input::Listening(Contact::default())));
        } else if let Effect::Connect { peer, .. } = effect {
            self.connect(peer.0 as usize, at);
        } else if let Effect::Prepare { job, .. } = effect {
            let (job, fault, pmi_port) = (job.job, None, None);
            let prepared = Input::Prepared { job, fault, pmi_port, open_mpi: vec![] };
            self.todo.push_back((at, prepared));
        } else if let Effect::Spawn(_) = effect {
            self.launched += 1;
        }
    }

    fn start(&mut self, by: usize, agent: AgentId) {
        let parent = AgentId(u32::try_from(by).unwrap());
        let config = AgentConfig {
            agent,
            parent,
            attempt: 0,
            pid: 1,
            seed: 1,
            children_max: u32::MAX,
            reports_started: false,
            welcome_timeout: Duration::from_secs(5),
        };
        self.engines[agent.0 as usize] = Some(Engine::agent(Time::ZERO, config));
        self.connect(by, agent.0 as usize);
    }

    fn connect(&mut self, upper: usize, lower: usize) {
        let link = LinkId(self.links.len() as u64);
        self.links.push([upper, lower]);
        for (at, peer) in [(upper, lower), (lower, upper)] {
            let peer = AgentId(u32::try_from(peer).unwrap());
            self.spent[at].links += 1;
            self.todo.push_back((at, Input::LinkUp { link, peer, over_shell: false }));
        }
    }

    fn send(&mut self, at: usize, links: &[LinkId], message: &Message) {
        if !matches!(message, Message::Ping { .. }) {
            self.spent[at].add(links.len() as u64, message.size());
        }
        for &link in links {
            let [upper, lower] = self.links[usize::try_from(link.0).unwrap()];
            let to = if at == upper { lower } else { upper };
            self.todo.push_back((to, Input::Message { link, message: message.clone() }));
        }
    }
}

fn session(route: Route, redundancy: u8) -> SessionSpec {
    SessionSpec {
        bootstrap: vec![],
        bulk_max: 1,
        window: u32::MAX,
        batch: None,
        retries_max: 0,
        start_timeout_ms: 30_000,
        heartbeat_ms: 2_500,
        link_timeout_ms: 6_500,
        marks: false,
        route: Some(route),
        redundancy,
        pushes_contacts: true,
    }
}

/// A job with a task on each node.
fn job(n: u32) -> JobSpec {
    let argv = vec![Bytes::from_static(b"true")];
    let app = App { first_rank: Rank(0), argv, env: vec![], dir: Bytes::from_static(b"/") };
    let map = TaskMap::from_counts((0..n).map(|_| 1)).expect("a map of few");
    JobSpec::new(JobId(0), vec![app], map)
}
