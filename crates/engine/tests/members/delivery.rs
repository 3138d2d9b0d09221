//! A parent whose children's hosts lack the agent's program.

use std::time::Duration;

use engine::{Delivery, Effect, Input, StartId};
use model::IdSet;
use wire::{ShellFailureKind, StartCause};

use super::member::{Member, killed};

/// What is sent, each time.
fn programs(head: &mut Member) -> Vec<StartId> {
    let sent = |effect| if let Effect::SendProgram(start) = effect { Some(start) } else { None };
    head.effects().into_iter().filter_map(sent).collect()
}

fn tell(head: &mut Member, start: u64, delivery: Delivery) {
    head.input(Input::Delivery(StartId(start), delivery));
}

/// A head whose `n` children are being started, and ask for the program.
fn asked(n: u32) -> Member {
    let mut head = Member::head(n, |_| {});
    head.effects();
    (0..u64::from(n)).for_each(|start| tell(&mut head, start, Delivery::Wanted));
    head
}

#[test]
fn hosts_are_sent_the_program_one_after_the_other_in_the_order_in_which_they_asked() {
    for n in 1..=20 {
        let mut head = asked(n);
        for start in 0..u64::from(n) {
            assert_eq!(programs(&mut head), [StartId(start)]);
            tell(&mut head, start, Delivery::Moved);
            assert_eq!(programs(&mut head), []);
            tell(&mut head, start, Delivery::Sent);
        }
        assert_eq!(programs(&mut head), []);
    }
}

#[test]
fn a_transfer_that_stands_still_holds_up_the_next_for_a_second() {
    let mut head = asked(3);
    assert_eq!(programs(&mut head), [StartId(0)]);
    head.pass(Duration::from_millis(900));
    tell(&mut head, 0, Delivery::Moved);
    head.pass(Duration::from_millis(900));
    assert_eq!(programs(&mut head), []);
    head.pass(Duration::from_millis(200));
    assert_eq!(programs(&mut head), [StartId(1)]);
    tell(&mut head, 0, Delivery::Moved);
    tell(&mut head, 0, Delivery::Sent);
    assert_eq!(programs(&mut head), [], "the turn is the second one's");
    tell(&mut head, 1, Delivery::Sent);
    assert_eq!(programs(&mut head), [StartId(2)]);
}

#[test]
fn a_start_has_its_time_for_every_piece_and_is_silent_when_none_moves() {
    let mut head = asked(1);
    for _ in 0..7 {
        head.pass(Duration::from_secs(29));
        tell(&mut head, 0, Delivery::Moved);
    }
    assert_eq!(programs(&mut head), [StartId(0)]);
    head.pass(Duration::from_secs(31));
    assert_eq!(head.effects(), [Effect::KillShell(StartId(0))]);
}

#[test]
fn a_start_that_waits_for_its_turn_is_not_silent() {
    let mut head = asked(2);
    for _ in 0..200 {
        head.pass(Duration::from_millis(900));
        tell(&mut head, 0, Delivery::Moved);
    }
    assert_eq!(programs(&mut head), [StartId(0)]);
    tell(&mut head, 0, Delivery::Sent);
    assert_eq!(programs(&mut head), [StartId(1)]);
}

#[test]
fn a_shell_that_ends_in_the_middle_fails_its_start_and_passes_its_turn_on() {
    let mut head = asked(3);
    programs(&mut head);
    head.shell_ends(StartId(1), ShellFailureKind::Auth);
    head.shell_ends(StartId(0), ShellFailureKind::NoBinary);
    assert_eq!(programs(&mut head), [StartId(2)], "the second has ended while it waited");
    let failures = &head.outcome().start_failures;
    assert_eq!(failures[1].agents, IdSet::range(1, 1));
    let no_binary = |cause| matches!(cause, StartCause::Shell(ShellFailureKind::NoBinary, _));
    assert!(no_binary(failures[1].cause));
}

#[test]
fn a_start_that_is_over_gets_nothing_however_late_it_asks() {
    let mut head = Member::head(2, |_| {});
    head.effects();
    head.pass(Duration::from_secs(31));
    head.effects();
    tell(&mut head, 0, Delivery::Wanted);
    tell(&mut head, 7, Delivery::Wanted);
    assert_eq!(programs(&mut head), []);
    let words = String::new();
    let (kind, status) = (ShellFailureKind::Other, killed());
    head.input(Input::ShellEnded { start: StartId(0), kind, status, words });
    assert_eq!(programs(&mut head), []);
}
