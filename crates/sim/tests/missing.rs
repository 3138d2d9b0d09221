//! Jobs that run though nodes are missing: whoever does not come up, in whatever tree.

use std::time::Duration;

use engine::exit_code;
use model::{AgentId, IdSet, Order, Rank};
use sim::{Report, Script, Session, ShellPlan};
use wire::ShellFailureKind;

const TREES: [&str; 6] = ["flat", "chain", "kary:3", "binomial", "two-level", "adaptive"];

/// Ways in which a node does not come up.
const PLANS: [ShellPlan; 5] = [
    ShellPlan::Fails(ShellFailureKind::Auth),
    ShellPlan::Fails(ShellFailureKind::Refused),
    ShellPlan::Hangs,
    ShellPlan::Mute,
    ShellPlan::EndsEarly,
];

/// A session of nodes of which the last can't be started.
fn without_last(n: u32, tree: &str, plan: ShellPlan) -> Session {
    let session = Session::of(n).tree(tree).script(Script::mpi().output(100));
    session.spec(|spec| spec.start_timeout_ms = 5_000).shell(AgentId(n), &[plan; 9])
}

#[test]
fn a_job_that_may_go_on_runs_on_all_but_the_node_that_does_not_come_up() {
    for tree in TREES {
        for plan in PLANS {
            for n in [2, 3, 7, 16] {
                let report = without_last(n, tree, plan).on_missing_continue(1).run();
                assert_eq!(report.code, Some(0), "{tree} {plan:?} {n}: {:?}", report.outcome);
                assert_eq!(report.outcome.members, IdSet::range(1, n - 1));
                assert_eq!(missing(&report), IdSet::range(n, n));
            }
        }
    }
}

#[test]
fn ranks_that_are_dealt_in_turn_are_dealt_to_the_nodes_that_are_there() {
    for tree in TREES {
        let session = without_last(7, tree, PLANS[0]).tasks_on(&[1, 4, 2, 3, 1, 2, 3]);
        let report = session.ranked(Order::Nodes).on_missing_continue(1).run();
        assert_eq!(report.code, Some(0), "{tree}: {:?}", report.outcome);
        let map = report.outcome.map.as_ref().unwrap();
        let nodes: Vec<u32> = (0..13).map(|rank| map.node_of(Rank(rank)).unwrap().0).collect();
        assert_eq!(nodes, [0, 1, 2, 3, 4, 5, 1, 2, 3, 5, 1, 3, 1], "{tree}");
        assert_eq!(report.outcome.statuses.len(), 13);
    }
}

#[test]
fn a_job_that_needs_more_nodes_than_there_are_ends_and_names_who_is_missing() {
    for tree in TREES {
        let report = without_last(8, tree, PLANS[0]).on_missing_continue(8).run();
        assert_eq!(report.code, Some(exit_code::NOT_STARTED), "{tree}");
        assert_eq!((report.outcome.members.len(), missing(&report)), (0, IdSet::range(8, 8)));
    }
}

#[test]
fn a_spare_that_does_not_come_up_changes_nothing() {
    for tree in TREES {
        for plan in PLANS {
            let report = without_last(12, tree, plan).spares(3).run();
            assert_eq!(report.code, Some(0), "{tree} {plan:?}: {:?}", report.outcome);
            assert_eq!(report.outcome.members, IdSet::range(1, 9));
            assert!(report.ended_at.unwrap() < model::Time::ZERO + Duration::from_secs(5));
        }
    }
}

#[test]
fn tasks_beyond_the_slots_that_are_left_are_refused() {
    let report = without_last(6, "flat", PLANS[0]).fixed().on_missing_continue(1).run();
    assert_eq!(report.code, Some(exit_code::NOT_STARTED));
    assert!(report.outcome.shortage.is_some());
}

fn missing(report: &Report) -> IdSet {
    let failures = &report.outcome.start_failures;
    failures.iter().fold(IdSet::new(), |all, failure| all.union(&failure.agents))
}
