//! Random sessions by the thousand, on all cores, for a bounded time, to be continued later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sim::{Failure, LogHeader, Report, Session};

use crate::options::Options;
use crate::{caught, commit, run_logged, say, tell};

/// Seeds that one thread takes at a time.
const BLOCK: u64 = 32;

/// Runs the session of a seed and passes on the lines of its log, if they are wanted.
type RunSeed = fn(u64, Option<&mut dyn FnMut(&str)>) -> Result<Report, Failure>;

/// How far a batch is.
struct Batch {
    /// The seed that it began with, be it in an earlier run.
    start: u64,
    /// The first seed of this run.
    first: u64,
    end: u64,
    /// The next block that no thread has taken.
    next: u64,
    /// Blocks that are done though one before them is not.
    done: BTreeSet<u64>,
    /// All seeds before this are done.
    done_below: u64,
    failed: Vec<u64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let kept = options.state.as_deref().map(Kept::read).transpose()?.flatten();
    let (start, seeds) = (options.seed.unwrap_or(0), options.seeds.unwrap_or(0));
    if start.checked_add(seeds).is_none() {
        return Err(format!("--seeds: there are less than {seeds} from {start} on; give fewer"));
    }
    let batch = Mutex::new(Batch::new(start, seeds, kept));
    let deadline = deadline(options.minutes)?;
    let logs = options.logs.clone().unwrap_or_else(|| PathBuf::from("target/sim"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| work(&batch, random, deadline, &logs, options.state.as_deref()));
        }
    });
    let batch = batch.into_inner().unwrap_or_else(PoisonError::into_inner);
    batch.summary(options.state.as_deref())
}

fn random(seed: u64, sink: Option<&mut dyn FnMut(&str)>) -> Result<Report, Failure> {
    let session = Session::random(seed);
    match sink {
        Some(sink) => session.run_logged(sink),
        None => session.try_run(),
    }
}

fn deadline(minutes: Option<f64>) -> Result<Option<Instant>, String> {
    #[expect(clippy::disallowed_methods, reason = "how long it takes is no part of a session")]
    let now = Instant::now();
    let Some(minutes) = minutes else { return Ok(None) };
    let time = Duration::try_from_secs_f64(minutes * 60.0);
    let deadline = time.ok().and_then(|time| now.checked_add(time));
    deadline.map(Some).ok_or_else(|| format!("--minutes: {minutes} is no time"))
}

/// Takes one block after the other until there is none, or no time.
fn work(
    batch: &Mutex<Batch>,
    run: RunSeed,
    deadline: Option<Instant>,
    logs: &Path,
    state: Option<&Path>,
) {
    #[expect(clippy::disallowed_methods, reason = "how long it takes is no part of a session")]
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while !is_over() {
        let Some((begin, end)) = lock(batch).take() else { return };
        for seed in begin..end {
            if let Err(failure) = caught(|| run(seed, None)) {
                tell(&report(seed, run, &failure, logs));
                lock(batch).failed.push(seed);
            }
        }
        lock(batch).finish(begin, state);
    }
}

fn lock(batch: &Mutex<Batch>) -> MutexGuard<'_, Batch> {
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says which seed failed, and writes its log: of a panic, what came before it.
fn report(seed: u64, run: RunSeed, failure: &Failure, logs: &Path) -> String {
    let args = vec!["--seed".to_owned(), seed.to_string()];
    let header = LogHeader { commit: commit(), args, calibration: None };
    let path = logs.join(format!("seed-{seed}.log"));
    let made = std::fs::create_dir_all(logs).map_err(|error| error.to_string());
    let written = made.and_then(|()| run_logged(&path, header, |sink| run(seed, Some(sink))));
    let log = match written {
        Ok(_) => path.display().to_string(),
        Err(words) => format!("none, {words}"),
    };
    let commit = commit().unwrap_or_else(|| "unknown".into());
    let words = failure.violations.join("; ");
    format!("seed {seed} failed: {words}\n  commit: {commit}\n  log: {log}")
}

impl Batch {
    /// So many seeds from `start` on, without those that an earlier run of the same batch has done.
    fn new(start: u64, seeds: u64, kept: Option<Kept>) -> Batch {
        let (first, failed) = match kept {
            Some(kept) if kept.start == start => (kept.next, kept.failed),
            Some(_) | None => (start, Vec::new()),
        };
        let end = start.saturating_add(seeds).max(first);
        let done = BTreeSet::new();
        Batch { start, first, end, next: first, done, done_below: first, failed }
    }

    fn take(&mut self) -> Option<(u64, u64)> {
        let begin = self.next;
        self.next = begin.saturating_add(BLOCK).min(self.end);
        (begin < self.next).then_some((begin, self.next))
    }

    fn finish(&mut self, begin: u64, state: Option<&Path>) {
        self.done.insert(begin);
        while self.done.remove(&self.done_below) {
            self.done_below = self.done_below.saturating_add(BLOCK).min(self.end);
        }
        let Batch { start, done_below, ref failed, .. } = *self;
        if let Some(path) = state
            && let Err(error) = std::fs::write(path, Kept::text(start, done_below, failed))
        {
            tell(&format!(
                "warning: could not keep the next seed in `{}`: {error}",
                path.display()
            ));
        }
    }

