//! `convoke run`, and the command behind `local-bulk`.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent::{HeadReport, OutputFiles, error_chain, run_head};
use engine::{HeadConfig, Outcome};
use model::{IdSet, NodeId};
use observe::{RecordedJob, draw_tree, job_record, stats_table};

use crate::args::RunArgs;
use crate::exit_code;
use crate::layout::Layout;
use crate::output_file::{OutputError, OutputFile, TimelineFile};
use crate::output_spec::is_record_printed;
use crate::redundancy::RedundancyError;
use crate::report;
use crate::screen::{Screen, ScreenOptions};
use crate::setup::{SetupError, head_config, output_files};
use crate::streams::{print, say};

/// Runs a job from its command line to its exit status.
pub(crate) fn run(args: Box<RunArgs>) -> u8 {
    let prepared = Layout::of(&args).and_then(|layout| {
        let config = head_config(&args, &layout)?;
        Ok((layout, config))
    });
    let (layout, config) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return refuse(&error),
    };
    for warning in &layout.warnings {
        say(&format!("warning: {warning}\n"));
    }
    if args.show_map {
        return show_map(&args, &layout);
    }
    let results = Results::create(&args).map_err(SetupError::Output);
    match results.and_then(|results| Ok((results, output_files(&config)?))) {
        Ok((results, files)) => run_job(&args, config, results, files, layout.warnings),
        Err(error) => refuse(&error),
    }
}

/// The files that are written at the end.
struct Results {
    timeline: Option<TimelineFile>,
    record: Option<OutputFile>,
}

impl Results {
    fn create(args: &RunArgs) -> Result<Results, OutputError> {
        Ok(Results {
            timeline: TimelineFile::create(args.timeline.as_deref())?,
            record: match &args.json {
                Some(path) if !is_record_printed(args) => Some(OutputFile::create(path)?),
                Some(_) | None => None,
            },
        })
    }
}

/// Starts many agents on this machine.
pub(crate) fn bulk() -> u8 {
    let count = std::env::args().nth(2).and_then(|count| count.parse().ok());
    let Some(count) = count else { return exit_code::USAGE };
    let run = bootstrap::own_program().map_err(|error| error.to_string()).and_then(|program| {
        bootstrap::bulk::run(&program, count).map_err(|error| error_chain(&error))
    });
    match run {
        Ok(status) => status.code(),
        Err(words) => {
            say(&format!("error: {words}\n"));
            exit_code::INTERNAL
        }
    }
}

fn run_job(
    args: &RunArgs,
    config: HeadConfig,
    results: Results,
    files: Option<OutputFiles>,
    mut warnings: Vec<String>,
) -> u8 {
    let options = ScreenOptions { label: args.label, verbose: args.verbose, quiet: args.quiet };
    let (all_names, begun, tree) = (config.all_names(), config.names.len(), config.tree);
    let program = report::Program::of(&config);
    let job = config.job.clone();
    let began = time_of_day();
    let mut screen = Screen::new(all_names.clone(), begun, program.clone(), options);
    let head = match run_head(config, files, &mut screen) {
        Ok(head) => head,
        Err(error) => {
            say(&format!("error: {}\n", error_chain(&error)));
            return exit_code::INTERNAL;
        }
    };
    let HeadReport { mut code, outcome, abandoned } = head;
    let names = nodes_of(all_names, begun, &outcome);
    let mut text = String::new();
    if let Some(words) = abandoned {
        text += &format!("error: the session ended at once: {words}\n");
    }
    text += &report::outcome(&outcome, &names, &program, args.quiet);
    let words = text.clone();
    warnings.append(&mut screen.warnings.told);
    warnings.extend(report::warnings(&words));
    if args.show_tree {
        text += &draw_tree(&tree, &names[..begun], &screen.timeline);
    }
    if args.stats {
        text += &stats_table(&outcome.stats, &screen.timeline);
    }
    let title = format!("convoke run: {}", program.name());
    let timeline = results.timeline.map(|file| file.write(&screen.timeline, &names, &title));
    let document = args.json.is_some().then(|| {
        let map = outcome.map.as_ref().unwrap_or(&job.map);
        let (spec, names, status) = (&job, &names, code);
        let (words, warnings) = (&words, &warnings);
        let job = RecordedJob { spec, names, begun, map, began, status, words, warnings };
        job_record(&job, &outcome, &screen.timeline)
    });
    if let Some(document) = document.as_ref().filter(|_| is_record_printed(args)) {
        let printed = print(document);
        code = if code == 0 { printed } else { code };
    }
    let record = results.record.zip(document).map(|(file, document)| file.write(&document));
    for error in [timeline, record].into_iter().flatten().filter_map(Result::err) {
        text += &format!("error: {}\n", error_chain(&error));
        code = if code == 0 { exit_code::INTERNAL } else { code };
    }
    say(&text);
    code
}

