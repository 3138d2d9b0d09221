//! Redundant links: a message goes around a link that breaks while both its ends live.

use std::time::Duration;

use model::{AgentId, Rank, Signal, Time};
use proto::Event;
use sim::{Fault, Report, Script, Session, Step, When};

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod edges;
mod every_step;

use edges::{Edges, PLANNED, ROUTES, TREES};
use every_step::{at_every_step_of, hurt};

const N: u32 = 7;

/// Spawn trees, and routes that cross them.
const CASES: [(&str, &str); 4] =
    [("kary:2", "kary:2"), ("chain", "direct"), ("flat", "binomial"), ("adaptive", "kary:1")];

/// What a session may take more with a fault: `link_timeout_ms` where a link is cut.
const SECONDS: u32 = 15;

/// In the midst of the job of [`busy`].
const MIDST: Duration = Duration::from_secs(3);

#[test]
fn each_member_opens_its_redundant_links_once_the_job_is_launched_and_no_others() {
    for n in (1..=12).chain([40, 100]) {
        for &tree in PLANNED {
            for route in ROUTES {
                for redundancy in [1, 2, 8] {
                    let session = Session::of(n).tree(tree).route(route).redundancy(redundancy);
                    let session = session.script(Script::mpi().wait(Duration::from_secs(5)));
                    let report = session.spec(|spec| spec.heartbeat_ms = 3_600_000).run();
                    let (edges, count) = (Edges::of(tree, route, n), redundancy.into());
                    let told = format!("{redundancy} beside {route} over {tree} of {n}");
                    let opened = edges.redundant(count).count() as u64;
                    assert_eq!(report.sent("Attach"), edges.new_links() + opened, "{told}");
                    assert_eq!(report.links_max as u64, edges.links_max(count), "{told}");
                    assert_eq!(report.sent("Forward") + report.sent("Resolve"), 0, "{told}");
                    let [join, route, ..] = report.outcome.stats.messages;
                    assert!(join > 0 && route == 2 * u64::from(n) + edges.new_links(), "{told}");
                }
            }
        }
    }
}

#[test]
fn a_job_runs_beside_redundant_links_of_every_route_of_every_tree() {
    let script = Script::mpi().output(3_000).then(Step::ReadStdin);
    for tree in TREES {
        for route in ROUTES {
            for session in [Session::of(20), Session::of(20).contacts_on_demand()] {
                let session = session.tree(tree).route(route).redundancy(3);
                let session = session.script(script.clone()).input(300_000).reader(Rank(10));
                let report = session.encoded().run();
                assert_eq!(report.code, Some(0), "{:?}", report.outcome);
                assert_eq!((report.output_bytes, report.input_bytes), (20 * 3_000, 300_000));
            }
        }
    }
}

#[test]
fn around_a_broken_link_it_is_two_steps_by_a_redundant_one_and_else_the_whole_spawn_tree() {
    let script = Script::mpi().wait(Duration::from_secs(10)).output(1_000_000);
    let session = Session::of(40).tree("chain").route("direct").script(script);
    let midst = When::At(Duration::from_secs(8));
    let session = session.fault(midst, Fault::BreakRoute(AgentId(20)));
    let [along_the_tree, by_a_link] =
        [0, 1].map(|redundancy| session.clone().redundancy(redundancy).run());
    for report in [&along_the_tree, &by_a_link] {
        assert_eq!((report.code, report.output_bytes), (Some(0), 40_000_000));
    }
    let steps = [along_the_tree, by_a_link].map(|report| report.sent("Forward"));
    assert!(steps[0] > 5 * steps[1] && steps[1] > 0, "{steps:?}");
}

#[test]
fn a_link_that_breaks_or_is_cut_at_any_step_harms_nothing() {
    for (tree, route) in CASES {
        for agent in [2, 5, 7].map(AgentId) {
            for fault in [Fault::BreakRoute(agent), Fault::CutRoute(agent)] {
                at_every_step_of(&busy(tree, route, 1), fault, SECONDS, |report, _| whole(report));
            }
        }
    }
}

#[test]
fn links_of_an_agent_that_break_one_after_the_other_harm_nothing_as_long_as_the_spawn_tree_is_there()
 {
    for (tree, route) in CASES {
        for agent in [4, 7].map(AgentId) {
            let session = busy(tree, route, 2).fault(When::At(MIDST), Fault::BreakRoute(agent));
            let session = session.fault(When::At(MIDST), Fault::BreakRoute(AgentId(agent.0 - 1)));
            let fault = Fault::BreakRoute(agent);
            at_every_step_of(&session, fault, SECONDS, |report, _| whole(report));
        }
    }
}

