//! One member at a time: what it does about its children, its parent and its tasks.

mod adaptive;
mod allgather;
mod batch;
mod delivery;
mod fetch;
mod groups;
mod grow;
mod member;
mod missing;
mod parts;
mod port;
mod second_try;
mod slow;
mod spawn;
mod takeover;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::{Effect, Input, LinkEnd, LinkId, StartId};
use model::{AgentId, ExitStatus, IdSet, Rank, Signal, StatusRuns, Time, Tree};
use wire::{
    AgentLoss, Hello, JobFault, JobSpec, JobWarning, LossCause, Message, ShellFailureKind,
    StartCause, Stats, Stdin, Stream,
};

use member::{
    JOB, Member, PARENT, app, is_abandon, is_launch, is_stop, job, job_on_each, killed, launch,
    launched_agent, outputs, owned, running, session,
};

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
    head.input(Input::LinkUp { link: LinkId(77), peer: AgentId(1), over_shell: false });
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
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
    assert_eq!(agent.sent(), [Message::Joined(IdSet::range(1, 1))]);
}

#[test]
fn an_agent_looks_up_the_programs_of_its_own_tasks_only() {
    let first_ranks = [(0, "a"), (2, "b"), (3, "c"), (9, "d")];
    for (n_tasks, expected) in [(1, vec![0]), (2, vec![0]), (3, vec![0, 1]), (5, vec![0, 1, 2])] {
        let apps = first_ranks.map(|(rank, program)| app(rank, program)).to_vec();
        let spec = JobSpec { apps, ..job(1, n_tasks) };
        let mut agent = Member::agent_with(1, Tree::Flat, IdSet::default(), spec);
        let effects = agent.effects();
        let is_expected =
            |effect: &Effect| matches!(effect, Effect::Prepare { apps, .. } if *apps == expected);
        assert!(effects.iter().any(is_expected), "{effects:?}");
    }
}

#[test]
fn a_missing_program_is_told_before_the_joining_so_that_nothing_is_launched() {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    let fault = JobFault::Program { agent: AgentId(1), app: 0, errno: 2, words: "in /bin".into() };
    agent.input(Input::Prepared {
        job: JOB,
        fault: Some(fault.clone()),
        pmi_port: None,
        open_mpi: vec![],
    });
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
fn a_program_of_open_mpi_is_told_of_once_and_only_where_its_tasks_would_miss_each_other() {
    for (id, job, is_told) in
        [(1, job_on_each(2), true), (2, job_on_each(2), false), (1, job(1, 1), false)]
    {
        let mut agent = Member::agent_of(id, Tree::Flat, IdSet::default(), job);
        let library = "libmpi.so.40".to_owned();
        let open_mpi = vec![(0, library.clone())];
        agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi });
        let warning = JobWarning::OpenMpi { agent: AgentId(id), app: 0, library };
        let told = Message::Warning(JOB, warning);
        let joined = Message::Joined(IdSet::range(id, id));
        assert_eq!(agent.sent(), if is_told { vec![told, joined] } else { vec![joined] });
    }
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
fn a_release_is_handed_on_in_a_turn_of_its_own_before_the_tasks_here_are_let_out() {
    let child = 2;
    let mut agent = Member::agent(1, Tree::Flat, IdSet::range(child, child), 1);
    agent.child_joins(child);
    agent.joined(child, IdSet::range(child, child));
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
    agent.message(PARENT, launch());
    agent.input(Input::Spawned { job: JOB, rank: Rank(0), result: Ok(100) });
    let data = Bytes::from_static(b"cmd=barrier_in\n");
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
    let enter = Message::Enter { job: JOB, fence: 0, payload: Bytes::new() };
    agent.message(LinkId(child.into()), enter.clone());
    assert!(agent.sent().contains(&enter));

    let release = Message::Release { job: JOB, fence: 0, payload: Bytes::new() };
    agent.message(PARENT, release.clone());
    let links = vec![LinkId(child.into())];
    assert_eq!(agent.effects(), [Effect::Send { links, message: release }]);
    assert_eq!(agent.sleep(), Duration::ZERO);
    let data = Bytes::from_static(b"cmd=barrier_out tag=0\n");
    assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
}

