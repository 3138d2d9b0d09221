//! What it costs a launch that a job's messages take another tree than the spawn tree (S0-52), and that its
//! members hold redundant links (S0-11).
//!
//! The links that the routing tree lacks are opened after the join, each with a handshake between its
//! two ends. Hosts of their own do that at once; here all share this machine's processors, so the
//! floor is a launch along the spawn tree and as many handshakes on these.

use std::hint::black_box;
use std::thread::available_parallelism;
use std::time::Duration;

use testbed::clock;

use crate::jobs::{Job, Shell};
use crate::quantity::{Quantity, Unit};
use crate::report::{Bar, Measured, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Messages along the spawn tree.
const SAME: &str = "same";

const ROUTES: [&str; 4] = [SAME, "kary:16", "binomial", "direct"];

/// The route beside which redundant links are opened, and how many by each agent.
const BESIDE: &str = "kary:16";
const REDUNDANCIES: [&str; 2] = ["0", "1"];

/// How many handshakes are timed.
const HANDSHAKES: u32 = 500;

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let n = report.settings().pick(256, 64);
    rows(tools, report, n, Shell::modelled(), Bar::RatioAtMost(1.05));
    rows(tools, report, n, Shell::default(), Bar::None);
    redundancy(tools, report, n, Shell::modelled(), Bar::RatioAtMost(1.05));
    redundancy(tools, report, n, Shell::default(), Bar::None);
    Ok(())
}

/// A row for a redundant link of each agent, against none. They are opened behind the launch.
fn redundancy(tools: &Tools, report: &mut Report, n: usize, shell: Shell, bar: Bar) {
    let job = Job::one_each(n, shell, &["/bin/true"]);
    let title = format!("n={n}, {}: --route {BESIDE} --redundancy 1", job.shell);
    if !report.settings().wants(&title) {
        return;
    }
    let rounds = report.settings().pick(5, 1);
    let turns = Turns::take(report, rounds, &REDUNDANCIES, |redundancy| {
        let options = ["--route", BESIDE, "--redundancy", redundancy];
        let mut command = tools.convoke_command(&job, &options)?;
        Ok(vec![run::time(&mut command, LIMIT)?.as_secs_f64()])
    });
    let [none, one] = REDUNDANCIES.map(|redundancy| turns.seconds(redundancy, 0));
    report.add(Row {
        title,
        ours: one,
        other: Some(("--redundancy 0".to_owned(), none.clone())),
        floor: Some((format!("that and {n} handshakes"), with_handshakes(&none, n))),
        bar,
    });
}

/// A row for each route but the spawn tree, all compared with that.
fn rows(tools: &Tools, report: &mut Report, n: usize, shell: Shell, bar: Bar) {
    let job = Job::one_each(n, shell, &["/bin/true"]);
    let title = format!("n={n}, {}", job.shell);
    if !report.settings().wants(&title) {
        return;
    }
    let rounds = report.settings().pick(5, 1);
    let turns = Turns::take(report, rounds, &ROUTES, |route| {
        let mut command = tools.convoke_command(&job, &["--route", route])?;
        Ok(vec![run::time(&mut command, LIMIT)?.as_secs_f64()])
    });
    let same = turns.seconds(SAME, 0);
    for route in ROUTES.into_iter().filter(|route| *route != SAME) {
        report.add(Row {
            title: format!("{title}: --route {route}"),
            ours: turns.seconds(route, 0),
            other: Some((format!("--route {SAME}"), same.clone())),
            floor: Some((format!("that and {n} handshakes"), with_handshakes(&same, n))),
            bar,
        });
    }
}

/// The same launch, and a handshake for each agent on all processors.
fn with_handshakes(launch: &Measured, n: usize) -> Measured {
    let began = clock::now();
    (0..HANDSHAKES).for_each(|_| drop(black_box(wire::rehearsed())));
    let each = began.elapsed().as_secs_f64() / f64::from(HANDSHAKES);
    let processors = available_parallelism().map_or(1, usize::from);
    let all = each * n as f64 / processors as f64;
    launch.clone().map(|launch| Quantity::new(launch.value + all, Unit::Seconds))
}
