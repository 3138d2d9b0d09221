//! Launch: how long a job of nothing takes, from the command's start to its end.

use std::time::Duration;

use crate::held::{self, Held};
use crate::jobs::{Job, Launcher, Shell};
use crate::quantity::{Quantity, Unit};
use crate::report::{Bar, Measured, Report, Row};
use crate::tools::Tools;
use crate::turns::Turns;
use crate::{namespaces, plan, run};

use Launcher::{Convoke, Floor, Hydra4, Hydra5};

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

const TRUE: &[&str] = &["/bin/true"];

/// Teardown at n=256 must stay below this.
const TEARDOWN_MAX: Quantity = Quantity::new(0.3, Unit::Seconds);

/// How much a host that is 5 s late may delay the job: that, and 1 % because both runs that are
/// subtracted vary by some hundredths of a second.
const SLOW_MAX: Quantity = Quantity::new(5.05, Unit::Seconds);

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    costly(tools, report, 256, 0.38, 1.15);
    if !report.settings().quick {
        costly(tools, report, 1000, 0.18, 1.35);
    }
    at_no_cost(tools, report);
    one_slow_host(tools, report);
    start_and_teardown(tools, report)?;
    many_tasks(tools, report);
    namespaces::measure(tools, report)
}

/// Times `job` once.
fn whole(tools: &Tools, launcher: Launcher, job: &Job) -> anyhow::Result<Vec<f64>> {
    let elapsed = run::time(&mut tools.command(launcher, job)?, LIMIT)?;
    Ok(vec![elapsed.as_secs_f64()])
}

/// `n` hosts with the costs of a remote shell. The product takes its own tree and is not told the
/// costs, so its tree's own arithmetic is that of its engine, simulated with these costs and no other.
/// The greedy tree for them is the earliest that there is.
fn costly(tools: &Tools, report: &mut Report, n: usize, of_hydra: f64, of_arithmetic: f64) {
    let shell = Shell::modelled();
    let title = format!("n={n}, {shell}");
    if !report.settings().wants(&title) {
        return;
    }
    let own = plan::own_arithmetic(n, shell.latency, shell.gap);
    let greedy = plan::greedy_arithmetic(n, shell.latency, shell.gap);
    let job = Job::one_each(n, shell, TRUE);
    let rounds = report.settings().pick(3, 1);
    let mut turns =
        Turns::take(report, 1, &[Convoke, Hydra4, Floor], |who| whole(tools, who, &job));
    // The peer's time is all sleep and hardly varies: later rounds can do without it if it is long.
    let rest: &[Launcher] = if n > 256 { &[Convoke, Floor] } else { &[Convoke, Hydra4, Floor] };
    turns.join(Turns::take(report, rounds - 1, rest, |who| whole(tools, who, &job)));
    let floor = Some(("bare tree".to_owned(), turns.seconds(Floor, 0)));
    let ours = turns.seconds(Convoke, 0);
    report.add(Row {
        title: title.clone(),
        ours: ours.clone(),
        other: Some((Hydra4.to_string(), turns.seconds(Hydra4, 0))),
        floor: floor.clone(),
        bar: Bar::RatioAtMost(of_hydra),
    });
    report.add(Row {
        title: title.clone(),
        ours: ours.clone(),
        other: Some(("the tree's own arithmetic".to_owned(), own)),
        floor: floor.clone(),
        bar: Bar::RatioAtMost(of_arithmetic),
    });
    report.add(Row {
        title,
        ours,
        other: Some(("arithmetic of the earliest tree".to_owned(), Ok(greedy.into()))),
        floor,
        bar: Bar::None,
    });
}

/// No modelled cost at all: what remains is ours. And, compared with that, some small costs.
fn at_no_cost(tools: &Tools, report: &mut Report) {
    for (n, rounds, bar) in [(1, 21, Bar::RatioAtMost(1.0)), (64, 9, Bar::RatioAtMost(0.8))] {
        let title = format!("n={n}, L=G=0");
        if report.settings().wants(&title) {
            let rounds = report.settings().pick(rounds, 3);
            let turns = free(tools, report, n, rounds);
            add_free(report, title, &turns, bar);
        }
    }
    if !report.settings().wants("n=256, L=G=0 and small costs") {
        return;
    }
    let rounds = report.settings().pick(5, 1);
    let turns = free(tools, report, 256, rounds);
    add_free(report, "n=256, L=G=0".to_owned(), &turns, Bar::None);
    for (latency_ms, gap_ms) in [(100, 10), (40, 12), (500, 2)] {
        small_costs(tools, report, Shell::costing(latency_ms, gap_ms), &turns.seconds(Convoke, 0));
    }
}

fn free(tools: &Tools, report: &mut Report, n: usize, rounds: usize) -> Turns {
    let job = Job::one_each(n, Shell::default(), TRUE);
    let all = [Convoke, Hydra4, Hydra5, Floor];
    Turns::take(report, rounds, &all, |who| whole(tools, who, &job))
}

fn add_free(report: &mut Report, title: String, turns: &Turns, bar: Bar) {
    let (hydra, time) = turns.faster_hydra(0);
    report.add(Row {
        title,
        ours: turns.seconds(Convoke, 0),
        other: Some((hydra.to_string(), time)),
        floor: Some(("bare tree".to_owned(), turns.seconds(Floor, 0))),
        bar,
    });
}

