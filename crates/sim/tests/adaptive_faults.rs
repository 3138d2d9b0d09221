//! Every kind of fault at every step of a session whose tree is made while it grows: the session ends,
//! in time, with a named cause, and leaves nothing. Crashes of all agents are in `adaptive.rs`, and the
//! same faults in fixed trees in `faults.rs`.

use std::time::Duration;

use model::{AgentId, IdSet, Rank};
use sim::{Fault, Report, Script, Session, Step, TwinOf, Way, When};

mod every_step;

use every_step::{at_every_step_of, hurt};

const N: u32 = 8;

/// Whom faults hurt: one that starts others, and one that comes up late.
const AGENTS: [AgentId; 2] = [AgentId(1), AgentId(N - 1)];

#[test]
fn the_tree_has_depth_and_the_first_agent_starts_others() {
    let report = session().run();
    assert!(report.links_max < N as usize / 2 + 1, "{} links", report.links_max);
    let crash = Fault::Crash(AGENTS[0]);
    let losses = session().fault(RUNNING, crash).run().outcome.losses;
    assert!(losses[0].agents.len() > 1, "{losses:?}");
}

#[test]
fn the_death_of_keeper_shell_or_agent_at_any_step_ends_the_session() {
    for agent in AGENTS {
        for fault in [Fault::KillKeeper(agent), Fault::KillShell(agent), Fault::Crash(agent)] {
            at_every_step(fault, SECONDS, names(agent));
        }
    }
}

#[test]
fn the_death_of_any_task_at_any_step_ends_the_session() {
    for rank in [0, N - 1] {
        at_every_step(Fault::KillTask(Rank(rank)), SECONDS, |report, struck| {
            assert_eq!(report.code, Some(if struck { 128 + 9 } else { 0 }));
        });
    }
}

#[test]
fn a_link_that_is_cut_half_lost_or_silent_at_any_step_ends_the_session() {
    for agent in AGENTS {
        at_every_step(Fault::Cut(agent), CUT_SECONDS, names(agent));
        at_every_step(Fault::Hush(agent), HUSH_SECONDS, names(agent));
        let lasting = Fault::CutFor(agent, Duration::from_secs(30));
        at_every_step(lasting, 30 + CUT_SECONDS, names(agent));
        for way in [Way::Up, Way::Down] {
            at_every_step(Fault::HalfLost(agent, way), 2 * CUT_SECONDS, names(agent));
            at_every_step(Fault::HalfOpen(agent, way), HUSH_SECONDS, names(agent));
        }
    }
}

#[test]
fn an_agent_or_a_shell_that_hangs_at_any_step_ends_the_session() {
    for agent in AGENTS {
        at_every_step(Fault::Hang(agent), HUSH_SECONDS, names(agent));
        at_every_step(Fault::HangShell(agent), 2 * SECONDS, names(agent));
    }
}

#[test]
fn what_passes_in_time_harms_nothing_at_any_step() {
    let (slow, time) = (Duration::from_millis(100), Duration::from_millis(2_500));
    let passing = AGENTS.into_iter().flat_map(|agent| {
        [
            Fault::Pause(agent, Duration::from_secs(2)),
            Fault::CutFor(agent, time),
            Fault::SlowLink(agent, slow),
            Fault::Slow(agent, slow / 20),
        ]
    });
    let others = [
        Fault::Pause(AgentId::HEAD, Duration::from_secs(2)),
        Fault::Partition(IdSet::range(1, N / 2), time),
        Fault::HangTask(Rank(1), 20 * slow),
    ];
    for fault in passing.chain(others) {
        at_every_step(fault, 2 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn a_partition_that_lasts_ends_the_session_at_any_step() {
    for side in [IdSet::range(1, N / 2), IdSet::range(0, 1), IdSet::range(N, N)] {
        let partition = Fault::Partition(side, Duration::from_secs(30));
        at_every_step(partition, 30 + CUT_SECONDS, |report, _| {
            let is_blamed = report.outcome.losses.len() + report.outcome.start_failures.len() > 0;
            assert_eq!(is_blamed, report.code != Some(0), "{:?}", report.outcome);
        });
    }
}

#[test]
fn a_second_connection_in_an_agents_name_does_no_more_than_to_take_the_place_of_the_first() {
    for of in [TwinOf::Newest, TwinOf::Earlier, TwinOf::Mute] {
        for agent in AGENTS {
            at_every_step(Fault::Twin(agent, of), 2 * SECONDS, |report, struck| {
                assert!(report.welcomes.values().all(|&welcomes| welcomes == 1));
                names(agent)(report, struck);
            });
        }
    }
}

/// When all tasks run.
const RUNNING: When = When::At(Duration::from_millis(500));

/// Any death is noticed at once; what follows takes the grace and some patience with the rest.
const SECONDS: u32 = 5;

/// The kernel gives a cut link up after six and a half seconds, or a start is given up after five.
const CUT_SECONDS: u32 = SECONDS + 8;

/// Three pings of a parent stay away, four to six seconds apart; then the keeper has its patience.
const HUSH_SECONDS: u32 = SECONDS + 3 * 6 + 2;

/// A small session in which everything happens. Few starts may be in flight, so that the head's
/// children start others before it is done.
fn session() -> Session {
    let script = Script::mpi().output(300).wait(Duration::from_secs(1)).then(Step::LeaveStray);
    let session = Session::of(N).tree("adaptive").script(script);
    session.spec(|spec| (spec.window, spec.start_timeout_ms) = (2, 5_000))
}

fn at_every_step(fault: Fault, seconds: u32, check: impl Fn(&Report, bool)) {
    at_every_step_of(&session(), fault, seconds, check);
}

/// A check: the exit status is 0 unless somebody is lost or has failed to start, and then the agent
/// that was hurt is among them. A fault so late that all tasks had ended may pass unnoticed.
fn names(agent: AgentId) -> impl Fn(&Report, bool) {
    move |report, struck| {
        let hurt = hurt(report, struck);
        assert!(hurt.is_empty() || hurt.contains(agent.0), "{:?}", report.outcome);
    }
}
