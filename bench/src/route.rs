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

/// Messages along the spawn tree, and along others.
const ROUTES: [&str; 4] = ["same", "kary:16", "binomial", "direct"];

/// Redundant links, beside a route: they are opened behind the launch.
const REDUNDANCY: [&str; 3] = ["--route", "kary:16", "--redundancy"];

/// How many handshakes are timed.
const HANDSHAKES: u32 = 500;

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let n = report.settings().pick(256, 64);
    let bars = [(Shell::modelled(), Bar::RatioAtMost(1.05)), (Shell::default(), Bar::None)];
    for (shell, bar) in bars {
        let job = Job::one_each(n, shell, &["/bin/true"]);
        rows(tools, report, &job, bar, &["--route"], &ROUTES);
        rows(tools, report, &job, bar, &REDUNDANCY, &["0", "1"]);
    }
    Ok(())
}

/// A row for each value of the last of these options but the first, with which all others are compared.
fn rows(
    tools: &Tools,
    report: &mut Report,
    job: &Job,
    bar: Bar,
    options: &[&str],
    values: &[&'static str],
) {
    let n = job.hosts;
    let title = format!("n={n}, {}: {}", job.shell, options.join(" "));
    let (Some(option), Some(&usual)) = (options.last(), values.first()) else { return };
    if !report.settings().wants(&title) {
        return;
    }
    let rounds = report.settings().pick(5, 1);
    let turns = Turns::take(report, rounds, values, |value| {
        let mut command = tools.convoke_command(job, &[options, &[value]].concat())?;
        Ok(vec![run::time(&mut command, LIMIT)?.as_secs_f64()])
    });
    let compared = turns.seconds(usual, 0);
    for &value in &values[1..] {
        report.add(Row {
            title: format!("{title} {value}"),
            ours: turns.seconds(value, 0),
            other: Some((format!("{option} {usual}"), compared.clone())),
            floor: Some((format!("that and {n} handshakes"), with_handshakes(&compared, n))),
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
