//! Runs sessions in virtual time: one that the options describe, random ones by the thousand, or
//! one whose log there is.

mod batch;
mod exchange;
mod memory;
mod options;
mod replay;

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use model::AgentId;
use sim::{Failure, LogHeader, LogWriter, Report};

use crate::options::{Options, USAGE};

/// A command that can't be done.
pub(crate) const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--help" | "-h"] => say(&format!("{USAGE}\n")).map(|()| ExitCode::SUCCESS),
        ["replay", log, "--until", step] => replay::replay(Path::new(log), step),
        ["exchange", ..] => {
            Options::parse(&args[1..]).and_then(|options| exchange::compare(&options))
        }
        ["replay", ..] => Err("replay needs a log and `--until STEP`".into()),
        _ => Options::parse(&args).and_then(|options| simulate(&options)),
    };
    done.unwrap_or_else(|words| {
        tell(&format!("error: {words}\n{USAGE}"));
        ExitCode::from(USAGE_ERROR)
    })
}

fn simulate(options: &Options) -> Result<ExitCode, String> {
    if options.pages.is_some() {
        return Err("--pages is for exchange".into());
    }
    if options.seeds.is_some() {
        return batch::run(options);
    }
    let session = options.session()?;
    let result = match &options.log {
        Some(path) => run_logged(path, options.log_header(), |sink| session.run_logged(sink))?,
        None => caught(|| session.try_run()),
    };
    Ok(match result {
        Ok(report) => {
            say(&format!("{}\n{}", summary(&report), memory_line(&report)))?;
            ExitCode::SUCCESS
        }
        Err(failure) => {
            tell(&format!("{failure}\n{}", whereabouts(options)));
            ExitCode::FAILURE
        }
    })
}

/// Runs a session and writes its log, which is whole even where the session panics.
pub(crate) fn run_logged(
    path: &Path,
    header: LogHeader,
    run: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Report, Failure>,
) -> Result<Result<Report, Failure>, String> {
    let failed = |error: std::io::Error| format!("write log `{}`: {error}", path.display());
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut log = LogWriter::new(file, &header);
    let result = caught(|| run(&mut |line| log.line(line)));
    log.finish().map_err(failed)?;
    Ok(result)
}

/// Runs a session; a panic is a failure like another. (The release profile aborts instead.)
pub(crate) fn caught(run: impl FnOnce() -> Result<Report, Failure>) -> Result<Report, Failure> {
    // Nothing of a session is used after its panic but the lines of its log.
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let words = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let violations = vec![format!("the session panicked: {}", words.unwrap_or("no words"))];
        Err(Failure { violations, log: Vec::new(), report: Box::default() })
    })
}

/// What it takes to see a failed session again.
fn whereabouts(options: &Options) -> String {
    let commit = commit().unwrap_or_else(|| "unknown".into());
    let args = options.session_args().join(" ");
    let log = options.log.as_ref().map_or_else(
        || format!("none; `simulate {args} --log FILE` writes it"),
        |path| path.display().to_string(),
    );
    format!("session: {args}\ncommit: {commit}\nlog: {log}")
}

/// The commit of this build, if whoever runs it says so.
pub(crate) fn commit() -> Option<String> {
    let commit = std::env::var("CONVOKE_COMMIT").ok();
    commit.filter(|commit| !commit.is_empty() && !commit.contains(char::is_whitespace))
}

/// Writes to standard output. Whoever reads no more, such as `head`, has seen enough.
pub(crate) fn say(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("write to standard output: {error}"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a line to standard error. Where nobody reads that, nobody can be told so.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn memory_line(report: &Report) -> String {
    let agents = report.starts.len().max(1) as u64;
    let line = |bytes| format!("memory at most {bytes} bytes, {} per agent\n", bytes / agents);
    memory::peak_bytes().map_or(String::new(), line)
}

fn summary(report: &Report) -> String {
    let ms = |time: model::Time| Duration::from_nanos(time.as_nanos()).as_secs_f64() * 1e3;
    let late = |time: Option<model::Time>| {
        time.map_or("never".into(), |time| format!("{:.1} ms", ms(time)))
    };
    let agents = report.starts.keys().filter(|&&agent| agent != AgentId::HEAD).count();
    let sent: u64 = report.messages.values().sum();
    format!(
        "agents {agents}, exit status {}, last agent up {}, head ended {}, all gone {:.1} ms, \
         messages {sent}, links at most {}, steps {}, faults struck {}, hash {:016x}",
        report.code.map_or("none".into(), |code| code.to_string()),
        late(report.welcomed_at),
        late(report.ended_at),
        ms(report.empty_at),
        report.links_max,
        report.steps,
        report.faults_struck,
        report.hash,
    )
}
