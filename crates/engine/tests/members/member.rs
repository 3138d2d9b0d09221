//! A member of a session, alone: its inputs come from the test, its effects go there.

use std::time::Duration;

use bytes::Bytes;
use engine::{AgentConfig, Effect, Engine, HeadConfig, Input, LinkId, Outcome, Start, StartId};
use model::{
    AgentId, ExitStatus, IdSet, JobId, Muster, NodeId, Rank, Signal, TaskMap, Time, Tree, Usage,
};
use wire::{App, Hello, JobSpec, Launch, Message, SessionSpec, ShellFailureKind, Stream, Welcome};

pub(crate) const JOB: JobId = JobId(0);
pub(crate) const PARENT: LinkId = LinkId(1000);

/// A member and the time on its clock.
pub(crate) struct Member {
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    /// Starts that a helper of the test came upon and the test has not asked for yet.
    pub(crate) seen: Vec<Effect>,
}

impl Member {
    pub(crate) fn head(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
        let mut config = HeadConfig {
            names: (1..=n).map(|i| format!("n{i}")).collect(),
            tree: Tree::Flat,
            session: session(),
            job: job(n, 1),
            later: vec![],
            unused: vec![],
            muster: Muster::strict(n),
            join_timeout: None,
            children_max: u32::MAX,
            reports_started: false,
            push_bytes_max: u64::MAX,
            forward_signals: vec![Signal::USR1],
            timeout: None,
            seed: 1,
        };
        change(&mut config);
        Member { engine: Engine::head(Time::ZERO, config), now: Time::ZERO, seen: vec![] }
    }

    /// An agent that has been welcomed, with `tasks` tasks on its node.
    pub(crate) fn agent(id: u32, tree: Tree, below: IdSet, tasks: u32) -> Member {
        Member::agent_of(id, tree, below, job(id, tasks))
    }

    /// The same in this job.
    pub(crate) fn agent_of(id: u32, tree: Tree, below: IdSet, job: JobSpec) -> Member {
        let mut member = Member::agent_with(id, tree, below, job);
        member.effects();
        member
    }

    /// Agent 1 with rank 0, and with agent 2 below it; agents 3 and 4 are elsewhere, and each has a task. The job is
    /// launched.
    pub(crate) fn inner_agent() -> Member {
        Member::inner_agent_with(IdSet::range(2, 2))
    }

    /// The same with these agents below it.
    pub(crate) fn inner_agent_with(children: IdSet) -> Member {
        let map = TaskMap::from_counts([1; 4]).expect("four tasks are not too many");
        let job = JobSpec { map, ..job(1, 1) };
        let mut agent = Member::agent_of(1, Tree::Flat, children.clone(), job);
        for child in children.iter() {
            agent.child_joins(child);
            agent.joined(child, IdSet::range(child, child));
        }
        agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
        let launch = Launch { job: JOB, members: IdSet::range(1, 4), map: None };
        agent.message(PARENT, Message::Launch(Box::new(launch)));
        agent.input(Input::Spawned { job: JOB, rank: Rank(0), result: Ok(100) });
        agent.effects();
        agent
    }

    /// An agent that has just got this job.
    pub(crate) fn agent_with(id: u32, tree: Tree, below: IdSet, job: JobSpec) -> Member {
        let config = AgentConfig {
            agent: AgentId(id),
            parent: AgentId::HEAD,
            attempt: 0,
            pid: 7,
            seed: 1,
            children_max: u32::MAX,
            reports_started: false,
            welcome_timeout: Duration::from_secs(5),
        };
        let mut member =
            Member { engine: Engine::agent(Time::ZERO, config), now: Time::ZERO, seen: vec![] };
        member.input(Input::LinkUp { link: PARENT, peer: AgentId::HEAD, over_shell: false });
        let names: Vec<String> = below.iter().map(|id| format!("n{id}")).collect();
        let names = model::fold_names(names.iter().map(String::as_str));
        let own_name = format!("n{id}");
        let welcome = Welcome { tree, below, names, own_name, session: session() };
        member.message(PARENT, Message::Welcome(Box::new(welcome)));
        member.message(PARENT, Message::Job(Box::new(job)));
        member
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.engine.handle(self.now, input);
    }

