//! The project's chores: `cargo xtask COMMAND`. Nothing here is needed to build.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to a developer")]

mod bench;
mod demo;
mod dist;
mod elf;
mod leaks;
mod libraries;
mod options;
mod paths;
mod promises;
mod setup;
mod sim;
mod sources;
mod statuses;
mod steps;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use xshell::Shell;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  setup [--bench]  install what demo and tests need; with --bench, check the peers to compare with
  demo [--loopback]
                   32 MPI ranks on 8 hosts made on this machine: of namespaces, or without root or
                   with --loopback of loopback addresses
  test [NAME...]   everything that CI runs; or only these steps or test files, such as `world`,
                   or `pmi`: every client of PMI that we know of on up to 16 hosts
  tidy             the rules that neither rustfmt nor clippy know
  sim OPTIONS...   sessions in virtual time, such as `--agents 1000000`, or `--seeds 100000
                   --minutes 10`, which the next call continues
  bench NAME       a benchmark: `launch`, `pmi`, `connect`, `io`, `memory` or `model`
  dist             the static binary, as target/dist/convoke, with man pages, completions, and what
                   `libraries` builds
  libraries [--dev] DIR
                   the client libraries for C with their headers, in lib and include of DIR";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> anyhow::Result<()> {
    let sh = Shell::new()?;
    sh.change_dir(paths::root());
    match words {
        ["setup"] => setup::setup(&sh),
        ["setup", "--bench"] => setup::setup_bench(&sh),
        ["demo"] => demo::demo(&sh, false),
        ["demo", "--loopback"] => demo::demo(&sh, true),
        ["test", names @ ..] => steps::test(&sh, names),
        ["tidy"] => tidy::tidy(&sh),
        ["bench", rest @ ..] => bench::bench(&sh, rest),
        ["sim", rest @ ..] => sim::sim(&sh, rest),
        ["libraries", "--dev", dir] => libraries::install(&sh, "dev", Path::new(dir)),
        ["libraries", dir] => libraries::install(&sh, "library", Path::new(dir)),
        ["dist"] => dist::package(&sh).map(|path| println!("{}", path.display())),
        [] | ["help" | "--help" | "-h", ..] => {
            println!("{USAGE}");
            Ok(())
        }
        [other, ..] => bail!("no chore `{other}`\n{USAGE}"),
    }
}
