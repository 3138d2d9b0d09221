//! `convoke plan`: which spawn tree and window for so many nodes, and what they would take.
//!
//! Up to [`SIMULATED_MAX`] nodes each tree is simulated, with all that the calibration says of hosts
//! and links. Beyond, planned trees are predicted by their arithmetic from the medians of latency and
//! gap, and the table says so. Windows, strict batches and bulk starts have no arithmetic: beyond, the
//! first two are simulated with [`WINDOWS_COMPARED`], and bulk starts always with at most
//! [`BULKS_COMPARED_MAX`]. Windows and strict batches are compared for the recommended tree; each size
//! of a bulk start has a best tree of its own, since a command that starts many agents makes wide
//! trees cheap.

use std::fmt::Write;
use std::time::Duration;

use model::Tree;
use observe::seconds;
use sim::Calibration;

use crate::args::{PlanArgs, WINDOW};
use crate::memory;
use crate::output_file::OutputFile;
use crate::prediction::{Case, Prediction};
use crate::simulate::{self, SimError};
use crate::{curve, streams};

/// The most nodes that a tree is simulated for: some seconds each.
const SIMULATED_MAX: u32 = 16_384;

/// The same for `flat`, where everything is one process's and time is quadratic.
const FLAT_SIMULATED_MAX: u32 = 4_096;

/// Nodes that windows and strict batches are compared with where not all are simulated.
const WINDOWS_COMPARED: u32 = 4_096;

/// The most nodes that bulk starts are compared with: each size with every tree.
const BULKS_COMPARED_MAX: u32 = 2_048;

/// A tree whose agents have more links than this meets limits of processes and descriptors.
const LINKS_MAX: usize = 65;

/// Sizes of the curve: this many, each twice the one before.
const CURVE_POINTS: u32 = 8;

/// Windows that are compared; the last is none.
const WINDOWS: [u32; 5] = [1, 4, 16, WINDOW, u32::MAX];

/// A window may cost so much of the time that is possible, as it spares hosts and `sshd`.
const WINDOW_COSTS_MAX: f64 = 1.05;

/// Sizes of strict batches that are compared (S1-35 has all but the last); the last is no batches.
const BATCHES: [Option<u32>; 5] = [Some(2), Some(4), Some(8), Some(16), None];

/// Agents that one command starts; the last is all of a parent's.
const BULKS: [u32; 4] = [1, 8, 64, u32::MAX];

/// Compares trees, windows, strict batches and bulk starts, and recommends a command line.
pub(crate) fn plan(args: &PlanArgs) -> u8 {
    match try_plan(args) {
        Ok(code) => code,
        Err(error) => simulate::refuse(&error),
    }
}

/// Prints each part when it is known: all of it takes a quarter of a minute for 16,384 nodes.
fn try_plan(args: &PlanArgs) -> Result<u8, SimError> {
    simulate::check_tasks(args.nodes, args.tasks_per_node)?;
    let simulated = args.nodes.min(SIMULATED_MAX);
    simulate::check_memory(simulated, args.tasks_per_node, memory::free())?;
    let calibration = simulate::calibration(args.calibration.as_deref())?;
    let svg = args.svg.as_deref().map(OutputFile::create).transpose()?;
    let (trees, failures) = compare(args, &calibration);
    if trees.is_empty() {
        let words = failures.into_iter().next().map(|(_, words)| words);
        return Err(SimError::NoneComesUp(words.unwrap_or_default()));
    }
    let mut code = streams::print(&(tree_table(&trees, args) + &failure_lines(&failures)));
    if let Some(best) = recommended(&trees) {
        let tree = best.case.tree;
        let windows = windows(best, args, &calibration);
        let window = smallest(&windows).unwrap_or(WINDOW);
        code = code.max(streams::print(&window_table(&windows, tree)));
        code = code.max(streams::print(&batch_table(&batches(best, args, &calibration), tree)));
        let mut text = bulk_table(&bulks(window, args, &calibration), window);
        let joined = time_with(window, &windows, best);
        text += &recommendation(tree, window, joined, args);
        text += &sooner(best, &trees);
        let points = points(best, args, &calibration);
        text += &curve::text(&points);
        code = code.max(streams::print(&text));
        if let Some(file) = svg {
            file.write(&curve::svg(&points, &tree.to_string()))?;
        }
    }
    Ok(code)
}

