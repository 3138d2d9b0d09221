//! The front end, and behind two hidden subcommands the agent.
//!
//! The hidden ones are recognised before any parsing: an agent should be up in a millisecond, and
//! its keeper must be forked before there is memory to speak of.

mod args;
mod args_prepass;
mod command_line;
mod completions;
mod duration;
mod manual;
mod signal_list;

mod environment;
mod redundancy;
mod setup;

mod bandwidth;
mod calibrate;
mod clean;
mod curve;
mod memory;
mod message_cost;
mod plan;
mod prediction;
mod simulate;
mod spawn_cost;

mod label;
mod layout;
mod run;
mod screen;

mod output_file;
mod output_spec;

mod exit_code;
mod report;
mod streams;
mod warnings;

use std::process::ExitCode;

use command_line::LineError;

/// musl's own allocator costs an agent that passes output on a tenth of its time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(word) if word == bootstrap::AGENT_SUBCOMMAND => ExitCode::from(agent::run_agent()),
        Some(word) if word == bootstrap::bulk::SUBCOMMAND => ExitCode::from(run::bulk()),
        Some(_) | None => front_end(),
    }
}

fn front_end() -> ExitCode {
    let cli = match command_line::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(LineError::Clap(error)) => {
            // Help goes to standard output and is no error; nothing can be done if it does not.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit_code::USAGE } else { 0 });
        }
        Err(error) => {
            streams::say(&format!("error: {}\n", agent::error_chain(&error)));
            return ExitCode::from(exit_code::USAGE);
        }
    };
    match cli.command {
        args::Command::Run(args) => ExitCode::from(run::run(args)),
        args::Command::Sim(args) => ExitCode::from(simulate::sim(&args)),
        args::Command::Plan(args) => ExitCode::from(plan::plan(&args)),
        args::Command::Calibrate(args) => ExitCode::from(calibrate::calibrate(&args)),
        args::Command::Clean(args) => ExitCode::from(clean::clean(&args)),
        args::Command::Completions { shell } => ExitCode::from(completions::completions(shell)),
    }
}
