//! One member at a time: what it does about its children, its parent and its tasks.

use std::time::Duration;

use bytes::Bytes;
use engine::{
    AgentConfig, Effect, Engine, HeadConfig, Input, LinkEnd, LinkId, Outcome, Start, StartId,
};
use model::{
    AgentId, ExitStatus, IdSet, JobId, NodeId, Rank, Signal, StatusRuns, TaskMap, Time, Tree,
};
use wire::{
    AgentLoss, Hello, JobFault, JobSpec, LossCause, Message, Output, SessionSpec, ShellFailureKind,
    StartCause, Stats, Stream, Welcome, Work,
};

const JOB: JobId = JobId(0);
const PARENT: LinkId = LinkId(1000);

#[test]
fn a_parent_keeps_to_its_window_and_starts_the_next_child_when_one_has_joined() {
    let mut head = Member::head(3, |config| config.session.window = 2);
    assert_eq!(head.started(), [AgentId(1), AgentId(2)]);
    head.child_joins(1);
    assert_eq!(head.started(), [AgentId(3)]);
}

#[test]
fn a_child_that_says_hello_gets_its_part_credit_and_the_job() {
    let mut head = Member::head(4, |config| config.tree = Tree::Kary(2));
    head.effects();
    let sent = head.child_joins(1);
    assert!(matches!(&sent[0], Message::Welcome(welcome) if welcome.names == "n2"), "{sent:?}");
    assert!(matches!(&sent[1], Message::OutputCredit(_)));
    assert!(matches!(&sent[2], Message::Job(_)));
    assert!(matches!(&sent[3], Message::Ping { .. }));
    assert_eq!(sent.len(), 4);
}

#[test]
fn nothing_is_launched_before_every_member_has_joined() {
    let mut head = Member::head(2, |_| {});
    head.child_joins(1);
    head.joined(1, IdSet::range(1, 1));
    assert!(!head.effects().iter().any(is_launch));
    head.child_joins(2);
    head.joined(2, IdSet::range(2, 2));
    assert!(head.effects().iter().any(is_launch));
}

#[test]
fn a_busy_sshd_is_asked_again_with_growing_pauses_until_the_retries_are_used_up() {
    let mut head = Member::head(1, |config| config.session.retries_max = 4);
    let mut pauses = vec![];
    for attempt in 0..=4 {
        let start = head.only_start();
        assert_eq!(start.attempt, attempt);
        head.shell_ends(start.start, ShellFailureKind::Busy);
        if attempt < 4 {
            pauses.push(head.sleep());
        }
    }
    assert!(pauses[3] > pauses[0] * 3, "{pauses:?}");
    head.run_until_exit();
    let failure = &head.outcome().start_failures[0];
    assert_eq!((failure.attempts, failure.agents.len()), (5, 1));
}

#[test]
fn a_wrong_key_is_final_at_once() {
    let mut head = Member::head(1, |_| {});
    let start = head.only_start();
    head.shell_ends(start.start, ShellFailureKind::Auth);
    head.run_until_exit();
    let cause = head.outcome().start_failures[0].cause;
    assert_eq!(cause, StartCause::Shell(ShellFailureKind::Auth, ExitStatus::Exited(255)));
    assert_eq!(head.outcome().code, engine::exit_code::NOT_STARTED);
}

#[test]
fn a_child_that_fails_takes_all_that_it_was_to_start_with_it() {
    let mut head = Member::head(7, |config| config.tree = Tree::Chain);
    let start = head.only_start();
    head.shell_ends(start.start, ShellFailureKind::UnknownHost);
    head.run_until_exit();
    let failures = &head.outcome().start_failures;
    assert_eq!(failures[0].agents, IdSet::range(1, 1));
    assert_eq!(failures[1].agents, IdSet::range(2, 7));
    assert_eq!(failures[1].cause, StartCause::Parent(AgentId(1)));
}

