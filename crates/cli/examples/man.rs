//! Writes the manual pages: `cargo run -p convoke --example man -- DIR`.
//!
//! They are made of the options and texts that `--help` shows. This is no subcommand, since what
//! writes manual pages would be a thirtieth of a binary that goes to every node.

#[expect(dead_code, reason = "what is read is described here, and not used")]
#[path = "../src/args.rs"]
mod args;
#[path = "../src/duration.rs"]
mod duration;
#[path = "../src/manual.rs"]
mod manual;
#[path = "../src/signal_list.rs"]
mod signal_list;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use manual::Rows;

/// Variables that `convoke run` reads, and those that tasks find.
const VARIABLES: Rows = &[
    (
        "PATH",
        "Where ssh, or the program of --shell, is looked for here; and, on the nodes, a program that \
         is a bare name.",
    ),
    (
        "PWD",
        "The working directory of the tasks, where it names the one that Convoke runs in. The rest \
         of the environment goes to the tasks as it is, without what belongs to this login (SSH_*, \
         DISPLAY, HOSTNAME, functions of bash) or to a job that Convoke itself is a task of (PMI_*, \
         PMIX_*, OMPI_* and the like).",
    ),
    ("PMI_RANK, PMI_SIZE", "Set for each task: its rank, and how many tasks there are."),
    (
        "MPI_LOCALRANKID, MPI_LOCALNRANKS",
        "Set for each task: its number among the tasks on its node, and how many those are.",
    ),
    ("PMI_FD", "Set for each task: the descriptor over which an MPI library talks to Convoke."),
    (
        "PMI_PORT, PMI_ID",
        "Set for each task in its place, with --pmi-port: where the library connects to, and what it \
         says there that it is.",
    ),
    (
        "PMI_HOSTNAME",
        "Set for each task: the name by which other nodes reach its node, where there are several.",
    ),
];

/// Files that matter to `convoke run`.
const FILES: Rows = &[
    (
        "~/.ssh/config",
        "How ssh reaches a host: user, port, key, jump host. ssh runs in batch mode: a host that \
         asks for a password counts as one that cannot be reached.",
    ),
    ("the file of --hostfile", "One host a line with its slots, `host:4`, as Hydra reads it."),
];

fn main() -> io::Result<()> {
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    write_all(&dir.ok_or_else(|| io::Error::other("which directory?"))?)
}

/// Writes a page for the command, and one for each subcommand.
fn write_all(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut command = args::Cli::command().disable_help_subcommand(true);
    command.build();
    write(&command, dir)?;
    command.get_subcommands().try_for_each(|subcommand| write(subcommand, dir))
}

fn write(command: &clap::Command, dir: &Path) -> io::Result<()> {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let version = concat!("convoke ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone().override_usage(usage)).source(version).manual("Convoke");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    for (heading, content) in sections(command.get_name()) {
        content.render(heading, &mut page)?;
    }
    std::fs::write(dir.join(man.get_filename()), page)
}

/// What a page has besides what clap knows.
fn sections(command: &str) -> Vec<(&'static str, Content)> {
    match command {
        "run" => vec![
            ("EXIT STATUS", Content::Rows(manual::STATUSES)),
            ("ENVIRONMENT", Content::Rows(VARIABLES)),
            ("FILES", Content::Rows(FILES)),
            ("EXAMPLES", Content::Rows(manual::EXAMPLES)),
        ],
        "plan" => vec![("NOTES", Content::Text(manual::PLAN_NOTES))],
        _ => Vec::new(),
    }
}

enum Content {
    Rows(Rows),
    Text(&'static str),
}

impl Content {
    fn render(&self, heading: &str, page: &mut impl Write) -> io::Result<()> {
        let mut roff = Roff::default();
        roff.control("SH", [heading]);
        match self {
            Content::Text(text) => {
                roff.text([roman(*text)]);
            }
            Content::Rows(rows) => {
                for (term, text) in *rows {
                    roff.control("TP", []).text([bold(*term)]).text([roman(*text)]);
                }
            }
        }
        roff.to_writer(page)
    }
}
