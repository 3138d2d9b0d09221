//! Replays a log: runs its session again up to a step and shows what there is then.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use sim::LogFile;

use crate::options::{Options, number};
use crate::{commit, say, tell};

pub(crate) fn replay(path: &Path, until: &str) -> Result<ExitCode, String> {
    let until: u64 = number("--until", until)?;
    let log = read(path)?;
    let session = Options::of_log(path, &log.header).and_then(|options| options.session())?;
    let mut written = log.lines.iter();
    let mut differs = None;
    let state = session.state_after(until, &mut |line| {
        let expected = written.next();
        if differs.is_none() && expected.is_none_or(|expected| expected != line) {
            let expected = expected.map_or("nothing", String::as_str);
            differs = Some(format!("the log says\n  {expected}\nbut this build does\n  {line}"));
        }
    });
    if differs.is_none()
        && let Some(line) = written.next().filter(|line| step_of(line) < until)
    {
        differs = Some(format!("the log goes on with\n  {line}\nand this build does nothing more"));
    }
    say(&state)?;
    let Some(words) = differs else { return Ok(ExitCode::SUCCESS) };
    let unknown = || "unknown".into();
    let (theirs, ours) =
        (log.header.commit.unwrap_or_else(unknown), commit().unwrap_or_else(unknown));
    tell(&format!(
        "error: this is another run: {words}\nthe log's commit is {theirs}, this build's {ours}"
    ));
    Ok(ExitCode::FAILURE)
}

/// How many steps there were before the one that a line is of, by the number that it begins with.
fn step_of(line: &str) -> u64 {
    line.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn read(path: &Path) -> Result<LogFile, String> {
    let file = File::open(path).map_err(|error| format!("open `{}`: {error}", path.display()))?;
    LogFile::read(BufReader::new(file)).map_err(|error| {
        let cause = std::error::Error::source(&error);
        let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
        let hint = "write it again with the build at hand: `simulate … --log FILE`";
        format!("`{}`: {error}{cause}\nhint: {hint}", path.display())
    })
}
