//! `convoke calibrate`: what starts cost on real hosts, for the simulator and the planner.
//!
//! One session over a flat tree, so that all starts are the head's and their times are of one clock.
//! It begins all of them at once; they queue for whatever a start keeps busy, so the i-th agent is up
//! after i gaps and one latency. The gap is the median distance between agents that come up one after
//! the other; what is left of each agent's time is its latency.
//!
//! The link: an agent counts from its welcome, and its marks are added to when the head sent that. So
//! from the agent's own mark that it has joined to the head's that it has heard so, a welcome went
//! down and an answer came up, and no more: half of the shortest such time is one way over a link,
//! with the handling of a message, while nothing queues. It is an upper bound of the network's part.
//!
//! Creating and executing a process is measured on this host alone ([`SpawnCost`]). The simulator adds
//! these and the ways of call and hello to every start, so they are taken off the latencies.
//! Everything else in the file is assumed, and its `origin` says so.

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
use crate::spawn_cost::SpawnCost;
use crate::streams::{print, say};

/// Fewer samples say nothing of how a latency varies.
const SAMPLES_MIN: usize = 4;

/// What varies by less is constant.
const SIGMA_MIN: f64 = 0.01;

/// What was measured.
#[derive(Debug, PartialEq)]
struct Measured {
    /// From the start to the welcome, without gaps.
    latencies_ms: Vec<f64>,
    gap_ms: f64,
    /// One way over a link.
    link_us: Option<f64>,
    /// On this host.
    spawn: Option<SpawnCost>,
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
    let spawn = SpawnCost::measured();
    let names = config.names.clone();
    let options = ScreenOptions { label: false, verbose: false, quiet: false };
    let mut screen = Screen::new(names.clone(), options);
    let program = crate::report::Program::of(&config);
    let head = run_head(config, &mut screen).map_err(|error| agent::error_chain(&error))?;
    say(&crate::report::outcome(&head.outcome, &names, &program, false));
    if head.code != 0 {
        return Ok(head.code);
    }
    let spans = &screen.timeline.spans;
    let measured = measured(spans, spawn).ok_or("no agent was seen to join")?;
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
fn measured(spans: &BTreeMap<AgentId, Span>, spawn: Option<SpawnCost>) -> Option<Measured> {
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
    let link_us = link_us(spans);
    Some(Measured { latencies_ms: latencies_ms.collect(), gap_ms, link_us, spawn })
}

/// Half of the shortest time from a welcome's sending to its answer, what the agent did between them
/// taken off.
fn link_us(spans: &BTreeMap<AgentId, Span>) -> Option<f64> {
    let round_trips = spans.values().filter_map(|span| {
        let round_trip = span.join_heard?.since(span.joined?);
        (!round_trip.is_zero()).then_some(round_trip)
    });
    round_trips.min().map(|round_trip| ms(round_trip) * 1e3 / 2.0)
}

fn fit(measured: &Measured) -> Calibration {
    let mut calibration = Calibration::default();
    calibration.origin = origin(measured);
    if let Some(link_us) = measured.link_us {
        calibration.link.latency_us = Distribution::constant(link_us);
    }
    if let Some(SpawnCost { spawn_us, exec_us }) = measured.spawn {
        (calibration.cpu.spawn_us, calibration.cpu.exec_us) = (spawn_us, exec_us);
    }
    let added_ms = added_ms(measured);
    let latencies = measured.latencies_ms.iter().map(|latency| latency - added_ms);
    let latencies: Vec<f64> = latencies.filter(|latency| *latency > 0.0).collect();
    calibration.launch = Launch::LatencyAndGap {
        latency_ms: distribution(&latencies),
        gap_ms: Distribution::constant(measured.gap_ms),
    };
    calibration
}

/// What the simulator adds to the latency of each start, of what is measured.
fn added_ms(measured: &Measured) -> f64 {
    let links_us = 2.0 * measured.link_us.unwrap_or_default();
    let spawn_us = measured.spawn.map_or(0.0, |cost| cost.spawn_us + cost.exec_us);
    (links_us + spawn_us) / 1e3
}

/// What of the file was measured, and what is assumed.
fn origin(measured: &Measured) -> String {
    let n = measured.latencies_ms.len();
    let mut assumed = vec!["bandwidth", "cores", "accept queue", "cost of messages"];
    let mut text = format!("convoke calibrate; measured: launch ({n} starts)");
    match measured.link_us {
        Some(_) => text += ", link latency (shortest of all)",
        None => assumed.insert(0, "link latency"),
    }
    match measured.spawn {
        Some(_) => text += ", spawn and exec (on the head's host)",
        None => assumed.insert(0, "spawn and exec"),
    }
    text + "; assumed: " + &assumed.join(", ")
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
    let mut text = format!("{n} starts: latency {latency:.1} ms{spread}, gap {gap:.2} ms\n");
    if let Some(link_us) = measured.link_us {
        text += &format!("link: at most {link_us:.0} µs one way\n");
    }
    if let Some(SpawnCost { spawn_us, exec_us }) = measured.spawn {
        text += &format!("this host: spawn {spawn_us:.0} µs, exec {exec_us:.0} µs\n");
    }
    text
}

/// The middle one, the upper of two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
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
        let measured = measured(&spans, None).unwrap();
        assert_eq!(measured.gap_ms, 7.0);
        assert!(measured.latencies_ms.iter().all(|ms| (ms - 100.0).abs() < 1e-6));
        assert_eq!(distribution(&measured.latencies_ms), Distribution::constant(100.0));
    }

    #[test]
    fn an_agent_that_was_started_twice_tells_no_latency() {
        let spans = [(AgentId(1), span(&[0, 50], 200)), (AgentId(2), span(&[0], 90))].into();
        assert_eq!(measured(&spans, None).unwrap().latencies_ms.len(), 0);
    }

    #[test]
    fn a_simulated_session_gives_back_what_it_was_simulated_with() {
        let cost = SpawnCost { spawn_us: 400.0, exec_us: 900.0 };
        let link_us = 300.0;
        let mut costs = Calibration::default();
        costs.link.latency_us = Distribution::constant(link_us);
        (costs.cpu.spawn_us, costs.cpu.exec_us) = (cost.spawn_us, cost.exec_us);
        let session = sim::Session::of(8).tree("flat").calibration(costs.clone());
        let report = session.spec(|spec| spec.marks = true).run();
        let spans = crate::simulate::timeline_of(&report).spans;
        let measured = measured(&spans, Some(cost)).unwrap();
        assert_eq!(measured.link_us, Some(link_us));
        let fitted = fit(&measured);
        let (latency, gap) = (fitted.launch.latency(), fitted.launch.gap());
        assert!(ms(latency.abs_diff(costs.launch.latency())) < 0.01, "{latency:?}");
        assert_eq!(gap, costs.launch.gap());
        assert_eq!((fitted.cpu, fitted.link), (costs.cpu, costs.link));
    }

    #[test]
    fn what_is_not_measured_is_said_to_be_assumed() {
        let spans = [(AgentId(1), span(&[0], 100))].into();
        let fitted = fit(&measured(&spans, None).unwrap());
        let assumed = "assumed: spawn and exec, link latency, bandwidth, cores";
        assert!(fitted.origin.contains(assumed), "{}", fitted.origin);
        assert_eq!(fitted.cpu, sim::Calibration::default().cpu);
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
