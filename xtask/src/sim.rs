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

/// How long a batch runs where nothing else is said; 100,000 seeds take less on two cores.
const MINUTES: &str = "30";

/// Runs `simulate` with these words. A batch has an end; where that of a commit is is kept, so that the
/// next call goes on.
pub(crate) fn sim(sh: &Shell, words: &[&str]) -> anyhow::Result<()> {
    let kept = match state_name(&commit(sh)) {
        Some(name) if words.contains(&"--seeds") && !words.contains(&"--state") => {
            let dir = paths::target().join("sim");
            std::fs::create_dir_all(&dir).context("create target/sim")?;
            vec!["--state".to_owned(), dir.join(name).display().to_string()]
        }
        Some(_) | None => vec![],
    };
    let is_unbounded = words.contains(&"--seeds") && !words.contains(&"--minutes");
    let bound: &[&str] = if is_unbounded { &["--minutes", MINUTES] } else { &[] };
    simulate(sh, &[words, bound, &kept.iter().map(String::as_str).collect::<Vec<_>>()].concat())
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

/// What the commit ends in when files differ from it.
const DIRTY: &str = "-dirty";

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

/// The file that keeps how far a batch is. Seeds that another commit has passed tell nothing of this
/// one, and files that differ from their commit may differ again by the next call: those keep nothing.
fn state_name(commit: &str) -> Option<String> {
    let is_known = !commit.is_empty() && !commit.ends_with(DIRTY);
    is_known.then(|| format!("next-seed-{commit}"))
}

/// The commit, and whether files differ from it.
fn commit(sh: &Shell) -> String {
    let describe = cmd!(sh, "git describe --always --dirty={DIRTY} --exclude=* --abbrev=12");
    describe.quiet().ignore_stderr().read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_commit_that_no_file_differs_from_keeps_a_state() {
        assert_eq!(state_name("a6772080395c").as_deref(), Some("next-seed-a6772080395c"));
        assert_eq!(state_name("a6772080395c-dirty"), None);
        assert_eq!(state_name(""), None);
    }
}
