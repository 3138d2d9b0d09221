//! Connect: what it takes until every task knows all others, with an MPI library and without one.

use std::process::Command;
use std::time::Duration;

use model::PmiDialect;
use testbed::Slurm;

use crate::init;
use crate::jobs::{Job, Launcher, Shell};
use crate::pmi;
use crate::quantity::{Quantity, Unit};
use crate::report::{Bar, Measured, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

use Launcher::{Convoke, Floor, Hydra4, Hydra5, Srun};

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What the shell costs that starts MPI programs: a login on a fast network, and no gap.
const LATENCY_MS: u64 = 20;

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    for (hosts, tasks) in [(16, 1), (4, 16)] {
        empty_program(tools, report, hosts, tasks)?;
    }
    get_all(tools, report, PmiDialect::Two, (16, 16), &[Hydra5, Srun], 0.35)?;
    get_all(tools, report, PmiDialect::One, (16, 64), &[Hydra5], 1.0)?;
    for shape in report.settings().pick([(1, 1024), (16, 64)], [(1, 64), (4, 16)]) {
        get_all_with_our_library(tools, report, shape);
    }
    init::measure(tools, report);
    Ok(())
}

/// An MPI program that does nothing. Its library takes the same time for itself whoever starts it, so what is above that is shown,
/// too.
fn empty_program(
    tools: &Tools,
    report: &mut Report,
    hosts: usize,
    tasks: usize,
) -> anyhow::Result<()> {
    let shell = Shell::costing(LATENCY_MS, 0);
    let title = format!("empty MPI program, {hosts}×{tasks}, {shell}");
    if !report.settings().wants(&title) {
        return Ok(());
    }
    let program = tools.mpi_program()?.display().to_string();
    let job = Job::new(hosts, tasks, shell, &[&program]);
    let rounds = report.settings().pick(9, 1);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra5, Floor], |who| {
        Ok(vec![run::time(&mut start(tools, who, &job)?, LIMIT)?.as_secs_f64()])
    });
    let [ours, other, floor] = [Convoke, Hydra5, Floor].map(|who| turns.seconds(who, 0));
    let above = |time: &Measured| -> Measured {
        let (time, floor) = (time.clone()?, floor.clone()?);
        Ok(Quantity::new(time.value - floor.value, Unit::Seconds))
    };
    let (ours_above, other_above) = (above(&ours), above(&other));
    report.add(Row {
        title: format!("{title}: whole command"),
        ours,
        other: Some((Hydra5.to_string(), other)),
        floor: Some(("as many programs alone".to_owned(), floor)),
        bar: Bar::RatioAtMost(1.0),
    });
    report.add(Row {
        title: format!("{title}: above the floor"),
        ours: ours_above,
        other: Some((Hydra5.to_string(), other_above)),
        floor: None,
        bar: Bar::None,
    });
    Ok(())
}

fn start(tools: &Tools, who: Launcher, job: &Job) -> anyhow::Result<Command> {
    match who {
        Convoke | Hydra4 | Hydra5 | Srun => tools.command(who, job),
        Floor => {
            let mut command = Command::new(tools.floor("spawn"));
            command.arg(job.tasks().to_string()).args(&job.program);
            Ok(command)
        }
    }
}

/// Clients without an MPI library, each of which gets everybody's card, one request after the other.
fn get_all(
    tools: &Tools,
    report: &mut Report,
    dialect: PmiDialect,
    (hosts, clients): (usize, usize),
    peers: &[Launcher],
    bar: f64,
) -> anyhow::Result<()> {
    let job = pmi::job(tools, hosts, clients, "all", dialect);
    let title = format!("{dialect}, {} clients, every card", job.shape());
    if !report.settings().wants(&title) {
        return Ok(());
    }
    let slurm = peers.contains(&Srun).then(|| Slurm::up(hosts, clients)).transpose()?;
    let rounds = report.settings().pick(7, 1);
    let contestants = [&[Convoke, Floor], peers].concat();
    let turns = Turns::take(report, rounds, &contestants, |who| match (who, &slurm) {
        (Srun, Some(slurm)) => pmi::timed(&mut srun(slurm, &job)),
        _ => pmi::once(tools, who, &job),
    });
    for &peer in peers {
        pmi::add(report, &turns, &title, 1, peer, pmi::SERVER, Bar::RatioAtMost(bar));
    }
    Ok(())
}

/// The same job on a cluster of Slurm, whose daemons run already.
fn srun(slurm: &Slurm, job: &Job) -> Command {
    let mut command = slurm.command("srun");
    command.args(["--mpi=pmi2", "-N", &job.hosts.to_string()]);
    command.args(["-n", &job.tasks().to_string()]).args(&job.program);
    command
}

/// The same where our clients use our library, which looks cards up in memory that the tasks of a node share. The floor's
/// processes have nothing to put.
fn get_all_with_our_library(tools: &Tools, report: &mut Report, (hosts, clients): (usize, usize)) {
    let plain = pmi::job(tools, hosts, clients, "all", PmiDialect::One);
    let title = format!("our client library, {} clients, every card", plain.shape());
    if !report.settings().wants(&title) {
        return;
    }
    let mut with_library = plain.clone();
    with_library.program.push("--library".to_owned());
    let rounds = report.settings().pick(7, 1);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra5, Floor], |who| match who {
        Convoke => pmi::once(tools, who, &with_library),
        Hydra4 | Hydra5 | Srun => pmi::once(tools, who, &plain),
        Floor => pmi::map(tools, (hosts, clients)),
    });
    let title = format!("{title}: put, barrier, all gets (slowest rank)");
    pmi::add(report, &turns, &title, 1, Hydra5, pmi::MAP, Bar::RatioAtMost(0.02));
}
