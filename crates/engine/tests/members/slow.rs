//! A child that is much slower to come up than the others: its parent starts what it was to start.

use std::time::Duration;

use engine::tree::{Branch, branches};
use engine::{Effect, Input, StartId};
use model::{AgentId, IdSet, Signal, Tree};
use wire::{Message, ShellFailureKind};

use crate::member::{Member, PARENT, launch};
use crate::takeover::{PLANNED, parent, welcome};

/// What a start takes that is not slow.
const USUAL: Duration = Duration::from_millis(300);

const TICK: Duration = Duration::from_millis(1);

/// A parent of which all children but one came up in the usual time, and that one.
struct Waiting {
    parent: Member,
    slow: Branch,
    start: StartId,
}

/// Every parent of up to 40 in every planned tree, with each child that is to start others as the slow
/// one, where that is not the only child.
fn each_waiting(mut check: impl FnMut(Waiting, &str)) {
    for (tree, n) in PLANNED.into_iter().flat_map(|tree| (3..=40).map(move |n| (tree, n))) {
        let plan = branches(&tree.parse().expect("a tree"), &IdSet::range(2, n));
        for slow in plan.iter().filter(|slow| plan.len() > 1 && !slow.below.is_empty()) {
            let mut parent = parent(tree, n);
            let starts = parent.starts();
            assert_eq!(starts.len(), plan.len(), "the window has room for all");
            let start = starts.iter().find(|start| start.agents[0].0 == slow.child);
            let start = start.expect("it is started, too").start;
            parent.now = parent.now + USUAL;
            for other in plan.iter().filter(|other| *other != slow) {
                parent.child_joins(other.child.0);
            }
            let words = format!("{tree} of {n}, {}", slow.child);
            check(Waiting { parent, slow: slow.clone(), start }, &words);
        }
    }
}

impl Waiting {
    /// Lets six usual times pass since the start; they begin with the first.
    fn until_slow(&mut self) {
        self.parent.pass(5 * USUAL);
    }
}

#[test]
fn what_a_slow_child_was_to_start_its_parent_plans_and_starts_after_six_times_the_usual_time() {
    each_waiting(|mut waiting, words| {
        waiting.parent.pass(5 * USUAL - TICK);
        assert_eq!(waiting.parent.started(), [], "{words}");
        waiting.parent.pass(TICK);
        let plan = branches(&waiting.slow.tree, &waiting.slow.below);
        let expected: Vec<AgentId> = plan.iter().map(|branch| branch.child).collect();
        assert_eq!(waiting.parent.started(), expected, "{words}");
        for branch in plan {
            let sent = waiting.parent.child_joins(branch.child.0);
            assert_eq!(welcome(&sent).below, branch.below, "{words}");
        }
    });
}

#[test]
fn a_slow_child_that_comes_up_at_last_has_nobody_to_start() {
    each_waiting(|mut waiting, words| {
        waiting.until_slow();
        waiting.parent.effects();
        let sent = waiting.parent.child_joins(waiting.slow.child.0);
        let welcome = welcome(&sent);
        assert_eq!((&welcome.below, &*welcome.names), (&IdSet::new(), ""), "{words}");
        waiting.parent.pass(USUAL);
        assert_eq!(waiting.parent.started(), [], "{words}");
    });
}

#[test]
fn a_slow_child_that_fails_in_the_end_is_told_of_alone() {
    each_waiting(|mut waiting, words| {
        waiting.until_slow();
        waiting.parent.effects();
        waiting.parent.shell_ends(waiting.start, ShellFailureKind::Auth);
        let slow = waiting.slow.child.0;
        match &waiting.parent.effects()[..] {
            [Effect::Send { message: Message::StartFailed(failures), .. }] => {
                let failed: Vec<_> =
                    failures.iter().map(|failure| failure.agents.clone()).collect();
                assert_eq!(failed, [IdSet::range(slow, slow)], "{words}");
            }
            other => panic!("{words}: {other:?}"),
        }
    });
}

#[test]
fn one_who_comes_up_in_time_keeps_what_it_is_to_start() {
    each_waiting(|mut waiting, words| {
        waiting.parent.pass(5 * USUAL - TICK);
        let sent = waiting.parent.child_joins(waiting.slow.child.0);
        assert_eq!(welcome(&sent).below, waiting.slow.below, "{words}");
        waiting.parent.pass(USUAL);
        assert_eq!(waiting.parent.started(), [], "{words}");
    });
}

#[test]
fn nobody_is_slow_while_more_are_on_their_way_than_have_come_up_or_where_there_is_but_one() {
    for (tree, up) in [("kary:5", 2), ("kary:3", 1), ("chain", 0)] {
        let mut parent = parent(tree, 31);
        let children = parent.started();
        parent.now = parent.now + USUAL;
        for child in children.iter().rev().take(up) {
            parent.child_joins(child.0);
        }
        parent.pass(25 * USUAL);
        assert_eq!(parent.started(), [], "{tree}");
    }
}

/// Such as the host's own, among remote ones.
#[test]
fn starts_of_few_milliseconds_make_no_others_slow() {
    let mut parent = parent("kary:2", 7);
    let children = parent.started();
    parent.now = parent.now + Duration::from_millis(5);
    parent.child_joins(children[0].0);
    parent.pass(5 * Tree::ASSUMED_LATENCY);
    assert_eq!(parent.started(), []);
    parent.pass(Tree::ASSUMED_LATENCY);
    assert_eq!(parent.started(), [AgentId(6), AgentId(7)]);
}

#[test]
fn after_the_time_to_join_and_after_the_launch_nothing_is_taken_from_a_slow_child() {
    for order in [Message::JoinDeadline, launch(), Message::Shutdown] {
        each_waiting(|mut waiting, words| {
            waiting.parent.message(PARENT, order.clone());
            waiting.until_slow();
            assert_eq!(waiting.parent.started(), [], "{words}");
        });
    }
}

#[test]
fn the_time_for_which_the_front_end_is_stopped_makes_nobody_slow() {
    let mut head = Member::head(6, |config| config.tree = Tree::Kary(2));
    let children = head.started();
    head.now = head.now + USUAL;
    head.child_joins(children[1].0);
    head.input(Input::UserSignal(Signal::TSTP));
    head.now = head.now + 60 * USUAL;
    head.input(Input::Resumed);
    head.pass(5 * USUAL - TICK);
    assert_eq!(head.started(), []);
    head.pass(TICK);
    assert_eq!(head.started(), [AgentId(2), AgentId(3)]);
}

/// It was started as none of a set of leaves, and holds up none.
#[test]
fn a_slow_child_holds_up_no_set_of_leaves() {
    let mut head = Member::head(6, |config| {
        (config.tree, config.session.batch) = (Tree::Kary(2), Some(1));
    });
    let children = head.started();
    head.now = head.now + USUAL;
    head.child_joins(children[1].0);
    head.pass(5 * USUAL);
    assert_eq!(head.started(), [AgentId(2)]);
    head.child_joins(2);
    assert_eq!(head.started(), [AgentId(3)], "agent 1 is on its way, and of no set");
}