#[test]
fn a_task_that_reads_snapshots_gets_one_with_its_release_and_none_is_kept_behind_it() {
    let mut agent = launched_agent(2);
    let says = |agent: &mut Member, rank, text: &'static str| {
        let data = Bytes::from_static(text.as_bytes());
        agent.input(Input::TaskPmi { job: JOB, rank: Rank(rank), data });
    };
    says(&mut agent, 0, "cmd=get_maxes snapshot=1\ncmd=barrier_in\n");
    says(&mut agent, 1, "cmd=barrier_in\n");
    agent.effects();
    let mut pairs = BytesMut::new();
    pmi::Pairs::append(&mut pairs, b"", b"card", b"value");
    agent.message(PARENT, Message::Release { job: JOB, fence: 0, payload: pairs.freeze() });
    let effects = agent.effects();
    let [Effect::KeepSnapshot { data, .. }, first, second] = &effects[..] else {
        panic!("{effects:?}")
    };
    let snapshot = pmi::Snapshot::new(data).expect("it is whole");
    assert_eq!(snapshot.get(b"card"), Ok(Some(&b"value"[..])));
    let line = format!("cmd=barrier_out tag=0 snapshot={}\n", data.len());
    let with_it = Effect::PmiSendSnapshot { job: JOB, rank: Rank(0), data: line.into() };
    assert_eq!(*first, with_it);
    let data = Bytes::from_static(b"cmd=barrier_out tag=0\n");
    assert_eq!(*second, Effect::PmiSend { job: JOB, rank: Rank(1), data });

    says(&mut agent, 0, "cmd=finalize\n");
    let none = Effect::KeepSnapshot { job: JOB, data: Bytes::new() };
    assert_eq!(agent.effects()[0], none);
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
fn a_signal_for_programs_reaches_the_tasks_only_if_it_is_to_and_only_while_they_run() {
    let mut head = Member::head(1, |_| {});
    head.input(Input::UserSignal(Signal::USR1));
    assert!(!head.sent().iter().any(|message| matches!(message, Message::Signal(..))));
    let mut head = running(1, |_| {});
    for (signal, is_told) in [(Signal::USR1, true), (Signal::USR2, false), (Signal::CONT, true)] {
        head.input(Input::UserSignal(signal));
        let expected = if is_told { vec![Message::Signal(JOB, signal)] } else { vec![] };
        assert_eq!(head.sent(), expected, "{signal}");
    }
}

#[test]
fn a_second_signal_while_the_agents_leave_ends_the_session_at_once_with_the_signals_status() {
    let mut head = running(1, |_| {});
    let statuses = StatusRuns::default();
    head.message(LinkId(1), Message::Done { job: JOB, statuses, by_order: false });
    head.input(Input::UserSignal(Signal::INT));
    assert!(!head.effects().iter().any(is_abandon), "the agents have a moment to leave");
    head.input(Input::UserSignal(Signal::TERM));
    assert!(head.effects().iter().any(is_abandon));
    assert_eq!(head.outcome().code, 130);
}

#[test]
fn a_child_that_is_being_lost_gets_no_input_since_it_gets_no_order_to_launch_either() {
    for n in 1..=9 {
        let mut head = Member::head(n, |config| config.job.io.stdin = Stdin::Task(Rank(0)));
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
fn input_is_sent_in_pieces_that_fit_however_much_was_read_at_once() {
    for bytes in [1, 65_535, 65_536, 65_537, 131_072, 200_000] {
        let mut head = running(1, |config| config.job.io.stdin = Stdin::Task(Rank(0)));
        let text: Bytes = (0..bytes).map(|n: u32| (n % 251) as u8).collect();
        head.input(Input::UserInput(text.clone()));
        let mut arrived = Vec::new();
        for message in head.sent() {
            wire::encode(&message, &mut Vec::new()).unwrap();
            let Message::Input { offset, data, .. } = message else { continue };
            assert_eq!(offset, arrived.len() as u64);
            arrived.extend_from_slice(&data);
        }
        assert!(arrived == text, "{} of {bytes} bytes", arrived.len());
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
        head.message(LinkId(child), Message::Done { job: JOB, statuses, by_order: false });
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
    for nonsense in [Message::Shutdown, launch(), Message::JoinDeadline] {
        let mut head = running(1, |_| {});
        head.message(LinkId(1), nonsense);
        assert!(head.effects().contains(&Effect::Close(LinkId(1))));
    }
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    agent.message(PARENT, Message::Bye(Box::default()));
    assert!(matches!(agent.effects()[..], [Effect::Abandon { .. }]));
    let loss = AgentLoss {
        agent: AgentId(2),
        agents: IdSet::range(2, 2),
        again: IdSet::new(),
        cause: LossCause::LinkClosed,
        words: String::new(),
    };
    let mut head = running(2, |config| config.tree = Tree::Chain);
    head.message(LinkId(1), Message::Lost(loss));
    assert_eq!(head.outcome().code, engine::exit_code::AGENT_LOST);
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

#[test]
fn a_task_may_be_over_with_all_that_it_wrote_before_it_is_known_to_have_begun() {
    let mut agent = Member::agent(1, Tree::Flat, IdSet::default(), 1);
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
    agent.message(PARENT, launch());
    agent.exits(0, ExitStatus::SUCCESS);
    for stream in [Stream::Stdout, Stream::Stderr] {
        agent.input(Input::TaskOutputEnd { job: JOB, rank: Rank(0), stream });
    }
    agent.input(Input::Spawned { job: JOB, rank: Rank(0), result: Ok(100) });
    agent.input(Input::Swept(JOB));
    assert!(agent.sent().iter().any(|message| matches!(message, Message::Done { .. })));
}