#[test]
fn a_silent_start_is_ended_and_its_last_words_are_told() {
    let mut head = Member::head(1, |_| {});
    let start = head.only_start();
    head.sleep();
    assert_eq!(head.effects(), [Effect::KillShell(start.start)]);
    head.input(Input::ShellEnded {
        start: start.start,
        kind: ShellFailureKind::Other,
        status: killed(),
        words: "Password:".into(),
    });
    head.run_until_exit();
    let failure = &head.outcome().start_failures[0];
    assert_eq!((failure.cause, failure.words.as_str()), (StartCause::Silent, "Password:"));
}

#[test]
fn a_second_agent_that_claims_a_joined_childs_place_is_shut_out() {
    let mut head = Member::head(1, |_| {});
    head.child_joins(1);
    head.effects();
    head.input(Input::LinkUp { link: LinkId(77), peer: AgentId(1) });
    head.message(LinkId(77), Message::Hello(Hello { attempt: 0, pid: 9 }));
    assert_eq!(head.effects(), [Effect::Close(LinkId(77))]);
    head.joined(1, IdSet::range(1, 1));
    assert!(head.effects().iter().any(is_launch), "the first one's link still counts");
}

#[test]
fn a_child_whose_link_and_shell_end_is_lost_with_all_below_it_and_the_job_is_stopped() {
    let mut head = running(4, |config| config.tree = Tree::Kary(2));
    head.input(Input::LinkDown { link: LinkId(1), end: LinkEnd::Closed, words: "reset".into() });
    assert!(head.effects().iter().all(|effect| !is_stop(effect)), "the shell may explain it");
    head.input(Input::ShellEnded {
        start: StartId(0),
        kind: ShellFailureKind::Other,
        status: killed(),
        words: String::new(),
    });
    assert!(head.effects().iter().any(is_stop));
    let loss = &head.outcome().losses[0];
    assert_eq!((loss.agent, loss.agents.clone()), (AgentId(1), IdSet::range(1, 2)));
    assert_eq!(loss.cause, LossCause::Shell(killed()));
    assert_eq!(head.outcome().code, engine::exit_code::AGENT_LOST);
}

#[test]
fn a_child_whose_keeper_says_that_it_was_killed_is_lost_to_the_signal_whichever_end_comes_first() {
    let closed = Input::LinkDown { link: LinkId(1), end: LinkEnd::Closed, words: String::new() };
    let ended = Input::ShellEnded {
        start: StartId(0),
        kind: ShellFailureKind::AgentKilled(Signal::KILL),
        status: ExitStatus::Exited(255),
        words: String::new(),
    };
    for inputs in [[closed.clone(), ended.clone()], [ended, closed]] {
        let mut head = running(1, |_| {});
        inputs.into_iter().for_each(|input| head.input(input));
        assert_eq!(head.outcome().losses[0].cause, LossCause::Killed(Signal::KILL));
    }
}

#[test]
fn a_child_whose_link_is_cut_is_told_apart_from_one_that_ended() {
    for (end, cause) in [
        (LinkEnd::Cut, LossCause::LinkCut(session().link_timeout_ms)),
        (LinkEnd::Closed, LossCause::LinkClosed),
        (LinkEnd::Misbehaved, LossCause::Misbehaved),
    ] {
        let mut head = running(1, |_| {});
        head.input(Input::LinkDown { link: LinkId(1), end, words: String::new() });
        head.sleep();
        assert_eq!(head.outcome().losses[0].cause, cause);
    }
}

#[test]
fn a_child_that_answers_no_ping_is_lost_after_three_of_them() {
    let mut head = running(1, |_| {});
    head.message(LinkId(1), Message::Ping { next_ms: 3000 });
    let since = head.now;
    while head.outcome().losses.is_empty() {
        head.sleep();
    }
    assert_eq!(head.now - since, Duration::from_secs(9));
    assert_eq!(head.outcome().losses[0].cause, LossCause::Silent(9000));
}

#[test]
fn an_agent_whose_parent_is_gone_kills_everything_and_leaves() {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 2);
    agent.input(Input::LinkDown { link: PARENT, end: LinkEnd::Closed, words: "closed".into() });
    assert!(matches!(agent.effects()[..], [Effect::Abandon { .. }]));
    agent.input(Input::KeeperGone);
    assert_eq!(agent.effects(), [], "nothing follows the last effect");
}

