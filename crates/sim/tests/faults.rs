//! A fault at every step: the session ends, in time, with a named cause, and leaves nothing.

use std::time::Duration;

use engine::HOST_SILENT_MAX;
use model::{AgentId, ExitStatus, IdSet, Rank, Signal, Time};
use proto::Event;
use sim::{Fault, Report, Script, Session, Step, TwinOf, Way, When};
use wire::LossCause;

mod every_step;

use every_step::{at_every_step_of, hurt};

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
fn an_agent_that_is_cut_off_before_its_welcome_ends_when_it_has_waited_long_enough() {
    let session = session().spec(|spec| spec.link_timeout_ms = 1_000);
    for agent in 1..=N {
        at_every_step_of(&session, Fault::Cut(AgentId(agent)), CUT_SECONDS, names(agent));
    }
}

#[test]
fn a_link_that_falls_silent_at_any_step_ends_the_session() {
    for agent in [1, 2, 3] {
        at_every_step(Fault::Hush(AgentId(agent)), HUSH_SECONDS, names(agent));
    }
}

#[test]
fn a_link_that_falls_silent_before_the_first_ping_is_answered_ends_the_session_too() {
    // A child's answer may be as late as this, long after it has joined.
    let session = session().calibrate(|machines| {
        machines.link.bandwidth_bytes_per_s = Some(20_000);
    });
    for agent in [1, 3] {
        at_every_step_of(&session, Fault::Hush(AgentId(agent)), HUSH_SECONDS, names(agent));
    }
}

#[test]
fn an_agent_that_says_nothing_more_from_any_moment_on_is_lost_in_any_tree() {
    for (tree, n) in trees_and_sizes() {
        let session = Session::of(n).tree(tree).script(Script::new().wait(RUN));
        let steps = session.run().steps;
        for agent in (1..=n).map(AgentId) {
            for (step, fault) in
                (0..steps).zip([Fault::Hush(agent), Fault::Hang(agent)].iter().cycle())
            {
                let session = session.clone().fault(When::Step(step), fault.clone());
                // A start that is silent is given up before the head makes it again.
                let start = Duration::from_secs(30);
                let limit = start + RUN + PINGS * (n + 4) + ORPHANS;
                let report = session.ends_within(limit).try_run().unwrap_or_else(|failure| {
                    panic!("{failure}\n{fault:?} after step {step} of {n} in a {tree} tree")
                });
                let is_named = report.outcome.losses.iter().any(|loss| loss.agent == agent)
                    || report.outcome.start_failures.iter().any(|it| it.agents.contains(agent.0));
                assert!(is_named || report.code == Some(0), "{:?}", report.outcome);
            }
        }
    }
}

