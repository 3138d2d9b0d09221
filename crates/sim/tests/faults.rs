//! A fault at every step: the session ends, in time, with a named cause, and leaves nothing.

use std::time::Duration;

use model::{AgentId, IdSet, Rank};
use sim::{Fault, LinkEnd, Report, Script, Session, Step, Twin, When};

const N: u32 = 7;

#[test]
fn a_crash_of_any_agent_at_any_step_ends_the_session() {
    for agent in 1..=N {
        at_every_step(Fault::Crash(AgentId(agent)), SECONDS, names(agent));
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
        at_every_step(Fault::KillKeeper(AgentId(agent)), SECONDS, names(agent));
    }
}

#[test]
fn the_death_of_any_shell_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::KillShell(AgentId(agent)), SECONDS, names(agent));
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
        at_every_step(Fault::Cut(AgentId(agent)), CUT_SECONDS, names(agent));
    }
}

#[test]
fn a_link_that_falls_silent_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::Hush(AgentId(agent)), HUSH_SECONDS, names(agent));
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
fn a_link_that_one_end_alone_knows_to_be_lost_ends_the_session_at_any_step() {
    for (agent, end) in [(1, LinkEnd::Parent), (2, LinkEnd::Child), (5, LinkEnd::Child)] {
        let fault = Fault::HalfOpen(AgentId(agent), end);
        at_every_step(fault, HUSH_SECONDS, names(agent));
    }
}

#[test]
fn a_partition_that_heals_in_time_harms_nothing_at_any_step() {
    for agent in [1, 2, 3] {
        let partition = Fault::Partition(AgentId(agent), Duration::from_millis(2_500));
        at_every_step(partition, 10 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn a_partition_that_lasts_is_a_loss_at_any_step() {
    for agent in [1, 2, 3] {
        let partition = Fault::Partition(AgentId(agent), Duration::from_secs(30));
        at_every_step(partition, 30 + CUT_SECONDS, names(agent));
    }
}

#[test]
fn a_second_connection_in_an_agents_name_changes_nothing_at_any_step() {
    for twin in [Twin::Silent, Twin::Hello] {
        for agent in [1, 3, 5] {
            let fault = Fault::Duplicate(AgentId(agent), twin);
            at_every_step(fault, SECONDS, |report, _| {
                assert_eq!(report.code, Some(0), "{:?}", report.outcome);
                assert_eq!(report.welcomes.len(), N as usize);
                assert!(report.welcomes.values().all(|&welcomes| welcomes == 1));
            });
        }
    }
}

#[test]
fn what_is_slow_is_late_and_no_more_than_that() {
    let slow = Duration::from_millis(100);
    for fault in [
        Fault::SlowLink(AgentId(2), slow),
        Fault::Slow(AgentId(5), slow / 20),
        Fault::PauseTask(Rank(3), 20 * slow),
    ] {
        at_every_step(fault, 2 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn the_same_seed_is_the_same_run_whatever_goes_wrong() {
    for seed in 0..20 {
        let session = Session::random(seed);
        assert_eq!(session.run().hash, session.run().hash, "seed {seed}");
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

/// Any death is noticed at once; what follows takes the grace and some patience with the rest.
const SECONDS: u32 = 5;

/// The kernel gives a cut link up after eight seconds, or a start is given up after five.
const CUT_SECONDS: u32 = SECONDS + 8;

/// A parent of two pings every four seconds, and three pings may stay away.
const HUSH_SECONDS: u32 = SECONDS + 5 * 4;

/// A small session in which everything happens: cards are exchanged, all tasks write, time passes.
fn session() -> Session {
    let script = Script::mpi().output(300).wait(Duration::from_millis(50)).then(Step::LeaveStray);
    Session::of(N).tree("kary:2").script(script).spec(|spec| spec.start_timeout_ms = 5_000)
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

/// A check: a loss or a failed start names the agent that was hurt and no stranger. A fault so
/// late that all tasks had ended may pass unnoticed.
fn names(agent: u32) -> impl Fn(&Report, bool) {
    move |report, struck| {
        let outcome = &report.outcome;
        let lost = outcome.losses.iter().map(|loss| &loss.agents);
        let failed = outcome.start_failures.iter().map(|failure| &failure.agents);
        let hurt = lost.chain(failed).fold(IdSet::new(), |hurt, agents| hurt.union(agents));
        assert!(struck || hurt.is_empty(), "{outcome:?}");
        assert_eq!(hurt.is_empty(), report.code == Some(0), "{outcome:?}");
        if let Some(first) = hurt.first() {
            assert_eq!(first, agent, "{outcome:?}");
            assert!(hurt.difference(&subtree(agent)).is_empty(), "{outcome:?}");
        }
    }
}

/// An agent of the session and all below it: kary:2 of 7.
fn subtree(agent: u32) -> IdSet {
    match agent {
        1 => IdSet::range(1, 4),
        2 => IdSet::range(2, 3),
        5 => IdSet::range(5, 7),
        leaf => IdSet::range(leaf, leaf),
    }
}