/// The bar is 1.3 of the optimum, and what as many agents cost here without any modelled cost.
fn small_costs(tools: &Tools, report: &mut Report, shell: Shell, at_no_cost: &Measured) {
    let optimum = plan::greedy_arithmetic(256, shell.latency, shell.gap);
    let title = format!("n=256, {shell}");
    let job = Job::one_each(256, shell, TRUE);
    let rounds = report.settings().pick(3, 1);
    let turns =
        Turns::take(report, rounds, &[Convoke, Hydra4, Floor], |who| whole(tools, who, &job));
    let allowed = at_no_cost
        .clone()
        .map(|free| Quantity::new(1.3 * optimum.as_secs_f64() + free.value, Unit::Seconds));
    report.add(Row {
        title: title.clone(),
        ours: turns.seconds(Convoke, 0),
        other: Some(("1.3 × greedy arithmetic + n=256 at L=G=0".to_owned(), allowed)),
        floor: Some(("bare tree".to_owned(), turns.seconds(Floor, 0))),
        bar: Bar::RatioAtMost(1.0),
    });
    report.add(Row {
        title,
        ours: turns.seconds(Convoke, 0),
        other: Some((Hydra4.to_string(), turns.seconds(Hydra4, 0))),
        floor: Some(("greedy arithmetic".to_owned(), Ok(optimum.into()))),
        bar: Bar::None,
    });
}

/// One host answers 5 s later than the others; the first one has most hosts waiting for it.
fn one_slow_host(tools: &Tools, report: &mut Report) {
    let rounds = report.settings().pick(3, 1);
    for (which, host) in [("the first", 1), ("the last", 64)] {
        let title = format!("n=64, {} of them 5 s slower: delay of the job", which);
        if !report.settings().wants(&title) {
            continue;
        }
        let even = Shell::costing(100, 10);
        let slow = Shell { slow: Some((host, Duration::from_secs(5))), ..even.clone() };
        let jobs = [Job::one_each(64, slow, TRUE), Job::one_each(64, even, TRUE)];
        let turns = Turns::take(report, rounds, &[Convoke, Floor], |who| {
            let (slow, even) = (whole(tools, who, &jobs[0])?, whole(tools, who, &jobs[1])?);
            Ok(vec![slow[0] - even[0]])
        });
        report.add(Row {
            title,
            ours: turns.seconds(Convoke, 0),
            other: None,
            floor: Some(("bare tree".to_owned(), turns.seconds(Floor, 0))),
            bar: Bar::AtMost(SLOW_MAX),
        });
    }
}

/// Start and teardown apart, by tasks that all wait for the same moment to end.
fn start_and_teardown(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let program = held::program(tools)?;
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    for (n, rounds, bar) in
        [(1, 9, Bar::None), (64, 5, Bar::None), (256, 3, Bar::AtMost(TEARDOWN_MAX))]
    {
        let title = format!("n={n}, L=G=0, apart");
        if !report.settings().wants(&title) {
            continue;
        }
        let job = Job::one_each(n, Shell::default(), &words);
        let rounds = report.settings().pick(rounds, 1);
        let turns = Turns::take(report, rounds, &[Convoke, Hydra4, Hydra5, Floor], |who| {
            let held = Held::start(tools, &mut tools.command(who, &job)?, job.tasks(), LIMIT)?;
            let phases = held.release()?;
            Ok(vec![phases.start.as_secs_f64(), phases.teardown.as_secs_f64()])
        });
        for (index, phase, bar) in
            [(0, "until all tasks run", Bar::None), (1, "from the end of all tasks", bar)]
        {
            let (hydra, time) = turns.faster_hydra(index);
            report.add(Row {
                title: format!("{title}: {phase}"),
                ours: turns.seconds(Convoke, index),
                other: Some((hydra.to_string(), time)),
                floor: Some(("bare tree".to_owned(), turns.seconds(Floor, index))),
                bar,
            });
        }
    }
    Ok(())
}

/// 512 tasks on one host. What a task costs is told from the difference to a single one, and
/// includes its exit.
fn many_tasks(tools: &Tools, report: &mut Report) {
    const TASKS: usize = 512;
    let title = format!("1 host, {TASKS} tasks: rate of tasks, launched and ended");
    if !report.settings().wants(&title) {
        return;
    }
    let jobs = [1, TASKS].map(|tasks| Job::new(1, tasks, Shell::default(), TRUE));
    let rounds = report.settings().pick(9, 3);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra5, Floor], |who| {
        if who == Floor {
            return spawn_loop(tools, TASKS);
        }
        let (one, all) = (whole(tools, who, &jobs[0])?, whole(tools, who, &jobs[1])?);
        Ok(vec![(TASKS - 1) as f64 / (all[0] - one[0])])
    });
    let floor = turns.median(Floor, 0, Unit::PerSecond);
    let spawning = turns.median(Floor, 1, Unit::PerSecond);
    report.add(Row {
        title: title.clone(),
        ours: turns.median(Convoke, 0, Unit::PerSecond),
        other: Some(("posix_spawn in C".to_owned(), floor)),
        floor: Some(("until the last spawn only".to_owned(), spawning.clone())),
        bar: Bar::RatioAtLeast(0.8),
    });
    report.add(Row {
        title,
        ours: turns.median(Convoke, 0, Unit::PerSecond),
        other: Some((Hydra5.to_string(), turns.median(Hydra5, 0, Unit::PerSecond))),
        floor: None,
        bar: Bar::None,
    });
}

/// Tasks per second of a C loop: until all have ended, and until the last was spawned.
fn spawn_loop(tools: &Tools, tasks: usize) -> anyhow::Result<Vec<f64>> {
    let mut command = std::process::Command::new(tools.floor("spawn"));
    let captured = run::capture(command.arg(tasks.to_string()).arg("/bin/true"), LIMIT)?;
    let text = String::from_utf8_lossy(&captured.output).into_owned();
    let micros: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    anyhow::ensure!(micros.len() == 2, "the spawn loop printed `{text}`");
    let rate = |micros: f64| tasks as f64 * 1e6 / micros;
    Ok(vec![rate(micros[1]), rate(micros[0])])
}
