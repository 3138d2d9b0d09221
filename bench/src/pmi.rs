//! PMI-1 without an MPI library: each client puts a card, enters a barrier, gets its neighbours' cards.

use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use model::PmiDialect;

use crate::jobs::{Job, Launcher, Shell};
use crate::report::{Bar, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

use Launcher::{Convoke, Floor, Hydra4, Hydra5, Srun};

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let shapes: &[(usize, usize, f64)] = report
        .settings()
        .pick(&[(1, 1024, 1.0), (16, 64, 0.6), (16, 128, 0.6)], &[(1, 64, 1.0), (4, 16, 0.6)]);
    for &(hosts, clients, steps_bar) in shapes {
        exchange(tools, report, hosts, clients, steps_bar);
    }
    Ok(())
}

fn exchange(tools: &Tools, report: &mut Report, hosts: usize, clients: usize, steps_bar: f64) {
    let job = job(tools, hosts, clients, "nbr", PmiDialect::One);
    let title = format!("{} clients", job.shape());
    if !report.settings().wants(&title) {
        return;
    }
    // The slowest of many ranks depends on chance more than a whole command does.
    let rounds = report.settings().pick(11, 1);
    let turns =
        Turns::take(report, rounds, &[Convoke, Hydra5, Floor], |who| once(tools, who, &job));
    let whole = format!("{title}: whole command");
    add(report, &turns, &whole, 0, Hydra5, SERVER, Bar::RatioAtMost(0.8));
    let steps = format!("{title}: put, barrier, two gets (slowest rank)");
    add(report, &turns, &steps, 1, Hydra5, SERVER, Bar::RatioAtMost(steps_bar));
}

/// Pure clients that get these cards, `all` or those of two neighbours, and tell each other their times at the end.
pub(crate) fn job(
    tools: &Tools,
    hosts: usize,
    clients: usize,
    cards: &str,
    dialect: PmiDialect,
) -> Job {
    let program = tools.pmi_client.display().to_string();
    let mut words = vec![program.as_str(), cards, "--max"];
    if dialect == PmiDialect::Two {
        words.push("--pmi2");
    }
    Job::new(hosts, clients, Shell::default(), &words)
}

/// The floor of clients that ask a server.
pub(crate) const SERVER: &str = "a server per host, in C";

/// The floor of clients that look cards up in memory: what [`map`] does.
pub(crate) const MAP: &str = "as many processes that map a file";

/// What as many processes take to map a file and read everybody's card in it.
pub(crate) fn map(tools: &Tools, (hosts, clients): (usize, usize)) -> anyhow::Result<Vec<f64>> {
    let mut command = Command::new(tools.floor("map"));
    command.args([hosts, clients].map(|count| count.to_string()));
    timed(&mut command)
}

/// Adds the row of the number at `index` of what [`once`] has measured.
pub(crate) fn add(
    report: &mut Report,
    turns: &Turns,
    title: &str,
    index: usize,
    other: Launcher,
    floor: &str,
    bar: Bar,
) {
    report.add(Row {
        title: title.to_owned(),
        ours: turns.seconds(Convoke, index),
        other: Some((other.to_string(), turns.seconds(other, index))),
        floor: Some((floor.to_owned(), turns.seconds(Floor, index))),
        bar,
    });
}

/// The whole command, and what the slowest rank's steps took.
pub(crate) fn once(tools: &Tools, who: Launcher, job: &Job) -> anyhow::Result<Vec<f64>> {
    let mut command = match who {
        Convoke | Hydra4 | Hydra5 | Srun => tools.command(who, job)?,
        Floor => {
            let mut command = Command::new(tools.floor("pmi"));
            let shape = [job.hosts, job.tasks_per_host].map(|count| count.to_string());
            command.args(shape).args(&job.program);
            command
        }
    };
    timed(&mut command)
}

/// The same of a command that prints the slowest rank's time.
pub(crate) fn timed(command: &mut Command) -> anyhow::Result<Vec<f64>> {
    let captured = run::capture(command, LIMIT)?;
    let text = String::from_utf8_lossy(&captured.output);
    let steps = told(&text, "max", "total").with_context(|| format!("rank 0 printed `{text}`"))?;
    Ok(vec![captured.elapsed.as_secs_f64(), steps])
}

/// The time of a step in the line that starts with this label, in seconds.
pub(crate) fn told(text: &str, label: &str, step: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(label))?;
    let time = |word: &str| word.strip_prefix(step)?.strip_prefix("_us=")?.parse::<f64>().ok();
    Some(line.split(' ').find_map(time)? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_total_is_read_from_the_client_s_words() {
        let text = "rank0 init_us=1.0 total_us=5.0\nmax init_us=2.0 total_us=1500000.0\n";
        assert_eq!(told(text, "max", "total"), Some(1.5));
        assert_eq!(told(text, "max", "init"), Some(2e-6));
        assert_eq!(told("rank0 total_us=5.0\n", "max", "total"), None);
    }
}
