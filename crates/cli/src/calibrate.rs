//! `convoke calibrate`: what starts cost on real hosts, for the simulator and the planner.
//!
//! One session over a flat tree, so that all starts are the head's and their times are of one clock.
//! It begins all of them at once; they queue for whatever a start keeps busy, so the i-th agent is up
//! after i gaps and its own latency. The gap is how much later an agent is up for each start that was
//! made before its own, and not how far apart agents come up: that would take latencies that vary for
//! gaps. What is left of each agent's time is its latency.
//!
//! The link: an agent counts from its welcome, and its marks are added to when the head sent that. So
//! from the agent's own mark that it has joined to the head's that it has heard so, a welcome went
//! down and an answer came up, and no more: half of the shortest such time is one way over a link,
//! with the handling of a message, while nothing queues. It is an upper bound of the network's part.
//!
//! What a link carries is measured in a second session, in which one task writes a flood.
//!
//! Processes, handshakes and messages are measured on this host alone ([`SpawnCost`],
//! [`MessageCost`]). The simulator adds these and the ways of call and hello to every start, so they
//! are taken off the latencies, and the messages off the link. Everything else in the file is
//! assumed, and its `origin` says so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::thread;
use std::time::Duration;

use agent::run_head;
use clap::Parser;
use engine::HeadConfig;
use model::{AgentId, Time};
use observe::Span;
use sim::{Calibration, Distribution, Launch};

use crate::args::{CalibrateArgs, Cli, Command, RunArgs};
use crate::bandwidth::{Counter, FLOOD_BYTES};
use crate::exit_code;
use crate::layout::Layout;
use crate::message_cost::MessageCost;
use crate::output_file::OutputFile;
use crate::screen::{Screen, ScreenOptions};
use crate::setup::head_config;
use crate::spawn_cost::SpawnCost;
use crate::streams::{print, say};

/// Fewer samples say nothing of how a latency varies.
const SAMPLES_MIN: usize = 4;

/// Where the system says how long a listening socket's queue may be.
const BACKLOG_MAX: &str = "/proc/sys/net/core/somaxconn";

/// What varies by less is constant.
const SIGMA_MIN: f64 = 0.01;

/// What was measured.
#[derive(Debug, PartialEq)]
struct Measured {
    /// From the start to the welcome, without gaps.
    latencies_ms: Vec<f64>,
    gap_ms: f64,
    /// One way over a link, with a message's sending and receiving.
    link_us: Option<f64>,
    bandwidth_bytes_per_s: Option<u64>,
    here: Here,
}

/// What was measured on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Here {
    cores: Option<u32>,
    spawn: Option<SpawnCost>,
    message: Option<MessageCost>,
    /// How many connections a listening socket lets wait.
    backlog: Option<u32>,
}

impl Here {
    fn measured() -> Here {
        let cores = thread::available_parallelism().ok();
        Here {
            cores: cores.and_then(|cores| u32::try_from(cores.get()).ok()),
            spawn: SpawnCost::measured(),
            message: MessageCost::measured(),
            backlog: backlog(),
        }
    }
}

/// The length of a listening socket's queue: as we ask for it, and as the system grants it.
fn backlog() -> Option<u32> {
    let granted: u32 = fs::read_to_string(BACKLOG_MAX).ok()?.trim().parse().ok()?;
    Some(granted.min(os::net::BACKLOG.into()))
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
    let mut config = config(args, &["--ppn", "1", "--", "true"])?;
    config.session.marks = true;
    let file = OutputFile::create(&args.output).map_err(|error| agent::error_chain(&error))?;
    let here = Here::measured();
    let names = config.names.clone();
    let options = ScreenOptions { label: false, verbose: false, quiet: false };
    let program = crate::report::Program::of(&config);
    let mut screen = Screen::new(names.clone(), names.len(), program.clone(), options);
    let head = run_head(config, None, &mut screen).map_err(|error| agent::error_chain(&error))?;
    say(&crate::report::outcome(&head.outcome, &names, &program, false));
    if head.code != 0 {
        return Ok(head.code);
    }
    let spans = &screen.timeline.spans;
    let mut measured = measured(spans, here).ok_or("no agent was seen to join")?;
    measured.bandwidth_bytes_per_s = bandwidth_bytes_per_s(args);
    let calibration = fit(&measured);
    file.write(&calibration.to_toml()).map_err(|error| agent::error_chain(&error))?;
    Ok(print(&summary(&measured, &calibration)))
}