#[test]
fn a_job_is_not_told_as_done_while_tasks_run_on_an_agent_that_is_left_behind() {
    let at = When::At(Duration::from_secs(20));
    let endless = Script::new().then(Step::IgnoreTerm).wait(10 * RUN);
    for (tree, n) in trees_and_sizes() {
        let mut left_behind = 0;
        for cut_off in (1..=n).map(AgentId) {
            // The others are slow to hear that the job is killed, and find out too late who is gone.
            let others = (1..=n).map(AgentId).filter(|&agent| agent != cut_off);
            let slow = others.map(|agent| Fault::Pause(agent, Duration::from_secs(2)));
            let kill = [Fault::Cut(cut_off), INTERRUPT, INTERRUPT];
            let session = Session::of(n).tree(tree).script(endless.clone());
            let faults = slow.chain(kill);
            let session = faults.fold(session, |session, fault| session.fault(at, fault));
            let report = session.run();
            let outcome = &report.outcome;
            assert!(outcome.incomplete.contains(cut_off.0), "{outcome:?}");
            if !outcome.losses.iter().any(|loss| loss.agents.contains(cut_off.0)) {
                left_behind += 1;
                let is_done = |event: &Event| matches!(event, Event::JobDone(_));
                assert_eq!(report.time_of(is_done), None, "{cut_off} of {n} in a {tree} tree");
            }
        }
        let is_deep = n > 1 && ["chain", "kary:2", "binomial", "two-level"].contains(&tree);
        assert!(left_behind > 0 || !is_deep, "of {n} in a {tree} tree");
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
fn a_cut_that_heals_in_time_harms_nothing_at_any_step() {
    let time = Duration::from_millis(2_500);
    let faults = (1..=3).map(|agent| Fault::CutFor(AgentId(agent), time));
    for fault in faults.chain([Fault::Partition(IdSet::range(2, 5), time)]) {
        at_every_step(fault, 10 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn a_cut_that_lasts_is_a_loss_at_any_step_though_it_heals_later() {
    for agent in [1, 2, 3] {
        let cut = Fault::CutFor(AgentId(agent), Duration::from_secs(30));
        at_every_step(cut, 30 + CUT_SECONDS, names(agent));
    }
}

#[test]
fn a_partition_that_lasts_ends_the_session_at_any_step_and_leaves_nothing() {
    for side in [IdSet::range(2, 5), IdSet::range(0, 1), IdSet::range(7, 7)] {
        let partition = Fault::Partition(side, Duration::from_secs(30));
        at_every_step(partition, 30 + CUT_SECONDS, |report, _| {
            let is_blamed = report.outcome.losses.len() + report.outcome.start_failures.len() > 0;
            assert_eq!(is_blamed, report.code != Some(0), "{:?}", report.outcome);
        });
    }
}

#[test]
fn a_link_that_loses_one_way_or_is_known_to_be_gone_at_one_end_alone_is_a_loss_at_any_step() {
    for way in [Way::Up, Way::Down] {
        for agent in [1, 3] {
            let half_lost = Fault::HalfLost(AgentId(agent), way);
            at_every_step(half_lost, 2 * CUT_SECONDS, names(agent));
            let half_open = Fault::HalfOpen(AgentId(agent), way);
            at_every_step(half_open, HUSH_SECONDS, names(agent));
        }
    }
}

#[test]
fn a_second_connection_in_an_agents_name_does_no_more_than_to_take_the_place_of_the_first() {
    for of in [TwinOf::Newest, TwinOf::Earlier, TwinOf::Mute] {
        for agent in [1, 3] {
            let twin = Fault::Twin(AgentId(agent), of);
            at_every_step(twin, 2 * SECONDS, |report, struck| {
                assert!(report.welcomes.values().all(|&welcomes| welcomes == 1));
                names(agent)(report, struck);
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
        Fault::HangTask(Rank(3), 20 * slow),
    ] {
        at_every_step(fault, 2 * SECONDS, |report, _| assert_eq!(report.code, Some(0)));
    }
}

#[test]
fn an_agent_that_hangs_for_good_at_any_step_is_named_and_does_not_outlive_its_shell_for_long() {
    for agent in [1, 3] {
        let check = |report: &Report, _| {
            if let Some(first) = report.outcome.losses.first() {
                assert_eq!(first.agent, AgentId(agent), "{:?}", report.outcome);
            }
        };
        at_every_step(Fault::Hang(AgentId(agent)), HUSH_SECONDS + HUNG_SECONDS, check);
    }
}

#[test]
fn a_shell_that_hangs_at_any_step_fails_its_start_and_nothing_else() {
    for agent in [1, 3] {
        at_every_step(Fault::HangShell(AgentId(agent)), 2 * SECONDS, names(agent));
    }
}

#[test]
fn every_message_of_a_session_comes_out_of_the_codec_as_it_went_in() {
    for seed in 0..100 {
        if let Err(failure) = Session::random(seed).encoded().try_run() {
            panic!("{failure}\nseed {seed}");
        }
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

#[test]
fn the_cause_of_a_loss_tells_a_killed_agent_a_cut_link_and_a_hung_agent_apart() {
    let cause_of = |fault: Fault| {
        let script = Script::mpi().wait(Duration::from_secs(100));
        let session = Session::of(N).tree("kary:2").script(script);
        let report = session.fault(When::At(Duration::from_secs(20)), fault).run();
        assert_eq!(report.outcome.losses.len(), 1, "{:?}", report.outcome);
        report.outcome.losses[0].cause
    };
    let agent = AgentId(2);
    assert_eq!(cause_of(Fault::Crash(agent)), LossCause::Killed(Signal::KILL));
    assert_eq!(cause_of(Fault::Cut(agent)), LossCause::LinkCut(6_500));
    assert!(matches!(cause_of(Fault::Hush(agent)), LossCause::Silent(_)));
    let killed = ExitStatus::Signaled { signal: Signal::KILL, core: false };
    assert_eq!(cause_of(Fault::KillShell(agent)), LossCause::Shell(killed));
    assert_eq!(cause_of(Fault::KillKeeper(agent)), LossCause::Shell(ExitStatus::Exited(255)));
}

#[test]
fn an_agent_that_is_cut_off_while_the_front_end_is_stopped_does_not_outlive_it_for_long() {
    let at = |seconds| When::At(Duration::from_secs(seconds));
    let (stop, cut) = (When::At(STOP), Duration::from_secs(8));
    // The head's own children wait longer: a head that is stopped takes nothing either.
    for (agent, patience) in [(1, HOST_SILENT_MAX), (2, LINK_TIMEOUT), (3, LINK_TIMEOUT)] {
        let script = Script::mpi().wait(Duration::from_secs(100));
        let session = Session::of(N).tree("kary:2").script(script);
        let session = session.fault(stop, Fault::UserSignal(Signal::TSTP));
        let session = session.fault(When::At(cut), Fault::Cut(AgentId(agent)));
        let alone = session.clone().crash(AgentId::HEAD, at(9)).run();
        let (time, limit) = (alone.empty_at, Time::ZERO + cut + patience + ORPHANS);
        assert!(time <= limit, "agent {agent} lives until {time:?}");
        let resumed = session.run();
        assert_eq!(resumed.code, Some(engine::exit_code::AGENT_LOST));
        assert_eq!(resumed.outcome.losses[0].agent, AgentId(agent));
    }
}

#[test]
fn a_front_end_that_is_stopped_for_long_loses_nobody() {
    let script = Script::mpi().wait(Duration::from_secs(10)).output(5_000_000);
    let session = Session::of(N).tree("kary:2").script(script);
    let report = session.fault(When::At(STOP), Fault::UserSignal(Signal::TSTP)).run();
    assert_eq!(report.code, Some(0), "{:?}", report.outcome);
}

#[test]
fn a_host_that_hangs_is_told_of_though_the_front_end_was_stopped_meanwhile() {
    let session = Session::of(N).tree("flat").shell(AgentId(3), &[sim::ShellPlan::Hangs; 2]);
    let stop = When::At(Duration::from_secs(5));
    let report = session.fault(stop, Fault::UserSignal(Signal::TSTP)).run();
    assert_eq!(report.code, Some(engine::exit_code::NOT_STARTED));
    // Thirty seconds that it was stopped, and thirty that a start has.
    assert!(report.empty_at < Time::ZERO + Duration::from_secs(64), "{:?}", report.empty_at);
}

#[test]
fn a_short_pause_does_not_wake_an_agent_that_hangs() {
    for agent in 1..=N {
        let (hang, pause) =
            (Fault::Hang(AgentId(agent)), Fault::Pause(AgentId(agent), Duration::from_secs(1)));
        let session =
            Session::of(N).tree("kary:2").script(Script::new().wait(Duration::from_secs(60)));
        let session = session.fault(When::At(Duration::from_secs(5)), hang);
        let outcome = session.fault(When::At(Duration::from_secs(6)), pause).run().outcome;
        assert_eq!(outcome.losses[0].agent, AgentId(agent), "{outcome:?}");
        assert!(matches!(outcome.losses[0].cause, LossCause::Silent(_)), "{outcome:?}");
    }
}

#[test]
fn what_reaches_a_process_during_two_pauses_stays_in_order() {
    let at = |ms| When::At(Duration::from_millis(ms));
    let writes = Script::new().output(100).wait(Duration::from_millis(700));
    let script = writes.output(100).wait(Duration::from_millis(700)).output(100);
    for agent in [0, 1] {
        for first in (0..2_000).step_by(50) {
            let pause = |ms| Fault::Pause(AgentId(agent), Duration::from_millis(ms));
            let session = Session::of(4).tree("chain").script(script.clone());
            let session = session.fault(at(first), pause(1_000));
            let report = session.fault(at(first + 400), pause(1_500)).run();
            assert_eq!(report.code, Some(0), "{:?}", report.outcome);
        }
    }
}

#[test]
fn an_agent_that_hangs_when_the_job_is_ended_is_named_and_so_is_the_output_that_may_be_missing() {
    let failed = Duration::from_secs(5);
    let writes = Script::new().wait(Duration::from_secs(4)).output(3_000);
    let writes = writes.then(Step::IgnoreTerm).wait(Duration::from_secs(100));
    let fails = Script::new().wait(failed).exit(3);
    for (agent, hung) in [(3, subtree(3)), (2, subtree(2)), (5, subtree(5)), (1, subtree(1))] {
        let session = Session::of(N).tree("kary:2").script(writes.clone());
        let session = session.task(Rank(if agent == 1 { 6 } else { 0 }), fails.clone());
        let pause = Fault::Pause(AgentId(agent), Duration::from_secs(60));
        let at = When::At(failed + Duration::from_millis(700));
        let report = session.fault(at, pause).run();
        let outcome = &report.outcome;
        assert_eq!(report.code, Some(3), "{outcome:?}");
        assert_eq!(outcome.losses.len(), 1, "{outcome:?}");
        assert_eq!((outcome.losses[0].agent, &outcome.losses[0].agents), (AgentId(agent), &hung));
        assert!(matches!(outcome.losses[0].cause, LossCause::Silent(_)), "{outcome:?}");
        assert_eq!(outcome.incomplete, hung);
        // The grace, and less than the head's patience with those that say nothing.
        let took = report.ended_at.unwrap().since(Time::ZERO + failed);
        assert!(took < Duration::from_secs(1 + 4), "{took:?}");
    }
}

#[test]
fn a_job_that_is_ended_loses_nobody_and_no_output_when_all_agents_answer() {
    let writes = Script::new().output(3_000).then(Step::IgnoreTerm).wait(Duration::from_secs(100));
    let fails = Script::new().wait(Duration::from_secs(5)).exit(3);
    let report = Session::of(N).tree("kary:2").script(writes).task(Rank(4), fails).run();
    assert_eq!(report.code, Some(3));
    assert!(report.outcome.losses.is_empty() && report.outcome.incomplete.is_empty());
}

/// Trees of every kind, small ones and one with some depth.
fn trees_and_sizes() -> impl Iterator<Item = (&'static str, u32)> {
    let trees = ["flat", "chain", "kary:2", "binomial", "two-level", "greedy", "adaptive"];
    trees.into_iter().flat_map(|tree| [1, 5].map(|n| (tree, n)))
}

const INTERRUPT: Fault = Fault::UserSignal(Signal::INT);

/// How long tasks run where they do nothing.
const RUN: Duration = Duration::from_secs(30);

/// Three pings of a parent of no child may stay away; each child makes them so much slower.
const PINGS: Duration = Duration::from_secs(3);

/// When the front end is stopped.
const STOP: Duration = Duration::from_secs(5);

/// After which time a kernel gives a cut link up.
const LINK_TIMEOUT: Duration = Duration::from_millis(6_500);

/// Within which time those are gone that have nobody above them.
const ORPHANS: Duration = Duration::from_secs(2);

/// Any death is noticed at once; what follows takes the grace and some patience with the rest.
const SECONDS: u32 = 5;

/// The kernel gives a cut link up after six and a half seconds, or a start is given up after five.
const CUT_SECONDS: u32 = SECONDS + 8;

/// A parent of two pings every four seconds, and three pings may stay away.
const HUSH_SECONDS: u32 = SECONDS + 5 * 4;

/// The keeper of an agent that hangs waits for its end for a second.
const HUNG_SECONDS: u32 = 2;

/// A small session in which everything happens: cards are exchanged, all tasks write, time passes.
fn session() -> Session {
    let script = Script::mpi().output(300).wait(Duration::from_millis(50)).then(Step::LeaveStray);
    Session::of(N).tree("kary:2").script(script).spec(|spec| spec.start_timeout_ms = 5_000)
}

/// Runs the session with the fault after each of its steps. It must end within so many seconds
/// more than it takes without the fault.
fn at_every_step(fault: Fault, seconds: u32, check: impl Fn(&Report, bool)) {
    at_every_step_of(&session(), fault, seconds, check);
}

/// A check: a loss or a failed start names the agent that was hurt and no stranger. A fault so
/// late that all tasks had ended may pass unnoticed.
fn names(agent: u32) -> impl Fn(&Report, bool) {
    move |report, struck| {
        let outcome = &report.outcome;
        let hurt = hurt(report, struck);
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
