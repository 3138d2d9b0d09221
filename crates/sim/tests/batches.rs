//! Strict batches (S1-19): leaves come up in sets, each after the one before, in the time of S1's
//! equation 7.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{AgentId, IdSet, Time};
use proto::Event;
use sim::{Distribution, Launch, Report, Session, ShellPlan};
use wire::{MarkKind, ShellFailureKind};

const TREES: [&str; 6] = ["flat", "kary:7", "binomial", "two-level", "greedy:100,5", "adaptive"];

const LATENCY: Duration = Duration::from_millis(100);
const GAP: Duration = Duration::from_millis(5);
const LINK: Duration = Duration::from_millis(1);

#[test]
fn everybody_joins_and_no_start_of_a_set_comes_before_the_last_join_of_the_set_before() {
    for tree in TREES {
        for n in 1..=60 {
            for batch in (1..=n).filter(|batch| n < 20 || batch % 3 == n % 3) {
                let report = batched(n, tree, batch).run();
                assert_eq!(report.code, Some(0), "{tree} of {n}, sets of {batch}");
                assert_sets(&report, batch, tree);
            }
        }
    }
}

#[test]
fn a_set_may_take_several_commands_and_a_window() {
    for tree in TREES {
        for (batch, bulk_max, window) in [(7, 3, 2), (7, 20, 1_000), (20, 7, 1_000), (5, 1, 3)] {
            let session = batched(60, tree, batch);
            let limits = |spec: &mut wire::SessionSpec| {
                (spec.bulk_max, spec.window) = (bulk_max, window);
            };
            let report = session.spec(limits).run();
            assert_eq!(report.code, Some(0), "{tree}, sets of {batch}");
            assert_sets(&report, batch, tree);
        }
    }
}

/// S1-24, equation 7, for as many agents as a tree of d full levels has: (d−1)(T_c + k·G) for the
/// levels above, then ⌈k/b⌉·T_c + k·G. A parent that waits for a set has its hello after two ways
/// over the link; the child has its welcome after a third.
#[test]
fn a_full_tree_of_sets_is_up_in_the_time_of_equation_7() {
    let sizes =
        [("flat", 48, 48, 1), ("flat", 7, 7, 1), ("kary:4", 84, 4, 3), ("kary:8", 72, 8, 2)];
    for (tree, n, k, d) in sizes {
        for batch in 1..=k + 1 {
            let report = batched(n, tree, batch).run();
            let above = (d - 1) * (LATENCY + 3 * LINK + k * GAP);
            let sets = k.div_ceil(batch) * (LATENCY + 2 * LINK);
            let expected = above + sets + k * GAP + LINK;
            let told = report.welcomed_at;
            assert_eq!(told, Some(Time::ZERO + expected), "{tree} of {n}, sets of {batch}");
        }
    }
}

#[test]
fn a_set_as_large_as_all_is_no_sets() {
    for tree in TREES {
        let session = Session::of(40).tree(tree);
        let (with, without) = (session.clone().spec(|spec| spec.batch = Some(40)), session);
        assert_eq!(with.run().welcomed_at, without.run().welcomed_at, "{tree}");
    }
}

#[test]
fn a_slow_leaf_delays_the_sets_behind_it_and_none_that_wait_elsewhere() {
    let slow = Duration::from_secs(3);
    let session = batched(16, "flat", 4);
    let usual = session.clone().run().welcomed_at.unwrap();
    let report = session.shell(AgentId(2), &[ShellPlan::Slow(slow)]).run();
    let late = report.welcomed_at.unwrap().since(usual);
    assert!(late > slow / 2 && late <= slow, "{late:?}");

    // Agent 5 is the last leaf of the first of four parents.
    let session = batched(20, "kary:4", 2);
    let report = session.shell(AgentId(5), &[ShellPlan::Slow(slow)]).run();
    let last_of = |parent: u32| {
        let of_parent = Lives::of(&report)
            .0
            .into_iter()
            .filter(move |(_, life)| life.parent == Some(AgentId(parent)));
        of_parent.filter_map(|(_, life)| life.welcomed_us).max()
    };
    assert!(last_of(1) > Some(3_000_000) && last_of(6) < Some(1_000_000));
}

#[test]
fn a_leaf_that_fails_is_tried_again_in_a_later_set_and_holds_up_nobody() {
    let busy = ShellPlan::Fails(ShellFailureKind::Busy);
    for tree in TREES {
        for batch in [1, 2, 5, 30] {
            let session = batched(30, tree, batch);
            let session = session.shell(AgentId(30), &[busy; 3]).shell(AgentId(2), &[busy; 2]);
            let report = session.run();
            assert_eq!(report.code, Some(0), "{tree}, sets of {batch}");
            assert_eq!(report.starts[&AgentId(30)], 4);
            assert_eq!(report.starts[&AgentId(2)], 3);
        }
    }
}

#[test]
fn a_leaf_that_never_comes_up_is_named_and_all_others_are_up() {
    let plans = [ShellPlan::Hangs, ShellPlan::Mute, ShellPlan::EndsEarly, ShellPlan::NotRun(2)];
    for tree in TREES {
        for plan in plans {
            let session = batched(30, tree, 3).shell(AgentId(30), &[plan; 9]);
            let session = session.spec(|spec| spec.start_timeout_ms = 5_000);
            let report = session.ends_within(Duration::from_secs(60)).run();
            assert_eq!(report.code, Some(engine::exit_code::NOT_STARTED), "{tree}: {plan:?}");
            let failures = report.outcome.start_failures.iter();
            let failed = failures.fold(IdSet::new(), |all, failure| all.union(&failure.agents));
            assert_eq!(failed, IdSet::range(30, 30), "{tree}: {plan:?}");
        }
    }
}

