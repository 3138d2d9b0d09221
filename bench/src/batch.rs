//! Strict batches against a window, against neither and against random delays, where sshds have the
//! limit that they have when nobody has configured them.
//!
//! Two cases: 64 hosts with an sshd each, where the limit is met only by who starts one host often;
//! and 64 names of one host, where every start meets the same limit. What the product does by default
//! is compared with the best of the others.

use std::process::Command;
use std::time::Duration;

use testbed::{HEAD, Sshd, Testbed};

use crate::report::{Bar, Measured, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What the product does when it is told nothing.
const DEFAULT: &str = "default";

/// As many plain `ssh`.
const FLOOR: &str = "plain ssh";

/// As many as an sshd always admits that nobody has configured: more at once are refused, and try
/// again, which is not the least that can be.
const ADMITTED: usize = 10;

/// Options of `convoke run`, by the names of the settings that they make. Sets and windows are those
/// of S1 and S0: one process starts all. Delays before a start are what S3 names (S3-08).
const SETTINGS: [(&str, &[&str]); 6] = [
    (DEFAULT, &[]),
    ("batches of 8", &["--tree", "flat", "--batch", "8"]),
    ("batches of 16", &["--tree", "flat", "--batch", "16"]),
    ("window of 8", &["--tree", "flat", "--window", "8"]),
    ("neither", &["--tree", "flat"]),
    ("random delays of up to 1 s", &["--tree", "flat", "--shell", DELAYED]),
];

/// A remote shell that waits before it begins. Without `--norc`, a `bash` whose input is a socket takes
/// itself for a remote one, and runs what the user has in `~/.bashrc`: 64 at once for half a minute, where
/// that holds a lock.
const DELAYED: &str = "bash --norc -c 'sleep $((RANDOM % 1000))e-3; exec ssh \"${@:3}\" \"$1\" \"$2\"' ssh {host} {cmd}";

/// Where the hosts are.
struct Case<'a> {
    bed: &'a Testbed,
    hosts: String,
    /// Options that `ssh` needs for them.
    ssh: &'a [&'a str],
    /// How many of them the floor calls at once.
    at_once: usize,
}

/// Adds both rows of tables.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let n = report.settings().pick(64, 8);
    let title = format!("{n} namespaces, an sshd each");
    if report.settings().wants(&title) {
        let bed = Testbed::up(n)?;
        bed.hosts().iter().try_for_each(|host| bed.start_sshd(host, Sshd::Usual))?;
        let case = Case { bed: &bed, hosts: bed.host_list(), ssh: &[], at_once: n };
        rows(tools, report, &title, &case);
    }
    let title = format!("{n} names of one sshd");
    if report.settings().wants(&title) {
        let bed = Testbed::up(1)?;
        bed.start_sshd("n0", Sshd::Usual)?;
        let (hosts, ssh) = (format!("m[1-{n}]"), &["-oHostName=n0"]);
        rows(tools, report, &title, &Case { bed: &bed, hosts, ssh, at_once: ADMITTED });
    }
    Ok(())
}

/// A row for each setting, all compared with the default, and one for the default against the best.
fn rows(tools: &Tools, report: &mut Report, title: &str, case: &Case) {
    let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).chain([FLOOR]).collect();
    let rounds = report.settings().pick(3, 1);
    let turns = Turns::take(report, rounds, &names, |who| {
        let elapsed = run::time(&mut command(tools, case, who)?, LIMIT)?;
        Ok(vec![elapsed.as_secs_f64()])
    });
    let floor = Some((FLOOR.to_owned(), turns.seconds(FLOOR, 0)));
    let others = SETTINGS.iter().map(|(name, _)| *name).filter(|name| *name != DEFAULT);
    let others: Vec<(&str, Measured)> = others.map(|name| (name, turns.seconds(name, 0))).collect();
    let best = others.iter().min_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
    let ours = turns.seconds(DEFAULT, 0);
    for (name, time) in &others {
        report.add(Row {
            title: format!("{title}: against {name}"),
            ours: ours.clone(),
            other: Some(((*name).to_owned(), time.clone())),
            floor: floor.clone(),
            bar: Bar::None,
        });
    }
    report.add(Row {
        title: format!("{title}: against the best of these"),
        ours,
        other: best.map(|(name, time)| ((*name).to_owned(), time.clone())),
        floor,
        bar: Bar::RatioAtMost(1.1),
    });
}

/// For comparing only: what failed is last.
fn seconds(measured: &Measured) -> f64 {
    measured.as_ref().map_or(f64::INFINITY, |time| time.value)
}

fn command(tools: &Tools, case: &Case, who: &str) -> anyhow::Result<Command> {
    let Some((_, options)) = SETTINGS.iter().find(|(name, _)| *name == who) else {
        return plain_ssh(case);
    };
    let Some(convoke) = &tools.convoke else { anyhow::bail!("Convoke cannot run a job yet") };
    let mut command = case.bed.command(HEAD, &convoke.display().to_string())?;
    command.args(["run", "--hosts", &case.hosts]);
    for option in *options {
        match *option {
            DELAYED => command.arg(format!("{DELAYED} {}", case.ssh.join(" "))),
            option => command.arg(option),
        };
    }
    if !options.contains(&DELAYED) {
        command.args(case.ssh.iter().map(|option| format!("--ssh-arg={option}")));
    }
    command.args(["--", "/bin/true"]);
    Ok(command)
}

/// Each again until it is admitted.
fn plain_ssh(case: &Case) -> anyhow::Result<Command> {
    let mut command = case.bed.command(HEAD, "/bin/bash")?;
    let script = "hosts=$1; at_once=$2; shift 2; printf '%s\\n' $(eval echo $hosts) | xargs -P $at_once -I HOST \
                  sh -c 'until ssh -n \"$@\" 2>/dev/null; do :; done' floor \"$@\" HOST true";
    let braces = case.hosts.replace("[1-", "{1..").replace(']', "}").replace(',', " ");
    command.args(["-c", script, "floor", &braces, &case.at_once.to_string()]).args(case.ssh);
    Ok(command)
}
