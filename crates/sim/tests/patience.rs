//! How long agents may take to come up: as long as it goes on, and no longer.

use std::time::Duration;

use model::{AgentId, Time};
use proto::Event;
use sim::{Report, Session, ShellPlan};
use wire::{ShellFailureKind, StartCause};

/// Latency and gap of shells that are too slow for all of them to be up within the time of one start,
/// 30 s, though each would be if it were alone.
const SLOW: [(Duration, Duration); 4] = [
    (Duration::from_secs(25), Duration::from_millis(100)),
    (Duration::from_secs(20), Duration::from_secs(1)),
    (Duration::from_secs(1), Duration::from_secs(1)),
    (Duration::from_secs(1), Duration::from_secs(27)),
];

/// What the user's default is.
const WINDOW: u32 = 64;

#[test]
fn agents_that_come_up_slowly_are_not_given_up_whatever_their_number() {
    for n in 1..=300 {
        let (latency, gap) = SLOW[n as usize % SLOW.len()];
        assert_all_join(&slow("adaptive", n, latency, gap), n);
        assert_all_join(&slow("adaptive", n, latency, gap).told(), n);
        assert_all_join(&slow("flat", n, latency, gap), n);
    }
}

#[test]
fn agents_that_come_up_slowly_are_not_given_up_in_any_tree() {
    for tree in ["chain", "kary:2", "kary:16", "binomial", "two-level", "greedy"] {
        for (latency, gap) in SLOW {
            for n in [2, 17, 100] {
                assert_all_join(&slow(tree, n, latency, gap), n);
            }
        }
    }
}

#[test]
fn ten_thousand_agents_that_come_up_slowly_are_not_given_up() {
    let (latency, gap) = (Duration::from_secs(20), Duration::from_secs(1));
    assert_all_join(&slow("adaptive", 10_000, latency, gap), 10_000);
}

#[test]
fn a_bootstrap_that_makes_no_progress_ends_with_a_cause_for_each_host() {
    for tree in ["adaptive", "flat", "binomial"] {
        for n in (1..=300).step_by(13).chain([10_000]) {
            let plans = [ShellPlan::Hangs];
            let session =
                (1..=n).fold(Session::of(n), |it, agent| it.shell(AgentId(agent), &plans));
            let report = session.tree(tree).spec(|spec| spec.window = WINDOW).run();
            assert_eq!(report.code, Some(engine::exit_code::NOT_STARTED), "{tree} of {n}");
            assert!(report.empty_at < after(33), "{tree} of {n}: {:?}", report.empty_at);
            assert!(report.outcome.start_failures.iter().any(|it| it.cause == StartCause::Silent));
        }
    }
}

/// Those that are started after it do not keep it.
#[test]
fn a_host_that_hangs_among_slow_ones_is_given_up_in_its_own_time() {
    let session = slow("flat", 200, Duration::from_secs(1), Duration::from_secs(1));
    let report = session.shell(AgentId(10), &[ShellPlan::Hangs]).run();
    let failed = |event: &Event| matches!(event, Event::StartFailed(_));
    let at = report.time_of(failed).unwrap();
    assert!(at > after(38) && at < after(43), "{at:?}");
}

#[test]
fn a_last_host_that_is_busy_is_tried_again_as_often_as_it_may() {
    let busy = [ShellPlan::Fails(ShellFailureKind::Busy); 8];
    for seed in 0..100 {
        let session = Session::of(30).tree("adaptive").seed(seed).spec(|spec| spec.retries_max = 8);
        assert_all_join(&session.shell(AgentId(30), &busy), 30);
    }
}

fn slow(tree: &str, n: u32, latency: Duration, gap: Duration) -> Session {
    let session = Session::of(n).tree(tree).shells_take(latency, gap);
    session.spec(|spec| spec.window = WINDOW).ends_within(Duration::from_secs(1_000_000))
}

#[track_caller]
fn assert_all_join(session: &Session, n: u32) {
    let report: Report = session.run();
    assert_eq!(report.code, Some(0), "{n}");
    assert!(report.starts.values().all(|&starts| starts == 1) || report.outcome.stats.retries > 0);
}

fn after(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}
