//! A node that its parent cannot reach: the head tries it once itself.

use std::time::Duration;

use model::{AgentId, IdSet, Time};
use proto::Event;
use sim::{Report, Script, Session, ShellPlan};
use wire::{ShellFailureKind, StartFailure};

const TREES: [&str; 7] =
    ["chain", "kary:2", "binomial", "two-level", "greedy:20,20", "adaptive", "route:kary:2"];

/// What may be the fault of who starts.
const PARENTS: [ShellPlan; 9] = [
    ShellPlan::Fails(ShellFailureKind::Busy),
    ShellPlan::Fails(ShellFailureKind::Refused),
    ShellPlan::Fails(ShellFailureKind::Unreachable),
    ShellPlan::Fails(ShellFailureKind::UnknownHost),
    ShellPlan::Fails(ShellFailureKind::Auth),
    ShellPlan::Fails(ShellFailureKind::Other),
    ShellPlan::NotRun(2),
    ShellPlan::Hangs,
    ShellPlan::Mute,
];

/// What is the host's own.
const OWN: [ShellFailureKind; 2] = [ShellFailureKind::NoBinary, ShellFailureKind::NotExecutable];

const START: Duration = Duration::from_secs(5);

fn session(n: u32, tree: &str) -> Session {
    let session = Session::of(n).tree(tree).script(Script::mpi());
    session.spec(|spec| (spec.window, spec.start_timeout_ms) = (2, 5_000))
}

fn all(n: u32) -> IdSet {
    IdSet::range(1, n)
}

fn only(agent: u32) -> IdSet {
    IdSet::range(agent, agent)
}

#[test]
fn a_host_that_no_agent_can_start_comes_up_from_the_head() {
    for (tree, plan) in TREES.into_iter().flat_map(|tree| PARENTS.map(|plan| (tree, plan))) {
        for n in [2, 5, 12] {
            let usual = session(n, tree).run().empty_at;
            for agent in 1..=n {
                let report = session(n, tree).barrier(all(n), only(agent), plan).run();
                let words = format!("{tree} of {n}, {agent}: {plan:?}: {:?}", report.outcome);
                assert_eq!(
                    (report.code, report.outcome.members.len()),
                    (Some(0), n.into()),
                    "{words}"
                );
                assert_eq!(failed(&report), IdSet::new(), "{words}");
                // Its parent tries for so long at the most, with its pauses, then the head.
                assert!(report.empty_at < usual + Duration::from_secs(16), "{words}");
            }
        }
    }
}

#[test]
fn a_host_that_nobody_can_start_is_named_with_what_its_parent_and_the_head_found() {
    for (tree, plan) in TREES.into_iter().flat_map(|tree| PARENTS.map(|plan| (tree, plan))) {
        for agent in 1..=7 {
            let report = session(7, tree).shell(AgentId(agent), &[plan; 9]).run();
            let failures = &report.outcome.start_failures;
            let by: Vec<AgentId> = failures.iter().map(|failure| failure.by).collect();
            let words = format!("{tree}, {agent}: {plan:?}: {failures:?}");
            assert_eq!(failed(&report), only(agent), "{words}");
            match by[..] {
                [AgentId::HEAD] => {}
                [parent, AgentId::HEAD] => {
                    assert_ne!(parent, AgentId::HEAD, "{words}");
                    assert_eq!(failures[1].attempts, 1, "{words}");
                }
                _ => panic!("{words}"),
            }
            assert!(tree != "chain" || by.len() == 1 + usize::from(agent > 1), "{words}");
        }
    }
}

#[test]
fn what_is_the_hosts_own_is_not_tried_from_elsewhere() {
    for (tree, kind) in TREES.into_iter().flat_map(|tree| OWN.map(|kind| (tree, kind))) {
        for agent in 1..=7 {
            let plan = ShellPlan::Fails(kind);
            let report = session(7, tree).shell(AgentId(agent), &[plan; 9]).run();
            assert_eq!(failed(&report), only(agent), "{tree}");
            assert_eq!(
                (report.starts[&AgentId(agent)], report.outcome.start_failures.len()),
                (1, 1)
            );
        }
    }
}

#[test]
fn a_session_in_which_the_head_alone_can_start_agents_comes_up() {
    let quick =
        PARENTS.into_iter().filter(|plan| !matches!(plan, ShellPlan::Hangs | ShellPlan::Mute));
    for (tree, plan) in TREES.into_iter().flat_map(|tree| quick.clone().map(move |it| (tree, it))) {
        for n in [3, 20, 60] {
            let report = session(n, tree).barrier(all(n), all(n), plan).run();
            let words = format!("{tree} of {n}: {plan:?}: {:?}", report.outcome);
            assert_eq!((report.code, report.outcome.members.len()), (Some(0), n.into()), "{words}");
        }
    }
}

/// Those for whom the head has no room at once are told of as ever.
#[test]
fn however_many_are_silent_it_costs_a_session_the_time_of_one_start_more() {
    for n in [20, 60, 200] {
        // The first four come up; each starts the others of its part eight at a time.
        let silent = (1..=n).filter(|agent| agent % (n / 4) != 1);
        let session = session(n, "kary:4").on_missing_continue(1).spec(|spec| spec.window = 8);
        let hangs = |it: Session, agent| it.shell(AgentId(agent), &[ShellPlan::Hangs; 9]);
        let report = silent.clone().fold(session, hangs).run();
        assert_eq!(failed(&report), silent.collect(), "{:?}", report.outcome);
        let (mut tried, mut found, mut told) = (IdSet::new(), Time::ZERO, Time::ZERO);
        for (at, event) in &report.events {
            if let Event::StartRetried { agent, .. } = event {
                tried.insert(agent.0);
                found = *at;
            } else if let Event::StartFailed(failure) = event {
                told = *at;
                found = if failure.agents.difference(&tried).is_empty() { found } else { *at };
            }
        }
        assert!(told.since(found) <= START + Duration::from_millis(10), "{found:?} {told:?}");
        assert!(n == 20 || tried.len() < failed(&report).len(), "{tried}");
    }
}

fn failed(report: &Report) -> IdSet {
    let agents = report.outcome.start_failures.iter().map(|StartFailure { agents, .. }| agents);
    agents.fold(IdSet::new(), |all, agents| all.union(agents))
}