#[test]
fn an_agent_joins_only_when_the_program_was_looked_up() {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    assert_eq!(agent.sent(), []);
    agent.input(Input::Prepared { job: JOB, fault: None });
    assert_eq!(agent.sent(), [Message::Joined(IdSet::range(1, 1))]);
}

#[test]
fn a_missing_program_is_told_before_the_joining_so_that_nothing_is_launched() {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    let fault = JobFault::Program { agent: AgentId(1), errno: 2, words: "in /bin".into() };
    agent.input(Input::Prepared { job: JOB, fault: Some(fault.clone()) });
    assert_eq!(
        agent.sent(),
        [Message::JobFault(JOB, Box::new(fault.clone())), Message::Joined(IdSet::range(1, 1))]
    );

    let mut head = Member::head(1, |_| {});
    head.child_joins(1);
    head.message(LinkId(1), Message::JobFault(JOB, Box::new(fault)));
    head.joined(1, IdSet::range(1, 1));
    assert!(!head.effects().iter().any(is_launch));
    assert_eq!(head.outcome().code, engine::exit_code::NOT_FOUND);
}

#[test]
fn a_failed_task_is_told_at_once_but_those_that_a_stop_ends_are_not() {
    let mut agent = launched_agent(2);
    agent.exits(0, ExitStatus::Exited(3));
    let fault = JobFault::Task { rank: Rank(0), status: ExitStatus::Exited(3) };
    assert_eq!(agent.sent(), [Message::JobFault(JOB, Box::new(fault))]);

    agent.message(PARENT, Message::Stop { job: JOB, grace_ms: 1000 });
    let signals =
        [Signal::TERM, Signal::CONT].map(|signal| Effect::SignalTasks { job: JOB, signal });
    assert_eq!(agent.effects(), signals);
    agent.exits(1, ExitStatus::Signaled { signal: Signal::TERM, core: false });
    assert_eq!(agent.effects(), [Effect::Sweep(JOB)]);
}

#[test]
fn tasks_that_ignore_the_first_signal_are_killed_after_the_grace_time() {
    let mut agent = launched_agent(1);
    agent.message(PARENT, Message::Stop { job: JOB, grace_ms: 1000 });
    agent.effects();
    assert_eq!(agent.sleep(), Duration::from_secs(1));
    assert_eq!(agent.effects(), [Effect::SignalTasks { job: JOB, signal: Signal::KILL }]);
}

#[test]
fn a_job_is_done_when_tasks_strays_and_streams_have_ended_and_all_output_is_sent() {
    let mut agent = launched_agent(1);
    agent.message(PARENT, Message::OutputCredit(5));
    agent.writes(0, b"12345\n");
    agent.writes(0, b"67890\n");
    agent.exits(0, ExitStatus::SUCCESS);
    agent.input(Input::Swept(JOB));
    for stream in [Stream::Stdout, Stream::Stderr] {
        agent.input(Input::TaskOutputEnd { job: JOB, rank: Rank(0), stream });
    }
    assert_eq!(outputs(&agent.sent()), [(0, "12345\n")].map(owned));
    agent.message(PARENT, Message::OutputCredit(5));
    let sent = agent.sent();
    assert_eq!(outputs(&sent), [(6, "67890\n")].map(owned));
    assert!(matches!(sent.last(), Some(Message::Done { .. })));
}

#[test]
fn an_agent_without_credit_reads_nothing_more_from_its_tasks() {
    let mut agent = launched_agent(1);
    agent.message(PARENT, Message::OutputCredit(1));
    agent.writes(0, b"a\n");
    agent.effects();
    agent.writes(0, b"b\n");
    assert_eq!(agent.effects(), [Effect::ReadTasks(false)]);
    agent.message(PARENT, Message::OutputCredit(10));
    assert!(agent.effects().contains(&Effect::ReadTasks(true)));
}

#[test]
fn the_code_of_an_abort_counts_more_than_a_task_that_failed_before() {
    let mut head = running(1, |_| {});
    let failed = JobFault::Task { rank: Rank(0), status: ExitStatus::Exited(3) };
    let aborted = JobFault::Abort { rank: Rank(0), code: 7, message: String::new() };
    head.message(LinkId(1), Message::JobFault(JOB, Box::new(failed)));
    head.message(LinkId(1), Message::JobFault(JOB, Box::new(aborted)));
    assert_eq!(head.outcome().code, 7);
}

