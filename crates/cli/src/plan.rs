//! `convoke plan`: which spawn tree and window for so many nodes, and what they would take.
//!
//! Up to [`SIMULATED_MAX`] nodes each tree is simulated, with all that the calibration says of hosts
//! and links. Beyond, its time is computed from the one simulated with so many, and table and curve
//! say so. Windows, strict batches and bulk starts have no arithmetic: beyond, the first two are
//! simulated with [`WINDOWS_COMPARED`], and bulk starts always with at most [`BULKS_COMPARED_MAX`].
//! Windows and strict batches are compared for the recommended tree; each size of a bulk start has a
//! best tree of its own, since a command that starts many agents makes wide trees cheap.

use std::fmt::Write;
use std::iter;
use std::ops::RangeInclusive;
use std::time::Duration;

use model::Tree;
use observe::seconds;
use sim::Calibration;

use crate::args::{PlanArgs, WINDOW};
use crate::curve::Point;
use crate::memory;
use crate::output_file::OutputFile;
use crate::prediction::{Case, Failed, Prediction};
use crate::simulate::{self, SimError};
use crate::{curve, streams};

/// The most nodes that a tree is simulated for: some seconds each.
const SIMULATED_MAX: u32 = 16_384;

/// Nodes that windows and strict batches are compared with where not all are simulated.
const WINDOWS_COMPARED: u32 = 4_096;

/// The most nodes that bulk starts are compared with: each size with every tree.
const BULKS_COMPARED_MAX: u32 = 2_048;

/// A tree whose agents have more links than this meets limits of processes and descriptors.
const LINKS_MAX: usize = 65;

/// Sizes of the curve.
const CURVE_POINTS: usize = 8;

/// Windows that are compared; the last is none.
const WINDOWS: [u32; 5] = [1, 4, 16, WINDOW, u32::MAX];

/// A window may cost so much of the time that is possible, as it spares hosts and `sshd`.
const WINDOW_COSTS_MAX: f64 = 1.05;

/// Sizes of strict batches that are compared (S1-35 has all but the last); the last is no batches.
const BATCHES: [Option<u32>; 5] = [Some(2), Some(4), Some(8), Some(16), None];

/// Agents that one command starts; the last is all of a parent's.
const BULKS: [u32; 4] = [1, 8, 64, u32::MAX];

/// Where costs vary: up to so many nodes, so many seeds; the time in the middle counts. With more
/// nodes it is one seed, as where nothing varies.
const SEEDS: [(u32, u64); 2] = [(1_024, 5), (2_048, 3)];