    pub(crate) fn message(&mut self, link: LinkId, message: Message) {
        self.input(Input::Message { link, message });
    }

    /// Lets a child prove itself on the link of its own number; returns what it is sent.
    pub(crate) fn child_joins(&mut self, child: u32) -> Vec<Message> {
        let link = LinkId(u64::from(child));
        self.input(Input::LinkUp { link, peer: AgentId(child), over_shell: false });
        self.message(link, Message::Hello(Hello { attempt: 0, pid: 1 }));
        let effects = self.effects();
        let messages = messages(&effects);
        self.seen.extend(effects.into_iter().filter(|effect| matches!(effect, Effect::Start(_))));
        messages
    }

    pub(crate) fn joined(&mut self, child: u32, ids: IdSet) {
        self.message(LinkId(u64::from(child)), Message::Joined(ids));
    }

    pub(crate) fn shell_ends(&mut self, start: StartId, kind: ShellFailureKind) {
        let status = ExitStatus::Exited(255);
        self.input(Input::ShellEnded { start, kind, status, words: String::new() });
    }

    pub(crate) fn exits(&mut self, rank: u32, status: ExitStatus) {
        let usage = Usage::default();
        self.input(Input::TaskExited { job: JOB, rank: Rank(rank), status, usage });
    }

    pub(crate) fn writes(&mut self, rank: u32, data: &'static [u8]) {
        let data = Bytes::from_static(data);
        self.input(Input::TaskOutput { job: JOB, rank: Rank(rank), stream: Stream::Stdout, data });
    }

    /// Lets time pass until the member does something; returns how long that took.
    pub(crate) fn sleep(&mut self) -> Duration {
        let since = self.now;
        let mut effects = vec![];
        while effects.is_empty() {
            self.now = self.engine.poll_timeout().expect("the member waits for something");
            self.engine.on_time(self.now);
            effects.extend(std::iter::from_fn(|| self.engine.poll_effect()));
        }
        self.seen.extend(effects);
        self.now - since
    }

    /// Lets so much time pass, whatever the member does.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.engine.poll_timeout().filter(|&at| at <= end) {
            self.now = at;
            self.engine.on_time(at);
        }
        self.now = end;
    }

    pub(crate) fn run_until_exit(&mut self) {
        for _ in 0..100 {
            if self.effects().iter().any(|effect| matches!(effect, Effect::Exit(_))) {
                return;
            }
            self.sleep();
        }
        panic!("the session does not end");
    }

    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter().chain(std::iter::from_fn(|| self.engine.poll_effect())).collect()
    }

    /// How much it holds: the lines of all that it is made of. What it has told of is taken first.
    pub(crate) fn lines_of_state(&mut self) -> usize {
        while self.engine.poll_event().is_some() {}
        format!("{:#?}", self.engine).lines().count()
    }

    pub(crate) fn sent(&mut self) -> Vec<Message> {
        messages(&self.effects())
    }

    pub(crate) fn starts(&mut self) -> Vec<Start> {
        let start = |effect| if let Effect::Start(start) = effect { Some(start) } else { None };
        self.effects().into_iter().filter_map(start).collect()
    }

    pub(crate) fn started(&mut self) -> Vec<AgentId> {
        let agents = self.starts().into_iter().flat_map(|start| start.agents);
        agents.map(|(agent, _)| agent).collect()
    }

    pub(crate) fn only_start(&mut self) -> Start {
        match &self.effects()[..] {
            [Effect::Start(start)] => start.clone(),
            other => panic!("not one start: {other:?}"),
        }
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        self.engine.outcome()
    }
}

