//! Marks: what agents keep for a timeline, and how it comes to the head's clock.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AgentId, Time};
use proto::Event;
use sim::{Fault, Report, Script, Session, ShellPlan, When};
use wire::{Mark, MarkKind, ShellFailureKind};

const LINK: Duration = Duration::from_millis(1);

/// A whole life, in its order.
const LIFE: [MarkKind; 8] = [
    MarkKind::Started,
    MarkKind::LinkUp,
    MarkKind::Welcomed,
    MarkKind::Joined,
    MarkKind::Launched,
    MarkKind::Spawned,
    MarkKind::TasksEnded,
    MarkKind::Leaving,
];

#[test]
fn a_session_that_does_not_ask_for_marks_has_none() {
    let report = Session::of(20).run();
    assert_eq!(report.sent("Marks"), 0);
    assert_eq!(marks(&report), []);
}

#[test]
fn every_agent_of_every_tree_has_a_whole_life_in_order() {
    for tree in ["flat", "chain", "kary:3", "binomial", "greedy"] {
        let report = marked(Session::of(30).tree(tree));
        for agent in 1..=30 {
            let times = LIFE.map(|kind| only(&report, agent, kind));
            assert!(times.is_sorted(), "agent {agent} of {tree}: {times:?}");
            assert!(only(&report, agent, MarkKind::Left) > times[7], "agent {agent} of {tree}");
        }
        assert_eq!(report.sent("Marks"), 30, "one message for each edge");
    }
}

#[test]
fn times_of_an_agent_deep_in_the_tree_are_the_heads_but_for_the_links_between() {
    let n = 12;
    let report = marked(Session::of(n).tree("chain"));
    // Each level takes the gap, the latency, and two ways over a link until the parent welcomes.
    let level = Duration::from_millis(105) + 2 * LINK;
    for agent in 1..=n {
        // A child counts from when its welcome came, its parent from when it went.
        let welcomed = only(&report, agent, MarkKind::Welcomed);
        let passed_levels = (agent - 1) * LINK;
        let truth = Time::ZERO + agent * level + passed_levels;
        assert_eq!(Time::from_nanos(welcomed * 1_000) + passed_levels, truth, "agent {agent}");
    }
}

#[test]
fn every_try_of_a_start_is_marked() {
    let busy = ShellPlan::Fails(ShellFailureKind::Busy);
    let report = marked(Session::of(6).tree("kary:2").shell(AgentId(5), &[busy; 3]));
    let starts = marks(&report).into_iter().filter(|mark| is(mark, 5, MarkKind::Started));
    assert_eq!(starts.count(), 4);
}

#[test]
fn a_session_that_fails_has_the_marks_that_are_known() {
    let busy = Script::new().wait(Duration::from_secs(9));
    let crash = When::At(Duration::from_secs(1));
    let report = marked(Session::of(10).tree("kary:3").script(busy).crash(AgentId(1), crash));
    assert_eq!(report.code, Some(engine::exit_code::AGENT_LOST));
    only(&report, 1, MarkKind::Started);
    only(&report, 1, MarkKind::GivenUp);
    only(&report, 8, MarkKind::Left);
}

#[test]
fn an_agent_that_cannot_be_started_is_marked_as_given_up() {
    let none = ShellPlan::Fails(ShellFailureKind::NoBinary);
    let report = marked(Session::of(10).tree("chain").shell(AgentId(7), &[none]));
    only(&report, 7, MarkKind::GivenUp);
    only(&report, 6, MarkKind::Left);
}

#[test]
fn marks_change_nothing_else() {
    let fault = |session: Session| session.fault(When::Step(300), Fault::Crash(AgentId(4)));
    let plain = fault(Session::of(20)).run();
    let marked = marked(fault(Session::of(20)));
    let told = |report: &Report| {
        let events = report.events.iter();
        let others = events.filter(|(_, event)| !matches!(event, Event::Marked(_)));
        others.cloned().collect::<Vec<_>>()
    };
    let joins = |report: &Report| told(report).into_iter().take(20).collect::<Vec<_>>();
    assert_eq!(joins(&plain), joins(&marked));
    assert_eq!(plain.code, marked.code);
}

fn marked(session: Session) -> Report {
    session.spec(|spec| spec.marks = true).run()
}

fn marks(report: &Report) -> Vec<Mark> {
    let lists = report.events.iter().filter_map(|(_, event)| {
        if let Event::Marked(marks) = event { Some(marks.clone()) } else { None }
    });
    lists.flatten().collect()
}

fn is(mark: &Mark, agent: u32, kind: MarkKind) -> bool {
    mark.agent == AgentId(agent) && mark.kind == kind
}

/// The time of the only mark of this kind.
fn only(report: &Report, agent: u32, kind: MarkKind) -> u64 {
    let all = marks(report);
    let times: BTreeMap<u64, Mark> = all
        .into_iter()
        .filter(|mark| is(mark, agent, kind))
        .map(|mark| (mark.at_us, mark))
        .collect();
    assert_eq!(times.len(), 1, "{kind:?} of {agent}");
    times.into_keys().next().expect("one")
}
