//! Sessions in which no address of a parent answers some children, or any: their links run over their
//! remote shells, and everything is as it is over TCP, but that no kernel tells of a cut.

use std::time::Duration;

use model::{AgentId, IdSet};
use sim::{Fault, Report, Script, Session, Way, When};

mod every_step;

use every_step::{at_every_step_of, hurt};

const N: u32 = 7;

const TREES: [&str; 5] = ["flat", "chain", "kary:2", "binomial", "adaptive"];

/// Whom faults hurt: one that starts others, one in the middle, and a leaf.
const AGENTS: [AgentId; 3] = [AgentId(1), AgentId(2), AgentId(3)];

/// Where link or shell close, and where heartbeats have to tell: three periods of a parent of two.
const SECONDS: u32 = 10;
const SILENT_SECONDS: u32 = 60;

#[test]
fn a_session_takes_the_same_messages_whatever_its_links_run_over() {
    for tree in TREES {
        for n in 1..=12 {
            let session = Session::of(n).tree(tree).tasks(2).script(Script::mpi()).encoded();
            let tcp = session.run();
            for over in [IdSet::range(1, n), IdSet::range(n, n), every_other(n)] {
                let report = session.clone().over_shells(over.clone()).run();
                assert_eq!(report.code, Some(0), "{n} in a {tree} tree");
                assert_eq!(report.messages, tcp.messages, "{n} in a {tree} tree");
                assert_eq!(u64::from(report.outcome.stats.shell_links), over.len());
            }
            assert_eq!(tcp.outcome.stats.shell_links, 0);
        }
    }
}

#[test]
fn any_number_of_agents_may_call_at_once_over_their_shells() {
    let session = Session::of(100).tree("flat").over_shells(IdSet::range(1, 100));
    let report = session.calibrate(|machines| machines.accept.backlog = 1).run();
    assert_eq!((report.code, report.syns_dropped), (Some(0), 0));
}

#[test]
fn a_death_at_any_step_ends_the_session() {
    for agent in AGENTS {
        for fault in [Fault::Crash(agent), Fault::KillKeeper(agent), Fault::KillShell(agent)] {
            for over in [IdSet::range(1, N), every_other(N)] {
                at_every_step_of(&session(over), fault.clone(), SECONDS, names(agent));
            }
        }
    }
}

#[test]
fn the_death_of_the_head_at_any_step_leaves_nothing() {
    let all = IdSet::range(1, N);
    at_every_step_of(&session(all), Fault::Crash(AgentId::HEAD), SECONDS, |report, struck| {
        assert_eq!(report.code.is_none(), struck);
    });
}

#[test]
fn a_shell_that_is_cut_or_half_cut_or_hangs_at_any_step_is_found_by_heartbeats() {
    for agent in AGENTS {
        let faults = [
            Fault::Cut(agent),
            Fault::HalfLost(agent, Way::Up),
            Fault::HalfLost(agent, Way::Down),
            Fault::HangShell(agent),
            Fault::Hang(agent),
        ];
        for fault in faults {
            let all = IdSet::range(1, N);
            at_every_step_of(&session(all), fault, SILENT_SECONDS, names(agent));
        }
    }
}

#[test]
fn a_moment_without_a_network_harms_nothing_at_any_step() {
    let time = Duration::from_millis(2_500);
    for agent in AGENTS {
        for fault in [Fault::CutFor(agent, time), Fault::Pause(agent, time)] {
            let all = IdSet::range(1, N);
            at_every_step_of(&session(all), fault, SECONDS, |report, _| {
                assert_eq!(report.code, Some(0));
            });
        }
    }
}

#[test]
fn output_is_whole_and_bounded_over_shells() {
    let session = Session::of(N).tree("chain").tasks(2).over_shells(IdSet::range(1, N));
    let flood = Script::new().output(200_000);
    let report = session.script(flood).costs(|costs| costs.reader = Some(100_000)).run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn a_shell_link_is_told_of_by_its_parent() {
    let report = session(IdSet::range(1, 1)).fault(When::At(Duration::from_secs(1)), CRASH).run();
    let told = report
        .events
        .iter()
        .filter(|(_, event)| matches!(event, proto::Event::LinkOverShell(AgentId(1))));
    assert_eq!(told.count(), 1);
}

const CRASH: Fault = Fault::Crash(AgentId(1));

fn session(over_shells: IdSet) -> Session {
    let script = Script::mpi().wait(Duration::from_secs(5));
    Session::of(N).tree("kary:2").script(script).over_shells(over_shells)
}

fn every_other(n: u32) -> IdSet {
    (1..=n).step_by(2).collect()
}

/// That the agent is told of first if anybody is, and nobody but it and those below it.
fn names(agent: AgentId) -> impl Fn(&Report, bool) {
    move |report, struck| {
        let hurt = hurt(report, struck);
        if let Some(first) = hurt.first() {
            assert_eq!(first, agent.0, "{:?}", report.outcome);
            assert!(hurt.difference(&subtree(agent.0)).is_empty(), "{:?}", report.outcome);
        }
    }
}

/// An agent of the session and all below it: kary:2 of 7.
fn subtree(agent: u32) -> IdSet {
    match agent {
        1 => IdSet::range(1, 4),
        2 => IdSet::range(2, 3),
        leaf => IdSet::range(leaf, leaf),
    }
}
