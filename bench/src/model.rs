//! Whether the simulator tells the truth: the same bootstrap, simulated and real.
//!
//! The modelled shell costs what the simulator is told it costs, so what is left to be wrong is all
//! that the simulator leaves out. All hosts are this one machine, and share its processors; what
//! one start takes of them is measured first, at no modelled cost, and is the only number taken
//! from a run.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use model::Tree;
use sim::Calibration;

use crate::jobs::{Job, Shell};
use crate::plan;
use crate::quantity::median;
use crate::report::{Bar, Measured, Report, Row};
use crate::run::Running;
use crate::tools::Tools;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

/// How far simulated and real time may be apart, as a part of the real one.
const APART_MAX: f64 = 0.15;

const TREES: [&str; 8] =
    ["adaptive", "greedy:1028,28", "two-level", "binomial", "kary:2", "kary:8", "kary:32", "flat"];

/// Hosts whose bootstrap tells what one start takes of the processors.
const MEASURED_HOSTS: usize = 64;

/// Adds a row for each tree and size.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    report.head(["simulated", "compared with", "computed"]);
    let per_start = cpu_per_start(tools).context("measure what a start takes")?;
    report.note(format!("One start takes {:.2} ms of a processor.", per_start.as_secs_f64() * 1e3));
    for n in [16, 64, 256] {
        let chain = (n == 16).then_some("chain");
        for tree in TREES.into_iter().chain(chain) {
            let title = format!("n={n}, {tree}: until all have joined");
            if report.settings().wants(&title) {
                compare(tools, report, title, (n, tree), per_start);
            }
        }
    }
    Ok(())
}

fn compare(
    tools: &Tools,
    report: &mut Report,
    title: String,
    (n, tree): (usize, &str),
    per_start: Duration,
) {
    let real = real(tools, n, tree, Shell::modelled())
        .map(Into::into)
        .map_err(|error| format!("{error:#}"));
    report.look();
    report.add(Row {
        title,
        ours: simulated(n, tree, per_start),
        other: Some(("real".to_owned(), real)),
        floor: Some(("arithmetic".to_owned(), arithmetic(n, tree))),
        bar: Bar::Within(APART_MAX),
    });
}

/// What the processors do for one start, spread over all of them.
fn cpu_per_start(tools: &Tools) -> anyhow::Result<Duration> {
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(real(tools, MEASURED_HOSTS, "flat", Shell::default())?.as_secs_f64());
    }
    let all = median(&runs).context("no run")?;
    Ok(Duration::from_secs_f64(all * f64::from(cores()) / MEASURED_HOSTS as f64))
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// When the head of a real session says that all have joined.
fn real(tools: &Tools, n: usize, tree: &str, shell: Shell) -> anyhow::Result<Duration> {
    let job = Job::one_each(n, shell, &["/bin/true"]);
    let mut command = tools.convoke_command(&job, &["--tree", tree, "--stats"])?;
    let mut running = Running::start(&mut command, Stdio::piped(), LIMIT)?;
    running.read_all(|_| {})?;
    let words = running.words();
    running.finish()?;
    join_time(&words).with_context(|| format!("no time of the join in {words:?}"))
}

/// The time in the line `join  2.71 s  …`.
fn join_time(words: &str) -> Option<Duration> {
    let mut line = words.lines().find_map(|line| line.strip_prefix("join "))?.split_whitespace();
    let number: f64 = line.next()?.parse().ok()?;
    let seconds = match line.next()? {
        "s" => number,
        "ms" => number / 1e3,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// When all would have joined on this machine.
fn simulated(n: usize, tree: &str, per_start: Duration) -> Measured {
    let mut calibration = Calibration::modelled_shell();
    calibration.cpu.cores = cores();
    calibration.cpu.is_shared = true;
    calibration.cpu.exec_us = per_start.as_secs_f64() * 1e6;
    plan::simulated(n, tree, calibration)
}

/// What a tree takes by its own arithmetic.
fn arithmetic(n: usize, tree: &str) -> Measured {
    let Shell { latency, gap, .. } = Shell::modelled();
    let tree: Tree = tree.parse().map_err(|error| format!("{error}"))?;
    Ok(engine::tree::completion_time(&tree, n as u64, latency, gap).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_join_is_found_in_the_table_of_phases() {
        let words = "phase           time\njoin          0.14 s        523\nlaunch     1 ms\n";
        assert_eq!(join_time(words), Some(Duration::from_millis(140)));
        assert_eq!(join_time("join  15.5 ms  3"), Some(Duration::from_micros(15_500)));
        assert_eq!(join_time("no table"), None);
    }

    #[test]
    fn the_greedy_tree_is_the_one_for_the_costs_of_the_shell() {
        let Shell { latency, gap, .. } = Shell::modelled();
        let greedy = Tree::Greedy { latency, gap };
        assert!(TREES.iter().any(|tree| tree.parse::<Tree>().unwrap() == greedy));
        let told = Shell::modelled().options("DIR");
        assert_eq!(told, "--latency-ms 1028 --gap-ms 28 --dir DIR");
    }
}
