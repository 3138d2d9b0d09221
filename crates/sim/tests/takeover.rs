//! Take-over: a node that dies, hangs, is cut off or does not come up at any step of the join takes
//! nobody with it, in whatever tree. Jobs that may go on run on all others.

use std::time::Duration;

use model::{AgentId, IdSet};
use proto::Event;
use sim::{Fault, Report, Script, Session, ShellPlan, When};
use wire::ShellFailureKind;

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod every_step;

use every_step::at_every_step_of;

const TREES: [&str; 8] =
    ["flat", "chain", "kary:2", "binomial", "two-level", "greedy", "adaptive", "route:kary:2"];

const N: u32 = 7;

/// A session that may go on without any of its nodes, and whose parents have few starts in flight, so
/// that trees that grow are deep.
fn session(tree: &str) -> Session {
    let session = Session::of(N).tree(tree).script(Script::mpi()).on_missing_continue(1);
    session.spec(|spec| (spec.window, spec.start_timeout_ms) = (2, 5_000))
}

/// Strikes each node after each step of the join. All others run the job, and only that one is named.
fn strike_each(fault: impl Fn(AgentId) -> Fault, seconds: u32) {
    strike_each_of(session, fault, seconds);
}

fn strike_each_of(
    session: impl Fn(&str) -> Session,
    fault: impl Fn(AgentId) -> Fault,
    seconds: u32,
) {
    for tree in TREES {
        let session = session(tree);
        for agent in 1..=N {
            at_every_step_of(&session, fault(AgentId(agent)), seconds, |report, _| {
                only_this_is_missing(report, agent, tree);
            });
        }
    }
}

/// Whoever is told of before the launch is this agent, and all others then run the job.
fn only_this_is_missing(report: &Report, agent: u32, words: &str) {
    let missing = missing_at_launch(report);
    let this = IdSet::range(agent, agent);
    assert!(missing.difference(&this).is_empty(), "{words}, {agent}: {:?}", report.outcome);
    let others = IdSet::range(1, N).difference(&missing);
    assert_eq!(report.outcome.members, others, "{words}, {agent}: {:?}", report.outcome);
    let is_unharmed = report.outcome.losses.is_empty() || !missing.is_empty();
    assert_eq!(report.code == Some(0), is_unharmed, "{words}, {agent}: {:?}", report.outcome);
}

/// Who had been told of as missing when the job was launched.
fn missing_at_launch(report: &Report) -> IdSet {
    let events = report.events.iter().map(|(_, event)| event);
    let before = events.take_while(|event| !matches!(event, Event::Launched(_)));
    before.fold(IdSet::new(), |missing, event| {
        if let Event::StartFailed(failure) = event {
            missing.union(&failure.agents)
        } else if let Event::AgentLost(loss) = event {
            missing.union(&loss.agents)
        } else {
            missing
        }
    })
}

#[test]
fn an_agent_keeper_or_shell_that_dies_in_the_join_takes_nobody_with_it() {
    strike_each(Fault::Crash, 5);
    strike_each(Fault::KillKeeper, 5);
    strike_each(Fault::KillShell, 5);
}

#[test]
fn an_agent_that_is_cut_off_or_hangs_in_the_join_takes_nobody_with_it() {
    strike_each(Fault::Cut, CUT_SECONDS);
    strike_each(Fault::Hang, HUSH_SECONDS);
    strike_each(Fault::Hush, HUSH_SECONDS);
    strike_each(Fault::HangShell, CUT_SECONDS);
}

#[test]
fn an_agent_that_is_slow_in_the_join_is_waited_for_and_delays_no_more_than_itself() {
    strike_each(|agent| Fault::Slow(agent, Duration::from_millis(100)), 30);
}

/// Its parent starts what it was to start; whoever dies meanwhile.
#[test]
fn an_agent_that_dies_while_another_is_slow_to_come_up_takes_nobody_with_it() {
    let slow = [ShellPlan::Slow(Duration::from_secs(3))];
    let session = |tree: &str| session(tree).shell(AgentId(1), &slow);
    strike_each_of(session, Fault::Crash, 5);
}

/// The head starts it, whoever dies meanwhile.
#[test]
fn an_agent_that_dies_while_another_is_reached_by_the_head_alone_takes_nobody_with_it() {
    let (all, last) = (IdSet::range(1, N), IdSet::range(N, N));
    let refused = ShellPlan::Fails(ShellFailureKind::Refused);
    let session = |tree: &str| session(tree).barrier(all.clone(), last.clone(), refused);
    strike_each_of(session, Fault::Crash, 6);
}

#[test]
fn a_node_that_does_not_come_up_takes_nobody_with_it() {
    let plans = [
        ShellPlan::Fails(ShellFailureKind::Auth),
        ShellPlan::Fails(ShellFailureKind::Refused),
        ShellPlan::NotRun(2),
        ShellPlan::Hangs,
        ShellPlan::Mute,
    ];
    for (tree, plan) in TREES.into_iter().flat_map(|tree| plans.map(|plan| (tree, plan))) {
        for agents in [vec![1], vec![2], vec![N], vec![1, 2], vec![1, 2, 3, 4], vec![2, 4, 6]] {
            let bad = |session: Session, &agent| session.shell(AgentId(agent), &[plan; 9]);
            let report = agents.iter().fold(session(tree), bad).run();
            let missing: IdSet = agents.iter().copied().collect();
            let words = format!("{tree} {plan:?} {missing}: {:?}", report.outcome);
            assert_eq!(report.outcome.members, IdSet::range(1, N).difference(&missing), "{words}");
            assert_eq!(missing_at_launch(&report), missing, "{words}");
        }
    }
}

#[test]
fn with_spares_the_first_of_those_that_are_left_run_the_job() {
    for tree in TREES {
        for agent in 1..=N {
            let session = Session::of(N).tree(tree).script(Script::mpi()).spares(1);
            let at = When::At(Duration::from_millis(150));
            let report = session.crash(AgentId(agent), at).run();
            let missing = missing_at_launch(&report);
            assert!(missing.len() <= 1, "{tree}, {agent}: {:?}", report.outcome);
            let left = IdSet::range(1, N).difference(&missing);
            let members: IdSet = left.iter().take(N as usize - 1).collect();
            assert_eq!(report.outcome.members, members, "{tree}, {agent}");
        }
    }
}

/// The kernel gives a cut link up after six and a half seconds, or a start is given up after five.
const CUT_SECONDS: u32 = 5 + 8;

/// Three pings of a parent of seven stay away, nine seconds apart; then the keeper has its patience.
const HUSH_SECONDS: u32 = 5 + 3 * 9 + 2;
