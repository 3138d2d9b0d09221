//! Real jobs of random sizes: agents and tasks on this machine, whatever their hosts are called.
//!
//! Boundaries in tree code break for one number of hosts and hold for its neighbours; so hosts, tree,
//! window, batch and tasks are drawn at random. Every task exchanges cards with its neighbours and
//! writes lines, and all must come true. A line a run says what was drawn; `CONVOKE_SEED=S` begins
//! with another one. `cargo xtask test n` makes 60 runs, `cargo test` some.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::io::Write;

use sim::Random;
use support::convoke::Convoke;
use support::lines::flooded;
use testkit::{fixture, from_environment};

/// How many runs there are to be.
const RUNS: &str = "CONVOKE_RANDOM_RUNS";

/// So many where nobody asks for more.
const RUNS_FEW: u64 = 8;

const HOSTS_MAX: u64 = 300;

/// Tasks of one run: so many processes are begun in a second or two.
const TASKS_MAX: u64 = 600;

/// Each level of a chain is one start after the other.
const CHAIN_MAX: u64 = 48;

/// What each task does with its client of PMI and the fixture that writes lines.
const TASK: &str = "\"$0\" nbr >/dev/null && exec \"$1\" flood:3:50:line";

#[test]
fn a_job_of_any_size_over_any_tree_is_launched_exchanges_cards_and_leaves_nothing() {
    let first = from_environment("CONVOKE_SEED", 1);
    for seed in first..first + from_environment(RUNS, RUNS_FEW) {
        let drawn = Drawn::new(seed);
        say(&format!("seed {seed}: {}", drawn.words.join(" ")));
        let run = Convoke::new("n").words("--launcher local").args(&drawn.words);
        let run = run.args(["sh", "-c", TASK]).arg(fixture("pmi-client")).arg(fixture("misbehave"));
        let ended = run.run().with_status(0);
        let lines = flooded(&ended.stdout);
        let tasks = u64::try_from(lines.len()).unwrap();
        assert_eq!((tasks, ended.stderr.as_str()), (drawn.tasks, ""), "seed {seed}");
        assert!(lines.values().all(|count| *count == 3), "seed {seed}: {lines:?}");
    }
}

/// What a seed asks of one run.
struct Drawn {
    words: Vec<String>,
    tasks: u64,
}

impl Drawn {
    fn new(seed: u64) -> Drawn {
        let mut random = Random::new(seed, 0);
        let tree = match random.below(8) {
            0 => "flat".to_owned(),
            1 => "chain".to_owned(),
            2 => "binomial".to_owned(),
            3 => "two-level".to_owned(),
            4 => format!("greedy:{},{}", random.between(1, 300), random.between(1, 30)),
            5 | 6 => format!("kary:{}", random.between(1, 40)),
            _ => "adaptive".to_owned(),
        };
        let is_chain = tree == "chain" || tree == "kary:1";
        let hosts = random.between(1, if is_chain { CHAIN_MAX } else { HOSTS_MAX });
        let ppn = random.between(1, (TASKS_MAX / hosts).min(8));
        let mut words = vec![
            format!("--hosts=h[1-{hosts}]"),
            format!("--ppn={ppn}"),
            format!("--tree={tree}"),
            format!("--window={}", random.between(1, 64)),
        ];
        if random.once_in(4) {
            words.push(format!("--batch={}", random.between(1, 16)));
        }
        Drawn { words, tasks: hosts * ppn }
    }
}

fn say(line: &str) {
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
}
