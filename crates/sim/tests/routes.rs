//! Routing trees: a job's messages go another way than the agents came up.

use std::time::Duration;

use model::{AgentId, IdSet, Rank, Signal, Time};
use proto::Event;
use sim::{Fault, Grouping, Report, Script, Session, ShellPlan, Step, When};
use wire::ShellFailureKind;

mod edges;
mod every_step;

use edges::{Edges, PLANNED, ROUTES, TREES, route_tree};
use every_step::{at_every_step_of, hurt};

#[test]
fn a_job_runs_over_every_route_of_every_spawn_tree() {
    let script = Script::mpi().output(3_000).then(Step::ReadStdin);
    for tree in TREES {
        for route in ROUTES {
            for n in [1, 2, 3, 7, 20, 40] {
                for session in [Session::of(n), Session::of(n).contacts_on_demand()] {
                    let session = session.tree(tree).route(route).script(script.clone());
                    let session = session.input(700_000).reader(Rank(n / 2)).encoded();
                    let report = session.run();
                    assert_eq!(report.code, Some(0), "{:?}", report.outcome);
                    assert_eq!(report.output_bytes, u64::from(n) * 3_000);
                    assert_eq!(report.input_bytes, 700_000);
                }
            }
        }
    }
}

#[test]
fn messages_and_links_are_those_of_the_formulas_for_every_route_of_every_tree() {
    let sizes = (1..=16).chain([31, 64, 100, 300]);
    for n in sizes {
        for &tree in PLANNED {
            for route in ROUTES {
                let session = Session::of(n).tree(tree).route(route);
                // One ping to each child, and no more.
                let report = session.spec(|spec| spec.heartbeat_ms = 3_600_000).run();
                let edges = Edges::of(tree, route, n);
                let told = format!("{route} over {tree} of {n}");
                // Phase 1 and 3 as without a route; phase 2: a contact list up, the members down, and a
                // word up from each, and a link for each edge that is new.
                for kind in ["Hello", "Welcome", "Job", "Contacts", "Route", "Routed"] {
                    assert_eq!(report.sent(kind), u64::from(n), "{kind}: {told}");
                }
                for kind in ["Launch", "OutputCredit", "Done", "Shutdown", "Bye"] {
                    assert_eq!(report.sent(kind), u64::from(n), "{kind}: {told}");
                }
                assert_eq!(report.sent("Attach"), edges.new_links(), "{told}");
                assert_eq!(report.sent("Forward") + report.sent("Resolve"), 0, "{told}");
                assert_eq!(report.links_max as u64, edges.links_max(0), "{told}");
                assert_eq!(report.outcome.stats.links_max as u64, edges.links_max(0), "{told}");
                let [_, route, ..] = report.outcome.stats.messages;
                assert_eq!(route, 2 * u64::from(n) + edges.new_links(), "{told}");
            }
        }
    }
}

#[test]
fn a_session_that_does_not_route_pays_nothing_for_it() {
    let report = Session::of(20).run();
    for kind in ["Contacts", "Route", "Routed", "Attach", "Received", "Forward", "Gone"] {
        assert_eq!(report.sent(kind), 0, "{kind}");
    }
    let routed = Session::of(20).tree("route:binomial").route("binomial").run();
    assert_eq!((routed.sent("Attach"), routed.sent("Received")), (0, 0), "it is the spawn tree");
}

#[test]
fn contacts_on_demand_cost_a_way_up_and_down_for_each_link_and_are_remembered() {
    for tree in ["flat", "chain", "kary:2", "binomial"] {
        for route in ROUTES {
            for n in [1, 7, 40] {
                let report = Session::of(n).tree(tree).route(route).contacts_on_demand().run();
                let edges = Edges::of(tree, route, n);
                let told = format!("{route} over {tree} of {n}");
                assert_eq!(report.sent("Attach"), edges.new_links(), "{told}");
                let (questions, contacts) = (report.sent("Resolve"), report.sent("Contacts"));
                assert_eq!(contacts, u64::from(n) + questions, "each question is answered: {told}");
                let ways = edges.ways_to_the_spawn_parent();
                assert!(questions <= ways, "{questions} of {ways}: {told}");
            }
        }
    }
}