/// Has a task on the first host write a flood. Absent where it does not come to its end.
fn bandwidth_bytes_per_s(args: &CalibrateArgs) -> Option<u64> {
    let bytes = FLOOD_BYTES.to_string();
    let config = config(args, &["-n", "1", "--", "head", "-c", &bytes, "/dev/zero"]).ok()?;
    let mut counter = Counter::new();
    let head = run_head(config, None, &mut counter).ok()?;
    counter.bytes_per_s().filter(|_| head.code == 0)
}

fn config(args: &CalibrateArgs, what: &[&str]) -> Result<HeadConfig, String> {
    let run = run_args(args, what)?;
    let layout = Layout::of(&run).map_err(|error| agent::error_chain(&error))?;
    head_config(&run, &layout).map_err(|error| agent::error_chain(&error))
}

/// The options of a `convoke run` that is measured.
fn run_args(args: &CalibrateArgs, what: &[&str]) -> Result<Box<RunArgs>, String> {
    let mut words: Vec<OsString> =
        ["convoke", "run", "--tree", "flat", "--stdin", "none"].map(OsString::from).to_vec();
    let mut option = |name: &str, value: Option<OsString>| {
        words.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
    };
    option("--window", Some(u32::MAX.to_string().into()));
    option("--hosts", args.hosts.clone().map(Into::into));
    option("--hostfile", args.reach.hostfile.clone().map(Into::into));
    option("--shell", args.reach.shell.clone().map(Into::into));
    option("--agent-path", args.agent_path.clone());
    for arg in &args.reach.ssh_arg {
        option("--ssh-arg", Some(arg.into()));
    }
    words.extend(what.iter().map(OsString::from));
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Run(run) => Ok(run),
        Command::Sim(_)
        | Command::Plan(_)
        | Command::Calibrate(_)
        | Command::Clean(_)
        | Command::Completions { .. } => Err("the words of a run are no run".to_owned()),
    }
}

/// Takes the head's marks apart. Agents that were started twice are left out.
fn measured(spans: &BTreeMap<AgentId, Span>, here: Here) -> Option<Measured> {
    let begun = spans.values().filter_map(|span| Some((*span.started.first()?, span)));
    let mut begun: Vec<(Time, &Span)> = begun.collect();
    begun.sort_by_key(|(at, _)| *at);
    let first = begun.first()?.0;
    let up = (1..).zip(&begun).filter(|(_, (_, span))| span.started.len() == 1);
    let up =
        up.filter_map(|(nth, (_, span))| Some((f64::from(nth), ms(span.welcomed?.since(first)))));
    let up: Vec<(f64, f64)> = up.collect();
    let gap_ms = slope(&up).unwrap_or_default().max(0.0);
    let latencies_ms = up.iter().map(|(nth, up_ms)| up_ms - nth * gap_ms);
    let latencies_ms = latencies_ms.filter(|latency| *latency > 0.0).collect();
    let link_us = link_us(spans);
    Some(Measured { latencies_ms, gap_ms, link_us, bandwidth_bytes_per_s: None, here })
}

