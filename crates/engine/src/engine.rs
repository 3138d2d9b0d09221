//! The composition: one member of the tree, which for the head is also the whole's government.
//!
//! A member hears from above, from below, and from its own node. What comes from above goes on to
//! all children and is then done here (`down`); what goes up goes to the parent (`up`). The head is
//! agent 0, a member without tasks whose parent is the [`Head`]: it gives the orders that other
//! members get from their parents, and gets what they send to theirs. So there is one code for all
//! members, and government is apart from work.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, JobId, Time, Tree};
use proto::{Credit, Event, Silence, Ticker};
use wire::{Hello, JobFault, JobSpec, MarkKind, Message, SessionSpec, Stats};

use crate::child_table::ChildTable;
use crate::delivery::Deliveries;
use crate::ending::{Ending, parent_gone};
use crate::handout::Handout;
use crate::head::Head;
use crate::job::{Job, OutputQueue, Reader};
use crate::jobs::Jobs;
use crate::joining::Joining;
use crate::marks::Marks;
use crate::orders::Orders;
use crate::rng::Rng;
use crate::routing::{Place, Routing};
use crate::slow::StartTimes;
use crate::{AgentConfig, Effect, HeadConfig, Input, LinkEnd, LinkId, Outcome, StartId};

/// An agent or the head.
#[derive(Debug)]
pub struct Engine {
    pub(crate) id: AgentId,
    pub(crate) now: Time,
    pub(crate) rng: Rng,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) above: Above,
    /// Whether this member may send output up, and how much.
    pub(crate) credit: Credit,
    pub(crate) session: Option<Arc<SessionSpec>>,
    /// The name of this node, as the user wrote it.
    pub(crate) own_name: String,
    pub(crate) children: ChildTable,
    /// Children in the order in which they are to be started.
    pub(crate) waiting: VecDeque<AgentId>,
    /// What is handed out here, in an adaptive tree.
    pub(crate) handout: Option<Handout>,
    /// The most children in an adaptive tree, as far as this driver is concerned.
    pub(crate) children_max: u32,
    pub(crate) starts: BTreeMap<StartId, Vec<AgentId>>,
    pub(crate) starts_made: u64,
    pub(crate) deliveries: Deliveries,
    /// Leaves that were started in the current set, in a session with strict batches.
    pub(crate) set_started: usize,
    pub(crate) start_times: StartTimes,
    /// When this process went on after it was stopped; only the head's is told of that.
    pub(crate) resumed_at: Option<Time>,
    /// Whether the driver tells when its host is free for the next start.
    pub(crate) is_told: bool,
    /// Links of children, proven or not yet.
    pub(crate) links: BTreeMap<LinkId, AgentId>,
    pub(crate) ticker: Option<Ticker>,
    pub(crate) joining: Joining,
    pub(crate) jobs: Jobs,
    pub(crate) output: OutputQueue,
    pub(crate) phase: Phase,
    pub(crate) stats: Stats,
    /// What a session that routes needs before this member's place in the routing tree is known.
    pub(crate) routing: Option<alloc::boxed::Box<Routing>>,
    /// That place.
    pub(crate) place: Option<alloc::boxed::Box<Place>>,
    /// What is kept for a timeline, where one is wanted.
    pub(crate) marks: Option<Marks>,
    pub(crate) ending: Option<Ending>,
    pub(crate) over: bool,
}

/// Where orders come from.
#[derive(Debug)]
pub(crate) enum Above {
    /// This is the head.
    Head(alloc::boxed::Box<Head>),
    /// An agent whose parent has not answered yet.
    Unwelcomed { link: Option<LinkId>, config: AgentConfig, until: Time },
    /// A parent.
    Parent { parent: AgentId, link: LinkId, silence: Silence },
}

/// What a member is busy with; messages are counted by it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    Join,
    Route,
    Launch,
    Run,
    End,
}

