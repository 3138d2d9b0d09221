//! Output: lines of many tasks, whole and in full; and much of a single one. Our links are encrypted,
//! those of the peers are not, so the floor encrypts too.

use std::collections::{BTreeMap, HashSet};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use testbed::clock;
use testkit::FloodLine;

use crate::jobs::{Job, Launcher, Shell};
use crate::quantity::{Quantity, Unit};
use crate::report::{Bar, Measured, Report, Row};
use crate::run::Running;
use crate::tools::Tools;
use crate::turns::Turns;
use crate::{links, processes, run, sealed};

use Launcher::{Convoke, Floor, Hydra4, Hydra5};

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

const HOSTS: usize = 64;
const LINES: usize = 10_000;
const LINE_BYTES: usize = 100;

/// No line may be lost, torn, doubled or out of order.
const NONE: Quantity = Quantity::new(0.0, Unit::Count);

/// What head and agents may need at most while nobody reads.
const SLOW_READER_MAX: Quantity = Quantity::new(32.0, Unit::Megabytes);

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    for (mode, buffered) in [("line", "line-buffered"), ("block", "block-buffered")] {
        flood(tools, report, mode, buffered);
    }
    single_task(tools, report);
    links::measure(tools, report)?;
    slow_reader(tools, report)
}

fn flood(tools: &Tools, report: &mut Report, mode: &str, buffered: &str) {
    let lines = report.settings().pick(LINES, LINES / 10);
    let title = format!("{HOSTS} × {lines} lines of {LINE_BYTES} bytes, {buffered}");
    if !report.settings().wants(&title) {
        return;
    }
    let job = job(tools, HOSTS, &format!("flood:{lines}:{LINE_BYTES}:{mode}"));
    let rounds = report.settings().pick(15, 1);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra4, Hydra5, Floor], |who| {
        let captured = run::capture(&mut command(tools, who, &job)?, LIMIT)?;
        // The floor does not care for lines.
        let wrong = if who == Floor { 0 } else { wrong_lines(&captured.output, HOSTS, lines) };
        Ok(vec![captured.elapsed.as_secs_f64(), wrong as f64])
    });
    let (hydra, time) = turns.faster_hydra(0);
    let wrong = |who| turns.median(who, 1, Unit::Count);
    report.add(Row {
        title: format!("{title}: whole command"),
        ours: turns.seconds(Convoke, 0),
        other: Some((hydra.to_string(), time)),
        floor: Some(("encrypted pipes".to_owned(), turns.seconds(Floor, 0))),
        bar: Bar::RatioAtMost(1.0),
    });
    report.add(Row {
        title: format!("{title}: lines lost, torn or out of order"),
        ours: wrong(Convoke),
        other: Some((hydra.to_string(), wrong(hydra))),
        floor: None,
        bar: Bar::AtMost(NONE),
    });
}

/// How many of the lines that so many tasks write are not there, whole and after the task's earlier
/// ones; and how many are there again.
fn wrong_lines(output: &[u8], tasks: usize, lines: usize) -> usize {
    let text = String::from_utf8_lossy(output);
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let mut seen = HashSet::new();
    let (mut right, mut doubled) = (0, 0);
    for line in text.lines().filter_map(FloodLine::parse) {
        let next = next.entry(line.rank).or_default();
        if !seen.insert(line) {
            doubled += 1;
        } else if line.index >= *next {
            right += 1;
            *next = line.index + 1;
        }
    }
    (tasks * lines).saturating_sub(right) + doubled
}

fn single_task(tools: &Tools, report: &mut Report) {
    let mebibytes = report.settings().pick(1000, 100);
    let title = format!("one task, {mebibytes} MiB");
    if !report.settings().wants(&title) {
        return;
    }
    let job = job(tools, 1, &format!("blast:{mebibytes}"));
    let rounds = report.settings().pick(11, 2);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra4, Hydra5, Floor], |who| {
        let bytes = mebibytes << 20;
        Ok(vec![bytes as f64 / 1e6 / drain(&mut command(tools, who, &job)?, bytes)?.as_secs_f64()])
    });
    let rate = |who| turns.median(who, 0, Unit::MegabytesPerSecond);
    let (hydra, of_hydra) = faster(rate(Hydra4), rate(Hydra5));
    report.add(Row {
        title,
        ours: rate(Convoke),
        other: Some((hydra.to_string(), of_hydra)),
        floor: Some(("encrypted pipe".to_owned(), rate(Floor))),
        bar: Bar::RatioAtLeast(1.0),
    });
}