/// All trees that can be named without a number, k-ary ones, and the greedy one for these costs.
fn candidates(calibration: &Calibration) -> Vec<Tree> {
    // In whole microseconds, so that its name can be read, and no more than that takes.
    let rounded = |time: Duration| {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(us).min(Tree::COST_MAX)
    };
    let (latency, gap) = (rounded(calibration.launch.latency()), rounded(calibration.launch.gap()));
    let kary = [2, 4, 8, 16, 32, 64].map(Tree::Kary);
    let mut trees = vec![Tree::adaptive(), Tree::Greedy { latency, gap }];
    trees.extend(kary);
    trees.extend([Tree::Binomial, Tree::TwoLevel, Tree::Flat]);
    trees
}

/// The soonest first; and the trees that do not come up whole, with the reason.
fn compare(args: &PlanArgs, calibration: &Calibration) -> (Vec<Prediction>, Vec<(Tree, String)>) {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for tree in candidates(calibration) {
        match predict(tree, args.nodes, args, calibration) {
            Ok(prediction) => all.push(prediction),
            Err(words) => failures.push((tree, words)),
        }
    }
    all.sort_by_key(|prediction| prediction.joined);
    (all, failures)
}

fn failure_lines(failures: &[(Tree, String)]) -> String {
    failures
        .iter()
        .map(|(tree, words)| format!("{tree} does not come up whole: {words}\n"))
        .collect()
}

fn predict(
    tree: Tree,
    nodes: u32,
    args: &PlanArgs,
    calibration: &Calibration,
) -> Result<Prediction, String> {
    let tasks_per_node = args.tasks_per_node;
    let case = Case { tree, nodes, tasks_per_node, window: WINDOW, batch: None, bulk_max: 1 };
    let simulated_max = if tree == Tree::Flat { FLAT_SIMULATED_MAX } else { SIMULATED_MAX };
    if nodes > simulated_max {
        return Ok(Prediction::by_arithmetic(case, calibration));
    }
    Prediction::simulated(case, calibration)
}

/// The soonest whose processes have no more links than is well.
fn recommended(predictions: &[Prediction]) -> Option<&Prediction> {
    let moderate = predictions.iter().find(|prediction| prediction.links_max <= LINKS_MAX);
    moderate.or(predictions.first())
}

