//! The command line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use model::Rank;
use sim::{Calibration, CalibrationError, Distribution, Launch, LogHeader, Script, Session};

use crate::{commit, memory};

pub(crate) const USAGE: &str = "\
usage: simulate [--agents N] [--tree T] [--tasks N] [--latency-ms L] [--gap-ms G] [--link-ms L]
                [--calibration FILE] [--seed S] [--log FILE]
       simulate --seeds K [--seed S] [--minutes M] [--state FILE] [--logs DIR]
       simulate exchange [--agents N] [--tasks N] [--tree T] [--link-ms L] [--gbit-s B] [--pages N]
                [--calibration FILE]
       simulate replay LOG --until STEP
  One job on N agents; with --seed alone the random session of that seed. With --seeds: random
  sessions with random faults, seeds S up to S+K, for at most M minutes; FILE keeps the next seed,
  and a failed session's log goes to DIR. A replay runs the session of a log again, checks that it
  is the same, and shows what there is after so many steps. A log holds its calibration. An
  exchange tells what fences, gets and allgathers of such a job take; with --pages what a fence takes
  into which each task puts so many values of 1,000 bytes. Links and hosts send B Gbit/s.";

/// The most agents whose tasks exchange cards.
const CARDS_MAX: u32 = 10_000;

/// What a card takes in each agent; `tests/scale.rs` measures it.
const BYTES_PER_CARD: u64 = 25;

/// One in so many tasks of a large session writes something.
const WRITER_STEP: usize = 1_000;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    agents: Option<u32>,
    tree: Option<String>,
    tasks: Option<u32>,
    latency: Option<Duration>,
    gap: Option<Duration>,
    link: Option<Duration>,
    /// What links carry and hosts send, in bytes a second.
    bandwidth: Option<u64>,
    /// Values of 1,000 bytes that each task puts into a fence.
    pub(crate) pages: Option<u32>,
    calibration: Option<CalibrationText>,
    pub(crate) seed: Option<u64>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) seeds: Option<u64>,
    pub(crate) minutes: Option<f64>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) logs: Option<PathBuf>,
    /// The words that describe the session, without those that say what to do with it.
    session_args: Vec<String>,
}