/// The higher of two rates.
fn faster(four: Measured, five: Measured) -> (Launcher, Measured) {
    match (&four, &five) {
        (Ok(a), Ok(b)) if b.value > a.value => (Hydra5, five),
        (Err(_), Ok(_)) => (Hydra5, five),
        (Ok(_), _) | (Err(_), Err(_)) => (Hydra4, four),
    }
}

/// Reads all output and throws it away.
fn drain(command: &mut Command, bytes: usize) -> anyhow::Result<Duration> {
    let mut running = Running::start(command, Stdio::piped(), LIMIT)?;
    let mut read = 0;
    running.read_all(|part| read += part.len())?;
    ensure!(read == bytes, "{read} of {bytes} bytes arrived");
    running.finish()
}

/// Several tasks write as fast as they can, while the reader takes little.
fn slow_reader(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    const SECONDS: Duration = Duration::from_secs(5);
    const PAUSE: Duration = Duration::from_millis(50);
    let title = "16 tasks write, the reader takes 1 MB/s: largest process";
    let Some(convoke) = tools.convoke.as_ref().filter(|_| report.settings().wants(title)) else {
        return Ok(());
    };
    let mut running = Running::start(
        &mut command(tools, Convoke, &job(tools, 16, "blast:1000"))?,
        Stdio::piped(),
        LIMIT,
    )?;
    let begun = clock::now();
    running.read_while(|_| {
        clock::sleep(PAUSE);
        begun.elapsed() < SECONDS
    })?;
    let peaks = processes::running(convoke).into_iter().map(|process| process.peak_bytes);
    let largest = peaks.max().unwrap_or_default() as f64 / 1e6;
    report.add(Row {
        title: title.to_owned(),
        ours: Ok(Quantity::new(largest, Unit::Megabytes)),
        other: None,
        floor: None,
        bar: Bar::AtMost(SLOW_READER_MAX),
    });
    running.interrupt()
}

fn job(tools: &Tools, hosts: usize, step: &str) -> Job {
    Job::one_each(hosts, Shell::default(), &[&tools.misbehave.display().to_string(), step])
}

fn command(tools: &Tools, who: Launcher, job: &Job) -> anyhow::Result<Command> {
    match who {
        Convoke | Hydra4 | Hydra5 | Launcher::Srun => tools.command(who, job),
        Floor => {
            let mut command = Command::new(std::env::current_exe().context("find this program")?);
            command.args([sealed::HEAD, sealed::TCP, &job.hosts.to_string()]).args(&job.program);
            Ok(command)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of two tasks of three lines each.
    fn output(order: &[(u32, u64)]) -> Vec<u8> {
        let mut text = String::new();
        for &(rank, index) in order {
            FloodLine { rank, index }.append(&mut text, LINE_BYTES);
        }
        text.into_bytes()
    }

    #[test]
    fn lines_of_different_tasks_may_mix() {
        let mixed = output(&[(1, 0), (0, 0), (0, 1), (1, 1), (1, 2), (0, 2)]);
        assert_eq!(wrong_lines(&mixed, 2, 3), 0);
    }

    #[test]
    fn a_line_that_is_torn_or_lost_is_counted() {
        let mut text = output(&[(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]);
        assert_eq!(wrong_lines(&text, 2, 3), 1);
        text.remove(LINE_BYTES / 2);
        assert_eq!(wrong_lines(&text, 2, 3), 2);
    }

    #[test]
    fn a_line_that_is_doubled_or_out_of_order_is_counted() {
        let doubled = output(&[(0, 0), (0, 1), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(wrong_lines(&doubled, 2, 3), 1);
        let swapped = output(&[(0, 0), (0, 2), (0, 1), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(wrong_lines(&swapped, 2, 3), 1);
    }
}
