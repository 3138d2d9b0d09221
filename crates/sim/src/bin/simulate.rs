//! Runs sessions in virtual time: one that the options describe, or random ones by the hundred.

use std::process::ExitCode;
use std::time::Duration;

use model::AgentId;
use sim::{Report, Script, Session};

const USAGE: &str =
    "usage: simulate [--agents N] [--tree T] [--tasks N] [--latency-ms L] [--gap-ms G] \
                     [--link-ms L] [--seed S] [--seeds K]
  Without --seeds: one MPI-like job on N agents. With --seeds: random sessions with random faults,
  seeds S up to S+K; with --seed alone the random session of that seed.";

/// The most agents whose tasks exchange cards.
const CARDS_MAX: u32 = 1_000;

/// What the command line says.
struct Options {
    agents: Option<u32>,
    tree: String,
    tasks: u32,
    latency: Duration,
    gap: Duration,
    link: Duration,
    seed: Option<u64>,
    seeds: Option<u64>,
}

#[expect(clippy::print_stderr, reason = "a command line tool")]
fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(options) => simulate(&options),
        Err(words) => {
            eprintln!("error: {words}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn simulate(options: &Options) -> ExitCode {
    let seed = options.seed.unwrap_or(0);
    match (options.seeds, options.agents, options.seed) {
        (Some(seeds), _, _) => run_seeds(seed, seeds),
        (None, None, Some(seed)) => run_one(&Session::random(seed)),
        (None, agents, _) => run_one(&described(options, agents.unwrap_or(16)).seed(seed)),
    }
}

fn described(options: &Options, agents: u32) -> Session {
    // Every agent holds every card, so a large session exchanges none.
    let script = if agents <= CARDS_MAX { Script::mpi() } else { Script::new().output(64) };
    Session::of(agents)
        .tree(&options.tree)
        .tasks(options.tasks)
        .script(script)
        .shells_take(options.latency, options.gap)
        .links_take(options.link)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]
fn run_one(session: &Session) -> ExitCode {
    match session.try_run() {
        Ok(report) => {
            println!("{}", summary(&report));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{session:?}\n{failure}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]
fn run_seeds(first: u64, count: u64) -> ExitCode {
    let mut failed = 0_u64;
    for seed in first..first + count {
        if let Err(failure) = Session::random(seed).try_run() {
            failed += 1;
            eprintln!("seed {seed} failed: {}", failure.violations.join("; "));
        }
    }
    println!("{count} seeds from {first}: {failed} failed");
    if failed > 0 {
        eprintln!("hint: `simulate --seed N` shows the last steps of one");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
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

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        agents: None,
        tree: "binomial".into(),
        tasks: 1,
        latency: Duration::from_millis(100),
        gap: Duration::from_millis(5),
        link: Duration::from_millis(1),
        seed: None,
        seeds: None,
    };
    while let Some(name) = args.next() {
        let value = args.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--agents" => options.agents = Some(number(&name, &value)?),
            "--tree" => {
                value.parse::<model::Tree>().map_err(|error| error.to_string())?;
                options.tree = value;
            }
            "--tasks" => options.tasks = number(&name, &value)?,
            "--latency-ms" => options.latency = milliseconds(&name, &value)?,
            "--gap-ms" => options.gap = milliseconds(&name, &value)?,
            "--link-ms" => options.link = milliseconds(&name, &value)?,
            "--seed" => options.seed = Some(number(&name, &value)?),
            "--seeds" => options.seeds = Some(number(&name, &value)?),
            _ => return Err(format!("`{name}` is no option")),
        }
    }
    Ok(options)
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: `{text}` is no number in range"))
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    let ms: f64 = number(name, text)?;
    Duration::try_from_secs_f64(ms / 1e3).map_err(|_| format!("{name}: `{text}` is no time"))
}