impl Engine {
    /// The head of a session. Drain effects right away.
    pub fn head(now: Time, config: HeadConfig) -> Engine {
        let n = u32::try_from(config.names.len()).unwrap_or(u32::MAX - 1);
        let (names, tree) = (config.names.clone(), config.tree);
        let (session, job) = (config.session.clone(), Arc::new(config.job.clone()));
        let (seed, children_max) = (config.seed, config.children_max);
        let is_told = config.reports_started;
        let above = Above::Head(alloc::boxed::Box::new(Head::new(now, n, config)));
        let mut engine = Engine::new(now, AgentId::HEAD, seed, children_max, above);
        engine.credit.on_grant(HEAD_OUTPUT_BYTES);
        engine.is_told = is_told;
        engine.marks = session.marks.then(|| Marks::new(Time::ZERO));
        let below = if n == 0 { IdSet::default() } else { IdSet::range(1, n) };
        engine.begin(tree, below, names, session);
        engine.take_job(job);
        engine.settle();
        engine
    }

    /// An agent. Its driver connects to the parent by itself, then reports `LinkUp`.
    pub fn agent(now: Time, config: AgentConfig) -> Engine {
        let until = now + config.welcome_timeout;
        let (id, seed, children_max) = (config.agent, config.seed, config.children_max);
        let is_told = config.reports_started;
        let above = Above::Unwelcomed { link: None, config, until };
        Engine { is_told, ..Engine::new(now, id, seed, children_max, above) }
    }

    fn new(now: Time, id: AgentId, seed: u64, children_max: u32, above: Above) -> Engine {
        Engine {
            id,
            now,
            rng: Rng::new(seed),
            effects: VecDeque::new(),
            events: VecDeque::new(),
            above,
            credit: Credit::default(),
            session: None,
            own_name: String::new(),
            children: ChildTable::default(),
            waiting: VecDeque::new(),
            handout: None,
            children_max: children_max.max(1),
            starts: BTreeMap::new(),
            starts_made: 0,
            deliveries: Deliveries::default(),
            set_started: 0,
            start_times: StartTimes::default(),
            resumed_at: None,
            is_told: false,
            links: BTreeMap::new(),
            ticker: None,
            joining: Joining::default(),
            jobs: Jobs::default(),
            output: OutputQueue::default(),
            phase: Phase::Join,
            stats: Stats { agents: 1, ..Stats::default() },
            routing: None,
            place: None,
            marks: None,
            ending: None,
            over: false,
        }
    }

    /// Handles something that has happened. Drain effects afterwards.
    pub fn handle(&mut self, now: Time, input: Input) {
        if self.over {
            return;
        }
        self.now = now;
        match input {
            Input::LinkUp { link, peer, over_shell } => self.on_link_up(link, peer, over_shell),
            Input::Message { link, message } => self.on_message(link, message),
            Input::Alive(link) => self.on_alive(link),
            Input::LinkDown { link, end, words } => self.on_link_down(link, end, words),
            Input::Listening(contact) => self.on_listening(contact),
            Input::NotConnected(peer) => self.on_not_connected(peer),
            Input::ConnectFailed(words) => self.abandon(words),
            Input::Started(start) => self.on_started(start),
            Input::Delivery(start, delivery) => self.on_delivery(start, delivery),
            Input::ShellEnded { start, kind, status, words } => {
                self.on_shell_ended(start, wire::StartCause::Shell(kind, status), words);
            }
            Input::ShellNotRun { start, errno, words } => {
                self.on_shell_ended(start, wire::StartCause::NoShell(errno), words);
            }
            Input::Prepared { job, fault, pmi_port, open_mpi } => {
                self.warn_of_open_mpi(job, open_mpi);
                self.on_prepared(job, fault, pmi_port);
            }
            Input::Spawned { job, rank, result } => self.on_spawned(job, rank, result),
            Input::TaskOutput { job, rank, stream, data } => {
                self.on_task_output(job, rank, stream, data);
            }
            Input::TaskOutputEnd { job, rank, stream } => {
                self.on_task_output_end(job, rank, stream);
            }
            Input::TaskExited { job, rank, status, usage } => {
                self.on_task_exited(job, rank, status, usage);
            }
            Input::TaskPmi { job, rank, data } => self.on_task_pmi(job, rank, &data),
            Input::TaskPmiClosed { job, rank } => self.on_task_pmi_closed(job, rank),
            Input::Caller { job, caller, uid } => self.on_caller(job, caller, uid),
            Input::CallerData(job, caller, data) => self.on_caller_data(job, caller, &data),
            Input::CallerGone(job, caller) => self.on_caller_gone(job, caller),
            Input::TaskInputWritten { job, rank, bytes } => {
                self.on_input_taken(job, Reader::Task(rank), bytes);
            }
            Input::TaskInputClosed { job, rank } => self.on_input_closed(job, Reader::Task(rank)),
            Input::Swept(job) => self.on_swept(job),
            Input::KeeperGone => self.abandon("its keeper was killed".to_string()),
            Input::ShellGone => self.abandon("its remote shell is gone".to_string()),
            Input::Terminated(signal) => self.abandon(alloc::format!("it was sent {signal}")),
            Input::UserInput(data) => self.on_user_input(data),
            Input::UserInputEnd => self.on_user_input_end(),
            Input::OutputWritten(bytes) => {
                self.credit.on_grant(bytes);
                self.send_output();
                self.govern(Head::on_output_written);
            }
            Input::NotWritten { errno, words } => self.on_not_written(errno, words),
            Input::OutputClosed(stream) => {
                self.govern(|head, out| head.on_output_closed(stream, out))
            }
            Input::UserSignal(signal) => self.govern(|head, out| head.on_user_signal(signal, out)),
            Input::Resumed => self.govern(|head, out| head.on_resumed(out)),
        }
        self.settle();
    }

