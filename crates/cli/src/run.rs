//! `convoke run`, and the command behind `local-bulk`.

use agent::{HeadReport, error_chain, run_head};
use engine::HeadConfig;
use model::NodeId;
use observe::{draw_tree, stats_table};

use crate::args::RunArgs;
use crate::exit_code;
use crate::output_file::TimelineFile;
use crate::report;
use crate::screen::{Screen, ScreenOptions};
use crate::setup::{Layout, SetupError, head_config};
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
        return show_map(&layout);
    }
    match TimelineFile::create(args.timeline.as_deref()) {
        Ok(timeline) => run_job(&args, config, timeline),
        Err(error) => refuse(&SetupError::Output(error)),
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

fn run_job(args: &RunArgs, config: HeadConfig, timeline: Option<TimelineFile>) -> u8 {
    let options = ScreenOptions { label: args.label, verbose: args.verbose, quiet: args.quiet };
    let (names, tree) = (config.names.clone(), config.tree);
    let program = report::Program::of(&config);
    let mut screen = Screen::new(names.clone(), options);
    let head = match run_head(config, &mut screen) {
        Ok(head) => head,
        Err(error) => {
            say(&format!("error: {}\n", error_chain(&error)));
            return exit_code::INTERNAL;
        }
    };
    let HeadReport { mut code, outcome, abandoned, output_error } = head;
    let mut text = String::new();
    if let Some(words) = abandoned {
        text += &format!("error: the session ended at once: {words}\n");
    }
    if let Some((stream, error)) = &output_error {
        text += &report::output_error(*stream, error);
    }
    text += &report::outcome(&outcome, &names, &program, args.quiet);
    if args.show_tree {
        text += &draw_tree(&tree, &names, &screen.timeline);
    }
    if args.stats {
        text += &stats_table(&outcome.stats, &screen.timeline);
    }
    let title = format!("convoke run: {}", program.name());
    if let Some(file) = timeline
        && let Err(error) = file.write(&screen.timeline, &names, &title)
    {
        text += &format!("error: {}\n", error_chain(&error));
        code = if code == 0 { exit_code::INTERNAL } else { code };
    }
    say(&text);
    code
}

/// One line for each node: its name, how many tasks, which.
fn show_map(layout: &Layout) -> u8 {
    let mut text = String::new();
    for (index, node) in (0..).zip(&layout.placement.nodes) {
        let ranks = layout.placement.map.ranks_on(NodeId(index));
        text += &format!("{}: {} tasks, ranks {ranks}\n", node.name, ranks.len());
    }
    print(&text)
}

fn refuse(error: &SetupError) -> u8 {
    let hint = match error {
        SetupError::Placement(error) => error.hint(),
        SetupError::TooManyHere { .. } => Some("give fewer hosts, or reach them with ssh"),
        SetupError::NoStreams => Some("drop `--link`, or start agents with ssh or `--shell`"),
        SetupError::Alloc(_)
        | SetupError::NoSuchTask { .. }
        | SetupError::Env(_)
        | SetupError::Dir(_)
        | SetupError::OwnPath(_)
        | SetupError::RelativeAgent(_)
        | SetupError::Shell(_)
        | SetupError::Output(_)
        | SetupError::Random(_) => None,
    };
    say(&format!("error: {}\n", error_chain(error)));
    if let Some(hint) = hint {
        say(&format!("hint: {hint}\n"));
    }
    exit_code::USAGE
}
