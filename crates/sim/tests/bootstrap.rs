//! Agents come up: every one, once, in the time of the tree's arithmetic.

use std::time::Duration;

use engine::tree::completion_time;
use model::{AgentId, IdSet, Time, Tree};
use proto::Event;
use sim::{Fault, Report, Session, ShellPlan, When};
use wire::{ShellFailureKind, StartCause, StartFailure};

const TREES: [&str; 11] = [
    "flat",
    "chain",
    "kary:2",
    "kary:7",
    "binomial",
    "two-level",
    "greedy",
    "greedy:100,5",
    "scela:8",
    "route:kary:3",
    "route:binomial",
];

const LATENCY: Duration = Duration::from_millis(100);
const GAP: Duration = Duration::from_millis(5);
const LINK: Duration = Duration::from_millis(1);

#[test]
fn every_agent_is_started_and_welcomed_once_in_the_time_of_the_tree_arithmetic() {
    for tree in TREES {
        for n in 1..=100 {
            let report = Session::of(n).tree(tree).run();
            assert_each_started_once(&report, n);
            // The link comes up, hello goes up, welcome comes down; then the next level starts.
            let level = LATENCY + 3 * LINK;
            let tree: Tree = tree.parse().unwrap();
            let expected = completion_time(&tree, u64::from(n), level, GAP);
            assert_eq!(report.welcomed_at, Some(Time::ZERO + expected), "{tree} of {n}");
            assert_eq!(report.code, Some(0));
        }
    }
}

#[test]
fn each_message_of_the_join_crosses_each_edge_of_the_tree_once() {
    for tree in TREES {
        for n in [1, 2, 7, 40] {
            let report = Session::of(n).tree(tree).run();
            for kind in ["Hello", "Welcome", "Job", "Launch", "Done", "Shutdown", "Bye"] {
                assert_eq!(report.sent(kind), u64::from(n), "{kind} in {tree} of {n}");
            }
            let joined = report.sent("Joined");
            assert!(joined >= u64::from(n), "each agent tells its parent that it has joined");
            assert!(joined <= u64::from(n * n), "{joined} times Joined in {tree} of {n}");
            assert_eq!(report.sent("StartFailed") + report.sent("Lost"), 0);
        }
    }
}

#[test]
fn a_process_holds_one_link_more_than_it_has_children() {
    for (tree, degree) in [("chain", 1), ("kary:2", 2), ("kary:7", 7)] {
        let report = Session::of(60).tree(tree).run();
        assert!(report.links_max <= degree + 1, "{} links in {tree}", report.links_max);
        assert_eq!(report.outcome.stats.links_max as usize, report.links_max, "as it counts");
    }
}

#[test]
fn no_parent_has_more_starts_in_flight_than_its_window() {
    let report = Session::of(20).tree("flat").spec(|spec| spec.window = 4).run();
    // Five rounds of four: each waits for the latency and the handshake of the one before.
    let rounds = 5 * (LATENCY + 2 * LINK);
    assert!(report.welcomed_at > Some(Time::ZERO + rounds), "{:?}", report.welcomed_at);
}

#[test]
fn one_slow_host_delays_only_itself_and_what_waits_for_it() {
    let slow = Duration::from_secs(5);
    let usual = Session::of(40).tree("kary:3").run();
    let report = Session::of(40).tree("kary:3").shell(AgentId(1), &[ShellPlan::Slow(slow)]).run();
    let late = report.welcomed_at.unwrap().since(usual.welcomed_at.unwrap());
    assert!(late <= slow, "{late:?}");
}

#[test]
fn a_busy_shell_is_tried_again_until_it_lets_us_in() {
    let busy = ShellPlan::Fails(ShellFailureKind::Busy);
    let report = Session::of(20)
        .tree("kary:4")
        .shell(AgentId(1), &[busy; 3])
        .shell(AgentId(9), &[busy; 5])
        .run();
    assert_eq!(report.code, Some(0));
    assert_eq!(report.starts[&AgentId(1)], 4);
    assert_eq!(report.starts[&AgentId(9)], 6);
    assert_eq!(report.outcome.stats.retries, 8);
}

#[test]
fn an_agent_that_can_not_be_started_is_named_alone_and_all_below_it_are_started_by_others() {
    let refused = ShellPlan::Fails(ShellFailureKind::Refused);
    for tree in TREES {
        let report = Session::of(14).tree(tree).shell(AgentId(1), &[refused; 9]).run();
        assert_eq!(report.code, Some(engine::exit_code::NOT_STARTED));
        let failures = &report.outcome.start_failures;
        assert!(matches!(cause_of(failures, 1), Some(StartCause::Shell(..))), "{failures:?}");
        assert_eq!(failed(failures), IdSet::range(1, 1));
        let others: Vec<u32> = report.welcomes.keys().map(|agent| agent.0).collect();
        assert_eq!(others, (2..=14).collect::<Vec<u32>>(), "{tree}");
    }
}

