//! What one way to bring up a session would take, simulated or computed from a smaller one.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use engine::tree;
use model::{AgentId, IdSet, Time, Tree};
use observe::{Span, Timeline};
use sim::{Calibration, Cpu, Report};

use crate::memory::{self, Load, Memory};
use crate::simulate;

/// One way to bring up a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) tree: Tree,
    pub(crate) nodes: u32,
    pub(crate) tasks_per_node: u32,
    /// Starts that one parent has in flight at most.
    pub(crate) window: u32,
    /// Leaves that one parent starts before it waits for all of them.
    pub(crate) batch: Option<u32>,
    /// Agents that one command starts at most.
    pub(crate) bulk_max: u32,
}

/// It does not come up whole.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) case: Case,
    /// Why, in the words of a run.
    pub(crate) words: String,
}

/// What it would take.
#[derive(Clone, Debug)]
pub(crate) struct Prediction {
    pub(crate) case: Case,
    /// When the last agent has joined.
    pub(crate) joined: Duration,
    /// The most links of one process.
    pub(crate) links_max: usize,
    /// Messages of the whole session. Absent where nothing is simulated.
    pub(crate) messages: Option<u64>,
    /// The most starts that one parent had in flight; by arithmetic, those that it may have.
    pub(crate) starts_max: usize,
    /// Commands that start agents.
    pub(crate) commands: u32,
    /// What was simulated, where this was computed.
    pub(crate) basis: Option<Box<Prediction>>,
    shape: Shape,
}

/// How many children there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Shape {
    of_head: usize,
    of_agent_max: usize,
}

impl Prediction {
    /// Runs the session with each seed, and takes the run whose time is in the middle. Runs in which
    /// not all agents come up are the last.
    pub(crate) fn simulated(
        case: Case,
        calibration: &Calibration,
        seeds: RangeInclusive<u64>,
    ) -> Result<Prediction, Failed> {
        let simulated = |seed| Prediction::with_seed(case, calibration, seed);
        let mut all: Vec<Result<Prediction, String>> = seeds.map(simulated).collect();
        all.sort_by_key(|run| run.as_ref().map_or(Duration::MAX, |prediction| prediction.joined));
        let middle = all.len() / 2;
        all.swap_remove(middle).map_err(|words| Failed { case, words })
    }

    fn with_seed(case: Case, calibration: &Calibration, seed: u64) -> Result<Prediction, String> {
        let session = simulate::session(case.nodes, &case.tree, case.tasks_per_node, calibration);
        let session = session.seed(seed).spec(|spec| {
            (spec.window, spec.batch) = (case.window, case.batch);
            (spec.bulk_max, spec.marks) = (case.bulk_max, true);
        });
        let report = session.try_run().map_err(|failure| failure.to_string())?;
        let joined = simulate::joined(&report).ok_or_else(|| first_failure(&report, case.nodes))?;
        let Timeline { spans, .. } = simulate::timeline_of(&report);
        // A run without a timeline sends no marks.
        let messages: u64 = report.messages.values().sum();
        Ok(Prediction {
            case,
            joined,
            links_max: report.links_max,
            messages: Some(messages - report.sent("Marks")),
            starts_max: starts_max(&spans),
            commands: report.shells,
            basis: None,
            shape: Shape::seen(&spans),
        })
    }

    /// Computes what more nodes take: the simulated time, as many times longer as by the arithmetic
    /// of either size, and never shorter. So what arithmetic leaves out, such as latencies that
    /// vary, counts as much as it does there.
    pub(crate) fn with_more(self, nodes: u32, calibration: &Calibration) -> Prediction {
        let few = Prediction::by_arithmetic(self.case, calibration).joined.as_secs_f64();
        let many = Prediction::by_arithmetic(Case { nodes, ..self.case }, calibration);
        let times = if few > 0.0 { self.joined.as_secs_f64() / few } else { 1.0 };
        let joined = Duration::try_from_secs_f64(many.joined.as_secs_f64() * times);
        let joined = joined.unwrap_or(Duration::MAX).max(self.joined);
        Prediction { joined, basis: Some(Box::new(self)), ..many }
    }