/// How much y grows with x, of points in order of x: the median over pairs half of all points apart
/// (Theil's incomplete method), so that a few that are far off count for nothing.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let half = points.len().div_ceil(2);
    let pairs = points.iter().zip(points.get(half..)?);
    median(pairs.map(|((x, y), (later_x, later_y))| (later_y - y) / (later_x - x)).collect())
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
    let Here { cores, spawn, message, backlog } = measured.here;
    if let Some(cores) = cores {
        calibration.cpu.cores = cores;
    }
    if let Some(SpawnCost { spawn_us, exec_us }) = spawn {
        (calibration.cpu.spawn_us, calibration.cpu.exec_us) = (spawn_us, exec_us);
    }
    if let Some(MessageCost { handshake_us, message_us }) = message {
        (calibration.cpu.handshake_us, calibration.cpu.message_us) = (handshake_us, message_us);
    }
    if let Some(network_us) = network_us(measured) {
        calibration.link.latency_us = Distribution::constant(network_us);
    }
    if let Some(backlog) = backlog {
        calibration.accept.backlog = backlog;
    }
    calibration.link.bandwidth_bytes_per_s = measured.bandwidth_bytes_per_s;
    let added_ms = added_ms(measured);
    let latencies = measured.latencies_ms.iter().map(|latency| latency - added_ms);
    let latencies: Vec<f64> = latencies.filter(|latency| *latency > 0.0).collect();
    calibration.launch = Launch::LatencyAndGap {
        latency_ms: distribution(&latencies),
        gap_ms: Distribution::constant(measured.gap_ms),
    };
    calibration
}

/// One way over a link, without the message's sending and receiving.
fn network_us(measured: &Measured) -> Option<f64> {
    let ends_us = measured.here.message.map_or(0.0, |cost| 2.0 * cost.message_us);
    measured.link_us.map(|link_us| (link_us - ends_us).max(0.0))
}

/// What the simulator adds to the latency of each start, of what is measured: a process, the way of
/// a call, a handshake at both ends, and a hello.
fn added_ms(measured: &Measured) -> f64 {
    let Here { spawn, message, .. } = measured.here;
    let network_us = 2.0 * network_us(measured).unwrap_or_default();
    let spawn_us = spawn.map_or(0.0, |cost| cost.spawn_us + cost.exec_us);
    let message_us = message.map_or(0.0, |cost| 2.0 * (cost.handshake_us + cost.message_us));
    (network_us + spawn_us + message_us) / 1e3
}