#[test]
fn where_no_link_can_be_opened_messages_go_along_the_spawn_tree() {
    let script = Script::mpi().output(3_000).then(Step::ReadStdin);
    for tree in TREES {
        for route in ROUTES {
            for deaf in [IdSet::range(0, 12), IdSet::range(3, 5)] {
                let session = Session::of(12).tree(tree).route(route).deaf(deaf.clone());
                let session = session.script(script.clone()).input(300_000).reader(Rank(11));
                let report = session.run();
                assert_eq!(report.code, Some(0), "{route} over {tree}: {:?}", report.outcome);
                assert_eq!((report.output_bytes, report.input_bytes), (12 * 3_000, 300_000));
            }
        }
    }
}

#[test]
fn a_job_is_routed_among_those_who_run_it_whoever_is_missing_or_spare() {
    let refused = [ShellPlan::Fails(ShellFailureKind::Refused); 9];
    for tree in ["flat", "adaptive"] {
        for route in ROUTES {
            for missing in [1, 5, 9] {
                let session = Session::of(9).tree(tree).route(route).script(Script::mpi());
                let session = session.spares(2).shell(AgentId(missing), &refused);
                let report = session.run();
                assert_eq!(report.code, Some(0), "{route} over {tree}: {:?}", report.outcome);
                let there = IdSet::range(1, 9).difference(&IdSet::range(missing, missing));
                let members = &report.outcome.members;
                assert!(members.len() == 7 && members.difference(&there).is_empty(), "{members}");
            }
        }
    }
}

#[test]
fn a_spare_that_dies_at_any_step_harms_nothing() {
    for (tree, route) in CASES {
        let session = Session::of(N).tree(tree).route(route).script(Script::mpi().output(300));
        let session = session.spares(2).spec(|spec| spec.start_timeout_ms = 5_000);
        at_every_step_of(&session, Fault::Crash(AgentId(N)), SECONDS, |report, _| {
            assert_eq!(report.code, Some(0), "{:?}", report.outcome);
        });
    }
}

#[test]
fn groups_meet_over_every_route_of_every_spawn_tree() {
    let groups = vec![(Grouping::Modulo(3), 1), (Grouping::Rows(4), 2)];
    let script = Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Meet(groups));
    let script = script.then(Step::CheckMember(Grouping::Modulo(3))).then(Step::PmiFinalize);
    for tree in TREES {
        for route in ROUTES {
            let session = Session::of(20).tree(tree).route(route).script(script.clone());
            assert_eq!(session.run().code, Some(0), "{route} over {tree}");
        }
    }
}

#[test]
fn a_link_that_breaks_or_is_cut_at_any_step_while_both_ends_live_harms_nothing() {
    for (tree, route) in CASES {
        for agent in (1..=N).map(AgentId) {
            for fault in [Fault::BreakRoute(agent), Fault::CutRoute(agent)] {
                at_every_step(tree, route, fault, CUT_SECONDS, |report, _| {
                    assert_eq!(report.code, Some(0), "{:?}", report.outcome);
                    assert_eq!(report.output_bytes, u64::from(N) * 300);
                });
            }
        }
    }
}

#[test]
fn a_crash_of_any_agent_at_any_step_ends_the_session_and_names_it() {
    for (tree, route) in CASES {
        for agent in (1..=N).map(AgentId) {
            at_every_step(tree, route, Fault::Crash(agent), SECONDS, |report, struck| {
                if let Some(first) = report.outcome.losses.first() {
                    assert_eq!(first.agent, agent, "{:?}", report.outcome);
                }
                hurt(report, struck);
            });
        }
    }
}