#[test]
fn the_first_interrupt_is_passed_on_and_the_second_kills() {
    let mut head = running(1, |_| {});
    head.input(Input::UserSignal(Signal::INT));
    assert_eq!(head.sent(), [Message::Signal(JOB, Signal::INT)]);
    head.input(Input::UserSignal(Signal::INT));
    assert_eq!(head.sent(), [Message::Stop { job: JOB, grace_ms: 0 }]);
    assert_eq!(head.outcome().code, 130);
}

#[test]
fn a_second_signal_while_the_agents_leave_ends_the_session_at_once_with_the_signals_status() {
    let mut head = running(1, |_| {});
    let statuses = StatusRuns::default();
    head.message(LinkId(1), Message::Done { job: JOB, statuses });
    head.input(Input::UserSignal(Signal::INT));
    assert!(!head.effects().iter().any(is_abandon), "the agents have a moment to leave");
    head.input(Input::UserSignal(Signal::TERM));
    assert!(head.effects().iter().any(is_abandon));
    assert_eq!(head.outcome().code, 130);
}

#[test]
fn a_child_that_is_being_lost_gets_no_input_since_it_gets_no_order_to_launch_either() {
    for n in 1..=9 {
        let mut head = Member::head(n, |config| config.job.stdin = Some(Rank(0)));
        (1..=n).for_each(|child| drop(head.child_joins(child)));
        head.joined(n, IdSet::range(n, n));
        head.shell_ends(StartId(u64::from(n) - 1), ShellFailureKind::Other);
        (1..n).for_each(|child| head.joined(child, IdSet::range(child, child)));
        head.effects();
        head.input(Input::UserInput(Bytes::from_static(b"words")));
        head.input(Input::UserInputEnd);
        assert_eq!(head.sent(), [], "the task is on node {n}, which was not told to launch");
    }
}

#[test]
fn a_front_end_that_is_stopped_says_so_before_it_stops() {
    let mut head = running(1, |_| {});
    head.input(Input::UserSignal(Signal::TSTP));
    let effects = head.effects();
    assert!(matches!(effects[0], Effect::Send { message: Message::Suspend(true), .. }));
    assert_eq!(effects[1], Effect::SuspendSelf);
    head.input(Input::Resumed);
    assert_eq!(head.sent(), [Message::Suspend(false)]);
}

#[test]
fn a_head_that_hears_nothing_from_those_below_ends_with_their_names() {
    let mut head = Member::head(3, |config| {
        config.tree = Tree::Kary(1);
        config.join_timeout = Some(Duration::from_secs(5));
    });
    head.child_joins(1);
    head.joined(1, IdSet::range(1, 1));
    head.run_until_exit();
    assert_eq!(head.outcome().start_failures[0].agents, IdSet::range(2, 3));
    assert_eq!(head.outcome().code, engine::exit_code::NOT_STARTED);
}

#[test]
fn a_session_whose_agents_all_say_farewell_ends_with_their_counts() {
    let mut head = running(2, |_| {});
    for child in 1..=2 {
        let statuses = StatusRuns::default();
        head.message(LinkId(child), Message::Done { job: JOB, statuses });
    }
    assert_eq!(head.sent(), [Message::Shutdown, Message::Shutdown]);
    for child in 1..=2 {
        let stats = Stats { agents: 1, retries: 1, ..Stats::default() };
        head.message(LinkId(child), Message::Bye(Box::new(stats)));
        head.shell_ends(StartId(child - 1), ShellFailureKind::Other);
    }
    assert_eq!(head.effects().last(), Some(&Effect::Exit(0)));
    assert_eq!((head.outcome().stats.agents, head.outcome().stats.retries), (3, 2));
}