#[test]
fn a_start_failure_deep_in_the_tree_reaches_the_head() {
    let no_binary = ShellPlan::Fails(ShellFailureKind::NoBinary);
    for agent in 1..=10 {
        let report = Session::of(10).tree("chain").shell(AgentId(agent), &[no_binary; 9]).run();
        assert_eq!(failed(&report.outcome.start_failures), IdSet::range(agent, agent));
    }
}

#[test]
fn a_hanging_shell_is_given_up_at_the_join_deadline() {
    let report = Session::of(20)
        .tree("kary:3")
        .shell(AgentId(8), &[ShellPlan::Hangs; 9])
        .join_timeout(Duration::from_secs(3))
        .ends_within(Duration::from_secs(6))
        .run();
    let failures = &report.outcome.start_failures;
    assert_eq!(cause_of(failures, 8), Some(StartCause::Deadline), "{failures:?}");
}

#[test]
fn a_hanging_shell_is_given_up_though_nobody_set_a_deadline() {
    for plan in [ShellPlan::Hangs, ShellPlan::Mute] {
        let report = Session::of(20)
            .tree("kary:3")
            .spec(|spec| spec.start_timeout_ms = 10_000)
            .shell(AgentId(8), &[plan; 9])
            .ends_within(Duration::from_secs(60))
            .run();
        let failures = &report.outcome.start_failures;
        assert!(cause_of(failures, 8).is_some(), "{failures:?}");
        assert_eq!(report.code, Some(engine::exit_code::NOT_STARTED));
    }
}

#[test]
fn a_shell_that_ends_before_its_agent_has_connected_is_a_failed_start() {
    for plan in [ShellPlan::EndsEarly, ShellPlan::NotRun(2)] {
        let report = Session::of(10).tree("kary:2").shell(AgentId(4), &[plan; 9]).run();
        assert!(cause_of(&report.outcome.start_failures, 4).is_some(), "{plan:?}");
    }
}

#[test]
fn starts_that_take_longer_than_they_may_fail_and_no_rule_is_broken() {
    let (ms, s) = (Duration::from_millis, Duration::from_secs);
    let session = Session::of(8).tree("flat");
    let too_long = [
        session.clone().shells_take(s(31), ms(7)),
        session.clone().shells_take(ms(100), s(31)),
        session.clone().shells_take(ms(100), ms(5)).gap(AgentId::HEAD, s(31)),
        session.clone().links_take(s(16)),
        session.calibrate(|machines| machines.cpu.exec_us = 31e6),
    ];
    for session in too_long {
        let report = session.ends_within(s(100_000)).try_run().unwrap();
        assert_eq!(report.code, Some(252));
    }
}

#[test]
fn the_head_hears_that_all_have_joined_before_it_launches() {
    let report = Session::of(30).run();
    let joined = report.time_of(|event| matches!(event, Event::AllJoined(_)));
    let launched = report.time_of(|event| matches!(event, Event::Launched(_)));
    assert!(joined.is_some() && joined <= launched, "{joined:?} {launched:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let session = |seed| {
        let busy = ShellPlan::Fails(ShellFailureKind::Busy);
        let crash = Fault::Crash(AgentId(5));
        Session::of(30).seed(seed).shell(AgentId(7), &[busy; 3]).fault(When::Step(300), crash)
    };
    assert_eq!(session(1).run().hash, session(1).run().hash);
    assert_ne!(session(1).run().hash, session(2).run().hash, "the jitter of retries is seeded");
}

#[test]
fn one_command_of_a_bulk_bootstrapper_starts_many_agents() {
    let report = Session::of(40).tree("flat").spec(|spec| spec.bulk_max = 16).run();
    assert_each_started_once(&report, 40);
    assert_eq!(report.shells, 3);
    assert_eq!(report.code, Some(0));
}

fn assert_each_started_once(report: &Report, n: u32) {
    let all: Vec<(AgentId, u32)> = (1..=n).map(|agent| (AgentId(agent), 1)).collect();
    assert_eq!(report.starts.clone().into_iter().collect::<Vec<_>>(), all);
    assert_eq!(report.welcomes.clone().into_iter().collect::<Vec<_>>(), all);
}

fn cause_of(failures: &[StartFailure], agent: u32) -> Option<StartCause> {
    failures.iter().find(|failure| failure.agents.contains(agent)).map(|failure| failure.cause)
}

fn failed(failures: &[StartFailure]) -> IdSet {
    failures.iter().fold(IdSet::new(), |all, failure| all.union(&failure.agents))
}