#[test]
fn when_every_link_breaks_that_the_routing_tree_has_all_goes_along_the_spawn_tree() {
    for tree in TREES {
        for route in ROUTES {
            for redundancy in [1, 3] {
                let mut session = busy(tree, route, redundancy);
                for round in 0..=u32::from(redundancy) {
                    for agent in (1..=N).map(AgentId) {
                        let at = MIDST + Duration::from_millis(7) * (3 * round + agent.0 % 3);
                        session = session.fault(When::At(at), Fault::BreakRoute(agent));
                    }
                }
                whole(&session.run());
            }
        }
    }
}

#[test]
fn links_that_break_and_are_cut_in_any_order_harm_nothing() {
    for (tree, route) in CASES.into_iter().chain([("chain", "kary:1"), ("two-level", "kary:2")]) {
        for seed in 0..100 {
            let mut session = busy(tree, route, 1 + u8::try_from(seed % 3).expect("below 3"));
            for number in 0..12 {
                // Agents, moments and kinds in all combinations: primes share no period.
                let (agent, step) = (AgentId(1 + (seed + 3 * number) % N), seed * 31 + number * 97);
                let is_cut = (seed + number) % 5 == 0;
                let fault = if is_cut { Fault::CutRoute } else { Fault::BreakRoute };
                session = session.fault(When::Step(u64::from(step % 1_009)), fault(agent));
            }
            whole(&session.run());
        }
    }
}

#[test]
fn a_crash_of_any_agent_at_any_step_ends_the_session_whatever_went_around_a_link() {
    for (tree, route) in CASES {
        for agent in (1..=N).map(AgentId) {
            let session =
                busy(tree, route, 1).fault(When::At(MIDST), Fault::BreakRoute(AgentId(5)));
            let session = session.fault(When::At(MIDST), Fault::BreakRoute(AgentId(7)));
            at_every_step_of(&session, Fault::Crash(agent), SECONDS, |report, _| {
                if let Some(first) = report.outcome.losses.first() {
                    assert_eq!(first.agent, agent, "{:?}", report.outcome);
                    hurt(report, true);
                }
            });
        }
    }
}

#[test]
fn nothing_waits_for_what_went_through_an_agent_that_is_lost() {
    let lost = When::At(Duration::from_secs(8));
    for (tree, route) in CASES {
        for broken in (2..=N).map(AgentId) {
            for agent in (1..=N).map(AgentId) {
                let script = Script::mpi().wait(Duration::from_secs(30));
                let session = Session::of(N).tree(tree).route(route).redundancy(1).script(script);
                let session = session.fault(When::At(MIDST), Fault::BreakRoute(broken));
                let report = session.crash(agent, lost).run();
                assert_eq!(report.code, Some(engine::exit_code::AGENT_LOST));
                let done = report.time_of(|event| matches!(event, Event::JobDone(_)));
                let done = done.map(|done| done.since(Time::ZERO));
                assert!(done < Some(Duration::from_millis(8_400)), "{agent}, {route}: {done:?}");
            }
        }
    }
}

#[test]
fn a_front_end_that_is_stopped_for_long_loses_nobody_who_has_a_redundant_link_to_it() {
    for route in ["kary:1", "kary:2", "binomial"] {
        let script = Script::mpi().wait(Duration::from_secs(10)).output(5_000_000);
        let session = Session::of(N).tree("kary:2").route(route).redundancy(2).script(script);
        let session = session.fault(When::At(MIDST), Fault::BreakRoute(AgentId(2)));
        let stop = When::At(Duration::from_secs(5));
        let report = session.fault(stop, Fault::UserSignal(Signal::TSTP)).run();
        assert_eq!(report.code, Some(0), "{route}: {:?}", report.outcome);
    }
}

#[test]
fn agents_that_nobody_can_call_have_no_redundant_links_and_others_do_without() {
    for (tree, route) in CASES {
        let deaf = [0, 3, 5].into_iter().collect();
        let session = busy(tree, route, 2).deaf(deaf);
        let session = session.fault(When::At(MIDST), Fault::BreakRoute(AgentId(7)));
        whole(&session.run());
    }
}

/// A session that still says something after [`MIDST`].
fn busy(tree: &str, route: &str, redundancy: u8) -> Session {
    let script = Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence);
    let script = script.output(150).wait(Duration::from_secs(4)).then(Step::Fence);
    let script = script.then(Step::CheckCard(2)).output(150).then(Step::PmiFinalize);
    let session = Session::of(N).tree(tree).route(route).redundancy(redundancy).script(script);
    session.spec(|spec| spec.start_timeout_ms = 5_000)
}

fn whole(report: &Report) {
    assert_eq!(report.code, Some(0), "{:?}", report.outcome);
    assert_eq!(report.output_bytes, u64::from(N) * 300);
}