#[test]
fn a_peer_that_breaks_the_protocol_is_lost_and_nobody_panics() {
    for nonsense in [Message::Shutdown, Message::Launch(JOB), Message::JoinDeadline] {
        let mut head = running(1, |_| {});
        head.message(LinkId(1), nonsense);
        assert!(head.effects().contains(&Effect::Close(LinkId(1))));
    }
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    agent.message(PARENT, Message::Bye(Box::default()));
    assert!(matches!(agent.effects()[..], [Effect::Abandon { .. }]));
    let loss = AgentLoss {
        agent: AgentId(9),
        agents: IdSet::range(9, 9),
        cause: LossCause::LinkClosed,
        words: String::new(),
    };
    let mut head = running(1, |_| {});
    head.message(LinkId(1), Message::Lost(loss));
    assert_eq!(head.outcome().code, engine::exit_code::AGENT_LOST);
}

#[test]
fn an_adaptive_head_starts_one_child_a_gap_until_it_is_told_better() {
    let mut head = Member::head(3, |config| config.tree = Tree::adaptive());
    assert_eq!(head.started(), [AgentId(1)]);
    assert_eq!(head.sleep(), Tree::ASSUMED_GAP);
    assert_eq!(head.started(), [AgentId(2)]);
}

#[test]
fn an_adaptive_head_that_is_told_starts_the_next_child_when_its_host_is_free() {
    let mut head = Member::head(3, |config| config.tree = Tree::adaptive());
    head.engine.expect_started();
    let start = head.only_start();
    head.input(Input::Started(start.start));
    assert_eq!(head.started(), [AgentId(2)]);
}

#[test]
fn a_child_gets_one_host_with_its_welcome_and_more_when_it_asks() {
    let mut head = Member::head(30, |config| config.tree = Tree::adaptive());
    head.effects();
    let sent = head.child_joins(1);
    assert!(matches!(&sent[0], Message::Welcome(welcome) if welcome.names == "n2"), "{sent:?}");
    head.message(LinkId(1), Message::MoreWork(1));
    let sent = head.sent();
    assert!(matches!(&sent[..], [Message::Work(work)] if work.names == "n[3-6]"), "{sent:?}");
}

#[test]
fn an_agent_that_has_nobody_left_to_start_asks_once() {
    let mut agent = Member::agent(1, Tree::adaptive(), IdSet::range(2, 2), 0);
    agent.effects();
    assert_eq!(agent.sleep(), Tree::ASSUMED_GAP);
    assert_eq!(agent.sent(), [Message::MoreWork(1)]);
    agent.child_joins(2);
    assert!(!agent.sent().iter().any(|message| matches!(message, Message::MoreWork(_))));
    let work = Work { below: IdSet::range(7, 8), names: "n[7-8]".into() };
    agent.message(PARENT, Message::Work(Box::new(work)));
    let effects = agent.effects();
    assert!(
        matches!(&effects[0], Effect::Start(start) if start.agents[0].1 == "n7"),
        "{effects:?}"
    );
    let given = Work { below: IdSet::range(8, 8), names: "n8".into() };
    assert_eq!(messages(&effects)[0], Message::Work(Box::new(given)), "the child waits");
}

#[test]
fn a_request_for_work_in_a_planned_tree_is_misbehaviour() {
    let mut head = Member::head(2, |_| {});
    head.child_joins(1);
    head.message(LinkId(1), Message::MoreWork(1));
    assert!(head.effects().contains(&Effect::Close(LinkId(1))));
}

#[test]
fn work_that_does_not_fit_its_names_ends_the_agent() {
    for tree in [Tree::adaptive(), Tree::Flat] {
        let mut agent = Member::agent(1, tree, IdSet::new(), 0);
        let work = Work { below: IdSet::range(7, 8), names: "n7".into() };
        agent.message(PARENT, Message::Work(Box::new(work)));
        assert!(agent.effects().iter().any(is_abandon));
    }
}

#[test]
fn agents_of_one_command_have_their_time_from_when_the_last_of_them_came_up() {
    let mut head = Member::head(3, |config| config.session.bulk_max = 3);
    head.only_start();
    head.now = Time::ZERO + Duration::from_secs(20);
    head.child_joins(1);
    let mut failed_at = |second: u64| {
        head.now = Time::ZERO + Duration::from_secs(second);
        head.engine.on_time(head.now);
        head.input(Input::Alive(LinkId(1)));
        head.outcome().start_failures.iter().map(|failure| failure.agents.len()).sum::<u64>()
    };
    assert!((21..50).all(|second| failed_at(second) == 0));
    assert_eq!(failed_at(51), 2);
}