/// A calibration, and the file that it is from.
#[derive(Clone, Debug)]
struct CalibrationText {
    path: PathBuf,
    text: String,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut given = BTreeSet::new();
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if !given.insert(name) {
                return Err(format!("{name} is given twice"));
            }
            let value = args.next().filter(|value| !value.starts_with("--"));
            let value = value.ok_or(format!("{name} needs a value"))?;
            if name == "--calibration" {
                options.calibration = Some(CalibrationText::read(value.into())?);
            } else if !options.set_action(name, value)? {
                options.set_session(name, value)?;
                options.session_args.extend([name.clone(), value.clone()]);
            }
        }
        options.check()?;
        Ok(options)
    }

    /// The options that a log names, and the calibration that it holds.
    pub(crate) fn of_log(path: &Path, header: &LogHeader) -> Result<Options, String> {
        let mut options = Options::parse(&header.args)?;
        let text = header.calibration.clone();
        options.calibration = text.map(|text| CalibrationText { path: path.into(), text });
        Ok(options)
    }

    /// What is enough to run the session again.
    pub(crate) fn log_header(&self) -> LogHeader {
        let calibration = self.calibration.as_ref().map(|calibration| calibration.text.clone());
        LogHeader { commit: commit(), args: self.session_args.clone(), calibration }
    }

    /// Refuses what would be ignored.
    fn check(&self) -> Result<(), String> {
        let is_batch = self.seeds.is_some();
        let seed_words = if self.seed.is_some() { 2 } else { 0 };
        let is_described = self.session_args.len() > seed_words || self.calibration.is_some();
        if is_batch && is_described {
            return Err("with --seeds, sessions are random: only --seed says which".into());
        }
        if is_batch && self.log.is_some() {
            return Err("with --seeds, logs go to --logs, and only those of failed seeds".into());
        }
        let of_batches = self.minutes.is_some() || self.state.is_some() || self.logs.is_some();
        if !is_batch && of_batches {
            return Err("--minutes, --state and --logs are for --seeds".into());
        }
        Ok(())
    }

    /// What to do with the session.
    fn set_action(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "--log" => self.log = Some(value.into()),
            "--seeds" => self.seeds = Some(number(name, value)?),
            "--minutes" => self.minutes = Some(number(name, value)?),
            "--state" => self.state = Some(value.into()),
            "--logs" => self.logs = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What session it is.
    fn set_session(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--agents" => self.agents = Some(at_least_one(name, value)?),
            "--tree" => {
                value.parse::<model::Tree>().map_err(|error| error.to_string())?;
                self.tree = Some(value.into());
            }
            "--tasks" => self.tasks = Some(at_least_one(name, value)?),
            "--latency-ms" => self.latency = Some(milliseconds(name, value)?),
            "--gap-ms" => self.gap = Some(milliseconds(name, value)?),
            "--link-ms" => self.link = Some(milliseconds(name, value)?),
            "--gbit-s" => self.bandwidth = Some(125_000_000 * number::<u64>(name, value)?.max(1)),
            "--pages" => self.pages = Some(at_least_one(name, value)?),
            "--seed" => self.seed = Some(number(name, value)?),
            _ => return Err(format!("`{name}` is no option")),
        }
        Ok(())
    }

    /// The words that describe the session.
    pub(crate) fn session_args(&self) -> Vec<String> {
        let calibration = self.calibration.iter();
        let calibration =
            calibration.flat_map(|it| ["--calibration".to_owned(), it.path.display().to_string()]);
        self.session_args.iter().cloned().chain(calibration).collect()
    }

    /// The session that the options describe: a random one if they say nothing but a seed.
    pub(crate) fn session(&self) -> Result<Session, String> {
        match (self.seed, self.session_args.len(), &self.calibration) {
            (Some(seed), 2, None) => Ok(Session::random(seed)),
            _ => self.described(),
        }
    }

    /// Bytes that the session takes at most.
    fn bytes_needed(&self) -> u64 {
        let agents = u64::from(self.agents());
        let tasks = agents.saturating_mul(self.tasks().into());
        let cards = if self.has_cards() { agents.saturating_mul(tasks) } else { 0 };
        sim::bytes_needed(agents, tasks).saturating_add(cards.saturating_mul(BYTES_PER_CARD))
    }

    pub(crate) fn agents(&self) -> u32 {
        self.agents.unwrap_or(16)
    }

    /// On each agent.
    pub(crate) fn tasks(&self) -> u32 {
        self.tasks.unwrap_or(1)
    }

    /// Every agent holds every card, so a large session exchanges none.
    pub(crate) fn has_cards(&self) -> bool {
        self.agents() <= CARDS_MAX
    }

    fn described(&self) -> Result<Session, String> {
        if self.has_cards() {
            return self.session_of(Script::mpi());
        }
        let writers = (0..self.agents()).step_by(WRITER_STEP).map(Rank);
        let session = self.session_of(Script::new())?;
        Ok(writers.fold(session, |session, rank| session.task(rank, Script::new().output(640))))
    }

    /// The session in which all tasks do this.
    pub(crate) fn session_of(&self, script: Script) -> Result<Session, String> {
        memory::check(self.bytes_needed(), memory::free_bytes())?;
        let session = Session::of(self.agents())
            .seed(self.seed.unwrap_or(0))
            .tree(self.tree.as_deref().unwrap_or("adaptive"))
            .tasks(self.tasks())
            .script(script);
        Ok(session.calibration(self.machines()?))
    }

    /// What things take.
    pub(crate) fn machines(&self) -> Result<Calibration, String> {
        let mut machines = match &self.calibration {
            Some(CalibrationText { path, text }) => {
                Calibration::from_toml(path, text).map_err(|error| words(&error))?
            }
            None => usual(),
        };
        self.change(&mut machines);
        Ok(machines)
    }

    /// What is said on the command line counts more than a file.
    fn change(&self, machines: &mut Calibration) {
        if self.bandwidth.is_some() {
            machines.link.bandwidth_bytes_per_s = self.bandwidth;
            machines.link.host_bandwidth_bytes_per_s = self.bandwidth;
        }
        if self.latency.is_some() || self.gap.is_some() {
            let latency = self.latency.unwrap_or(machines.launch.latency());
            let gap = self.gap.unwrap_or(machines.launch.gap());
            machines.launch = Launch::constant(latency, gap);
        }
        if let Some(link) = self.link {
            machines.link.latency_us = Distribution::constant(link.as_secs_f64() * 1e6);
        }
    }
}

impl CalibrationText {
    fn read(path: PathBuf) -> Result<CalibrationText, String> {
        let read = std::fs::read_to_string(&path);
        let text =
            read.map_err(|source| words(&CalibrationError::Read { path: path.clone(), source }))?;
        Ok(CalibrationText { path, text })
    }
}

fn words(error: &CalibrationError) -> String {
    let cause = std::error::Error::source(error);
    let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
    format!("{error}{cause}\nhint: {}", error.hint())
}

fn usual() -> Calibration {
    let mut machines = Calibration::constant(Duration::from_millis(100), Duration::from_millis(5));
    machines.link.latency_us = Distribution::constant(1_000.0);
    machines
}

pub(crate) fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: `{text}` is no number in range"))
}

fn at_least_one(name: &str, text: &str) -> Result<u32, String> {
    match number(name, text)? {
        0 => Err(format!("{name}: there must be at least one")),
        some => Ok(some),
    }
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    const MS_MAX: f64 = 1e8;
    let ms: f64 = number(name, text)?;
    if !(0.0..=MS_MAX).contains(&ms) {
        return Err(format!("{name}: `{text}` is not between 0 and {MS_MAX} milliseconds"));
    }
    Ok(Duration::from_secs_f64(ms / 1e3))
}
