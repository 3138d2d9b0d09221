//! `convoke sim`: one session in virtual time, by the code that runs real ones.

use std::cell::LazyCell;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use model::{TASKS_MAX, Time, Tree};
use observe::{Timeline, critical_path, seconds};
use proto::Event;
use sim::{Calibration, CalibrationError, Failure, Report, Session};

use crate::args::SimArgs;
use crate::exit_code;
use crate::memory::{self, Shortage};
use crate::output_file::{OutputError, TimelineFile};
use crate::redundancy::{RedundancyError, check_redundancy};
use crate::report::{self, Program};
use crate::streams::{print, say};

/// A session that lasts longer in virtual time has got stuck.
const TIME_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Why there is no simulation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimError {
    #[error(
        "{nodes} nodes with {tasks_per_node} tasks each have {} tasks, more than the {TASKS_MAX} \
         that a job can have",
        u64::from(*nodes) * u64::from(*tasks_per_node)
    )]
    Tasks { nodes: u32, tasks_per_node: u32 },
    #[error("with these costs no tree comes up whole: {0}")]
    NoneComesUp(String),
    #[error(
        "a simulation of {nodes} nodes with {tasks_per_node} tasks each takes {shortage} on this \
         machine"
    )]
    Memory { nodes: u32, tasks_per_node: u32, shortage: Shortage },
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error(transparent)]
    Redundancy(#[from] RedundancyError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Simulates a session and says what it took.
pub(crate) fn sim(args: &SimArgs) -> u8 {
    match try_sim(args) {
        Ok(code) => code,
        Err(error) => refuse(&error),
    }
}

/// What machines cost, by a file or by S2's constants.
pub(crate) fn calibration(path: Option<&Path>) -> Result<Calibration, CalibrationError> {
    path.map_or_else(|| Ok(Calibration::default()), Calibration::load)
}

/// Says what is wrong, and what to do.
pub(crate) fn refuse(error: &SimError) -> u8 {
    say(&format!("error: {}\n", agent::error_chain(error)));
    let hint = match error {
        SimError::Tasks { .. } | SimError::Memory { .. } => {
            Some("give fewer --nodes or --tasks-per-node")
        }
        SimError::NoneComesUp(_) => Some("look at the times in the calibration"),
        SimError::Calibration(error) => Some(error.hint()),
        SimError::Redundancy(_) => Some(RedundancyError::HINT),
        SimError::Output(_) => None,
    };
    if let Some(hint) = hint {
        say(&format!("hint: {hint}\n"));
    }
    exit_code::USAGE
}

/// Refuses more tasks than a job can have.
pub(crate) fn check_tasks(nodes: u32, tasks_per_node: u32) -> Result<(), SimError> {
    let tasks = nodes.checked_mul(tasks_per_node).filter(|&tasks| tasks <= TASKS_MAX);
    tasks.map(|_| ()).ok_or(SimError::Tasks { nodes, tasks_per_node })
}

/// Refuses a simulation that needs more memory than is `free`.
pub(crate) fn check_memory(nodes: u32, tasks_per_node: u32, free: u64) -> Result<(), SimError> {
    let tasks = u64::from(nodes) * u64::from(tasks_per_node);
    let wanted = sim::bytes_needed(nodes.into(), tasks);
    let refused = |shortage| SimError::Memory { nodes, tasks_per_node, shortage };
    memory::check(wanted, free).map_err(refused)
}

/// When the last of a simulated session's agents had joined.
pub(crate) fn joined(report: &Report) -> Option<Duration> {
    let at = report.time_of(|event| matches!(event, Event::AllJoined(_)))?;
    Some(at.since(Time::ZERO))
}

fn try_sim(args: &SimArgs) -> Result<u8, SimError> {
    check_tasks(args.nodes, args.tasks_per_node)?;
    check_memory(args.nodes, args.tasks_per_node, memory::free())?;
    check_redundancy(args.route.0, args.redundancy)?;
    let calibration = calibration(args.calibration.as_deref())?;
    let timeline = TimelineFile::create(args.timeline.as_deref())?;
    let session = session(args.nodes, &args.tree, args.tasks_per_node, &calibration);
    let session = session.seed(args.seed).spec(|spec| {
        (spec.window, spec.batch) = (args.window, args.batch);
        spec.marks = timeline.is_some();
        (spec.route, spec.redundancy) = (args.route.0, args.redundancy);
        spec.pushes_contacts = u64::from(args.nodes) <= engine::CONTACTS_PUSHED_MAX;
    });
    let report = match session.try_run() {
        Ok(report) => report,
        Err(failure) => return Ok(failed(&failure)),
    };
    let mut text = summary(&report);
    // A million names are for a session that has something to say of one.
    let names = LazyCell::new(|| names(args.nodes));
    if report.code != Some(0) {
        say(&failed_starts(&report, &names));
    }
    if let Some(file) = timeline {
        let timeline = timeline_of(&report);
        for wait in critical_path(&timeline) {
            let _ = writeln!(text, "  {}", wait.line(&names));
        }
        let title = format!("convoke sim: {} nodes, {}", args.nodes, args.tree);
        file.write(&timeline, &names, &title)?;
    }
    let code = if joined(&report).is_some() { 0 } else { report.code.unwrap_or_default() };
    Ok(print(&text).max(code))
}

/// A session by a user's costs.
pub(crate) fn session(
    nodes: u32,
    tree: &Tree,
    tasks_per_node: u32,
    calibration: &Calibration,
) -> Session {
    Session::of(nodes)
        .tree(&tree.to_string())
        .tasks(tasks_per_node)
        .calibration(calibration.clone())
        .ends_within(TIME_MAX)
}

/// What simulated nodes are called.
pub(crate) fn names(nodes: u32) -> Vec<String> {
    (0..nodes).map(|node| format!("n{node}")).collect()
}

/// Which agents did not come up, and why. What could be tried by hand, can't.
pub(crate) fn failed_starts(report: &Report, names: &[String]) -> String {
    let words = report::outcome(&report.outcome, names, &Program::simulated(), true);
    words.split_inclusive('\n').filter(|line| !line.starts_with("hint: ")).collect()
}

/// When what happened in a session that kept marks.
pub(crate) fn timeline_of(report: &Report) -> Timeline {
    let mut timeline = Timeline::default();
    for (at, event) in &report.events {
        timeline.on_event(*at, event);
    }
    timeline
}

fn summary(report: &Report) -> String {
    let mut text = String::new();
    let shown = |time: Option<Duration>| time.map_or("never".to_owned(), seconds);
    let _ = writeln!(text, "all have joined after {}", shown(joined(report)));
    let ended = report.ended_at.map(|at| at.since(Time::ZERO));
    let _ = writeln!(text, "the session is over after {}", shown(ended));
    let messages: u64 = report.messages.values().sum();
    let _ = writeln!(text, "{messages} messages, at most {} links a process", report.links_max);
    if report.syns_dropped > 0 {
        let _ = writeln!(text, "{} connections were dropped and tried again", report.syns_dropped);
    }
    text
}

/// A bug of ours: what must never happen has happened.
fn failed(failure: &Failure) -> u8 {
    say(&format!("error: the simulated session broke a rule, which is a bug: {failure}\n"));
    exit_code::INTERNAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_that_does_not_fit_into_memory_is_refused() {
        const GIGABYTE: u64 = 1_000_000_000;
        assert!(check_memory(1_000_000, 1, 24 * GIGABYTE).is_ok());
        let error = check_memory(100_000, 21_474, 24 * GIGABYTE).unwrap_err();
        let told = "a simulation of 100000 nodes with 21474 tasks each takes 2148.2 GB, and 24.0 GB are \
                    free on this machine";
        assert_eq!(error.to_string(), told);
        assert!(check_memory(100_000, 21_474, u64::MAX).is_ok());
    }
}
