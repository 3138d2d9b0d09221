//! `convoke plan`: which spawn tree for so many nodes, and what it would take.
//!
//! Up to [`SIMULATED_MAX`] nodes each tree is simulated, with all that the calibration says of hosts
//! and links. Beyond, planned trees are predicted by their arithmetic from the medians of latency and
//! gap, and the table says so.

use std::fmt::Write;
use std::time::Duration;

use engine::tree;
use model::Tree;
use observe::seconds;
use sim::{Calibration, Session};

use crate::args::PlanArgs;
use crate::output_file::OutputFile;
use crate::simulate::{self, SimError};
use crate::{curve, streams};

/// The most nodes that a tree is simulated for: some seconds each.
const SIMULATED_MAX: u32 = 16_384;

/// A tree whose agents have more links than this meets limits of processes and descriptors.
const LINKS_MAX: usize = 65;

/// Sizes of the curve: this many, each twice the one before.
const CURVE_POINTS: u32 = 8;

/// What is known of one tree.
struct Prediction {
    tree: Tree,
    joined: Duration,
    links_max: usize,
    messages: Option<u64>,
}

/// Compares trees and recommends one.
pub(crate) fn plan(args: &PlanArgs) -> u8 {
    match try_plan(args) {
        Ok(code) => code,
        Err(error) => simulate::refuse(&error),
    }
}

fn try_plan(args: &PlanArgs) -> Result<u8, SimError> {
    let calibration = simulate::calibration(args.calibration.as_deref())?;
    let svg = args.svg.as_deref().map(OutputFile::create).transpose()?;
    let predictions = compare(args, &calibration);
    let mut text = table(&predictions);
    if let Some(best) = recommended(&predictions) {
        text += &recommendation(best, &predictions, args);
        let points = points(best.tree, args, &calibration);
        text += &curve::text(&points);
        if let Some(file) = svg {
            file.write(&curve::svg(&points, &format!("{}", best.tree)))?;
        }
    }
    Ok(streams::print(&text))
}

/// All trees that can be named without a number, k-ary ones, and the greedy one for these costs.
fn candidates(calibration: &Calibration) -> Vec<Tree> {
    let (latency, gap) = (calibration.launch.latency(), calibration.launch.gap());
    let kary = [2, 4, 8, 16, 32, 64].map(Tree::Kary);
    let mut trees = vec![Tree::adaptive(), Tree::Greedy { latency, gap }];
    trees.extend(kary);
    trees.extend([Tree::Binomial, Tree::TwoLevel, Tree::Flat]);
    trees
}

/// The soonest first.
fn compare(args: &PlanArgs, calibration: &Calibration) -> Vec<Prediction> {
    let trees = candidates(calibration).into_iter();
    let mut all: Vec<Prediction> =
        trees.filter_map(|tree| predict(tree, args.nodes, args, calibration)).collect();
    all.sort_by_key(|prediction| prediction.joined);
    all
}

fn predict(tree: Tree, n: u32, args: &PlanArgs, calibration: &Calibration) -> Option<Prediction> {
    if n > SIMULATED_MAX {
        return by_arithmetic(tree, n, calibration);
    }
    let session = Session::of(n)
        .tree(&tree.to_string())
        .tasks(args.tasks_per_node)
        .calibration(calibration.clone())
        .spec(|spec| spec.window = u32::MAX);
    let report = session.try_run().ok()?;
    Some(Prediction {
        tree,
        joined: simulate::joined(&report)?,
        links_max: report.links_max,
        messages: Some(report.messages.values().sum()),
    })
}

fn by_arithmetic(tree: Tree, n: u32, calibration: &Calibration) -> Option<Prediction> {
    let (latency, gap) = (calibration.launch.latency(), calibration.launch.gap());
    let planned = match tree {
        Tree::Adaptive { .. } => tree::default_tree(u64::from(n), latency, gap),
        Tree::Flat
        | Tree::Chain
        | Tree::Kary(_)
        | Tree::Binomial
        | Tree::TwoLevel
        | Tree::Greedy { .. } => tree,
    };
    let below = model::IdSet::range(1, n);
    Some(Prediction {
        tree,
        joined: tree::completion_time(&planned, u64::from(n), latency, gap),
        links_max: tree::branches(&planned, &below).len() + 1,
        messages: None,
    })
}

/// The soonest whose processes have no more links than is well.
fn recommended(predictions: &[Prediction]) -> Option<&Prediction> {
    let moderate = predictions.iter().find(|prediction| prediction.links_max <= LINKS_MAX);
    moderate.or(predictions.first())
}

fn table(predictions: &[Prediction]) -> String {
    let mut text = format!("{:<18} {:>10} {:>6} {:>10}\n", "tree", "all up", "links", "messages");
    for prediction in predictions {
        let messages = prediction.messages.map_or("-".to_owned(), |count| count.to_string());
        let Prediction { tree, joined, links_max, .. } = prediction;
        let (tree, joined) = (tree.to_string(), seconds(*joined));
        let _ = writeln!(text, "{tree:<18} {joined:>10} {links_max:>6} {messages:>10}");
    }
    text
}

fn recommendation(best: &Prediction, all: &[Prediction], args: &PlanArgs) -> String {
    let how = if args.nodes > SIMULATED_MAX { "by arithmetic" } else { "simulated" };
    let mut text = format!(
        "\nrecommended for {} nodes: --tree {} ({}, {how})\n",
        args.nodes,
        best.tree,
        seconds(best.joined)
    );
    if let Some(first) = all.first()
        && first.tree != best.tree
    {
        let _ = writeln!(
            text,
            "{} would be up after {}, but with {} links in one process",
            first.tree,
            seconds(first.joined),
            first.links_max
        );
    }
    text
}

/// Time against the number of nodes, up to as many as are asked for.
fn points(tree: Tree, args: &PlanArgs, calibration: &Calibration) -> Vec<(u32, Duration)> {
    let sizes = (0..CURVE_POINTS).rev().map(|halvings| args.nodes >> halvings);
    sizes
        .filter(|&n| n > 0)
        .filter_map(|n| Some((n, predict(tree, n, args, calibration)?.joined)))
        .collect()
}