    /// Computes the time from the medians of latency and gap. An adaptive tree is taken to be as good
    /// as the best planned one.
    fn by_arithmetic(case: Case, calibration: &Calibration) -> Prediction {
        let (latency, gap) = (latency(calibration), calibration.launch.gap());
        let n = u64::from(case.nodes);
        let planned = match case.tree {
            Tree::Adaptive { .. } => tree::default_tree(n, latency, gap),
            Tree::Flat
            | Tree::Chain
            | Tree::Kary(_)
            | Tree::Binomial
            | Tree::TwoLevel
            | Tree::Greedy { .. }
            | Tree::Routed(_)
            | Tree::Scela { .. } => case.tree,
        };
        let shape = Shape::planned(&planned, case.nodes);
        let window = usize::try_from(case.window).unwrap_or(usize::MAX);
        // Whoever has more children than that waits for some before it starts others.
        let is_bound = shape.of_head > window;
        let gap = if is_bound { gap.max((latency + gap) / case.window) } else { gap };
        Prediction {
            case,
            joined: tree::completion_time(&planned, n, latency, gap),
            links_max: shape.of_head.max(shape.of_agent_max + 1),
            messages: None,
            starts_max: shape.of_head.max(shape.of_agent_max).min(window),
            commands: case.nodes,
            basis: None,
            shape,
        }
    }

    /// Whether it was simulated, and not computed.
    pub(crate) fn is_simulated(&self) -> bool {
        self.basis.is_none()
    }

    /// What its processes hold at most, without cards.
    pub(crate) fn memory(&self) -> Memory {
        let load = Load {
            nodes: u64::from(self.case.nodes),
            head_children: self.shape.of_head as u64,
            agent_children: self.shape.of_agent_max as u64,
            agent_names: memory::agent_names(&self.case.tree, self.case.nodes),
        };
        load.memory()
    }
}

/// The first failure and its cause, in the words of a run.
fn first_failure(report: &Report, nodes: u32) -> String {
    let words = simulate::failed_starts(report, &simulate::names(nodes));
    let first: Vec<&str> = words.lines().take(2).map(str::trim).collect();
    first.join(": ").trim_start_matches("error: ").to_owned()
}

impl Shape {
    fn seen(spans: &BTreeMap<AgentId, Span>) -> Shape {
        let mut children: BTreeMap<AgentId, usize> = BTreeMap::new();
        for parent in spans.values().filter_map(|span| span.parent) {
            *children.entry(parent).or_default() += 1;
        }
        let of_head = children.remove(&AgentId::HEAD).unwrap_or_default();
        Shape { of_head, of_agent_max: children.into_values().max().unwrap_or_default() }
    }

    /// Looks at the head's children alone: nobody below has more than they have.
    fn planned(tree: &Tree, n: u32) -> Shape {
        let branches = tree::branches(tree, &IdSet::range(1, n));
        let of_child = branches.iter().map(|it| tree::branches(&it.tree, &it.below).len());
        Shape { of_head: branches.len(), of_agent_max: of_child.max().unwrap_or_default() }
    }
}

/// From a start, its gap past, until the agent can start others: L, and what comes on top of it.
fn latency(calibration: &Calibration) -> Duration {
    const WAYS: f64 = 3.0; // of call, hello and welcome
    const MESSAGES: f64 = 2.0; // hello and welcome
    const ENDS: f64 = 2.0;
    let Cpu { spawn_us, exec_us, parse_us, handshake_us, message_us, .. } = calibration.cpu;
    let links_us = WAYS * calibration.link.latency_us.median();
    let ends_us = ENDS * (handshake_us + MESSAGES * message_us);
    let added_us = spawn_us + exec_us + parse_us + ends_us + links_us;
    calibration.launch.latency() + Duration::from_secs_f64(added_us / 1e6)
}