/// S1-35: 256 leaves under 16 parents. Where those who call fill their parent's queue, a set as large
/// as the queue is the best: smaller ones wait in vain, larger ones have calls dropped and made again.
#[test]
fn where_calls_are_dropped_a_set_as_large_as_the_queue_is_the_soonest() {
    let mean = |batch| {
        let times = congested_s(batch, 8);
        times.iter().sum::<f64>() / times.len() as f64
    };
    let means = [Some(1), Some(2), Some(4), Some(8), Some(16)].map(mean);
    assert!(means[..4].is_sorted_by(|smaller, larger| *smaller > 1.1 * larger), "{means:?}");
    assert!(means[4] > 1.3 * means[3], "{means:?}");
    assert_eq!(congested_s(Some(16), 8), congested_s(None, 8), "all of a parent's are one set");
}

#[test]
fn without_sets_the_time_of_a_congested_session_varies_and_with_sets_hardly() {
    // The longest, compared with the shortest.
    let variation = |batch| {
        let times = congested_s(batch, 5);
        let longest = times.iter().copied().fold(0.0, f64::max);
        longest / times.iter().copied().fold(f64::INFINITY, f64::min) - 1.0
    };
    let [with, without] = [Some(4), None].map(variation);
    assert!(with < 0.12 && without > 0.5, "{with:.2} with, {without:.2} without");
}

/// What ten sessions take whose agents accept slowly and let so many wait.
fn congested_s(batch: Option<u32>, backlog: u32) -> Vec<f64> {
    let run = |seed| {
        let session = Session::of(16 + 256).tree("kary:16").seed(seed);
        let session = session.calibrate(|machines| {
            machines.cpu.handshake_us = 20_000.0;
            machines.accept.backlog = backlog;
            machines.launch = Launch::LatencyAndGap {
                latency_ms: Distribution::LogNormal { median: 100.0, sigma: 0.3 },
                gap_ms: Distribution::constant(2.0),
            };
        });
        let report = session.spec(|spec| spec.batch = batch).run();
        report.welcomed_at.expect("all come up").since(Time::ZERO).as_secs_f64()
    };
    (0..10).map(run).collect()
}

/// A session in which every parent starts its leaves in sets of so many.
fn batched(n: u32, tree: &str, batch: u32) -> Session {
    let session = Session::of(n).tree(tree);
    session.spec(|spec| (spec.batch, spec.marks) = (Some(batch), true))
}

/// Of each parent, no set has more leaves than `batch`, where a set goes from when no leaf was on its
/// way until none is again.
fn assert_sets(report: &Report, batch: u32, tree: &str) {
    let lives = Lives::of(report);
    let is_adaptive = tree == "adaptive";
    let mut turns: BTreeMap<AgentId, Vec<(u64, bool)>> = BTreeMap::new();
    for (&agent, life) in lives.0.iter().filter(|&(&agent, _)| agent != AgentId::HEAD) {
        if is_adaptive || !lives.parents().contains(&agent) {
            let (Some(parent), Some(at), Some(end)) =
                (life.parent, life.started_us, life.welcomed_us)
            else {
                panic!("agent {agent:?} has no whole life");
            };
            // An end comes before a beginning at the same time.
            turns.entry(parent).or_default().extend([(at, true), (end, false)]);
        }
    }
    for (parent, mut turns) in turns {
        turns.sort_unstable();
        let (mut in_flight, mut started) = (0, 0);
        for (at, is_start) in turns {
            if !is_start {
                in_flight -= 1;
                continue;
            }
            started = if in_flight == 0 { 1 } else { started + 1 };
            in_flight += 1;
            assert!(started <= batch, "{tree}, sets of {batch}: {parent:?} at {at} µs");
        }
    }
}

/// What the marks say of each agent's start.
struct Lives(BTreeMap<AgentId, Life>);

#[derive(Default)]
struct Life {
    parent: Option<AgentId>,
    started_us: Option<u64>,
    welcomed_us: Option<u64>,
}

impl Lives {
    fn of(report: &Report) -> Lives {
        let mut lives: BTreeMap<AgentId, Life> = BTreeMap::new();
        for (_, event) in &report.events {
            let Event::Marked(marks) = event else { continue };
            for mark in marks {
                let life = lives.entry(mark.agent).or_default();
                match mark.kind {
                    MarkKind::Started => {
                        life.parent = Some(mark.by);
                        life.started_us = Some(mark.at_us);
                    }
                    MarkKind::Welcomed => life.welcomed_us = Some(mark.at_us),
                    MarkKind::LinkUp
                    | MarkKind::Joined
                    | MarkKind::JoinHeard
                    | MarkKind::Launched
                    | MarkKind::Spawned
                    | MarkKind::TasksEnded
                    | MarkKind::Leaving
                    | MarkKind::Left
                    | MarkKind::GivenUp => {}
                }
            }
        }
        Lives(lives)
    }

    fn parents(&self) -> BTreeSet<AgentId> {
        self.0.values().filter_map(|life| life.parent).collect()
    }
}