#[test]
fn whatever_else_dies_at_any_step_ends_the_session_too() {
    for (tree, route) in CASES {
        for agent in [1, 3, 5].map(AgentId) {
            for fault in
                [Fault::KillKeeper(agent), Fault::KillShell(agent), Fault::HangShell(agent)]
            {
                at_every_step(tree, route, fault, 2 * SECONDS, |report, struck| {
                    hurt(report, struck);
                });
            }
            at_every_step(tree, route, Fault::Cut(agent), CUT_SECONDS, |report, struck| {
                hurt(report, struck);
            });
            at_every_step(tree, route, Fault::Hang(agent), HUSH_SECONDS, |_, _| ());
        }
        at_every_step(tree, route, Fault::KillTask(Rank(3)), SECONDS, |_, _| ());
        at_every_step(tree, route, Fault::Crash(AgentId::HEAD), SECONDS, |_, _| ());
        let signals = [Signal::INT, Signal::TERM];
        for signal in signals {
            at_every_step(tree, route, Fault::UserSignal(signal), SECONDS, |_, _| ());
        }
    }
}

#[test]
fn an_agent_that_pauses_or_a_network_that_heals_in_time_harms_nothing() {
    let time = Duration::from_millis(2_500);
    for (tree, route) in CASES {
        for fault in [
            Fault::Pause(AgentId(1), time),
            Fault::Pause(AgentId(4), time),
            Fault::Partition(IdSet::range(2, 5), time),
        ] {
            at_every_step(tree, route, fault, 15, |report, _| {
                assert_eq!(report.code, Some(0), "{:?}", report.outcome);
            });
        }
    }
}

#[test]
fn a_front_end_that_is_stopped_for_long_loses_nobody_whose_routing_parent_it_is() {
    for route in ROUTES {
        let script = Script::mpi().wait(Duration::from_secs(10)).output(5_000_000);
        let session = Session::of(N).tree("kary:2").route(route).script(script);
        let stop = When::At(Duration::from_secs(5));
        let report = session.fault(stop, Fault::UserSignal(Signal::TSTP)).run();
        assert_eq!(report.code, Some(0), "{route}: {:?}", report.outcome);
    }
}

#[test]
fn nothing_waits_for_an_agent_whose_messages_went_through_one_that_is_lost() {
    let lost = When::At(Duration::from_secs(5));
    for (tree, route) in CASES {
        for agent in (1..=N).map(AgentId) {
            let script = Script::mpi().wait(Duration::from_secs(30));
            let session = Session::of(N).tree(tree).route(route).script(script);
            let report = session.crash(agent, lost).run();
            assert_eq!(report.code, Some(engine::exit_code::AGENT_LOST));
            let done = report.time_of(|event| matches!(event, Event::JobDone(_)));
            let done = done.map(|done| done.since(Time::ZERO));
            assert!(done < Some(Duration::from_millis(5_400)), "{agent}, {route}: {done:?}");
            let incomplete = &report.outcome.incomplete;
            let below = route_tree(route, N).subtree(agent);
            assert!(below.difference(incomplete).is_empty(), "{incomplete}, and not {below}");
        }
    }
}

/// The end of all others may be told over fewer links than the loss.
#[test]
fn what_went_through_an_agent_that_hangs_is_missed_though_all_others_have_ended() {
    let script = Script::mpi().output(100_000);
    let session = Session::of(N).tree("chain").route("binomial").script(script);
    for agent in [3, 5, 7].map(AgentId) {
        at_every_step_of(&session, Fault::Hang(agent), HUSH_SECONDS, |_, _| ());
    }
}

const N: u32 = 7;

/// Spawn trees, and routes that cross them.
const CASES: [(&str, &str); 4] =
    [("kary:2", "kary:2"), ("chain", "direct"), ("flat", "binomial"), ("adaptive", "kary:1")];

const SECONDS: u32 = 6;
const CUT_SECONDS: u32 = SECONDS + 9;
const HUSH_SECONDS: u32 = SECONDS + 6 * 9;

fn at_every_step(
    tree: &str,
    route: &str,
    fault: Fault,
    seconds: u32,
    check: impl Fn(&Report, bool),
) {
    let script = Script::mpi().output(300).wait(Duration::from_millis(50)).then(Step::LeaveStray);
    let session = Session::of(N).tree(tree).route(route).script(script);
    let session = session.spec(|spec| spec.start_timeout_ms = 5_000);
    at_every_step_of(&session, fault, seconds, check);
}
