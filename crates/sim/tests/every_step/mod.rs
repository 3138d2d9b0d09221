//! A session with a fault after its steps, for the tests of fixed trees and of those that are made while they grow. Among
//! all tests it is every other step, odd or even by the fault: `cargo xtask test FILE` takes all.

use std::time::Duration;

use model::IdSet;
use sim::{Fault, Report, Session, When};
use testkit::from_environment;

/// Of so many steps one is struck after; others are with other faults.
const STRIDE: &str = "CONVOKE_STRIDE";

/// Where nobody asks for every step, as `cargo xtask test FILE` does.
const STRIDE_USUAL: u64 = 2;

/// The steps after which this fault strikes a session of so many.
fn steps_to_strike(fault: &Fault, steps: u64) -> impl Iterator<Item = u64> {
    let stride = from_environment(STRIDE, STRIDE_USUAL);
    let first = format!("{fault:?}").bytes().map(u64::from).sum::<u64>() % stride;
    (first..steps).filter(move |step| (step - first).is_multiple_of(stride))
}

/// Runs the session with the fault after each of its steps, or every other. It must end within so many seconds
/// more than it takes without the fault.
pub(crate) fn at_every_step_of(
    session: &Session,
    fault: Fault,
    seconds: u32,
    check: impl Fn(&Report, bool),
) {
    let usual = session.run();
    let usual_time = Duration::from_nanos(usual.empty_at.as_nanos());
    for step in steps_to_strike(&fault, usual.steps) {
        let session = session
            .clone()
            .fault(When::Step(step), fault.clone())
            .ends_within(usual_time + Duration::from_secs(u64::from(seconds)));
        match session.try_run() {
            Ok(report) => check(&report, report.faults_struck > 0),
            Err(failure) => {
                panic!("{failure}\n{}: {fault:?} after step {step}", session.spawn_tree())
            }
        }
    }
}

/// Who is told as lost or as failed to start: nobody if no fault struck, and the exit status is 0 if
/// and only if it is nobody.
pub(crate) fn hurt(report: &Report, struck: bool) -> IdSet {
    let outcome = &report.outcome;
    let lost = outcome.losses.iter().map(|loss| &loss.agents);
    let failed = outcome.start_failures.iter().map(|failure| &failure.agents);
    let hurt = lost.chain(failed).fold(IdSet::new(), |hurt, agents| hurt.union(agents));
    assert!(struck || hurt.is_empty(), "{outcome:?}");
    assert_eq!(hurt.is_empty(), report.code == Some(0), "{outcome:?}");
    hurt
}
