//! Many names of one sshd, which refuses who comes while many log in (`MaxStartups`).

use std::time::Duration;

use model::Time;
use sim::{Session, Sshd};
use wire::SessionSpec;

/// A way to start not all at once.
type Limit = fn(&mut SessionSpec);

const LIMITS: [Limit; 4] = [
    |spec| spec.window = 8,
    |spec| spec.window = 16,
    |spec| spec.batch = Some(8),
    |spec| spec.batch = Some(16),
];

const SEEDS: u64 = 41;

#[test]
fn who_limits_nothing_is_as_soon_up_as_who_does() {
    for n in [4, 16, 40, 64, 100, 200] {
        let by_itself = median(n, |_| {});
        let best = LIMITS.map(|limit| median(n, limit)).into_iter().min().expect("there are some");
        assert!(10 * by_itself <= 11 * best, "{n} names: {by_itself:?}, at best {best:?}");
    }
}

#[test]
fn up_to_that_many_nobody_has_to_come_again() {
    for n in 1..=Sshd::USUAL.start {
        let report = session(n, 0).run();
        assert_eq!((report.code, report.shells), (Some(0), n));
    }
}

fn session(n: u32, seed: u64) -> Session {
    let shells = (Duration::from_millis(5), Duration::from_millis(1));
    let session = Session::of(n).tree("adaptive").seed(seed).sshd(Sshd::USUAL);
    session.shells_take(shells.0, shells.1).spec(|spec| spec.retries_max = 8)
}

/// How long it takes until all are up.
fn median(n: u32, limit: Limit) -> Duration {
    let mut times: Vec<Duration> = (0..SEEDS)
        .map(|seed| {
            let report = session(n, seed).spec(limit).run();
            assert_eq!(report.code, Some(0), "{n} names, seed {seed}");
            report.welcomed_at.expect("all are up").since(Time::ZERO)
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}
