//! What CI runs, cheapest first, and the leak check around what starts processes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use xshell::{Shell, cmd};

use crate::leaks::LeakCheck;
use crate::{paths, setup, sim, tidy};

/// The crates that must not be able to do I/O.
pub(crate) const PURE_CRATES: [&str; 5] = ["model", "wire", "proto", "pmi", "engine"];

/// A target without a standard library, on which the pure crates must build.
const BARE_TARGET: &str = "x86_64-unknown-none";

/// A file of tests that is asked for by name does more than it does among all the others: how many processes are killed at
/// random, how many jobs of random sizes are run, how many keys are put, and after which steps of a simulated session a fault
/// strikes.
const BY_NAME: [(&str, &str); 4] = [
    ("CONVOKE_RANDOM_KILLS", "200"),
    ("CONVOKE_RANDOM_RUNS", "60"),
    ("CONVOKE_KEYS", "1000000"),
    ("CONVOKE_STRIDE", "1"),
];

/// How many tests did what.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
}

/// Runs everything; or, if there are names, the steps and test files of these names.
pub(crate) fn test(sh: &Shell, names: &[&str]) -> anyhow::Result<()> {
    setup::setup(sh)?;
    let mut tally = Tally::default();
    if names.is_empty() {
        for name in
            ["fmt", "tidy", "clippy", "doc", "no_std", "unit", "doctest", "integration", "seeds"]
        {
            step(sh, name, &mut tally)?;
        }
    }
    names.iter().try_for_each(|name| step(sh, name, &mut tally))?;
    println!("\n{} passed; {} failed; {} ignored", tally.passed, tally.failed, tally.ignored);
    Ok(())
}

fn step(sh: &Shell, name: &str, tally: &mut Tally) -> anyhow::Result<()> {
    println!("\n== {name}");
    match name {
        "fmt" => cmd!(sh, "cargo fmt --all --check").quiet().run()?,
        "tidy" => tidy::tidy(sh)?,
        "clippy" => clippy(sh)?,
        "doc" => doc(sh)?,
        "no_std" => no_std(sh)?,
        "unit" => cargo_test(tally, &["--lib", "--bins"])?,
        "doctest" => cargo_test(tally, &["--doc"])?,
        "integration" => cargo_test(tally, &["--test", "*"])?,
        "seeds" => sim::seeds(sh)?,
        // MPI libraries are a part of the world, too.
        "world" => cargo_test(tally, &["--test", "world", "--test", "pmi"])?,
        file => cargo_test(tally, &["--test", file])?,
    }
    Ok(())
}

fn clippy(sh: &Shell) -> anyhow::Result<()> {
    let clippy = cmd!(sh, "cargo clippy --quiet --workspace --all-targets -- -D warnings");
    Ok(clippy.quiet().run()?)
}

fn doc(sh: &Shell) -> anyhow::Result<()> {
    let doc = cmd!(sh, "cargo doc --quiet --workspace --no-deps --document-private-items");
    Ok(doc.env("RUSTDOCFLAGS", "-D warnings").quiet().run()?)
}

/// Builds the pure crates where there is no standard library, if that target is installed. A host
/// build proves nearly as much: `#![no_std]`, which tidy asks for, takes `std` out of reach there.
fn no_std(sh: &Shell) -> anyhow::Result<()> {
    let packages = PURE_CRATES.iter().flat_map(|name| ["-p", name]);
    let installed = cmd!(sh, "rustup target list --installed").quiet().ignore_stderr().read();
    if installed.is_ok_and(|targets| targets.lines().any(|target| target == BARE_TARGET)) {
        cmd!(sh, "cargo check --quiet --target {BARE_TARGET} {packages...}").quiet().run()?;
    } else {
        println!("{BARE_TARGET} is not installed: checking for this machine");
        cmd!(sh, "cargo check --quiet {packages...}").quiet().run()?;
    }
    Ok(())
}

/// Runs the workspace's tests, passes on what they say, counts them, and fails if they leave
/// anything behind.
fn cargo_test(tally: &mut Tally, selection: &[&str]) -> anyhow::Result<()> {
    let check = LeakCheck::begin()?;
    // A shell gives what it runs in the background an ignored SIGINT; a front end that finds one
    // leaves it so, as programs should, and tests that send it would wait for ever.
    let mut cargo = Command::new("env");
    cargo.args(["--default-signal", "cargo", "test", "--workspace", "--no-fail-fast"]);
    cargo.args(selection);
    if selection.contains(&"--test") && !selection.contains(&"*") {
        cargo.envs(BY_NAME);
    }
    if selection.contains(&"n") {
        // What was drawn is said for each run, also of those that went well.
        cargo.args(["--", "--nocapture"]);
    }
    cargo.current_dir(paths::root()).envs(check.environment()).stdout(Stdio::piped());
    #[expect(clippy::disallowed_methods, reason = "a chore needs none of what `os::spawn` is for")]
    let mut child = cargo.spawn().context("start cargo")?;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        println!("{line}");
        tally.add(&line);
    }
    let status = child.wait()?;
    let leaks = check.end()?;
    ensure!(leaks.is_empty(), "left behind by the tests:\n  {}", leaks.join("\n  "));
    if !status.success() {
        bail!("{} of {} tests failed", tally.failed, tally.failed + tally.passed);
    }
    Ok(())
}

impl Tally {
    /// Adds a line such as `test result: ok. 9 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = counts.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        let before = |what| {
            let at = words.iter().position(|word| *word == what)?;
            words.get(at.checked_sub(1)?)?.parse::<usize>().ok()
        };
        self.passed += before("passed").unwrap_or(0);
        self.failed += before("failed").unwrap_or(0);
        self.ignored += before("ignored").unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_test_files_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 9 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tally.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured");
        tally.add("test 100 passed ... ok");
        assert_eq!((tally.passed, tally.failed, tally.ignored), (11, 1, 1));
    }
}
