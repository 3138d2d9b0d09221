//! `convoke calibrate`: what starts cost on real hosts, for the simulator and the planner.
//!
//! One session over a flat tree, so that all starts are the head's and their times are of one clock.
//! It begins all of them at once; they queue for whatever a start keeps busy, so the i-th agent is up
//! after i gaps and one latency. The gap is the median distance between agents that come up one after
//! the other; what is left of each agent's time is its latency.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use agent::run_head;
use clap::Parser;
use model::{AgentId, Time};
use observe::Span;
use sim::{Calibration, Distribution, Launch};

use crate::args::{CalibrateArgs, Cli, Command, RunArgs};
use crate::exit_code;
use crate::output_file::OutputFile;
use crate::screen::{Screen, ScreenOptions};
use crate::setup::{Layout, head_config};
use crate::streams::{print, say};

/// Fewer samples say nothing of how a latency varies.
const SAMPLES_MIN: usize = 4;

/// What varies by less is constant.
const SIGMA_MIN: f64 = 0.01;

/// What was measured.
#[derive(Debug, PartialEq)]
struct Measured {
    latencies_ms: Vec<f64>,
    gap_ms: f64,
}

/// Measures, and writes the file.
pub(crate) fn calibrate(args: &CalibrateArgs) -> u8 {
    match try_calibrate(args) {
        Ok(code) => code,
        Err(words) => {
            say(&format!("error: {words}\n"));
            exit_code::USAGE
        }
    }
}

fn try_calibrate(args: &CalibrateArgs) -> Result<u8, String> {
    let run = run_args(args)?;
    let layout = Layout::of(&run).map_err(|error| agent::error_chain(&error))?;
    let mut config = head_config(&run, &layout).map_err(|error| agent::error_chain(&error))?;
    config.session.marks = true;
    let file = OutputFile::create(&args.output).map_err(|error| agent::error_chain(&error))?;
    let names = config.names.clone();
    let options = ScreenOptions { label: false, verbose: false, quiet: false };
    let mut screen = Screen::new(names.clone(), options);
    let program = crate::report::Program::of(&config);
    let head = run_head(config, &mut screen).map_err(|error| agent::error_chain(&error))?;
    say(&crate::report::outcome(&head.outcome, &names, &program, false));
    if head.code != 0 {
        return Ok(head.code);
    }
    let measured = measured(&screen.timeline.spans).ok_or("no agent was seen to join")?;
    let calibration = fit(&measured);
    file.write(&calibration.to_toml()).map_err(|error| agent::error_chain(&error))?;
    Ok(print(&summary(&measured, &calibration)))
}

/// The options of the `convoke run` that is measured.
fn run_args(args: &CalibrateArgs) -> Result<Box<RunArgs>, String> {
    let mut words: Vec<OsString> =
        ["convoke", "run", "--tree", "flat", "--stdin", "none"].map(OsString::from).to_vec();
    let mut option = |name: &str, value: Option<OsString>| {
        words.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
    };
    option("--window", Some(u32::MAX.to_string().into()));
    option("--hosts", args.hosts.clone().map(Into::into));
    option("--hostfile", args.hostfile.clone().map(Into::into));
    option("--shell", args.shell.clone().map(Into::into));
    option("--agent-path", args.agent_path.clone());
    for arg in &args.ssh_arg {
        option("--ssh-arg", Some(arg.into()));
    }
    words.extend(["--ppn", "1", "--", "true"].map(OsString::from));
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Run(run) => Ok(run),
        Command::Sim(_) | Command::Plan(_) | Command::Calibrate(_) => {
            Err("the words of a run are no run".to_owned())
        }
    }
}

/// Takes the head's marks apart. Agents that were started twice are left out.
fn measured(spans: &BTreeMap<AgentId, Span>) -> Option<Measured> {
    let mut up: Vec<Time> = spans.values().filter_map(|span| span.welcomed).collect();
    up.sort();
    let distances = up.windows(2).map(|pair| ms(pair[1].since(pair[0]))).collect();
    let gap_ms = median(distances).unwrap_or_default();
    let once = spans.values().filter_map(|span| match (&span.started[..], span.welcomed) {
        ([begun], Some(welcomed)) => Some((*begun, welcomed)),
        _ => None,
    });
    let mut starts: Vec<(Time, Time)> = once.collect();
    starts.sort();
    let first = starts.first()?.0;
    let latencies_ms = (1..)
        .zip(&starts)
        .map(|(nth, (_, welcomed))| ms(welcomed.since(first)) - f64::from(nth) * gap_ms)
        .filter(|latency| *latency > 0.0);
    Some(Measured { latencies_ms: latencies_ms.collect(), gap_ms })
}