#[test]
fn a_start_that_failed_while_the_front_end_was_stopped_is_made_again() {
    let mut head = Member::head(1, |_| ());
    let start = head.only_start().start;
    head.now = Time::ZERO + Duration::from_secs(1);
    head.input(Input::UserSignal(Signal::TSTP));
    assert!(head.effects().contains(&Effect::SuspendSelf));
    head.now = Time::ZERO + Duration::from_secs(61);
    head.input(Input::Resumed);
    head.engine.on_time(head.now);
    assert_eq!(head.outcome().start_failures, [], "it has had one of its thirty seconds");
    head.shell_ends(start, ShellFailureKind::NoBinary);
    head.sleep();
    let again = head.only_start();
    assert_eq!((again.attempt, head.now), (1, Time::ZERO + Duration::from_secs(61)));
    head.shell_ends(again.start, ShellFailureKind::NoBinary);
    assert_eq!(head.outcome().start_failures.len(), 1, "what fails again has another cause");
}

/// A member and the time on its clock.
struct Member {
    engine: Engine,
    now: Time,
    /// Starts that a helper of the test came upon and the test has not asked for yet.
    seen: Vec<Effect>,
}

impl Member {
    fn head(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
        let mut config = HeadConfig {
            names: (1..=n).map(|i| format!("n{i}")).collect(),
            tree: Tree::Flat,
            session: session(),
            job: job(n, 1),
            join_timeout: None,
            children_max: u32::MAX,
            timeout: None,
            seed: 1,
        };
        change(&mut config);
        Member { engine: Engine::head(Time::ZERO, config), now: Time::ZERO, seen: vec![] }
    }

    /// An agent that has been welcomed, with `tasks` tasks on its node.
    fn agent(id: u32, tree: Tree, below: IdSet, tasks: u32) -> Member {
        let config = AgentConfig {
            agent: AgentId(id),
            parent: AgentId::HEAD,
            attempt: 0,
            pid: 7,
            seed: 1,
            children_max: u32::MAX,
            welcome_timeout: Duration::from_secs(5),
        };
        let mut member =
            Member { engine: Engine::agent(Time::ZERO, config), now: Time::ZERO, seen: vec![] };
        member.input(Input::LinkUp { link: PARENT, peer: AgentId::HEAD });
        let names: Vec<String> = below.iter().map(|id| format!("n{id}")).collect();
        let names = model::fold_names(names.iter().map(String::as_str));
        let own_name = format!("n{id}");
        let welcome = Welcome { tree, below, names, own_name, session: session() };
        member.message(PARENT, Message::Welcome(Box::new(welcome)));
        member.message(PARENT, Message::Job(Box::new(job(id, tasks))));
        member.effects();
        member
    }

    fn input(&mut self, input: Input) {
        self.engine.handle(self.now, input);
    }

    fn message(&mut self, link: LinkId, message: Message) {
        self.input(Input::Message { link, message });
    }

    /// Lets a child prove itself on the link of its own number; returns what it is sent.
    fn child_joins(&mut self, child: u32) -> Vec<Message> {
        let link = LinkId(u64::from(child));
        self.input(Input::LinkUp { link, peer: AgentId(child) });
        self.message(link, Message::Hello(Hello { attempt: 0, pid: 1 }));
        let effects = self.effects();
        let messages = messages(&effects);
        self.seen.extend(effects.into_iter().filter(|effect| matches!(effect, Effect::Start(_))));
        messages
    }

    fn joined(&mut self, child: u32, ids: IdSet) {
        self.message(LinkId(u64::from(child)), Message::Joined(ids));
    }

    fn shell_ends(&mut self, start: StartId, kind: ShellFailureKind) {
        let status = ExitStatus::Exited(255);
        self.input(Input::ShellEnded { start, kind, status, words: String::new() });
    }

    fn exits(&mut self, rank: u32, status: ExitStatus) {
        self.input(Input::TaskExited { job: JOB, rank: Rank(rank), status });
    }

