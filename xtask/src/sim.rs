//! Sessions in virtual time: a large one, or random ones for a while.

use anyhow::Context;
use std::time::{SystemTime, UNIX_EPOCH};
use xshell::{Shell, cmd};

use crate::paths;

/// Seeds that are run always: some seconds.
const FIXED_SEEDS: &str = "2000";

/// New seeds that are run beside them, and for how long at most.
const NEW_SEEDS: &str = "20000";
const NEW_MINUTES: &str = "0.25";

/// Runs `simulate` with these words. Seeds are kept, so that the next call goes on.
pub(crate) fn sim(sh: &Shell, words: &[&str]) -> anyhow::Result<()> {
    // Seeds that another commit has passed tell nothing of this one.
    let state = paths::target().join("sim").join(format!("next-seed-{}", commit(sh)));
    let kept = if words.contains(&"--seeds") && !words.contains(&"--state") {
        std::fs::create_dir_all(paths::target().join("sim")).context("create target/sim")?;
        vec!["--state".to_owned(), state.display().to_string()]
    } else {
        vec![]
    };
    simulate(sh, &[words, &kept.iter().map(String::as_str).collect::<Vec<_>>()].concat())
}

/// Runs the fixed seeds, then new ones, which the time chooses.
pub(crate) fn seeds(sh: &Shell) -> anyhow::Result<()> {
    simulate(sh, &["--seeds", FIXED_SEEDS])?;
    #[expect(clippy::disallowed_methods, reason = "a new seed every time is what is wanted")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("read the clock")?;
    let first = now.as_secs().to_string();
    println!("new seeds from {first}");
    simulate(sh, &["--seed", &first, "--seeds", NEW_SEEDS, "--minutes", NEW_MINUTES])
}

fn simulate(sh: &Shell, words: &[&str]) -> anyhow::Result<()> {
    let commit = commit(sh);
    let logs = paths::target().join("sim");
    let logs = if words.contains(&"--seeds") && !words.contains(&"--logs") {
        vec!["--logs".to_owned(), logs.display().to_string()]
    } else {
        vec![]
    };
    // A large session runs as fast as it can; seeds keep the assertions of the development profile.
    let profile = if words.contains(&"--agents") { "release" } else { "dev" };
    let simulate = cmd!(
        sh,
        "cargo run --quiet --profile {profile} -p sim --bin simulate -- {words...} {logs...}"
    );
    Ok(simulate.quiet().env("CONVOKE_COMMIT", commit).run()?)
}

/// The commit, and whether files differ from it.
fn commit(sh: &Shell) -> String {
    let describe = cmd!(sh, "git describe --always --dirty --exclude=* --abbrev=12");
    describe.quiet().ignore_stderr().read().unwrap_or_default()
}