/// What of the file was measured, and what is assumed.
fn origin(measured: &Measured) -> String {
    let n = measured.latencies_ms.len();
    let here = &measured.here;
    let launch = format!("launch ({n} starts)");
    let parts = [
        (launch.as_str(), true),
        ("link latency (shortest of all)", measured.link_us.is_some()),
        ("bandwidth (of one stream)", measured.bandwidth_bytes_per_s.is_some()),
        ("cores (of the head's host)", here.cores.is_some()),
        ("that no hosts share cores", false),
        ("spawn and exec (on the head's host)", here.spawn.is_some()),
        ("handshakes and messages (on the head's host)", here.message.is_some()),
        ("accept queue (of the head's host)", here.backlog.is_some()),
        ("parsing (0: it is within the latency)", false),
        ("when a lost call is tried again", false),
    ];
    let named = |is_measured| {
        let parts = parts.iter().filter(|part| part.1 == is_measured);
        parts.map(|part| part.0).collect::<Vec<_>>().join(", ")
    };
    format!("convoke calibrate; measured: {}; assumed: {}", named(true), named(false))
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
    if let Some(rate) = measured.bandwidth_bytes_per_s {
        text += &format!("one stream: {} MB/s\n", rate / 1_000_000);
    }
    let Here { cores, spawn, message, .. } = measured.here;
    let here = [
        cores.map(|cores| format!("{cores} cores")),
        spawn.map(|it| format!("spawn {:.0} µs, exec {:.0} µs", it.spawn_us, it.exec_us)),
        message.map(|it| {
            format!("handshake {:.0} µs, message {:.1} µs", it.handshake_us, it.message_us)
        }),
    ];
    let here: Vec<String> = here.into_iter().flatten().collect();
    if !here.is_empty() {
        text += &format!("this host: {}\n", here.join(", "));
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
    use crate::args::ReachArgs;

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
        let measured = measured(&spans, Here::default()).unwrap();
        assert_eq!(measured.gap_ms, 7.0);
        assert!(measured.latencies_ms.iter().all(|ms| (ms - 100.0).abs() < 1e-6));
        assert_eq!(distribution(&measured.latencies_ms), Distribution::constant(100.0));
    }

    #[test]
    fn an_agent_that_was_started_twice_tells_no_latency() {
        let spans = [(AgentId(1), span(&[0, 50], 200)), (AgentId(2), span(&[0], 90))].into();
        assert_eq!(measured(&spans, Here::default()).unwrap().latencies_ms, [90.0]);
    }

    #[test]
    fn a_simulated_session_gives_back_what_it_was_simulated_with() {
        let spawn = SpawnCost { spawn_us: 400.0, exec_us: 900.0 };
        let message = MessageCost { handshake_us: 150.0, message_us: 20.0 };
        let mut costs = Calibration::default();
        costs.link.latency_us = Distribution::constant(300.0);
        costs.cpu = sim::Cpu {
            cores: 4,
            spawn_us: spawn.spawn_us,
            exec_us: spawn.exec_us,
            handshake_us: message.handshake_us,
            message_us: message.message_us,
            ..costs.cpu
        };
        let session = sim::Session::of(8).tree("flat").calibration(costs.clone());
        let report = session.spec(|spec| spec.marks = true).run();
        let spans = crate::simulate::timeline_of(&report).spans;
        let here =
            Here { cores: Some(4), spawn: Some(spawn), message: Some(message), backlog: None };
        let measured = measured(&spans, here).unwrap();
        let fitted = fit(&measured);
        let (latency, gap) = (fitted.launch.latency(), fitted.launch.gap());
        assert!(ms(latency.abs_diff(costs.launch.latency())) < 0.01, "{latency:?}");
        assert_eq!(gap, costs.launch.gap());
        assert_eq!((fitted.cpu, fitted.link), (costs.cpu, costs.link));
    }

    #[test]
    fn latencies_that_vary_are_not_taken_for_gaps() {
        for (n, gap_ms) in [(64_u32, 0.0), (64, 7.0), (256, 0.0), (256, 7.0), (1_000, 7.0)] {
            let launch = Launch::LatencyAndGap {
                latency_ms: Distribution::LogNormal { median: 257.0, sigma: 0.3 },
                gap_ms: Distribution::constant(gap_ms),
            };
            let mut costs = Calibration::default();
            costs.launch = launch;
            let session = sim::Session::of(n).tree("flat").calibration(costs);
            let unbounded = |spec: &mut wire::SessionSpec| {
                (spec.marks, spec.window) = (true, u32::MAX);
            };
            let spans = crate::simulate::timeline_of(&session.spec(unbounded).run()).spans;
            let measured = measured(&spans, Here::default()).unwrap();
            assert!((measured.gap_ms - gap_ms).abs() < 2.0, "{n}: gap {}", measured.gap_ms);
            assert!(
                measured.latencies_ms.len() > n as usize * 9 / 10,
                "{n}: latencies are dropped"
            );
            let Distribution::LogNormal { median, sigma } = distribution(&measured.latencies_ms)
            else {
                panic!("{n}: no spread")
            };
            assert!((median / 257.0 - 1.0).abs() < 0.2, "{n}, gap {gap_ms}: latency {median}");
            assert!((sigma - 0.3).abs() < 0.1, "{n}, gap {gap_ms}: sigma {sigma}");
        }
    }

    #[test]
    fn what_is_not_measured_is_said_to_be_assumed() {
        let spans = [(AgentId(1), span(&[0], 100))].into();
        let fitted = fit(&measured(&spans, Here::default()).unwrap());
        let assumed = "launch (1 starts); assumed: link latency";
        assert!(fitted.origin.contains(assumed), "{}", fitted.origin);
        assert!(fitted.origin.contains("that no hosts share cores"), "{}", fitted.origin);
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
            reach: ReachArgs {
                hostfile: None,
                shell: Some("rsh {host} {cmd}".into()),
                ssh_arg: Vec::new(),
            },
            agent_path: None,
            output: "c.toml".into(),
        };
        let run = run_args(&args, &["--", "true"]).unwrap();
        assert_eq!(run.hosts.as_deref(), Some("a,b"));
        assert_eq!(run.shell.as_deref(), Some("rsh {host} {cmd}"));
    }
}
