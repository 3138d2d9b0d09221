//! Strict batches (S1-19): what one parent does about its sets.

use std::time::Duration;

use engine::HeadConfig;
use model::{AgentId, Tree};
use wire::ShellFailureKind;

use crate::member::Member;

/// Longer than a first pause before another try, and shorter than a child may be silent.
const BACK_OFF: Duration = Duration::from_millis(600);

#[test]
fn the_next_set_is_started_when_the_last_of_a_set_has_joined() {
    let mut head = flat(5, |config| config.session.batch = Some(2));
    assert_eq!(head.started(), agents([1, 2]));
    head.child_joins(2);
    assert_eq!(head.started(), []);
    head.child_joins(1);
    assert_eq!(head.started(), agents([3, 4]));
    head.child_joins(3);
    head.child_joins(4);
    assert_eq!(head.started(), agents([5]));
}

#[test]
fn a_start_that_has_failed_for_good_is_not_waited_for() {
    let mut head = flat(3, |config| config.session.batch = Some(2));
    let first = head.starts();
    head.child_joins(2);
    head.shell_ends(first[0].start, ShellFailureKind::Auth);
    assert_eq!(head.started(), agents([3]));
}

#[test]
fn a_start_that_is_to_be_tried_again_is_not_waited_for_and_is_of_a_later_set() {
    let mut head = flat(4, |config| config.session.batch = Some(2));
    let first = head.starts();
    head.shell_ends(first[0].start, ShellFailureKind::Busy);
    assert_eq!(head.started(), [], "agent 2 is on its way");
    head.child_joins(2);
    assert_eq!(head.started(), agents([3, 4]));
    head.pass(BACK_OFF);
    assert_eq!(head.started(), [], "the set is full");
    head.child_joins(3);
    head.child_joins(4);
    assert_eq!(head.started(), agents([1]));
}

#[test]
fn a_silent_start_is_given_up_and_the_next_set_started() {
    let mut head = flat(3, |config| {
        (config.session.batch, config.session.start_timeout_ms) = (Some(2), 500);
    });
    let first = head.starts();
    head.child_joins(2);
    head.pass(BACK_OFF);
    assert_eq!(head.started(), [], "its shell has its time to say why");
    head.shell_ends(first[0].start, ShellFailureKind::Other);
    assert_eq!(head.started(), agents([3]));
}

#[test]
fn a_silent_agent_of_a_command_whose_others_live_does_not_keep_the_next_set_waiting() {
    let bulk = |config: &mut HeadConfig| {
        (config.session.batch, config.session.bulk_max) = (Some(2), 64);
        config.session.start_timeout_ms = 500;
    };
    let mut head = flat(3, bulk);
    assert_eq!(head.started(), agents([1, 2]));
    head.child_joins(2);
    assert_eq!(head.started(), []);
    head.pass(BACK_OFF);
    assert_eq!(head.started(), agents([3]));
}

#[test]
fn a_set_is_counted_in_agents_however_many_one_command_starts() {
    let bulk = |config: &mut HeadConfig| {
        (config.session.batch, config.session.bulk_max) = (Some(5), 3);
    };
    let mut head = flat(9, bulk);
    assert_eq!(head.starts().len(), 2, "three, and two of the next three");
    (1..=4).for_each(|child| drop(head.child_joins(child)));
    assert_eq!(head.started(), []);
    head.child_joins(5);
    assert_eq!(head.started(), agents([6, 7, 8, 9]));
}

#[test]
fn the_window_bounds_starts_in_flight_within_a_set() {
    let both = |config: &mut HeadConfig| {
        (config.session.batch, config.session.window) = (Some(3), 2);
    };
    let mut head = flat(5, both);
    assert_eq!(head.started(), agents([1, 2]));
    head.child_joins(1);
    assert_eq!(head.started(), agents([3]));
    head.child_joins(3);
    assert_eq!(head.started(), []);
    head.child_joins(2);
    assert_eq!(head.started(), agents([4, 5]));
}

#[test]
fn who_is_to_start_others_waits_for_no_set() {
    // Children 1 and 3 have one below; 5, 6 and 7 are leaves.
    let wide = |config: &mut HeadConfig| {
        (config.tree, config.session.batch) = (Tree::Kary(5), Some(2));
    };
    let mut head = flat(7, wide);
    let starts = head.starts();
    let first: Vec<AgentId> = starts.iter().map(|start| start.agents[0].0).collect();
    assert_eq!(first, agents([1, 3, 5, 6]));
    head.child_joins(1);
    assert_eq!(head.started(), []);
    // It is tried again at once, though a leaf is on its way and another waits.
    head.shell_ends(starts[1].start, ShellFailureKind::Busy);
    head.pass(BACK_OFF);
    assert_eq!(head.started(), agents([3]));
    head.child_joins(5);
    head.child_joins(6);
    assert_eq!(head.started(), agents([7]));
}

#[test]
fn in_an_adaptive_tree_every_child_is_of_a_set() {
    let adaptive = |config: &mut HeadConfig| {
        (config.tree, config.session.batch) = (Tree::adaptive(), Some(2));
    };
    let mut head = flat(9, adaptive);
    head.pass(BACK_OFF);
    assert_eq!(head.started(), agents([1, 2]));
    head.child_joins(1);
    head.pass(BACK_OFF);
    assert_eq!(head.started(), []);
    head.child_joins(2);
    head.pass(BACK_OFF);
    // Agents 3 and 4 went with the welcomes.
    assert_eq!(head.started(), agents([5, 6]));
}

fn flat(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
    Member::head(n, change)
}

fn agents<const N: usize>(ids: [u32; N]) -> Vec<AgentId> {
    ids.map(AgentId).to_vec()
}
