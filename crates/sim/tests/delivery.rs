//! Hosts that lack the agent's program: they are sent it once, in turn, and pass it on.

use std::time::Duration;

use model::{AgentId, IdSet};
use sim::{Fault, Session, ShellPlan, When};
use wire::{ShellFailureKind, StartCause};

mod every_step;

use every_step::{at_every_step_of, hurt};

const PROGRAM_BYTES: u64 = 3_000_000;

/// One transfer takes 30 ms.
const FAST: u64 = 100_000_000;

const TREES: [&str; 6] = ["flat", "chain", "kary:4", "binomial", "two-level", "adaptive"];

fn all(n: u32) -> IdSet {
    IdSet::range(1, n)
}

#[test]
fn every_host_that_lacks_the_program_is_sent_it_once_and_no_other() {
    for n in 1..=64 {
        let lacking: IdSet = (1..=n).filter(|agent| agent % 3 != 0).collect();
        for tree in TREES {
            let session = Session::of(n).tree(tree).lacking(lacking.clone(), PROGRAM_BYTES, FAST);
            let report = session.run();
            assert_eq!(report.code, Some(0), "{tree} of {n}");
            assert_eq!(u64::from(report.outcome.stats.deliveries), lacking.len(), "{tree} of {n}");
            assert_eq!(report.shells, n, "{tree} of {n}: nothing is started again");
        }
    }
}

#[test]
fn a_tree_for_it_brings_the_program_to_all_in_as_many_transfers_as_it_has_levels() {
    let transfer = Duration::from_millis(30);
    for levels in 1..=9 {
        let session = Session::of((1 << levels) - 1).tree("binomial");
        let usual = session.run().empty_at;
        let n = (1 << levels) - 1;
        let report = session.lacking(all(n), PROGRAM_BYTES, FAST).run();
        let added = report.empty_at.since(usual);
        let bound = levels * transfer * 6 / 5;
        assert!(added < bound, "{levels} levels: {added:?} more, and not {bound:?}");
    }
}

#[test]
fn a_transfer_that_takes_longer_than_a_start_may_is_no_silence() {
    for (tree, n) in [("flat", 1), ("flat", 9), ("adaptive", 5), ("chain", 2)] {
        let session = Session::of(n).tree(tree).lacking(all(n), PROGRAM_BYTES, 75_000);
        let session = session.ends_within(Duration::from_secs(1_200));
        assert_eq!(session.run().code, Some(0), "{tree} of {n}");
    }
}

#[test]
fn a_host_that_stops_in_the_middle_is_given_up_and_holds_up_no_other() {
    let stops = When::At(Duration::from_millis(110));
    let session = Session::of(16).tree("flat").lacking(all(16), PROGRAM_BYTES, FAST);
    let report = session.fault(stops, Fault::HangShell(AgentId(1))).run();
    let failures = &report.outcome.start_failures;
    assert_eq!((failures.len(), failures[0].cause), (1, StartCause::Silent));
    let joined = |event: &_| matches!(event, proto::Event::AgentsJoined(ids) if ids.contains(16));
    let last_joined = report.time_of(joined).unwrap();
    assert!(last_joined.since(model::Time::ZERO) < Duration::from_secs(2), "{last_joined:?}");
}

#[test]
fn a_host_that_cannot_keep_it_is_a_start_that_failed() {
    let plan = ShellPlan::Fails(ShellFailureKind::NoBinary);
    let session = Session::of(3).shell(AgentId(2), &[plan]).lacking(all(3), PROGRAM_BYTES, FAST);
    let report = session.run();
    assert_eq!(report.outcome.start_failures[0].agents, IdSet::range(2, 2));
    assert_eq!(report.outcome.start_failures.len(), 1);
}

/// Steps of the fault-free session are those of the transfer for the most part.
#[test]
fn a_fault_at_every_step_of_a_delivery_is_told_and_nothing_is_left() {
    for tree in ["flat", "chain", "adaptive"] {
        let session = Session::of(3).tree(tree).lacking(all(3), 300_000, 3_000_000);
        for fault in [
            Fault::Crash(AgentId(1)),
            Fault::KillShell(AgentId(1)),
            Fault::KillShell(AgentId(3)),
            Fault::HangShell(AgentId(2)),
            Fault::CutFor(AgentId(1), Duration::from_secs(2)),
            Fault::Pause(AgentId::HEAD, Duration::from_secs(2)),
            Fault::Crash(AgentId::HEAD),
        ] {
            let head = fault == Fault::Crash(AgentId::HEAD);
            at_every_step_of(&session, fault, 60, |report, struck| {
                if !head {
                    hurt(report, struck);
                }
            });
        }
    }
}