/// The most starts that one parent had in flight.
fn starts_max(spans: &BTreeMap<AgentId, Span>) -> usize {
    let mut turns: BTreeMap<AgentId, Vec<(Time, isize)>> = BTreeMap::new();
    for span in spans.values() {
        if let (Some(parent), Some(started)) = (span.parent, span.started.last())
            && let Some(welcomed) = span.welcomed
        {
            turns.entry(parent).or_default().extend([(*started, 1), (welcomed, -1)]);
        }
    }
    // An end comes before a beginning at the same time, which it makes room for.
    let most = turns.into_values().map(|mut turns| {
        turns.sort_unstable();
        let in_flight = turns.iter().scan(0, |sum, (_, change)| {
            *sum += change;
            Some(*sum)
        });
        in_flight.max().unwrap_or_default()
    });
    usize::try_from(most.max().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use sim::{Distribution, Launch, Session};

    use super::*;

    fn case(tree: Tree) -> Case {
        Case { tree, nodes: 50, tasks_per_node: 1, window: 8, batch: None, bulk_max: 1 }
    }

    fn simulated(case: Case, calibration: &Calibration) -> Result<Prediction, Failed> {
        Prediction::simulated(case, calibration, 0..=0)
    }

    #[test]
    fn arithmetic_and_simulation_see_the_same_tree() {
        let calibration = Calibration::default();
        for tree in [Tree::Flat, Tree::Kary(4), Tree::Binomial, Tree::TwoLevel, Tree::greedy()] {
            let simulated = simulated(case(tree), &calibration).unwrap();
            let computed = Prediction::by_arithmetic(case(tree), &calibration);
            assert_eq!(simulated.shape, computed.shape, "{tree}");
            assert_eq!(simulated.links_max, computed.links_max, "{tree}");
            assert_eq!(simulated.memory(), computed.memory(), "{tree}");
        }
    }

    #[test]
    fn arithmetic_is_the_simulated_time_where_nothing_queues() {
        let mut calibration =
            Calibration::constant(Duration::from_millis(20), Duration::from_millis(5));
        calibration.cpu = Cpu {
            cores: 8,
            is_shared: false,
            parse_us: 700.0,
            spawn_us: 400.0,
            exec_us: 900.0,
            handshake_us: 600.0,
            message_us: 150.0,
        };
        // Levels over which the last agent's word that it has joined climbs to the head.
        for (tree, levels) in [(Tree::Chain, 50), (Tree::Kary(2), 5)] {
            let simulated = simulated(case(tree), &calibration).unwrap().joined;
            let climb = levels * Duration::from_micros(100 + 2 * 150);
            let computed = Prediction::by_arithmetic(case(tree), &calibration).joined;
            let quotient = computed.as_secs_f64() / (simulated - climb).as_secs_f64();
            assert!((quotient - 1.0).abs() < 0.01, "{tree}: {computed:?}, simulated {simulated:?}");
        }
    }

    #[test]
    fn more_nodes_take_no_less_than_those_that_were_simulated_and_the_spread_of_costs_counts() {
        let spreads = [
            Distribution::LogNormal { median: 257.0, sigma: 1.0 },
            Distribution::HeavyTail { min: 200.0, scale: 100.0, shape: 1.5 },
        ];
        for latency_ms in spreads {
            let mut calibration = Calibration::default();
            let gap_ms = Distribution::constant(7.0);
            calibration.launch = Launch::LatencyAndGap { latency_ms, gap_ms };
            for tree in [Tree::adaptive(), Tree::Kary(2), Tree::Kary(32), Tree::TwoLevel] {
                let case = Case { nodes: 500, window: 64, ..case(tree) };
                let basis = simulated(case, &calibration).unwrap();
                let more = |nodes| basis.clone().with_more(nodes, &calibration).joined;
                let times = [basis.joined, more(501), more(1_000), more(20_000), more(1_000_000)];
                assert!(times.is_sorted() && times[0] < times[4], "{tree}: {times:?}");
                let medians =
                    Prediction::by_arithmetic(Case { nodes: 1_000, ..case }, &calibration);
                assert!(medians.joined < times[0], "{tree}: {times:?}, {medians:?}");
            }
        }
    }

    #[test]
    fn no_parent_has_more_starts_in_flight_than_its_window() {
        let prediction = simulated(case(Tree::Flat), &Calibration::default()).unwrap();
        assert_eq!((prediction.starts_max, prediction.commands), (8, 50));
    }

    #[test]
    fn an_adaptive_tree_is_that_of_agents_who_are_not_told_when_a_host_is_free() {
        let case = Case { tree: Tree::adaptive(), nodes: 64, window: 4, ..case(Tree::Flat) };
        let calibration = Calibration::default();
        let prediction = simulated(case, &calibration).unwrap();
        let session = Session::of(64).tree("adaptive").calibration(calibration);
        let session = session.spec(|spec| spec.window = 4);
        let joined = |session: Session| simulate::joined(&session.run()).unwrap();
        assert_eq!(prediction.joined, joined(session.clone()));
        assert_ne!(prediction.joined, joined(session.told()));
    }

    #[test]
    fn all_of_a_bulk_start_are_one_command() {
        let bulk = Case { bulk_max: u32::MAX, ..case(Tree::Flat) };
        let prediction = simulated(bulk, &Calibration::default()).unwrap();
        assert_eq!(prediction.commands, 1);
    }

    #[test]
    fn a_strict_batch_bounds_starts_in_flight_and_waits_longer_than_a_window() {
        let calibration = Calibration::default();
        let window = simulated(case(Tree::Flat), &calibration).unwrap();
        let sets = Case { window: 1_000, batch: Some(8), ..case(Tree::Flat) };
        let sets = simulated(sets, &calibration).unwrap();
        assert_eq!(sets.starts_max, 8);
        assert!(sets.joined > window.joined, "{:?}, {:?}", sets.joined, window.joined);
    }

    #[test]
    fn marks_are_not_counted_among_the_messages() {
        let prediction = simulated(case(Tree::Flat), &Calibration::default()).unwrap();
        let plain = Session::of(50).tree("flat").spec(|spec| spec.window = 8).run();
        assert_eq!(prediction.messages, Some(plain.messages.values().sum()));
    }
}