/// What one row of a table takes, or why it does not come up.
type Row = Result<Prediction, Failed>;

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
        let words = failures.into_iter().next().map(|failed| failed.words);
        return Err(SimError::NoneComesUp(words.unwrap_or_default()));
    }
    let mut text = tree_table(&trees, args) + &failure_lines(&failures);
    text += &drawn(args, &calibration);
    let mut code = streams::print(&text);
    if let Some(best) = recommended(&trees) {
        let tree = best.case.tree;
        let windows = windows(best, args, &calibration);
        let window = smallest(&windows).unwrap_or(WINDOW);
        code = code.max(streams::print(&window_table(&windows, tree)));
        code = code.max(streams::print(&batch_table(&batches(best, args, &calibration), tree)));
        let mut text = bulk_table(&bulks(window, args, &calibration), window);
        let joined = time_with(window, &windows, best);
        text += &recommendation(best, window, joined, args);
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

/// The soonest first; and the trees that do not come up whole.
fn compare(args: &PlanArgs, calibration: &Calibration) -> (Vec<Prediction>, Vec<Failed>) {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for tree in candidates(calibration) {
        match predict(tree, args.nodes, args, calibration) {
            Ok(prediction) => all.push(prediction),
            Err(failed) => failures.push(failed),
        }
    }
    all.sort_by_key(|prediction| prediction.joined);
    (all, failures)
}

fn failure_lines(failures: &[Failed]) -> String {
    failures.iter().map(|failed| format!("{} {}\n", failed.case.tree, why(failed))).collect()
}

fn why(failed: &Failed) -> String {
    format!("does not come up whole: {}", failed.words)
}

fn predict(tree: Tree, nodes: u32, args: &PlanArgs, calibration: &Calibration) -> Row {
    let tasks_per_node = args.tasks_per_node;
    let simulated = nodes.min(SIMULATED_MAX);
    let case =
        Case { tree, nodes: simulated, tasks_per_node, window: WINDOW, batch: None, bulk_max: 1 };
    let prediction = simulate(case, args, calibration)?;
    Ok(if nodes > simulated { prediction.with_more(nodes, calibration) } else { prediction })
}

fn simulate(case: Case, args: &PlanArgs, calibration: &Calibration) -> Row {
    Prediction::simulated(case, calibration, seeds(case.nodes, args, calibration))
}

/// With which seeds so many nodes are simulated: an odd number of them.
fn seeds(nodes: u32, args: &PlanArgs, calibration: &Calibration) -> RangeInclusive<u64> {
    let fitting = SEEDS.into_iter().find(|&(nodes_max, _)| nodes <= nodes_max);
    let further = match fitting {
        Some((_, seeds)) if calibration.varies() => seeds - 1,
        Some(_) | None => 0,
    };
    args.seed..=args.seed.saturating_add(further)
}

/// Which seeds a plan is made with, where that matters.
fn drawn(args: &PlanArgs, calibration: &Calibration) -> String {
    if !calibration.varies() {
        return String::new();
    }
    let [(few, most), (many, some)] = SEEDS;
    let seed = args.seed;
    format!(
        "costs vary: a time simulated with at most {few} nodes is the median of {most} seeds from {seed} on,\n\
         with at most {many} nodes of {some}, and with more that of seed {seed} alone (see --seed)\n"
    )
}

/// The soonest whose processes have no more links than is well.
fn recommended(predictions: &[Prediction]) -> Option<&Prediction> {
    let moderate = predictions.iter().find(|prediction| prediction.links_max <= LINKS_MAX);
    moderate.or(predictions.first())
}

/// Of the tree of `best`, which is one of them where all nodes are simulated; the smallest first.
fn windows(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<Row> {
    let nodes = nodes_compared(args);
    let cases = WINDOWS.into_iter().map(|window| Case { nodes, window, ..best.case });
    like(best, cases, args, calibration)
}

/// The same for strict batches.
fn batches(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<Row> {
    let nodes = nodes_compared(args);
    let cases = BATCHES.into_iter().map(|batch| Case { nodes, batch, ..best.case });
    like(best, cases, args, calibration)
}

/// All nodes where they are simulated anyway, since this decides what is recommended.
fn nodes_compared(args: &PlanArgs) -> u32 {
    if args.nodes > SIMULATED_MAX { WINDOWS_COMPARED } else { args.nodes }
}

/// Simulates what `best` is not.
fn like(
    best: &Prediction,
    cases: impl Iterator<Item = Case>,
    args: &PlanArgs,
    calibration: &Calibration,
) -> Vec<Row> {
    let is_known = |case: &Case| *case == best.case && best.is_simulated();
    cases
        .map(|case| match is_known(&case) {
            true => Ok(best.clone()),
            false => simulate(case, args, calibration),
        })
        .collect()
}

/// For each size of a bulk start what would be recommended.
fn bulks(window: u32, args: &PlanArgs, calibration: &Calibration) -> Vec<Row> {
    BULKS
        .into_iter()
        .filter_map(|bulk_max| best_of_bulk(bulk_max, window, args, calibration))
        .collect()
}

/// The soonest with moderate links; or any that comes up; or why the first does not.
fn best_of_bulk(
    bulk_max: u32,
    window: u32,
    args: &PlanArgs,
    calibration: &Calibration,
) -> Option<Row> {
    let trees = candidates(calibration).into_iter();
    let nodes = args.nodes.min(BULKS_COMPARED_MAX);
    let tasks_per_node = args.tasks_per_node;
    let batch = None;
    let cases = trees.map(|tree| Case { tree, nodes, tasks_per_node, window, batch, bulk_max });
    let rows = cases.map(|case| simulate(case, args, calibration));
    rows.min_by_key(|row| match row {
        Ok(Prediction { links_max, joined, .. }) => (false, *links_max > LINKS_MAX, *joined),
        Err(_) => (true, true, Duration::MAX),
    })
}

/// The smallest window that costs next to no time.
fn smallest(windows: &[Row]) -> Option<u32> {
    let up = || windows.iter().flatten();
    let soonest = up().map(|prediction| prediction.joined).min()?;
    let time_max = soonest.mul_f64(WINDOW_COSTS_MAX);
    let good = up().filter(|prediction| prediction.joined < time_max);
    good.map(|prediction| prediction.case.window).min()
}

/// What the recommended tree takes with the recommended window, where that was simulated.
fn time_with(window: u32, windows: &[Row], best: &Prediction) -> Duration {
    let up = windows.iter().flatten();
    let of_all = up.filter(|prediction| prediction.case.nodes == best.case.nodes);
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
        let how = if prediction.is_simulated() { "" } else { "  computed" };
        let _ = writeln!(
            text,
            "{name:<width$} {joined:>9} {links_max:>6} {messages:>9} {head:>8} {agent:>8}{how}"
        );
    }
    let tasks = u64::from(args.nodes) * u64::from(args.tasks_per_node);
    let cards = memory::shown(memory::of_cards(tasks));
    text += "links: the most of one process; head, agent: memory of the head, and of the largest agent\n";
    let _ =
        writeln!(text, "an MPI job of {tasks} tasks takes {cards} more in each of these processes");
    if !predictions.iter().all(Prediction::is_simulated) {
        let _ = writeln!(
            text,
            "computed: as simulated with {SIMULATED_MAX} nodes, and as many times longer as by \
             arithmetic"
        );
    }
    text
}

fn window_table(windows: &[Row], tree: Tree) -> String {
    let heading = ["windows", "window"];
    flight_table(windows, tree, heading, |case| bound(case.window, "unlimited"))
}

fn batch_table(batches: &[Row], tree: Tree) -> String {
    let heading = ["strict batches", "batch"];
    flight_table(batches, tree, heading, |case| bound(case.batch.unwrap_or(u32::MAX), "none"))
}

/// What bounds the starts in flight, and what that costs.
fn flight_table(
    rows: &[Row],
    tree: Tree,
    [all, one]: [&str; 2],
    size: impl Fn(&Case) -> String,
) -> String {
    let nodes = nodes_of(rows);
    let mut text = format!("\n{all} of {tree}, simulated with {nodes} nodes\n");
    let _ = writeln!(text, "{one:<9} {:>9} {:>16}", "all up", "starts in flight");
    for row in rows {
        let size = size(case_of(row));
        let _ = match row {
            Ok(Prediction { joined, starts_max, .. }) => {
                writeln!(text, "{size:<9} {:>9} {starts_max:>16}", seconds(*joined))
            }
            Err(failed) => writeln!(text, "{size:<9} {}", why(failed)),
        };
    }
    text
}

fn bulk_table(bulks: &[Row], window: u32) -> String {
    let nodes = nodes_of(bulks);
    let window = bound(window, "unlimited");
    let mut text = String::from("\nagents that one command starts, each with its best tree; ");
    let _ = writeln!(text, "simulated with {nodes} nodes, window {window}");
    let _ = writeln!(text, "{:<9} {:>9} {:>16}  tree", "agents", "all up", "commands");
    for row in bulks {
        let bulk_max = bound(case_of(row).bulk_max, "all");
        let _ = match row {
            Ok(Prediction { case, joined, commands, .. }) => {
                let joined = seconds(*joined);
                writeln!(text, "{bulk_max:<9} {joined:>9} {commands:>16}  {}", case.tree)
            }
            Err(failed) => {
                writeln!(text, "{bulk_max:<9} no tree; {} {}", failed.case.tree, why(failed))
            }
        };
    }
    text += "more than one needs a launcher whose command takes a list of hosts (`--launcher local-bulk`\n\
             is one, for tests on this machine); ssh and `--shell` start one agent with each\n";
    text
}

fn case_of(row: &Row) -> &Case {
    match row {
        Ok(prediction) => &prediction.case,
        Err(failed) => &failed.case,
    }
}

fn nodes_of(rows: &[Row]) -> u32 {
    rows.first().map_or(0, |row| case_of(row).nodes)
}

fn bound(value: u32, none: &str) -> String {
    if value == u32::MAX { none.to_owned() } else { value.to_string() }
}

fn recommendation(best: &Prediction, window: u32, joined: Duration, args: &PlanArgs) -> String {
    let how = if best.is_simulated() { "simulated" } else { "computed" };
    let tree = best.case.tree;
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
fn points(best: &Prediction, args: &PlanArgs, calibration: &Calibration) -> Vec<Point> {
    let tree = best.case.tree;
    let predicted = |nodes| {
        let prediction = match &best.basis {
            _ if nodes == args.nodes => best.clone(),
            Some(basis) if nodes == basis.case.nodes => Prediction::clone(basis),
            Some(basis) if nodes > basis.case.nodes => {
                Prediction::clone(basis).with_more(nodes, calibration)
            }
            Some(_) | None => predict(tree, nodes, args, calibration).ok()?,
        };
        let Prediction { joined: time, .. } = prediction;
        Some(Point { nodes, time, is_simulated: prediction.is_simulated() })
    };
    sizes(args.nodes).into_iter().filter_map(predicted).collect()
}

/// Each half of the next. The last that is simulated is what the computed ones are computed from.
fn sizes(nodes: u32) -> Vec<u32> {
    let before = |&size: &u32| match size / 2 {
        0 => None,
        half if size > SIMULATED_MAX => Some(half.max(SIMULATED_MAX)),
        half => Some(half),
    };
    let mut sizes: Vec<u32> = iter::successors(Some(nodes), before).take(CURVE_POINTS).collect();
    sizes.reverse();
    sizes
}

#[cfg(test)]
mod tests {
    use sim::{Distribution, Launch};

    use super::*;

    const ARGS: PlanArgs =
        PlanArgs { nodes: 64, tasks_per_node: 2, calibration: None, seed: 0, svg: None };

    /// Costs as most remote shells have them.
    fn varying() -> Calibration {
        let mut calibration = Calibration::default();
        calibration.launch = Launch::LatencyAndGap {
            latency_ms: Distribution::LogNormal { median: 257.0, sigma: 1.0 },
            gap_ms: Distribution::constant(7.0),
        };
        calibration
    }

    fn windows_of(tree: Tree) -> Vec<Row> {
        let calibration = Calibration::default();
        windows(&predict(tree, ARGS.nodes, &ARGS, &calibration).unwrap(), &ARGS, &calibration)
    }

    #[test]
    fn the_smallest_window_that_costs_less_than_five_percent_is_recommended() {
        // Of a flat tree, 16 starts at once are worth it: 257 ms take 37 gaps of 7 ms.
        let windows = windows_of(Tree::Flat);
        assert_eq!(windows.len(), WINDOWS.len());
        let up: Vec<&Prediction> = windows.iter().flatten().collect();
        assert!(up.is_sorted_by(|one, next| one.joined >= next.joined));
        assert_eq!(smallest(&windows), Some(64));
        // Whoever has two children needs room for two starts.
        let windows = windows_of(Tree::Kary(2));
        assert_eq!(smallest(&windows), Some(4));
    }

    #[test]
    fn the_smaller_a_strict_batch_the_later_all_are_up_and_none_is_the_soonest() {
        let calibration = Calibration::default();
        let best = predict(Tree::Flat, ARGS.nodes, &ARGS, &calibration).unwrap();
        let batches: Result<Vec<Prediction>, Failed> =
            batches(&best, &ARGS, &calibration).into_iter().collect();
        let batches = batches.unwrap();
        let flights: Vec<usize> = batches.iter().map(|batch| batch.starts_max).collect();
        assert_eq!(flights, [2, 4, 8, 16, best.starts_max]);
        assert!(batches.is_sorted_by(|one, next| one.joined > next.joined));
    }

    #[test]
    fn the_command_line_that_is_recommended_is_one() {
        let best = predict(Tree::Kary(2), ARGS.nodes, &ARGS, &Calibration::default()).unwrap();
        let text = recommendation(&best, 4, Duration::from_secs(1), &ARGS);
        let line = text.lines().find(|line| line.contains("convoke run")).unwrap();
        let words = "convoke run --hostfile HOSTS --ppn 2 --tree kary:2 --window 4 PROGRAM";
        assert_eq!(line.trim(), words);
        assert!(<crate::args::Cli as clap::Parser>::try_parse_from(words.split(' ')).is_ok());
    }

    #[test]
    fn where_costs_vary_a_time_is_the_median_of_five_seeds_and_else_that_of_one() {
        let calibration = varying();
        let prediction = predict(Tree::Kary(4), ARGS.nodes, &ARGS, &calibration).unwrap();
        let with = |seed| Prediction::simulated(prediction.case, &calibration, seed..=seed);
        let mut times: Vec<Duration> = (0..5).map(|seed| with(seed).unwrap().joined).collect();
        times.sort_unstable();
        assert!(times[0] < times[2] && times[2] < times[4], "{times:?}");
        assert_eq!(prediction.joined, times[2]);
        assert!(drawn(&ARGS, &calibration).contains("the median of 5 seeds from 0 on"));

        let later = PlanArgs { seed: 7, ..ARGS };
        assert_eq!(seeds(2_048, &later, &calibration), 7..=9);
        assert_eq!(seeds(2_049, &later, &calibration), 7..=7);
        assert_eq!(seeds(1, &later, &Calibration::default()), 7..=7);
        assert_eq!(drawn(&later, &Calibration::default()), "");
    }

    #[test]
    fn a_window_that_does_not_come_up_has_a_row_that_says_why() {
        // One agent is executed after the other, each for a second: some are later than 30 s.
        let mut calibration = Calibration::default();
        (calibration.cpu.is_shared, calibration.cpu.exec_us) = (true, 1e6);
        let case = Case {
            tree: Tree::Flat,
            nodes: 64,
            tasks_per_node: 1,
            window: 1,
            batch: None,
            bulk_max: 1,
        };
        let best = simulate(case, &ARGS, &calibration).unwrap();
        let windows = windows(&best, &ARGS, &calibration);
        let text = window_table(&windows, case.tree);
        let rows: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(rows.len(), WINDOWS.len(), "{text}");
        assert!(rows[4].starts_with("unlimited does not come up whole: "), "{text}");
        assert!(rows[4].contains("could not start an agent on 34 of 64 nodes"), "{text}");
        assert!(smallest(&windows).is_some());
    }

    #[test]
    fn a_bulk_start_with_which_no_tree_comes_up_has_a_row_that_says_why() {
        let latency = Duration::from_secs(31);
        let calibration = Calibration::constant(latency, Duration::from_millis(7));
        let args = PlanArgs { nodes: 4, ..ARGS };
        let text = bulk_table(&bulks(WINDOW, &args, &calibration), WINDOW);
        let row = text.lines().find(|line| line.starts_with("all ")).unwrap();
        assert!(row.contains("no tree; adaptive does not come up whole: "), "{text}");
        assert_eq!(text.matches("no answer within 30.00 s").count(), BULKS.len(), "{text}");
    }

    #[test]
    fn the_last_size_that_is_simulated_is_what_the_others_are_computed_from() {
        assert_eq!(sizes(40_000)[4..], [8_192, 16_384, 20_000, 40_000]);
        assert_eq!(sizes(32_768)[5..], [8_192, 16_384, 32_768]);
        assert_eq!(sizes(1_000_000)[..2], [8_192, 16_384]);
        assert_eq!(sizes(5), [1, 2, 5]);
    }
}
