//! The adaptive tree beside every fixed one, on hosts that are alike and on hosts that are not.
//!
//! Fixed trees are followed by arithmetic, which the simulator is known to agree with
//! (`bootstrap.rs`); the adaptive tree is simulated.

use std::time::Duration;

use engine::tree::{DEFAULT_CHILDREN_MAX, branches, default_tree};
use model::{AgentId, IdSet, Time, Tree};
use sim::{Random, Report, Session, ShellPlan};

/// Latency and gap, in milliseconds.
const COSTS: [(u64, u64); 5] = [(257, 7), (1028, 28), (100, 10), (40, 12), (500, 2)];

const LINK: Duration = Duration::from_millis(1);

/// How hosts differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hosts {
    Alike,
    /// A tenth take five times the latency to come up.
    SlowToComeUp,
    /// A tenth take five times the gap for a start.
    SlowToStart,
    /// One takes 5 s more to come up.
    OneLate,
    /// Both costs have a Pareto distribution of index 2, cut at 10 times the usual.
    HeavyTailed,
}

const HOSTS: [Hosts; 5] = [
    Hosts::Alike,
    Hosts::SlowToComeUp,
    Hosts::SlowToStart,
    Hosts::OneLate,
    Hosts::HeavyTailed,
];

/// Latency to come up and gap of a start of each agent, the head's first.
struct Case {
    usual: (Duration, Duration),
    latencies: Vec<Duration>,
    gaps: Vec<Duration>,
}

impl Case {
    fn new(n: u32, (latency, gap): (u64, u64), hosts: Hosts) -> Case {
        let usual = (Duration::from_millis(latency), Duration::from_millis(gap));
        let all = n as usize + 1;
        let mut case = Case { usual, latencies: vec![usual.0; all], gaps: vec![usual.1; all] };
        let random = &mut Random::new(std::env::var("S").map_or(7, |s| s.parse().unwrap()), u64::from(n));
        for agent in 1..all {
            match hosts {
                Hosts::Alike => {}
                Hosts::SlowToComeUp if random.once_in(10) => case.latencies[agent] *= 5,
                Hosts::SlowToStart if random.once_in(10) => case.gaps[agent] *= 5,
                Hosts::SlowToComeUp | Hosts::SlowToStart => {}
                Hosts::OneLate if agent == all / 2 => {
                    case.latencies[agent] += Duration::from_secs(5);
                }
                Hosts::OneLate => {}
                Hosts::HeavyTailed => {
                    case.latencies[agent] = usual.0.mul_f64(pareto(random));
                    case.gaps[agent] = usual.1.mul_f64(pareto(random));
                }
            }
        }
        case
    }

    fn n(&self) -> u32 {
        self.latencies.len() as u32 - 1
    }

    /// When the last agent of a fixed tree is welcomed.
    fn fixed(&self, tree: Tree) -> Duration {
        let mut last = Duration::ZERO;
        let mut pending = vec![(AgentId::HEAD, tree, IdSet::range(1, self.n()), Duration::ZERO)];
        while let Some((parent, tree, below, up)) = pending.pop() {
            let mut free = up;
            for branch in branches(&tree, &below) {
                free += self.gaps[parent.0 as usize];
                let up = free + self.latencies[branch.child.0 as usize] + 3 * LINK;
                last = last.max(up);
                pending.push((branch.child, branch.tree, branch.below, up));
            }
        }
        last
    }

    /// The fixed tree that is complete first, of those that keep to the default's degree.
    fn best_fixed(&self) -> (Tree, Duration) {
        let (latency, gap) = self.usual;
        let n = u64::from(self.n());
        let mut trees: Vec<Tree> = (2..=64).map(Tree::Kary).collect();
        trees.extend([Tree::Binomial, Tree::TwoLevel, default_tree(n, latency, gap)]);
        trees.push(default_tree(n, latency + 3 * LINK, gap));
        if n <= DEFAULT_CHILDREN_MAX {
            trees.push(Tree::Flat);
            trees.push(Tree::Greedy { latency, gap });
        }
        if n <= 16 {
            trees.push(Tree::Chain);
        }
        let timed = trees.into_iter().map(|tree| (tree, self.fixed(tree)));
        timed.min_by_key(|&(_, time)| time).unwrap()
    }

    fn session(&self) -> Session {
        let (_, gap) = self.usual;
        let session = Session::of(self.n()).tree("adaptive").costs(|costs| {
            (costs.latency, costs.gap, costs.link) = (Duration::ZERO, gap, LINK);
        });
        (1..=self.n()).map(AgentId).fold(session, |session, agent| {
            let own = self.latencies[agent.0 as usize];
            let session = session.shell(agent, &[ShellPlan::Slow(own)]);
            session.gap(agent, self.gaps[agent.0 as usize])
        })
    }
}

fn pareto(random: &mut Random) -> f64 {
    let uniform = (random.below(1_000_000) + 1) as f64 / 1_000_000.0;
    (0.5 / uniform.sqrt()).min(10.0)
}

fn time_of(report: &Report) -> Duration {
    report.welcomed_at.unwrap().since(Time::ZERO)
}

#[test]
#[ignore = "prints the table of docs/trees.md"]
fn table() {
    println!("| hosts | L, G | n | best fixed | s | adaptive | ratio | untold | ratio | MoreWork | Work |");
    for hosts in HOSTS.into_iter().filter(|h| std::env::var("H").map_or(true, |v| v == format!("{h:?}"))) {
        for costs in COSTS {
            for n in [16, 64, 256, 1_000] {
                let case = Case::new(n, costs, hosts);
                let (tree, best) = case.best_fixed();
                let told = case.session().run();
                let blind = case.session().blind().run();
                let ratio = |report: &Report| time_of(report).as_secs_f64() / best.as_secs_f64();
                let default = case.fixed(default_tree(u64::from(n), Tree::ASSUMED_LATENCY, Tree::ASSUMED_GAP));
                print!("{:.2} ", default.as_secs_f64() / best.as_secs_f64());
                println!(
                    "| {hosts:?} | {costs:?} | {n} | {tree} | {:.3} | {:.3} | {:.2}{} | {:.3} | {:.2}{} | {} | {} |",
                    best.as_secs_f64(),
                    time_of(&told).as_secs_f64(),
                    ratio(&told),
                    if ratio(&told) > 1.1 { " !!" } else { "" },
                    time_of(&blind).as_secs_f64(),
                    ratio(&blind),
                    if ratio(&blind) > 1.1 { " !" } else { "" },
                    told.sent("MoreWork"),
                    told.sent("Work"),
                );
            }
        }
    }
}