fn fit(measured: &Measured) -> Calibration {
    let mut calibration = Calibration::default();
    let n = measured.latencies_ms.len();
    calibration.origin = format!("convoke calibrate, {n} starts; links are assumed");
    calibration.launch = Launch::LatencyAndGap {
        latency_ms: distribution(&measured.latencies_ms),
        gap_ms: Distribution::constant(measured.gap_ms),
    };
    calibration
}

/// A log-normal one where there are enough samples that differ.
fn distribution(samples: &[f64]) -> Distribution {
    let median = median(samples.to_vec()).unwrap_or_default();
    let n = samples.len() as f64;
    let mean = samples.iter().map(|sample| sample.ln()).sum::<f64>() / n;
    let variance = samples.iter().map(|sample| (sample.ln() - mean).powi(2)).sum::<f64>() / n;
    let sigma = variance.sqrt();
    if samples.len() < SAMPLES_MIN || sigma < SIGMA_MIN {
        return Distribution::constant(median);
    }
    Distribution::LogNormal { median, sigma }
}

fn summary(measured: &Measured, calibration: &Calibration) -> String {
    let (n, gap) = (measured.latencies_ms.len(), measured.gap_ms);
    let spread = match calibration.launch {
        Launch::LatencyAndGap { latency_ms: Distribution::LogNormal { sigma, .. }, .. } => {
            format!(" (log-normal, sigma {sigma:.2})")
        }
        Launch::LatencyAndGap { .. } | Launch::Terms { .. } => String::new(),
    };
    let latency = ms(calibration.launch.latency());
    format!("{n} starts: latency {latency:.1} ms{spread}, gap {gap:.2} ms\n")
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn span(started: &[u64], welcomed: u64) -> Span {
        let started = started.iter().map(|&ms| at(ms)).collect();
        Span { started, welcomed: Some(at(welcomed)), ..Span::default() }
    }

    #[test]
    fn gap_and_latency_are_told_apart() {
        let spans = (1..=8).map(|n| (AgentId(n), span(&[0], 100 + 7 * u64::from(n)))).collect();
        let measured = measured(&spans).unwrap();
        assert_eq!(measured.gap_ms, 7.0);
        assert!(measured.latencies_ms.iter().all(|ms| (ms - 100.0).abs() < 1e-6));
        assert_eq!(distribution(&measured.latencies_ms), Distribution::constant(100.0));
    }

    #[test]
    fn an_agent_that_was_started_twice_tells_no_latency() {
        let spans = [(AgentId(1), span(&[0, 50], 200)), (AgentId(2), span(&[0], 90))].into();
        assert_eq!(measured(&spans).unwrap().latencies_ms.len(), 0);
    }

    #[test]
    fn what_varies_is_log_normal() {
        let samples: Vec<f64> = (1..=9).map(|n| f64::exp(f64::from(n) / 10.0)).collect();
        let Distribution::LogNormal { median, sigma } = distribution(&samples) else {
            panic!("not log-normal")
        };
        assert!((median - f64::exp(0.5)).abs() < 1e-9 && (sigma - 0.258).abs() < 1e-3);
    }

    #[test]
    fn the_measured_run_takes_the_options_of_its_command() {
        let args = CalibrateArgs {
            hosts: Some("a,b".into()),
            hostfile: None,
            shell: Some("rsh {host} {cmd}".into()),
            ssh_arg: Vec::new(),
            agent_path: None,
            output: "c.toml".into(),
        };
        let run = run_args(&args).unwrap();
        assert_eq!(run.hosts.as_deref(), Some("a,b"));
        assert_eq!(run.shell.as_deref(), Some("rsh {host} {cmd}"));
    }
}