    fn summary(&self, state: Option<&Path>) -> Result<ExitCode, String> {
        let Batch { first, end, done_below, failed, .. } = self;
        let failures = failed.len();
        let mut text = format!("seeds {first} to {done_below} done, {failures} failed\n");
        if failures > 0 {
            text += &format!("failed, those of earlier runs too: {failed:?}\n");
        }
        if done_below < end {
            let left = end - done_below;
            let go_on = state.map_or_else(
                || format!(": `--seed {done_below} --seeds {left}` goes on there"),
                |path| format!(", kept in {}: the same call goes on there", path.display()),
            );
            text += &format!("out of time: {left} left, the next is {done_below}{go_on}\n");
        }
        say(&text)?;
        if failures > 0 {
            tell("hint: `simulate --seed N` shows the last steps of one");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What an earlier run has left in its file: the batch's first seed and the next, on the first line,
/// then those that failed, a line each.
struct Kept {
    start: u64,
    next: u64,
    failed: Vec<u64>,
}

impl Kept {
    fn text(start: u64, next: u64, failed: &[u64]) -> String {
        let failed: String = failed.iter().map(|seed| format!("{seed}\n")).collect();
        format!("{start} {next}\n{failed}")
    }

    fn read(path: &Path) -> Result<Option<Kept>, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("read `{}`: {error}", path.display())),
        };
        let malformed =
            || format!("`{}` is no state of a batch; remove it to begin anew", path.display());
        Kept::parse(&text).map(Some).ok_or_else(malformed)
    }

    fn parse(text: &str) -> Option<Kept> {
        let mut lines = text.lines();
        let (start, next) = lines.next()?.split_once(' ')?;
        let failed: Result<_, _> = lines.map(str::parse).collect();
        Some(Kept { start: start.parse().ok()?, next: next.parse().ok()?, failed: failed.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use sim::LogFile;

    use super::*;

    /// Seed 7 does what must not be, seed 35 panics.
    fn invented(seed: u64, sink: Option<&mut dyn FnMut(&str)>) -> Result<Report, Failure> {
        if let Some(sink) = sink {
            sink("the last step");
        }
        let violations = vec!["a fence was released early".to_owned(), "twice".to_owned()];
        match seed {
            7 => Err(Failure { violations, log: Vec::new(), report: Box::default() }),
            35 => panic!("index {seed} is out of bounds"),
            _ => Ok(Report::default()),
        }
    }

    #[test]
    fn a_seed_that_fails_or_panics_is_named_and_the_others_are_run() {
        let dir = tempfile::tempdir().unwrap();
        let batch = Mutex::new(Batch::new(0, 40, None));
        work(&batch, invented, None, dir.path(), None);
        let batch = batch.into_inner().unwrap();
        assert_eq!((batch.failed, batch.done_below), (vec![7, 35], 40));
    }

    #[test]
    fn a_failure_is_told_with_its_seed_the_commit_and_a_log_that_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        let commit = commit().unwrap_or_else(|| "unknown".into());
        for (seed, words) in [
            (7, "a fence was released early; twice"),
            (35, "the session panicked: index 35 is out of bounds"),
        ] {
            let failure = caught(|| invented(seed, None)).unwrap_err();
            let path = logs.join(format!("seed-{seed}.log"));
            let told = report(seed, invented, &failure, &logs);
            let log = path.display();
            let expected = format!("seed {seed} failed: {words}\n  commit: {commit}\n  log: {log}");
            assert_eq!(told, expected);
            let file = std::fs::File::open(&path).unwrap();
            let log = LogFile::read(BufReader::new(file)).unwrap();
            assert_eq!(log.lines, ["the last step"]);
            assert_eq!(log.header.args, ["--seed", &seed.to_string()]);
        }
    }

    #[test]
    fn a_batch_goes_on_where_it_was_and_another_begins_with_its_own_seed() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let begin = |start, seeds| Batch::new(start, seeds, Kept::read(&state).unwrap());
        let range = |batch: &Batch| (batch.first, batch.end);
        let mut batch = begin(5, 1_000);
        assert_eq!(range(&batch), (5, 1_005));
        let (block, _) = batch.take().unwrap();
        batch.failed.push(6);
        batch.finish(block, Some(&state));
        let again = begin(5, 1_000);
        assert_eq!((range(&again), again.failed), ((5 + BLOCK, 1_005), vec![6]));
        for start in [0, 4, 6, 500] {
            let other = begin(start, 1_000);
            assert_eq!((range(&other), other.failed), ((start, start + 1_000), vec![]));
        }
    }

    #[test]
    fn a_state_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert!(Kept::read(&state).unwrap().is_none());
        for text in ["", "7\n", "5 x\n", "5 37\nx\n"] {
            std::fs::write(&state, text).unwrap();
            assert!(Kept::read(&state).err().unwrap().contains("remove it"), "{text}");
        }
    }
}