/// Of the tree of `best`, which is one of them where all nodes are simulated; the smallest first.
fn windows(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<Prediction> {
    let nodes = nodes_compared(args);
    let cases = WINDOWS.into_iter().map(|window| Case { nodes, window, ..best.case });
    like(best, cases, calibration)
}

/// The same for strict batches.
fn batches(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<Prediction> {
    let nodes = nodes_compared(args);
    let cases = BATCHES.into_iter().map(|batch| Case { nodes, batch, ..best.case });
    like(best, cases, calibration)
}

/// All nodes where they are simulated anyway, since this decides what is recommended.
fn nodes_compared(args: &PlanArgs) -> u32 {
    if args.nodes > SIMULATED_MAX { WINDOWS_COMPARED } else { args.nodes }
}

/// Simulates what `best` is not.
fn like(
    best: &Prediction,
    cases: impl Iterator<Item = Case>,
    calibration: &Calibration,
) -> Vec<Prediction> {
    let is_known = |case: &Case| *case == best.case && best.is_simulated();
    cases
        .filter_map(|case| match is_known(&case) {
            true => Some(best.clone()),
            false => Prediction::simulated(case, calibration).ok(),
        })
        .collect()
}

/// For each size of a bulk start what would be recommended.
fn bulks(window: u32, args: &PlanArgs, calibration: &Calibration) -> Vec<Prediction> {
    BULKS
        .into_iter()
        .filter_map(|bulk_max| best_of_bulk(bulk_max, window, args, calibration))
        .collect()
}

fn best_of_bulk(
    bulk_max: u32,
    window: u32,
    args: &PlanArgs,
    calibration: &Calibration,
) -> Option<Prediction> {
    let is_narrow = |prediction: &Prediction| prediction.links_max <= LINKS_MAX;
    let trees = candidates(calibration).into_iter().filter(|&tree| {
        // It is not recommended for so many, and takes the longest to simulate.
        tree != Tree::Flat || args.nodes as usize <= LINKS_MAX
    });
    let nodes = args.nodes.min(BULKS_COMPARED_MAX);
    let tasks_per_node = args.tasks_per_node;
    let batch = None;
    let cases = trees.map(|tree| Case { tree, nodes, tasks_per_node, window, batch, bulk_max });
    let all: Vec<Prediction> =
        cases.filter_map(|case| Prediction::simulated(case, calibration).ok()).collect();
    all.into_iter().filter(is_narrow).min_by_key(|prediction| prediction.joined)
}

/// The smallest window that costs next to no time.
fn smallest(windows: &[Prediction]) -> Option<u32> {
    let soonest = windows.iter().map(|prediction| prediction.joined).min()?;
    let time_max = soonest.mul_f64(WINDOW_COSTS_MAX);
    let good = windows.iter().filter(|prediction| prediction.joined < time_max);
    good.map(|prediction| prediction.case.window).min()
}

/// What the recommended tree takes with the recommended window, where that was simulated.
fn time_with(window: u32, windows: &[Prediction], best: &Prediction) -> Duration {
    let of_all = windows.iter().filter(|prediction| prediction.case.nodes == best.case.nodes);
    let mut with_window = of_all.filter(|prediction| prediction.case.window == window);
    with_window.next().map_or(best.joined, |prediction| prediction.joined)
}

fn tree_table(predictions: &[Prediction], args: &PlanArgs) -> String {
    let names: Vec<String> =
        predictions.iter().map(|prediction| prediction.case.tree.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut text = format!(
        "{:<width$} {:>9} {:>6} {:>9} {:>8} {:>8}\n",
        "tree", "all up", "links", "messages", "head", "agent"
    );
    for (name, prediction) in names.iter().zip(predictions) {
        let Prediction { joined, links_max, messages, .. } = prediction;
        let messages = messages.map_or("-".to_owned(), |count| count.to_string());
        let (joined, memory) = (seconds(*joined), prediction.memory());
        let [head, agent] = [memory.head, memory.agent].map(memory::shown);
        let _ = writeln!(
            text,
            "{name:<width$} {joined:>9} {links_max:>6} {messages:>9} {head:>8} {agent:>8}"
        );
    }
    let tasks = u64::from(args.nodes) * u64::from(args.tasks_per_node);
    let cards = memory::shown(memory::of_cards(tasks));
    text += "links: the most of one process; head, agent: memory of the head, and of the largest agent\n";
    let _ =
        writeln!(text, "an MPI job of {tasks} tasks takes {cards} more in each of these processes");
    text
}

fn window_table(windows: &[Prediction], tree: Tree) -> String {
    let nodes = windows.first().map_or(0, |prediction| prediction.case.nodes);
    let mut text = format!("\nwindows of {tree}, simulated with {nodes} nodes\n");
    let _ = writeln!(text, "{:<9} {:>9} {:>16}", "window", "all up", "starts in flight");
    for Prediction { case, joined, starts_max, .. } in windows {
        let (window, joined) = (bound(case.window, "unlimited"), seconds(*joined));
        let _ = writeln!(text, "{window:<9} {joined:>9} {starts_max:>16}");
    }
    text
}

fn batch_table(batches: &[Prediction], tree: Tree) -> String {
    let nodes = batches.first().map_or(0, |prediction| prediction.case.nodes);
    let mut text = format!("\nstrict batches of {tree}, simulated with {nodes} nodes\n");
    let _ = writeln!(text, "{:<9} {:>9} {:>16}", "batch", "all up", "starts in flight");
    for Prediction { case, joined, starts_max, .. } in batches {
        let batch = case.batch.map_or("none".to_owned(), |batch| batch.to_string());
        let joined = seconds(*joined);
        let _ = writeln!(text, "{batch:<9} {joined:>9} {starts_max:>16}");
    }
    text
}

fn bulk_table(bulks: &[Prediction], window: u32) -> String {
    let nodes = bulks.first().map_or(0, |prediction| prediction.case.nodes);
    let window = bound(window, "unlimited");
    let mut text = String::from("\nagents that one command starts, each with its best tree; ");
    let _ = writeln!(text, "simulated with {nodes} nodes, window {window}");
    let _ = writeln!(text, "{:<9} {:>9} {:>16}  tree", "agents", "all up", "commands");
    for Prediction { case, joined, commands, .. } in bulks {
        let (bulk_max, joined) = (bound(case.bulk_max, "all"), seconds(*joined));
        let _ = writeln!(text, "{bulk_max:<9} {joined:>9} {commands:>16}  {}", case.tree);
    }
    text += "more than one needs a launcher whose command takes a list of hosts (`--launcher local-bulk`\n\
             is one, for tests on this machine); ssh and `--shell` start one agent with each\n";
    text
}

fn bound(value: u32, none: &str) -> String {
    if value == u32::MAX { none.to_owned() } else { value.to_string() }
}

fn recommendation(tree: Tree, window: u32, joined: Duration, args: &PlanArgs) -> String {
    let how = if args.nodes > SIMULATED_MAX { "by arithmetic" } else { "simulated" };
    let ppn = match args.tasks_per_node {
        1 => String::new(),
        tasks => format!(" --ppn {tasks}"),
    };
    format!(
        "\nrecommended for {} nodes ({}, {how}):\n  \
         convoke run --hostfile HOSTS{ppn} --tree {tree} --window {window} PROGRAM\n",
        args.nodes,
        seconds(joined)
    )
}

/// What was not recommended for its many links, though it is the soonest.
fn sooner(best: &Prediction, all: &[Prediction]) -> String {
    let first = all.first().filter(|first| first.case.tree != best.case.tree);
    first.map_or(String::new(), |first| {
        format!(
            "{} would be up after {}, but with {} links in one process\n",
            first.case.tree,
            seconds(first.joined),
            first.links_max
        )
    })
}

/// Time against the number of nodes, up to as many as are asked for.
fn points(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<(u32, Duration)> {
    let sizes = (1..CURVE_POINTS).rev().map(|halvings| args.nodes >> halvings);
    sizes
        .filter(|&n| n > 0)
        .filter_map(|n| Some((n, predict(best.case.tree, n, args, calibration).ok()?.joined)))
        .chain([(args.nodes, best.joined)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: PlanArgs = PlanArgs { nodes: 64, tasks_per_node: 2, calibration: None, svg: None };

    fn windows_of(tree: Tree) -> Vec<Prediction> {
        let calibration = Calibration::default();
        windows(&predict(tree, ARGS.nodes, &ARGS, &calibration).unwrap(), &ARGS, &calibration)
    }

    #[test]
    fn the_smallest_window_that_costs_less_than_five_percent_is_recommended() {
        // Of a flat tree, 16 starts at once are worth it: 257 ms take 37 gaps of 7 ms.
        let windows = windows_of(Tree::Flat);
        assert_eq!(windows.len(), WINDOWS.len());
        assert!(windows.is_sorted_by(|one, next| one.joined >= next.joined));
        assert_eq!(smallest(&windows), Some(64));
        // Whoever has two children needs room for two starts.
        let windows = windows_of(Tree::Kary(2));
        assert_eq!(smallest(&windows), Some(4));
    }

    #[test]
    fn the_smaller_a_strict_batch_the_later_all_are_up_and_none_is_the_soonest() {
        let calibration = Calibration::default();
        let best = predict(Tree::Flat, ARGS.nodes, &ARGS, &calibration).unwrap();
        let batches = batches(&best, &ARGS, &calibration);
        let flights: Vec<usize> = batches.iter().map(|batch| batch.starts_max).collect();
        assert_eq!(flights, [2, 4, 8, 16, best.starts_max]);
        assert!(batches.is_sorted_by(|one, next| one.joined > next.joined));
    }

    #[test]
    fn the_command_line_that_is_recommended_is_one() {
        let text = recommendation(Tree::Kary(2), 4, Duration::from_secs(1), &ARGS);
        let line = text.lines().find(|line| line.contains("convoke run")).unwrap();
        let words = "convoke run --hostfile HOSTS --ppn 2 --tree kary:2 --window 4 PROGRAM";
        assert_eq!(line.trim(), words);
        assert!(<crate::args::Cli as clap::Parser>::try_parse_from(words.split(' ')).is_ok());
    }
}