/// The hosts that the session began with, and others up to the last that was to get an agent.
fn nodes_of(mut names: Vec<String>, begun: usize, outcome: &Outcome) -> Vec<String> {
    let failures = outcome.start_failures.iter().map(|failure| &failure.agents);
    let losses = outcome.losses.iter().map(|loss| &loss.agents);
    let seen = failures.chain(losses).chain([&outcome.members]);
    let last = seen.filter_map(|agents| agents.ranges().last()).map(|(_, last)| *last).max();
    names.truncate(begun.max(last.unwrap_or_default() as usize));
    names
}

/// Since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a record says when it was, and nothing follows from it"
)]
fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A line for each program, if there are several, and one for each node: its name, how many tasks,
/// which.
fn show_map(args: &RunArgs, layout: &Layout) -> u8 {
    let mut text = String::new();
    if !args.more_apps.is_empty() {
        let first_ranks = &layout.first_ranks;
        let ends = first_ranks.iter().skip(1).map(|rank| rank.0);
        let ends = ends.chain([layout.placement.map.len()]);
        for ((app, first), (number, end)) in args.apps().zip(first_ranks).zip((0..).zip(ends)) {
            let ranks = IdSet::range(first.0, end - 1);
            let command = app.command.join(OsStr::new(" "));
            let (tasks, command) = (ranks.len(), command.to_string_lossy());
            text += &format!("app {number}: {tasks} tasks, ranks {ranks}: {command}\n");
        }
    }
    for (index, node) in (0..).zip(&layout.placement.nodes) {
        let ranks = layout.placement.map.ranks_on(NodeId(index));
        text += &format!("{}: {} tasks, ranks {ranks}\n", node.name, ranks.len());
    }
    for node in &layout.idle {
        text += &format!("{}: for jobs that tasks start\n", node.name);
    }
    for spare in &layout.spares {
        text += &format!("{}: a spare\n", spare.name);
    }
    print(&text)
}

fn refuse(error: &SetupError) -> u8 {
    say(&format!("error: {}\n", error_chain(error)));
    if let Some(hint) = hint(error) {
        say(&format!("hint: {hint}\n"));
    }
    exit_code::USAGE
}

/// What the user can do about it.
fn hint(error: &SetupError) -> Option<&'static str> {
    match error {
        SetupError::InApp(_, error) => hint(error),
        SetupError::Placement(error) => error.hint(),
        SetupError::TooManySpares { .. } => Some("give more hosts, or fewer spares"),
        SetupError::MinWithoutContinue => Some(
            "without it the job needs all of its nodes; `--spares` brings up more than it needs",
        ),
        SetupError::TooManyHere { .. } => Some("give fewer hosts, or reach them with ssh"),
        SetupError::OwnHosts(_) => Some("give `--hosts` once, for the whole job"),
        SetupError::NoStreams => Some("drop `--link`, or start agents with ssh or `--shell`"),
        SetupError::Redundancy(_) => Some(RedundancyError::HINT),
        SetupError::Alloc(_)
        | SetupError::MinTooLarge { .. }
        | SetupError::NotMovable(_)
        | SetupError::NoSuchTask { .. }
        | SetupError::PortOfNone
        | SetupError::RankMap(_)
        | SetupError::OtherRanks { .. }
        | SetupError::Host(_)
        | SetupError::Env(_)
        | SetupError::Dir(_)
        | SetupError::OwnPath(_)
        | SetupError::RelativeAgent(_)
        | SetupError::NewlineInAgent(_)
        | SetupError::Shell(_)
        | SetupError::Output(_)
        | SetupError::OutputOption(_)
        | SetupError::Files(_)
        | SetupError::Random(_) => None,
    }
}
