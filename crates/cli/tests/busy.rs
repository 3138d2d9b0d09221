//! An sshd that has too much to do refuses connections, and a start that it refused is tried again.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod common;

use std::time::Duration;

use common::{GONE_WITHIN, Hosts, Run};
use testbed::{Sshd, clock};

/// Jobs that start at once on the same host.
const JOBS: usize = 6;

/// How long they may take to be refused once each.
const REFUSED_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn starts_that_a_busy_sshd_refuses_are_tried_again_until_it_admits_them() {
    let hosts = Hosts::up(1);
    hosts.bed.start_sshd("n0", Sshd::OneStartup).unwrap();
    let occupied = hosts.bed.occupy_sshd("n0").unwrap();
    let runs: Vec<Run<'_>> = (0..JOBS).map(|_| hosts.run(&["--stats", "true"])).collect();
    let refused = || hosts.bed.refused_startups("n0").unwrap();
    assert!(clock::wait_until(REFUSED_WITHIN, || refused() >= JOBS), "{} refused", refused());
    drop(occupied);
    let mut retried = 0;
    for run in runs {
        let end = run.end();
        assert_eq!(end.status, 0, "{end:?}");
        retried += retries(&end.stderr);
    }
    assert_eq!(retried, refused(), "retried, and refused");
    assert!(hosts.survivors(GONE_WITHIN).1.is_empty());
}

/// What the table of `--stats` says of starts that were tried again.
fn retries(stderr: &str) -> usize {
    let words = stderr.split_once(" starts retried").unwrap().0;
    words.rsplit(' ').next().unwrap().parse().unwrap()
}
