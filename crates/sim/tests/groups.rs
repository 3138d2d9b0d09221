//! Barriers of groups (PMI-1.2): who meets, who is not waited for, and what it costs.

use std::time::Duration;

use model::{AgentId, Rank};
use sim::{Grouping, Report, Script, Session, Step};

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "greedy", "adaptive"];

fn begin() -> Script {
    Script::new().then(Step::PmiInit).then(Step::PutCard)
}

fn meet(groupings: &[Grouping]) -> Script {
    let groups = groupings.iter().copied().zip(1..).collect();
    let script = begin().then(Step::Meet(groups));
    let script = groupings.iter().copied().map(Step::CheckMember).fold(script, Script::then);
    script.then(Step::PmiFinalize)
}

fn sent(report: &Report) -> [u64; 3] {
    ["GroupEnter", "GroupRelease", "GroupAwaited"].map(|kind| report.sent(kind))
}

#[test]
fn groups_of_any_shape_meet_and_have_each_others_cards_for_every_number_of_nodes() {
    for tree in TREES {
        for n in 1..=24 {
            for grouping in
                [2, 3, 7].into_iter().flat_map(|k| [Grouping::Modulo(k), Grouping::Rows(k)])
            {
                let script = meet(&[grouping]);
                let report = Session::of(n).tree(tree).tasks(2).script(script).run();
                assert_eq!(report.code, Some(0), "{tree} {n} {grouping:?}");
            }
        }
    }
}

#[test]
fn a_task_may_be_in_several_barriers_at_once() {
    for tree in TREES {
        let groupings = [Grouping::Rows(3), Grouping::Modulo(5), Grouping::Rows(1000)];
        let again = meet(&groupings);
        let report = Session::of(13).tree(tree).tasks(3).script(again).run();
        assert_eq!(report.code, Some(0), "{tree}");
    }
}

#[test]
fn a_group_may_meet_again_and_again_however_fast_some_of_it_are() {
    for tree in TREES {
        let groups = || vec![(Grouping::Modulo(3), 7), (Grouping::Rows(4), 8)];
        let script = (0..20).fold(begin(), |script, _| script.then(Step::Meet(groups())));
        let script = script.then(Step::Fence).then(Step::CheckCard(4)).then(Step::PmiFinalize);
        let report = Session::of(10).tree(tree).tasks(2).script(script).run();
        assert_eq!(report.code, Some(0), "{tree}");
    }
}

#[test]
fn what_is_put_after_a_barrier_of_all_or_of_others_reaches_the_next_group() {
    let script = Script::new().then(Step::PmiInit).then(Step::Fence).then(Step::PutCard);
    let script = script.then(Step::Meet(vec![(Grouping::Rows(2), 1)]));
    let script = script.then(Step::Meet(vec![(Grouping::Modulo(2), 1)]));
    let script = script.then(Step::CheckMember(Grouping::Modulo(2))).then(Step::PmiFinalize);
    let report = Session::of(8).script(script).run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn a_group_costs_messages_only_between_its_agents_and_the_lowest_above_them() {
    // Nodes 0 to 14 in a tree of pairs below the head, in depth-first order: node 1 has 2 and 5.
    let report = Session::of(15).tree("chain").script(meet(&[Grouping::Rows(3)])).run();
    assert_eq!(sent(&report), [10, 10, 0], "five groups of three in a row: two edges each");
    let report = Session::of(15).tree("chain").tasks(3).script(meet(&[Grouping::Rows(3)])).run();
    assert_eq!(sent(&report), [0, 0, 0], "who is on one node needs nobody else");
    let report = Session::of(15).tree("flat").script(meet(&[Grouping::Modulo(2)])).run();
    assert_eq!(sent(&report), [15, 15, 0]);
    let report = Session::of(15).tree("chain").script(meet(&[Grouping::Rows(15)])).run();
    assert_eq!(sent(&report), [15, 15, 0], "a group of all meets at the head, as all do");
}

#[test]
fn a_task_that_ends_well_without_entering_is_not_waited_for_while_its_neighbours_live() {
    let early = begin().then(Step::PmiFinalize).exit(0);
    let script = meet(&[Grouping::Modulo(2)]).wait(Duration::from_secs(60));
    for tree in TREES {
        for n in 2..=9 {
            // Each node has two tasks, one of each group: all of one group end early but one.
            let session = Session::of(n).tree(tree).tasks(2).script(script.clone());
            let session =
                (1..n).fold(session, |session, node| session.task(Rank(2 * node), early.clone()));
            let waits = meet(&[Grouping::Modulo(2)]).wait(Duration::from_secs(40));
            let report = session.task(Rank(0), waits).run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            assert!(report.sent("GroupAwaited") > 0);
            let launched = report.time_of(|event| matches!(event, proto::Event::Launched(_)));
            let ran = report.ended_at.unwrap() - launched.unwrap();
            assert!(ran < Duration::from_secs(70), "{tree} {n}: let out only after {ran:?}");
        }
    }
}

#[test]
fn who_is_awaited_where_nobody_of_the_group_is_left_answers_from_below() {
    // Rank 3 is on the last node of a chain, whose inner nodes have tasks of other groups.
    let early = begin().then(Step::PmiFinalize).exit(0);
    let script = begin().then(Step::PmiFinalize).wait(Duration::from_secs(100));
    let waits = begin().then(Step::Meet(vec![(Grouping::Modulo(3), 1)])).then(Step::PmiFinalize);
    let session = Session::of(4).tree("chain").script(script);
    let report = session.task(Rank(0), waits).task(Rank(3), early).run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn a_task_that_fails_lets_nobody_of_its_groups_go_on() {
    let fails = begin().wait(Duration::from_secs(3)).exit(3);
    for tree in TREES {
        for tasks in [1, 4] {
            let session = Session::of(6).tree(tree).tasks(tasks).script(meet(&[Grouping::Rows(4)]));
            let report = session.task(Rank(2), fails.clone()).run();
            assert_eq!(report.code, Some(3), "{tree}");
        }
    }
}

#[test]
fn a_job_that_goes_on_meets_without_those_that_failed() {
    let fails = begin().exit(3);
    let script = begin().then(Step::Meet(vec![(Grouping::Rows(4), 1)])).then(Step::PmiFinalize);
    let session = Session::of(6).tree("binomial").script(script).on_failure_continue();
    let report = session.task(Rank(2), fails).run();
    assert_eq!(report.code, Some(3));
}

#[test]
fn an_agent_that_dies_while_groups_meet_ends_the_job() {
    let slow = meet(&[Grouping::Modulo(3)]).wait(Duration::from_secs(100));
    let late = begin().wait(Duration::from_secs(50)).exit(0);
    let session = Session::of(9).tree("kary:2").script(slow).task(Rank(8), late);
    let report = session.crash(AgentId(4), sim::When::At(Duration::from_secs(20))).run();
    assert_eq!(report.code, Some(engine::exit_code::AGENT_LOST));
}