    /// Handles the passing of time. Drain effects afterwards.
    pub fn on_time(&mut self, now: Time) {
        if self.over {
            return;
        }
        self.now = now;
        if self.joining.tell_at.is_some_and(|at| at <= now) {
            self.tell_joined();
        }
        self.check_parent();
        if self.over {
            return;
        }
        self.check_connecting();
        self.check_children();
        self.send_programs();
        if self.handout.is_some() {
            self.start_waiting();
        }
        self.check_jobs();
        self.govern(Head::on_time);
        if self.ending.as_ref().is_some_and(|ending| ending.give_up_at <= now) {
            self.leave();
        }
        self.settle();
    }

    /// When to call [`Engine::on_time`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.over {
            return None;
        }
        let above = match &self.above {
            Above::Head(head) => head.timeout(),
            Above::Unwelcomed { until, .. } => Some(*until),
            Above::Parent { silence, .. } => silence.lost_at(),
        };
        let children = self.children.first_due();
        let slow = self.slow_due();
        let is_read = self.output.is_read;
        let job = self.jobs.iter().filter_map(|job| job.timeout(is_read)).min();
        let ending = self.ending.as_ref().map(|ending| ending.give_up_at);
        let tick = self.ticker.as_ref().map(Ticker::next);
        let start = self.start_due();
        let turn = self.deliveries.due();
        let connect = self.connect_due();
        [above, children, slow, job, ending, tick, start, turn, connect, self.joining.tell_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next thing to do. Call until `None` after every `handle` and `on_time`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The next thing worth telling an observer.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Gives back the memory that queues kept for the next time. A driver of very many engines
    /// does so when it has drained one.
    pub fn shrink(&mut self) {
        self.effects.shrink_to_fit();
        self.events.shrink_to_fit();
        self.jobs.iter_mut().for_each(Job::shrink);
    }

    /// Head: how it ended; complete once [`Effect::Exit`] came.
    ///
    /// # Panics
    /// On an agent.
    pub fn outcome(&self) -> &Outcome {
        match &self.above {
            Above::Head(head) => &head.outcome,
            Above::Unwelcomed { .. } | Above::Parent { .. } => panic!("an agent has no outcome"),
        }
    }

    /// Plans this member's part of the tree and starts its first children.
    pub(crate) fn begin(
        &mut self,
        tree: Tree,
        below: IdSet,
        names: Vec<String>,
        session: SessionSpec,
    ) {
        self.joining.missing = below.clone();
        self.session = Some(Arc::new(session));
        self.begin_routing();
        if let Tree::Adaptive { latency, gap } = tree {
            self.begin_handout((latency, gap), &below, names);
        } else {
            self.plan_children(&tree, &below, names);
        }
        self.set_ticker();
        self.start_waiting();
    }

    /// Pings for as many children as there are.
    pub(crate) fn set_ticker(&mut self) {
        let shortest = Duration::from_millis(u64::from(self.session().heartbeat_ms));
        let children = self.children.len();
        match &mut self.ticker {
            Some(ticker) => ticker.set_children(shortest, children),
            None if children > 0 => self.ticker = Some(Ticker::new(self.now, shortest, children)),
            None => {}
        }
    }

    fn on_link_up(&mut self, link: LinkId, peer: AgentId, over_shell: bool) {
        match &mut self.above {
            Above::Unwelcomed { link: uplink @ None, config, .. } if config.parent == peer => {
                *uplink = Some(link);
                let hello = Hello { attempt: config.attempt, pid: config.pid };
                self.send(vec![link], Message::Hello(hello));
            }
            Above::Head(_) | Above::Unwelcomed { .. } | Above::Parent { .. } => {
                if self.is_seeking(peer) {
                    self.on_found(link, peer);
                } else if self.children.contains_key(&peer) {
                    self.on_child_link_up(link, peer, over_shell);
                } else if self.routing.is_some() && peer > self.id {
                    self.links.insert(link, peer);
                } else {
                    self.effects.push_back(Effect::Close(link));
                }
            }
        }
        self.count_links();
    }

    fn on_message(&mut self, link: LinkId, message: Message) {
        if self.uplink() == Some(link) {
            return self.on_parent_message(message);
        }
        let Some(&agent) = self.links.get(&link) else { return };
        if self.children.get(&agent).is_some_and(|child| child.link == Some(link)) {
            self.on_child_message(link, agent, message);
        } else if let Some(message) = self.on_edge_link(link, agent, message) {
            self.on_first_words(link, agent, message);
        }
    }

    /// Handles what comes over a link of which it is not known yet what it is for.
    fn on_first_words(&mut self, link: LinkId, agent: AgentId, message: Message) {
        if self.routing.is_some() && matches!(message, Message::Attach(_)) {
            self.on_attach(link, agent);
        } else if let Message::Hello(hello) = message
            && self.children.contains_key(&agent)
        {
            self.on_hello(link, agent, hello);
        } else {
            self.misbehaved(link, agent, "it spoke before it said hello");
        }
    }

    /// Handles an order from above: passes it on, then obeys.
    pub(crate) fn down(&mut self, message: Message) {
        match message {
            Message::Input { job, offset, data } => self.on_input(job, offset, data),
            Message::InputEnd(job) => self.on_input_end(job),
            Message::Job(spec) => self.take_job(Arc::from(spec)),
            Message::Shutdown => self.shut_down(),
            Message::JoinDeadline => {
                self.tell_children(Message::JoinDeadline);
                self.give_up_joining();
            }
            Message::Contacts(contacts) if self.routing.is_some() => {
                contacts.into_iter().for_each(|(agent, contact)| self.learn(agent, contact));
            }
            Message::Route(routes) => self.on_route(*routes),
            Message::Forward(forward) => self.on_forward(forward, false),
            Message::Gone(gone) => {
                self.tell_children(Message::Gone(gone.clone()));
                self.on_gone(&gone);
            }
            Message::Launch(launch) => self.launch(*launch),
            Message::Release { job, fence, payload } => self.on_release(job, fence, payload),
            Message::ReleasePart(job, part) => self.on_release_part(job, part),
            Message::Held(job, fence, is_stale) => self.on_held(job, fence, is_stale),
            Message::Fetched(job, name, value) => self.on_fetched(job, name, value),
            Message::GroupRelease { job, group, payload } => {
                self.on_group_release(job, &group, payload);
            }
            Message::GroupAwaited(job, group) => self.on_group_awaited(job, &group),
            Message::NameReply(job, rank, reply) => self.on_name_reply(job, rank, reply),
            Message::Spawn(spec) => self.take_spawned(Arc::from(spec)),
            Message::SpawnReply(job, rank, reply) => self.on_spawn_reply(job, rank, reply),
            Message::RingPlace(job, ring, place) => self.on_ring_place(job, ring, &place),
            Message::AllgatherRelease(job, allgather, values) => {
                self.on_allgather_release(job, allgather, values);
            }
            Message::Signal(job, signal) => {
                self.tell_job(job, Message::Signal(job, signal));
                self.signal_tasks(job, signal);
            }
            Message::Stop { job, grace_ms } => {
                self.end_phase_of(job);
                self.tell_children(Message::Stop { job, grace_ms });
                self.stop_job(job, Duration::from_millis(u64::from(grace_ms)));
            }
            Message::Work(work) => self.on_work(&work),
            Message::Suspend(on) => {
                self.tell_children(Message::Suspend(on));
                self.suspend(on);
            }
            Message::Hello(_)
            | Message::Welcome(_)
            | Message::Joined(_)
            | Message::StartFailed(_)
            | Message::JobFault(..)
            | Message::Fetch(..)
            | Message::Enter { .. }
            | Message::EnterPart(..)
            | Message::GroupEnter { .. }
            | Message::Output(_)
            | Message::OutputCredit(_)
            | Message::InputCredit(..)
            | Message::InputClosed(_)
            | Message::Done { .. }
            | Message::Lost(_)
            | Message::Bye(_)
            | Message::Marks(_)
            | Message::Records(..)
            | Message::Warning(..)
            | Message::NameRequest(..)
            | Message::SpawnRequest(..)
            | Message::Reached(..)
            | Message::RingEnter(..)
            | Message::AllgatherEnter(..)
            | Message::Ping { .. }
            | Message::Contacts(_)
            | Message::Resolve(_)
            | Message::Attach(_)
            | Message::Received(_)
            | Message::Routed
            | Message::MoreWork(_) => self.abandon("its parent broke the protocol".to_string()),
        }
    }

    fn on_child_message(&mut self, link: LinkId, agent: AgentId, message: Message) {
        self.child_heard(agent);
        let Some(message) = self.on_edge_link(link, agent, message) else { return };
        match message {
            Message::Joined(ids) => {
                if ids.contains(agent.0) {
                    self.mark(agent, MarkKind::JoinHeard);
                }
                self.count_workers(&ids);
                self.on_joined(&ids);
            }
            Message::MoreWork(free) => self.on_more_work(agent, free),
            Message::StartFailed(failures) => self.on_failures_below(agent, failures),
            Message::JobFault(..)
            | Message::Warning(..)
            | Message::NameRequest(..)
            | Message::SpawnRequest(..)
            | Message::Reached(..)
            | Message::RingEnter(..)
            | Message::AllgatherEnter(..)
            | Message::Fetch(..)
            | Message::Enter { .. }
            | Message::EnterPart(..)
            | Message::GroupEnter { .. }
            | Message::Output(_)
            | Message::Done { .. }
            | Message::Records(..)
            | Message::InputCredit(..)
            | Message::InputClosed(_) => self.on_job_message_from_below(agent, message),
            Message::Lost(loss) => self.on_loss_below(agent, loss),
            Message::Bye(stats) => self.on_bye(agent, &stats),
            Message::Marks(marks) => self.on_marks(agent, marks),
            Message::Ping { next_ms } => self.child_announced(agent, next_ms),
            Message::Contacts(contacts) if self.routing.is_some() => {
                self.on_contacts_from_below(contacts);
            }
            Message::Resolve(about) if self.routing.is_some() => self.on_resolve(link, about),
            Message::Routed => self.on_routed(agent),
            Message::Forward(forward) => self.on_forward(forward, true),
            Message::Hello(_)
            | Message::Welcome(_)
            | Message::Job(_)
            | Message::JoinDeadline
            | Message::Launch(_)
            | Message::Held(..)
            | Message::Fetched(..)
            | Message::Release { .. }
            | Message::ReleasePart(..)
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
            | Message::Work(_)
            | Message::Suspend(_)
            | Message::Contacts(_)
            | Message::Resolve(_)
            | Message::Route(_)
            | Message::Attach(_)
            | Message::Received(_)
            | Message::Gone(_) => self.child_misbehaved(agent, "it gave its parent an order"),
        }
    }

    /// Handles that a peer broke the protocol: its link is closed, and that is a loss like another.
    pub(crate) fn misbehaved(&mut self, link: LinkId, agent: AgentId, words: &str) {
        let words = words.to_string();
        self.events.push_back(Event::PeerMisbehaved { agent, words: words.clone() });
        self.effects.push_back(Effect::Close(link));
        self.on_link_down(link, LinkEnd::Misbehaved, words);
    }

    fn on_link_down(&mut self, link: LinkId, end: LinkEnd, words: String) {
        if self.uplink() == Some(link) {
            return self.abandon(parent_gone(end, &words));
        }
        if let Some(agent) = self.links.remove(&link) {
            self.on_edge_link_down(link, agent);
            self.on_child_link_down(agent, link, end, words);
        }
    }

    fn on_alive(&mut self, link: LinkId) {
        match &mut self.above {
            Above::Parent { link: uplink, silence, .. } if *uplink == link => {
                silence.on_heard(self.now)
            }
            Above::Head(_) | Above::Unwelcomed { .. } | Above::Parent { .. } => {
                if let Some(&agent) = self.links.get(&link) {
                    self.child_heard(agent);
                }
            }
        }
    }

    pub(crate) fn fault(&mut self, job: JobId, fault: JobFault) {
        if !self.is_head() {
            self.events.push_back(Event::JobFault(job, fault.clone()));
        }
        if let Some(job) = self.jobs.get_mut(job) {
            job.note_fault(&fault);
        }
        self.up_job(Message::JobFault(job, alloc::boxed::Box::new(fault)));
    }

    /// Sends a message to the parent, or has the head's government decide on it.
    pub(crate) fn up(&mut self, message: Message) {
        match &mut self.above {
            Above::Head(head) => head.inbox.push_back(message),
            Above::Parent { link, .. } => {
                let link = *link;
                self.send(vec![link], message);
            }
            Above::Unwelcomed { .. } => {}
        }
    }

    /// Sends a message to every child that has joined.
    pub(crate) fn tell_children(&mut self, message: Message) {
        let links: Vec<LinkId> =
            self.children.values().filter(|child| child.is_up()).filter_map(|c| c.link).collect();
        if !links.is_empty() {
            self.send(links, message);
        }
    }

    pub(crate) fn count_links(&mut self) {
        let links = self.links.len() + usize::from(self.uplink().is_some());
        self.stats.links_max = self.stats.links_max.max(u32::try_from(links).unwrap_or(u32::MAX));
    }

    pub(crate) fn is_head(&self) -> bool {
        matches!(self.above, Above::Head(_))
    }

    pub(crate) fn uplink(&self) -> Option<LinkId> {
        match &self.above {
            Above::Head(_) => None,
            Above::Unwelcomed { link, .. } => *link,
            Above::Parent { link, .. } => Some(*link),
        }
    }

    /// Lets the head's government work, where this is the head.
    pub(crate) fn govern(&mut self, f: impl FnOnce(&mut Head, &mut Orders)) {
        let Above::Head(head) = &mut self.above else { return };
        let mut orders = Orders {
            now: self.now,
            down: Vec::new(),
            effects: &mut self.effects,
            events: &mut self.events,
            jobs: &mut self.jobs,
            late: Vec::new(),
            abandon: None,
        };
        f(head, &mut orders);
        let (down, late, abandon) = (orders.down, orders.late, orders.abandon);
        for message in down {
            self.down(message);
        }
        self.start_late(late);
        if let Some(words) = abandon {
            self.abandon(words);
        }
    }

    /// Brings everything that follows from what has happened to its end.
    fn settle(&mut self) {
        while !self.over {
            self.report_done();
            let Above::Head(head) = &mut self.above else { break };
            let Some(message) = head.inbox.pop_front() else { break };
            self.govern(|head, orders| head.on_message(message, orders));
        }
        self.leave_when_alone();
        self.children.refresh();
    }

    /// The session's parameters; every member that has children or a job has them.
    pub(crate) fn session(&self) -> Arc<SessionSpec> {
        Arc::clone(self.session.as_ref().expect("a member that works was welcomed"))
    }

    pub(crate) fn take_job(&mut self, spec: Arc<JobSpec>) {
        self.tell_children(Message::Job(alloc::boxed::Box::new((*spec).clone())));
        let node = self.id.node();
        let children = self.children.values().filter(|child| !child.is_gone());
        let job = Job::new(Arc::clone(&spec), node, children.map(|child| child.agent));
        if job.has_tasks() || node.is_some() && spec.is_movable {
            let (host, apps) = (self.own_name.clone(), job.apps());
            self.effects.push_back(Effect::Prepare { job: spec, host, apps });
        } else if !self.is_head() {
            self.on_self_joined();
        }
        self.jobs.insert(job);
    }
}

/// Output that the head may hold for a slow reader, in bytes.
const HEAD_OUTPUT_BYTES: u32 = 1 << 20;