/// A head whose children have joined and told that all below have, and that has launched.
pub(crate) fn running(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
    let mut head = Member::head(n, change);
    let children = head.started();
    let last = |index: usize| children.get(index + 1).map_or(n, |next| next.0 - 1);
    for (index, child) in children.iter().enumerate() {
        head.child_joins(child.0);
        head.joined(child.0, IdSet::range(child.0, last(index)));
    }
    assert!(head.effects().iter().any(is_launch));
    head
}

/// An agent whose tasks run.
pub(crate) fn launched_agent(tasks: u32) -> Member {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), tasks);
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
    agent.message(PARENT, launch());
    for rank in 0..tasks {
        agent.input(Input::Spawned { job: JOB, rank: Rank(rank), result: Ok(100 + rank) });
    }
    agent.effects();
    agent
}

pub(crate) fn session() -> SessionSpec {
    SessionSpec {
        bootstrap: vec![],
        bulk_max: 1,
        window: 64,
        batch: None,
        retries_max: 5,
        start_timeout_ms: 30_000,
        heartbeat_ms: 2500,
        link_timeout_ms: 8000,
        marks: false,
        route: None,
        redundancy: 0,
        pushes_contacts: true,
    }
}

/// A job with `tasks` tasks on the last of `nodes` nodes and none before.
pub(crate) fn job(nodes: u32, tasks: u32) -> JobSpec {
    let counts = (1..=nodes).map(|node| if node == nodes { tasks } else { 0 });
    let map = TaskMap::from_counts(counts).expect("one node at least");
    assert_eq!(map.tasks_on(NodeId(nodes - 1)), tasks);
    JobSpec::new(JOB, vec![app(0, "true")], map)
}

/// The program of the tasks from rank `first_rank` on.
pub(crate) fn app(first_rank: u32, program: &'static str) -> App {
    let argv = vec![Bytes::from_static(program.as_bytes())];
    App { first_rank: Rank(first_rank), argv, env: vec![], dir: Bytes::from_static(b"/") }
}

/// A job with a task on each of the nodes.
pub(crate) fn job_on_each(nodes: u32) -> JobSpec {
    let counts = (0..nodes).map(|_| 1);
    JobSpec { map: TaskMap::from_counts(counts).expect("a map of few"), ..job(nodes, 1) }
}

/// The order to launch the job as it was planned.
pub(crate) fn launch() -> Message {
    Message::Launch(Box::new(Launch { job: JOB, members: IdSet::range(1, 1), map: None }))
}

pub(crate) fn killed() -> ExitStatus {
    ExitStatus::Signaled { signal: Signal::KILL, core: false }
}

pub(crate) fn messages(effects: &[Effect]) -> Vec<Message> {
    let sent = effects.iter().filter_map(|effect| {
        let Effect::Send { links, message } = effect else { return None };
        Some(vec![message.clone(); links.len()])
    });
    sent.flatten().collect()
}

pub(crate) fn outputs(messages: &[Message]) -> Vec<(u64, String)> {
    let output = |message: &Message| {
        let Message::Output(output) = message else { return None };
        let data = output.clone().into_bytes();
        Some((output.offset, String::from_utf8_lossy(&data).into_owned()))
    };
    messages.iter().filter_map(output).collect()
}

pub(crate) fn owned((offset, text): (u64, &str)) -> (u64, String) {
    (offset, text.to_string())
}

pub(crate) fn is_launch(effect: &Effect) -> bool {
    matches!(effect, Effect::Send { message: Message::Launch(_), .. })
}

pub(crate) fn is_stop(effect: &Effect) -> bool {
    matches!(effect, Effect::Send { message: Message::Stop { .. }, .. })
}

pub(crate) fn is_abandon(effect: &Effect) -> bool {
    matches!(effect, Effect::Abandon { .. })
}
