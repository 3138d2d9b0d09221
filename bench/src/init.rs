//! What a task spends in an `MPI_Init`, by the way in which it learns the cards of all others (S4-05, S4-16, S4-20), and
//! how an allgather compares with a fence and as many gets.
//!
//! Clients use our library. The slowest of thousands of ranks on two processors tells of the processors, so the time
//! inside is that of the median rank.

use std::time::Duration;

use anyhow::Context;

use crate::jobs::{Job, Shell};
use crate::pmi::{self, MAP};
use crate::report::{Bar, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

/// What `pmi-init` is told to do.
const FORMS: [&str; 5] = ["gets", "empty", "allgather", "ifence", "iallgather"];

/// What is taken of the words of `pmi-init`: a line, a step of it, and what that is called.
const FIGURES: [(&str, &str, &str); 7] = [
    ("median", "put", "put"),
    ("median", "fence", "fence"),
    ("median", "gets", "all gets"),
    ("median", "gather", "allgather"),
    ("median", "work", "the other work alone"),
    ("median", "init", "time inside"),
    ("max", "total", "slowest rank"),
];

const WORK: usize = 4;
const INIT: usize = 5;
const TOTAL: usize = 6;

/// Hosts and tasks on each.
const SHAPES: [(usize, usize); 4] = [(16, 4), (16, 16), (64, 16), (64, 64)];

/// Those whose time inside is to be flat, since the exchange goes on behind it.
const BEHIND: [&str; 2] = ["ifence", "iallgather"];

/// So much of the time of the fewest tasks.
const FLAT: Bar = Bar::RatioAtMost(1.25);

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) {
    let shapes: &[(usize, usize)] = report.settings().pick(&SHAPES, &SHAPES[..2]);
    let mut fewest = None;
    for &(hosts, tasks) in shapes {
        let title = format!("init, {} tasks", hosts * tasks);
        if !report.settings().wants(&title) {
            continue;
        }
        let rounds = report.settings().pick(5, 1);
        let all = [&FORMS[..], &[MAP]].concat();
        let turns = Turns::take(report, rounds, &all, |form| match form {
            MAP => pmi::map(tools, (hosts, tasks)),
            _ => once(tools, hosts, tasks, form),
        });
        rows(report, &title, &turns, fewest.as_ref());
        report.add(Row {
            title: format!("{title}: allgather (slowest rank)"),
            ours: turns.seconds("allgather", TOTAL),
            other: Some(("put, fence, all gets".to_owned(), turns.seconds("gets", TOTAL))),
            floor: Some((MAP.to_owned(), turns.seconds(MAP, 1))),
            bar: Bar::RatioAtMost(1.0),
        });
        fewest.get_or_insert(turns);
    }
}

/// Each form's time inside, beside that of the fewest tasks, and what the steps of the first take.
fn rows(
    report: &mut Report,
    title: &str,
    turns: &Turns<&'static str>,
    fewest: Option<&Turns<&'static str>>,
) {
    for (index, (_, _, name)) in FIGURES.iter().enumerate().take(3) {
        let (title, ours) = (format!("{title}, gets: {name}"), turns.seconds("gets", index));
        report.add(Row { title, ours, other: None, floor: None, bar: Bar::None });
    }
    for form in FORMS {
        let other = fewest.map(|fewest| ("of the fewest".to_owned(), fewest.seconds(form, INIT)));
        report.add(Row {
            title: format!("{title}, {form}: {}", FIGURES[INIT].2),
            ours: turns.seconds(form, INIT),
            bar: if BEHIND.contains(&form) && other.is_some() { FLAT } else { Bar::None },
            other,
            floor: Some((FIGURES[WORK].2.to_owned(), turns.seconds(form, WORK))),
        });
    }
}

/// The figures of one run, in seconds.
fn once(tools: &Tools, hosts: usize, tasks: usize, form: &str) -> anyhow::Result<Vec<f64>> {
    let program = tools.pmi_init.display().to_string();
    let job = Job::new(hosts, tasks, Shell::default(), &[&program, form]);
    let captured = run::capture(&mut tools.convoke_command(&job, &[])?, LIMIT)?;
    let text = String::from_utf8_lossy(&captured.output);
    let figures = FIGURES.iter().map(|(line, step, _)| pmi::told(&text, line, step));
    figures.collect::<Option<_>>().with_context(|| format!("rank 0 printed `{text}`"))
}
