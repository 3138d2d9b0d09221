//! Slow hosts get less: the slower a host is, the fewer agents the adaptive tree puts below it, and what
//! a planned tree has put there does not wait for it.

use std::time::Duration;

use model::{AgentId, IdSet, Time};
use proto::Event;
use sim::{HostCosts, Launch, Report, Script, Session, When};

const N: u32 = 300;

/// Latency and gap, in milliseconds.
const COSTS: [(f64, f64); 4] = [(257.0, 7.0), (100.0, 10.0), (40.0, 12.0), (500.0, 2.0)];

/// How many times slower a host is than all others.
const FACTORS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0];

/// Agents that have some below them where all hosts are alike.
const AGENTS: [u32; 4] = [1, 2, 5, 10];

#[test]
fn the_slower_a_host_is_the_fewer_agents_are_below_it() {
    each_case(|costs, agent, is_told| {
        let below = FACTORS.map(|factor| Case { costs, agent, is_told }.below_slow(factor));
        let case = format!("agent {agent} of {costs:?}, told: {is_told}: {below:?}");
        assert!(below[0] > 0, "{case}");
        assert!(never_grow(&below), "{case}");
        assert!(2 * below[2] < below[0], "{case}");
        assert_eq!(below[FACTORS.len() - 1], 0, "{case}");
    });
}

#[test]
fn a_host_that_is_slow_to_start_others_alone_gets_less_too() {
    each_case(|costs, agent, is_told| {
        let below = FACTORS.map(|factor| Case { costs, agent, is_told }.below_slow_starter(factor));
        let case = format!("agent {agent} of {costs:?}, told: {is_told}: {below:?}");
        assert!(never_grow(&below), "{case}");
        // Untold, a parent takes on a latency's worth of starts before it can see what they take.
        assert!(!is_told || 4 * below[FACTORS.len() - 1] < below[0], "{case}");
    });
}

#[test]
fn in_a_fixed_tree_it_keeps_what_it_was_given_unless_it_is_much_slower_than_the_others() {
    let case = Case { costs: COSTS[0], agent: 1, is_told: false };
    let given = case.below(case.session("kary:4"));
    assert!(given > 0);
    for factor in FACTORS {
        let expected = if factor < 6.0 { given } else { 0 };
        assert_eq!(case.below(case.slow("kary:4", factor, None)), expected, "{factor}");
    }
}

/// But for a chain, where nobody has a sibling that could tell what a start takes.
#[test]
fn a_host_twenty_times_slower_delays_nobody_else_by_more_than_some_usual_starts_in_any_tree() {
    let (latency, gap) = COSTS[0];
    let trees = ["flat", "kary:2", "kary:7", "binomial", "two-level", "greedy", "scela:8"];
    for tree in trees.into_iter().chain(["route:kary:3", "adaptive"]) {
        for (n, agent) in [7, 16, 40].into_iter().flat_map(|n| (1..=n).map(move |it| (n, it))) {
            let session = Session::of(n).tree(tree).calibrate(|machines| {
                machines.launch = launch(latency, gap);
            });
            let host = HostCosts { names: format!("n{}", agent - 1), factor: 20.0, launch: None };
            let usual = others_joined(&session.run(), agent);
            let report = session.calibrate(|machines| machines.hosts = vec![host]).run();
            let late = others_joined(&report, agent).saturating_sub(usual);
            // Six times the median, whose half of the gaps is that of all children; then one start.
            let late_max = 7.0 * latency + 3.0 * f64::from(n) * gap;
            assert!(late.as_secs_f64() * 1e3 < late_max, "{tree} of {n}, {agent}: {late:?}");
            assert_eq!((report.code, report.shells), (Some(0), n), "{tree} of {n}, {agent}");
        }
    }
}

/// How long it took until all but this agent had joined.
fn others_joined(report: &Report, agent: u32) -> Duration {
    let only = Event::AgentsJoined(IdSet::range(agent, agent));
    let is_of_others = |event: &Event| matches!(event, Event::AgentsJoined(_)) && *event != only;
    let joined = report.events.iter().filter(|(_, event)| is_of_others(event)).map(|(at, _)| *at);
    joined.max().expect("some have joined").since(Time::ZERO)
}

fn never_grow(below: &[u64]) -> bool {
    below.is_sorted_by(|less_slow, slower| less_slow >= slower)
}

fn each_case(mut check: impl FnMut((f64, f64), u32, bool)) {
    for costs in COSTS {
        for agent in AGENTS {
            [false, true].into_iter().for_each(|is_told| check(costs, agent, is_told));
        }
    }
}

/// An agent whose host may be slow.
struct Case {
    costs: (f64, f64),
    agent: u32,
    is_told: bool,
}

impl Case {
    /// How many are below it if everything takes longer on its host.
    fn below_slow(&self, factor: f64) -> u64 {
        self.below(self.slow("adaptive", factor, None))
    }

    /// How many are below it if it comes up like the others, and its starts alone take longer.
    fn below_slow_starter(&self, factor: f64) -> u64 {
        let (latency, gap) = self.costs;
        let launch = launch(latency, gap * factor);
        self.below(self.slow("adaptive", 1.0, Some(launch)))
    }

    fn slow(&self, tree: &str, factor: f64, launch: Option<Launch>) -> Session {
        let names = format!("n{}", self.agent - 1);
        let host = HostCosts { names, factor, launch };
        self.session(tree).calibrate(|machines| machines.hosts = vec![host])
    }

    fn session(&self, tree: &str) -> Session {
        let (latency, gap) = self.costs;
        let session = Session::of(N).tree(tree).script(Script::new().wait(RUN));
        let session = session.calibrate(|machines| machines.launch = launch(latency, gap));
        if self.is_told { session.told() } else { session }
    }

    /// How many agents are lost with it when all run.
    fn below(&self, session: Session) -> u64 {
        let agent = AgentId(self.agent);
        let report = session.crash(agent, When::At(RUN / 2)).run();
        let losses = &report.outcome.losses;
        assert_eq!((losses.len(), losses[0].agent), (1, agent), "{losses:?}");
        losses[0].agents.len() - 1
    }
}

/// Longer than it takes until all run, twice.
const RUN: Duration = Duration::from_secs(60);

fn launch(latency_ms: f64, gap_ms: f64) -> Launch {
    let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    Launch::constant(ms(latency_ms), ms(gap_ms))
}
