//! Random sessions by the thousand, on all cores, for a bounded time, to be continued later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sim::Session;

use crate::options::Options;
use crate::{commit, run_logged};

/// Seeds that one thread takes at a time.
const BLOCK: u64 = 32;

/// How far a batch is.
struct Batch {
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
    let (first, failed) = match kept {
        Some(kept) => (kept.next, kept.failed),
        None => (options.seed.unwrap_or(0), Vec::new()),
    };
    let end = options.seed.unwrap_or(0).saturating_add(options.seeds.unwrap_or(0)).max(first);
    let batch = Mutex::new(Batch {
        first,
        end,
        next: first,
        done: BTreeSet::new(),
        done_below: first,
        failed,
    });
    let deadline = deadline(options.minutes)?;
    let logs = options.logs.clone().unwrap_or_else(|| PathBuf::from("target/sim"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| work(&batch, deadline, &logs, options.state.as_deref()));
        }
    });
    let batch = batch.into_inner().map_err(|_| "a session panicked".to_owned())?;
    Ok(batch.summary(options.state.as_deref()))
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
fn work(batch: &Mutex<Batch>, deadline: Option<Instant>, logs: &Path, state: Option<&Path>) {
    #[expect(clippy::disallowed_methods, reason = "how long it takes is no part of a session")]
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while !is_over() {
        let Some((begin, end)) = lock(batch).take() else { return };
        for seed in begin..end {
            if let Err(failure) = Session::random(seed).try_run() {
                report(seed, &failure.violations, logs);
                lock(batch).failed.push(seed);
            }
        }
        lock(batch).finish(begin, state);
    }
}

fn lock(batch: &Mutex<Batch>) -> std::sync::MutexGuard<'_, Batch> {
    batch.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says which seed failed, and writes its log.
fn report(seed: u64, violations: &[String], logs: &Path) {
    let args = vec!["--seed".to_owned(), seed.to_string()];
    let path = logs.join(format!("seed-{seed}.log"));
    let made = std::fs::create_dir_all(logs).map_err(|error| error.to_string());
    let written = made.and_then(|()| run_logged(&Session::random(seed), &path, args));
    let log = match written {
        Ok(_) => path.display().to_string(),
        Err(words) => format!("none, {words}"),
    };
    let commit = commit().unwrap_or_else(|| "unknown".into());
    eprintln!("seed {seed} failed: {}\n  commit: {commit}\n  log: {log}", violations.join("; "));
}

impl Batch {
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
        if let Some(path) = state
            && let Err(error) = std::fs::write(path, Kept::text(self.done_below, &self.failed))
        {
            eprintln!("warning: could not keep the next seed in `{}`: {error}", path.display());
        }
    }

    fn summary(&self, state: Option<&Path>) -> ExitCode {
        let Batch { first, end, done_below, failed, .. } = self;
        let failures = failed.len();
        println!("seeds {first} to {done_below} done, {failures} failed");
        if failures > 0 {
            println!("failed, those of earlier runs too: {failed:?}");
        }
        if done_below < end {
            let kept = state.map_or(String::new(), |path| format!(", kept in {}", path.display()));
            println!("out of time: {} left, the next is {done_below}{kept}", end - done_below);
        }
        if failures > 0 {
            eprintln!("hint: `simulate --seed N` shows the last steps of one");
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}

/// What an earlier run has left in its file: the next seed, then those that failed, a line each.
struct Kept {
    next: u64,
    failed: Vec<u64>,
}

impl Kept {
    fn text(next: u64, failed: &[u64]) -> String {
        std::iter::once(&next).chain(failed).map(|seed| format!("{seed}\n")).collect()
    }

    fn read(path: &Path) -> Result<Option<Kept>, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("read `{}`: {error}", path.display())),
        };
        let malformed = || format!("`{}` holds no seed; remove it to begin anew", path.display());
        let seeds: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
        let seeds = seeds.map_err(|_| malformed())?;
        let (&next, failed) = seeds.split_first().ok_or_else(malformed)?;
        Ok(Some(Kept { next, failed: failed.to_vec() }))
    }
}
