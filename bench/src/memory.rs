//! What a standing job holds: memory, links, wake-ups.

use std::path::Path;
use std::time::Duration;

use engine::tree::DEFAULT_CHILDREN_MAX;
use testbed::clock;

use crate::held::{self, Held};
use crate::jobs::{Job, Launcher, Shell};
use crate::processes::{self, Process};
use crate::quantity::{Quantity, Unit};
use crate::report::{Bar, Report, Row};
use crate::tools::Tools;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(180);

/// How long an idle job is watched.
const WATCH: Duration = Duration::from_secs(10);

/// How long a job may take to settle.
const SETTLE: Duration = Duration::from_secs(3);

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let Some(convoke) = tools.convoke.clone() else {
        report.note("Convoke cannot run a job yet.".to_owned());
        return Ok(());
    };
    one_task(tools, report, &convoke)?;
    large_tree(tools, report, &convoke)?;
    idle(tools, report, &convoke)
}

/// Starts a job of waiting tasks, lets it settle, and hands its processes to `look`.
fn look_at<T>(
    tools: &Tools,
    launcher: Launcher,
    hosts: usize,
    look: impl FnOnce(u32) -> T,
) -> anyhow::Result<T> {
    let program = held::program(tools)?;
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let job = Job::one_each(hosts, Shell::default(), &words);
    let held = Held::start(tools, &mut tools.command(launcher, &job)?, hosts, LIMIT)?;
    clock::sleep(SETTLE);
    let seen = look(held.pid());
    held.release()?;
    Ok(seen)
}

/// All processes of the product but the front end and its own keeper, which has its command line.
fn agents_and_keepers(convoke: &Path, front_end: u32) -> Vec<Process> {
    let mut all = processes::running(convoke);
    let front_end = all.iter().find(|process| process.pid == front_end).cloned();
    let line = front_end.map(|process| process.command_line);
    all.retain(|process| Some(&process.command_line) != line.as_ref());
    all
}

fn one_task(tools: &Tools, report: &mut Report, convoke: &Path) -> anyhow::Result<()> {
    let title = "agent and keeper with one task";
    if !report.settings().wants(title) {
        return Ok(());
    }
    let ours = look_at(tools, Launcher::Convoke, 1, |pid| agents_and_keepers(convoke, pid))?;
    let proxy = tools.hydra5.with_file_name("hydra_pmi_proxy");
    let theirs = look_at(tools, Launcher::Hydra5, 1, |_| processes::running(&proxy))?;
    let sum = |processes: &[Process], bytes: fn(&Process) -> u64| {
        Ok(megabytes(processes.iter().map(bytes).sum()))
    };
    for (what, bytes, bar) in [
        ("resident", (|p| p.resident_bytes) as fn(&Process) -> u64, Bar::AtMost(mb(5.0))),
        ("resident, shared pages counted once", |p| p.proportional_bytes, Bar::None),
    ] {
        report.add(Row {
            title: format!("{title} ({} processes): {what}", ours.len()),
            ours: sum(&ours, bytes),
            other: Some(("Hydra 5's proxy".to_owned(), sum(&theirs, bytes))),
            floor: None,
            bar,
        });
    }
    Ok(())
}

fn large_tree(tools: &Tools, report: &mut Report, convoke: &Path) -> anyhow::Result<()> {
    let n = report.settings().pick(1000, 64);
    let title = format!("{n} agents");
    if !report.settings().wants(&title) {
        return Ok(());
    }
    let (head, others) = look_at(tools, Launcher::Convoke, n, |pid| {
        let (head, others): (Vec<_>, Vec<_>) =
            processes::running(convoke).into_iter().partition(|process| process.pid == pid);
        (head, others)
    })?;
    let peak = head.iter().map(|process| process.peak_bytes).max().unwrap_or_default();
    report.add(absolute(format!("{title}: head's peak"), megabytes(peak), mb(12.0)));
    let peak = others.iter().map(|process| process.peak_bytes).max().unwrap_or_default();
    report.add(Row {
        bar: Bar::None,
        ..absolute(format!("{title}: largest other"), megabytes(peak), mb(0.0))
    });
    let links = head.iter().chain(&others).map(|process| process.links).max().unwrap_or_default();
    let degree = children_max(n);
    let most = Quantity::new((degree + 2) as f64, Unit::Count);
    let links = Quantity::new(links as f64, Unit::Count);
    report.add(absolute(format!("{title}: most links of a process (δ={degree})"), links, most));
    Ok(())
}

/// The most children of one of `n` agents. What runs is the adaptive tree, which has no plan: an
/// agent may have any number of children up to its cap.
fn children_max(n: usize) -> usize {
    usize::try_from(DEFAULT_CHILDREN_MAX).map_or(n, |most| most.min(n))
}

fn idle(tools: &Tools, report: &mut Report, convoke: &Path) -> anyhow::Result<()> {
    let title = "16 agents, idle: most wake-ups of a process";
    if !report.settings().wants(title) {
        return Ok(());
    }
    let most = look_at(tools, Launcher::Convoke, 16, |_| {
        let before = processes::running(convoke);
        clock::sleep(WATCH);
        let after = processes::running(convoke);
        let of = |process: &Process| {
            let earlier = before.iter().find(|earlier| earlier.pid == process.pid);
            process.wake_ups - earlier.map_or(process.wake_ups, |earlier| earlier.wake_ups)
        };
        after.iter().map(of).max().unwrap_or_default()
    })?;
    let rate = Quantity::new(most as f64 / WATCH.as_secs_f64(), Unit::PerSecond);
    let bar = Quantity::new(1.0, Unit::PerSecond);
    report.add(absolute(title.to_owned(), rate, bar));
    Ok(())
}

fn absolute(title: String, ours: Quantity, most: Quantity) -> Row {
    Row { title, ours: Ok(ours), other: None, floor: None, bar: Bar::AtMost(most) }
}

fn megabytes(bytes: u64) -> Quantity {
    mb(bytes as f64 / 1e6)
}

fn mb(value: f64) -> Quantity {
    Quantity::new(value, Unit::Megabytes)
}