    fn writes(&mut self, rank: u32, data: &'static [u8]) {
        let data = Bytes::from_static(data);
        self.input(Input::TaskOutput { job: JOB, rank: Rank(rank), stream: Stream::Stdout, data });
    }

    /// Lets time pass until the member does something; returns how long that took.
    fn sleep(&mut self) -> Duration {
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

    fn run_until_exit(&mut self) {
        for _ in 0..100 {
            if self.effects().iter().any(|effect| matches!(effect, Effect::Exit(_))) {
                return;
            }
            self.sleep();
        }
        panic!("the session does not end");
    }

    fn effects(&mut self) -> Vec<Effect> {
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter().chain(std::iter::from_fn(|| self.engine.poll_effect())).collect()
    }

    fn sent(&mut self) -> Vec<Message> {
        messages(&self.effects())
    }

    fn started(&mut self) -> Vec<AgentId> {
        let agents = |effect| {
            let agents = if let Effect::Start(start) = effect { start.agents } else { vec![] };
            agents.into_iter().map(|(agent, _)| agent)
        };
        self.effects().into_iter().flat_map(agents).collect()
    }

    fn only_start(&mut self) -> Start {
        match &self.effects()[..] {
            [Effect::Start(start)] => start.clone(),
            other => panic!("not one start: {other:?}"),
        }
    }

    fn outcome(&self) -> &Outcome {
        self.engine.outcome()
    }
}

/// A head whose children have joined and told that all below have, and that has launched.
fn running(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
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
fn launched_agent(tasks: u32) -> Member {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), tasks);
    agent.input(Input::Prepared { job: JOB, fault: None });
    agent.message(PARENT, Message::Launch(JOB));
    for rank in 0..tasks {
        agent.input(Input::Spawned { job: JOB, rank: Rank(rank), result: Ok(100 + rank) });
    }
    agent.effects();
    agent
}

fn session() -> SessionSpec {
    SessionSpec {
        bootstrap: vec![],
        bulk_max: 1,
        window: 64,
        retries_max: 5,
        start_timeout_ms: 30_000,
        heartbeat_ms: 2500,
        link_timeout_ms: 8000,
        marks: false,
    }
}

/// A job with `tasks` tasks on the last of `nodes` nodes and none before.
fn job(nodes: u32, tasks: u32) -> JobSpec {
    let counts = (1..=nodes).map(|node| if node == nodes { tasks } else { 0 });
    let map = TaskMap::from_counts(counts).expect("one node at least");
    assert_eq!(map.tasks_on(NodeId(nodes - 1)), tasks);
    JobSpec {
        job: JOB,
        argv: vec![Bytes::from_static(b"true")],
        env: vec![],
        dir: Bytes::from_static(b"/"),
        map,
        kvsname: "kvs_1".into(),
        universe_size: None,
        stdin: None,
        stop_on_failure: true,
        grace_ms: 2000,
    }
}

fn killed() -> ExitStatus {
    ExitStatus::Signaled { signal: Signal::KILL, core: false }
}

fn messages(effects: &[Effect]) -> Vec<Message> {
    let sent = effects.iter().filter_map(|effect| {
        let Effect::Send { links, message } = effect else { return None };
        Some(vec![message.clone(); links.len()])
    });
    sent.flatten().collect()
}

fn outputs(messages: &[Message]) -> Vec<(u64, String)> {
    let output = |message: &Message| {
        let Message::Output(Output { offset, data, .. }) = message else { return None };
        Some((*offset, String::from_utf8_lossy(data).into_owned()))
    };
    messages.iter().filter_map(output).collect()
}

fn owned((offset, text): (u64, &str)) -> (u64, String) {
    (offset, text.to_string())
}

fn is_launch(effect: &Effect) -> bool {
    matches!(effect, Effect::Send { message: Message::Launch(_), .. })
}

fn is_stop(effect: &Effect) -> bool {
    matches!(effect, Effect::Send { message: Message::Stop { .. }, .. })
}

fn is_abandon(effect: &Effect) -> bool {
    matches!(effect, Effect::Abandon { .. })
}
