//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use model::Rank;
use sim::{Calibration, Distribution, Launch, Script, Session};

pub(crate) const USAGE: &str = "\
usage: simulate [--agents N] [--tree T] [--tasks N] [--latency-ms L] [--gap-ms G] [--link-ms L]
                [--calibration FILE] [--seed S] [--log FILE]
       simulate --seeds K [--seed S] [--minutes M] [--state FILE] [--logs DIR]
       simulate replay LOG --until STEP
  One job on N agents; with --seed alone the random session of that seed. With --seeds: random
  sessions with random faults, seeds S up to S+K, for at most M minutes; FILE keeps the next seed,
  and a failed session's log goes to DIR. A replay runs the session of a log again, checks that it
  is the same, and shows what there is after so many steps.";

/// The most agents whose tasks exchange cards.
const CARDS_MAX: u32 = 10_000;

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
    calibration: Option<PathBuf>,
    pub(crate) seed: Option<u64>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) seeds: Option<u64>,
    pub(crate) minutes: Option<f64>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) logs: Option<PathBuf>,
    /// The words that describe the session, without those that say what to do with it.
    session_args: Vec<String>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let value = args.next().ok_or(format!("{name} needs a value"))?;
            if !options.set_action(name, value)? {
                options.set_session(name, value)?;
                options.session_args.extend([name.clone(), value.clone()]);
            }
        }
        Ok(options)
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
            "--agents" => self.agents = Some(number(name, value)?),
            "--tree" => {
                value.parse::<model::Tree>().map_err(|error| error.to_string())?;
                self.tree = Some(value.into());
            }
            "--tasks" => self.tasks = Some(number(name, value)?),
            "--latency-ms" => self.latency = Some(milliseconds(name, value)?),
            "--gap-ms" => self.gap = Some(milliseconds(name, value)?),
            "--link-ms" => self.link = Some(milliseconds(name, value)?),
            "--calibration" => self.calibration = Some(value.into()),
            "--seed" => self.seed = Some(number(name, value)?),
            _ => return Err(format!("`{name}` is no option")),
        }
        Ok(())
    }

    pub(crate) fn session_args(&self) -> Vec<String> {
        self.session_args.clone()
    }

    /// The session that the options describe: a random one if they say nothing but a seed.
    pub(crate) fn session(&self) -> Result<Session, String> {
        match (self.seed, self.session_args.len()) {
            (Some(seed), 2) => Ok(Session::random(seed)),
            _ => self.described(),
        }
    }

    fn described(&self) -> Result<Session, String> {
        let agents = self.agents.unwrap_or(16);
        // Every agent holds every card, so a large session exchanges none.
        let script = if agents <= CARDS_MAX { Script::mpi() } else { Script::new() };
        let session = Session::of(agents)
            .seed(self.seed.unwrap_or(0))
            .tree(self.tree.as_deref().unwrap_or("adaptive"))
            .tasks(self.tasks.unwrap_or(1))
            .script(script);
        let calibration = match &self.calibration {
            Some(path) => Calibration::load(path).map_err(|error| {
                let cause = std::error::Error::source(&error);
                let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
                format!("{error}{cause}\nhint: {}", error.hint())
            })?,
            None => usual(),
        };
        let mut session = session.calibration(calibration);
        if agents > CARDS_MAX {
            for rank in (0..agents).step_by(WRITER_STEP) {
                session = session.task(Rank(rank), Script::new().output(640));
            }
        }
        Ok(session.calibrate(|machines| self.change(machines)))
    }

    /// What is said on the command line counts more than a file.
    fn change(&self, machines: &mut Calibration) {
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

fn usual() -> Calibration {
    let mut machines = Calibration::constant(Duration::from_millis(100), Duration::from_millis(5));
    machines.link.latency_us = Distribution::constant(1_000.0);
    machines
}

pub(crate) fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: `{text}` is no number in range"))
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    const MS_MAX: f64 = 1e8;
    let ms: f64 = number(name, text)?;
    if !(0.0..=MS_MAX).contains(&ms) {
        return Err(format!("{name}: `{text}` is not between 0 and {MS_MAX} milliseconds"));
    }
    Ok(Duration::from_secs_f64(ms / 1e3))
}
