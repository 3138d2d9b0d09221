//! A fault at every step: the session ends, in time, with a named cause, and leaves nothing.

use std::time::Duration;

use model::{AgentId, Rank};
use sim::{Fault, Report, Script, Session, Step, When};

const N: u32 = 7;

#[test]
fn a_crash_of_any_agent_at_any_step_ends_the_session() {
    for agent in 1..=N {
        at_every_step(Fault::Crash(AgentId(agent)), SECONDS, assert_hurt_is_named);
    }
}

#[test]
fn a_crash_of_the_head_at_any_step_leaves_nothing() {
    at_every_step(Fault::Crash(AgentId::HEAD), SECONDS, |report, struck| {
        assert_eq!(report.code.is_none(), struck);
    });
}

#[test]
fn the_death_of_any_keeper_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::KillKeeper(AgentId(agent)), SECONDS, assert_hurt_is_named);
    }
}

#[test]
fn the_death_of_any_shell_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::KillShell(AgentId(agent)), SECONDS, assert_hurt_is_named);
    }
}

#[test]
fn the_death_of_any_task_at_any_step_ends_the_session() {
    for rank in [0, 3, 6] {
        at_every_step(Fault::KillTask(Rank(rank)), SECONDS, |report, struck| {
            if struck {
                assert_eq!(report.code, Some(128 + 9));
            }
        });
    }
}

#[test]
fn a_cut_link_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::Cut(AgentId(agent)), 20 * SECONDS, assert_hurt_is_named);
    }
}

#[test]
fn a_link_that_falls_silent_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::Hush(AgentId(agent)), 60 * SECONDS, assert_hurt_is_named);
    }
}

#[test]
fn an_agent_that_pauses_for_a_moment_is_not_lost() {
    for agent in 0..=3 {
        let pause = Fault::Pause(AgentId(agent), Duration::from_secs(2));
        at_every_step(pause, 5 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn random_sessions_keep_what_is_promised() {
    for seed in 0..200 {
        if let Err(failure) = Session::random(seed).try_run() {
            panic!("{failure}\nseed {seed}");
        }
    }
}

const SECONDS: u32 = 5;

/// A small session in which everything happens: cards are exchanged, all tasks write, time passes.
fn session() -> Session {
    let script = Script::mpi().output(300).wait(Duration::from_millis(50)).then(Step::LeaveStray);
    Session::of(N).tree("kary:2").tasks(1).script(script)
}

/// Runs the session with the fault after each of its steps. It must end within so many seconds
/// more than it takes without the fault.
fn at_every_step(fault: Fault, seconds: u32, check: impl Fn(&Report, bool)) {
    let usual = session().run();
    let usual_time = Duration::from_nanos(usual.empty_at.as_nanos());
    for step in 0..usual.steps {
        let session = session()
            .fault(When::Step(step), fault.clone())
            .ends_within(usual_time + Duration::from_secs(u64::from(seconds)));
        match session.try_run() {
            Ok(report) => check(&report, report.faults_struck > 0),
            Err(failure) => panic!("{failure}\n{fault:?} after step {step}"),
        }
    }
}

/// The exit status is 0, or a loss or a failed start names an agent. A fault so late that all
/// tasks had ended may pass unnoticed.
fn assert_hurt_is_named(report: &Report, struck: bool) {
    let outcome = &report.outcome;
    let is_named = !outcome.losses.is_empty() || !outcome.start_failures.is_empty();
    assert!(struck || report.code == Some(0), "{outcome:?}");
    assert!(is_named || report.code == Some(0), "{outcome:?}");
}
