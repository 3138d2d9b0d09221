//! Hosts without tasks get an agent when a job that a task asks for needs their room.

use std::time::Duration;

use model::{AgentId, IdSet, Rank, Signal};
use sim::{Fault, Report, Script, Session, ShellPlan, Spawned, Step, When};
use wire::ShellFailureKind;

const TREES: [&str; 5] = ["flat", "chain", "kary:2", "binomial", "adaptive"];

/// Slots of each host for others.
const ROOM: u32 = 4;

fn begin() -> Script {
    Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence)
}

fn end(script: Script) -> Script {
    script.then(Step::Fence).then(Step::PmiFinalize)
}

/// Tasks on `n` hosts that have others started, one job after the other, and meet before and after each. `later` more
/// hosts have room.
fn growing(n: u32, later: u32, tree: &str, jobs: &[u32]) -> Session {
    let child = end(begin().then(Step::CheckCard(1)).then(Step::CheckParentCard)).output(100);
    let spawn = |script: Script, &tasks: &u32| {
        let script = script.then(Step::Spawn(Spawned::Script(0), tasks)).then(Step::Fence);
        script.then(Step::CheckCard(1))
    };
    let parent = end(jobs.iter().fold(begin(), spawn));
    let session = Session::of(n + later).later(later).tree(tree).script(parent);
    session.spawned(&[child], ROOM)
}

fn members(report: &Report) -> u64 {
    report.outcome.members.len()
}

#[test]
fn a_job_gets_the_hosts_that_it_needs_and_the_next_one_has_them_for_every_number_of_hosts() {
    for tree in TREES {
        for n in (1..=16).chain([31, 64]) {
            for later in [1, 2, 7, 64] {
                let tasks = ROOM * n + ROOM * later - 1;
                let report = growing(n, later, tree, &[1, tasks - 1, 1]).run();
                assert_eq!(report.code, Some(0), "{tree} {n}+{later}");
                assert_eq!(report.output_bytes, u64::from(100 * (tasks + 1)), "{tree} {n}+{later}");
                assert_eq!(members(&report), u64::from(n + later), "{tree} {n}+{later}");
            }
        }
    }
}

#[test]
fn nobody_is_started_whom_no_job_needs_and_no_more_than_are_needed() {
    for tree in TREES {
        for n in [1, 2, 9] {
            let report = growing(n, 9, tree, &[ROOM * n]).run();
            assert_eq!((report.code, members(&report)), (Some(0), u64::from(n)), "{tree} {n}");
            let report = growing(n, 9, tree, &[ROOM * n + ROOM + 1]).run();
            assert_eq!((report.code, members(&report)), (Some(0), u64::from(n + 2)), "{tree} {n}");
            assert!(report.outcome.start_failures.is_empty());
        }
    }
}

#[test]
fn a_job_whose_host_does_not_come_up_is_refused_and_all_others_go_on() {
    let refused = ShellPlan::Fails(ShellFailureKind::Refused);
    for (tree, plan) in TREES.into_iter().flat_map(|tree| {
        [refused, ShellPlan::Hangs, ShellPlan::EndsEarly, ShellPlan::NotRun(2)].map(|it| (tree, it))
    }) {
        let session = growing(2, 2, tree, &[2 * ROOM + 1, 1]).shell(AgentId(3), &[plan; 8]);
        let report = session.run();
        assert_eq!(report.code, Some(0), "{tree} {plan:?}");
        assert_eq!(report.output_bytes, 100, "the second job alone: {tree} {plan:?}");
        let failed: Vec<IdSet> =
            report.outcome.start_failures.iter().map(|it| it.agents.clone()).collect();
        assert_eq!(failed, [IdSet::range(3, 3)], "{tree} {plan:?}");
    }
}

#[test]
fn a_host_that_is_tried_again_is_waited_for() {
    let busy = ShellPlan::Fails(ShellFailureKind::Busy);
    let slow = ShellPlan::Slow(Duration::from_secs(20));
    for plan in [busy, slow] {
        let report = growing(2, 1, "binomial", &[3 * ROOM]).shell(AgentId(3), &[plan]).run();
        assert_eq!((report.code, report.output_bytes), (Some(0), 100 * u64::from(3 * ROOM)));
    }
}

/// What is lost ends the session, as elsewhere, unless it was needed for nothing.
#[test]
fn whoever_is_lost_at_whatever_step_everything_ends() {
    for tree in ["chain", "adaptive"] {
        let session = || growing(2, 2, tree, &[4 * ROOM - 1, 1]);
        let whole = session().run();
        for step in (0..whole.steps).step_by(5) {
            for agent in 0..=4 {
                let report = session().crash(AgentId(agent), When::Step(step)).run();
                let ended = report.code.is_some() || agent == 0;
                assert!(ended, "{tree}: step {step}, agent {agent}");
            }
        }
    }
}

#[test]
fn whoever_hangs_or_is_cut_off_while_a_host_is_added_everything_ends() {
    let session = || growing(2, 2, "flat", &[4 * ROOM - 1, 1]);
    let whole = session().run();
    for step in (0..whole.steps).step_by(11) {
        for agent in [1, 2, 3, 4] {
            for fault in [Fault::Hang(AgentId(agent)), Fault::Cut(AgentId(agent))] {
                let report = session().fault(When::Step(step), fault.clone()).run();
                assert!(report.code.is_some(), "step {step}: {fault:?}");
            }
        }
    }
}

#[test]
fn whenever_the_user_ends_it_nothing_is_left_of_hosts_that_were_being_added() {
    let session = || growing(2, 2, "adaptive", &[4 * ROOM - 1, 1]);
    let whole = session().run();
    for step in (0..whole.steps).step_by(5) {
        for signal in [Signal::INT, Signal::TERM] {
            let report = session().fault(When::Step(step), Fault::UserSignal(signal)).run();
            assert!(report.code.is_some(), "step {step}, {signal}");
        }
    }
}

#[test]
fn a_task_that_fails_while_a_host_is_added_ends_all() {
    for wait in (0..400).step_by(20) {
        let fails = begin().wait(Duration::from_millis(wait)).exit(3);
        let report = growing(2, 2, "flat", &[4 * ROOM]).task(Rank(1), fails).run();
        assert!(matches!(report.code, Some(3 | 0)), "{wait}: {:?}", report.code);
    }
}
