//! One task's output by what the link to its agent runs over: IPv4, IPv6, and the streams of a remote
//! shell, which is ssh or has no cost of its own.
//!
//! The addresses are those of hosts in namespaces. ssh encrypts what our links have encrypted, so its
//! floor is itself, with the same task and without us.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use testbed::{Family, HEAD, Testbed};

use crate::jobs::{Job, Shell};
use crate::quantity::Unit;
use crate::report::{Bar, Measured, Report, Row};
use crate::run::Running;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
const SSH: &str = "ssh's streams";
const PLAIN_SSH: &str = "plain ssh";
const LOOPBACK: &str = "TCP on one host";
const STREAMS: &str = "a shell's streams";

/// How near they are to be to each other.
const NEAR: Bar = Bar::RatioAtLeast(0.8);

/// The hosts of each family, and the command to compare.
struct Stand<'a> {
    tools: &'a Tools,
    beds: [(&'static str, Testbed); 2],
    mebibytes: usize,
}

/// Adds all rows.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let mebibytes = report.settings().pick(1000, 100);
    let title = |over| format!("one task, {mebibytes} MiB over {over}");
    let wants = [IPV6, SSH, STREAMS].map(|over| report.settings().wants(&title(over)));
    if wants == [false; 3] {
        return Ok(());
    }
    let stand = Stand::new(tools, mebibytes)?;
    let rounds = report.settings().pick(7, 1);
    let all = [IPV4, IPV6, SSH, PLAIN_SSH, LOOPBACK, STREAMS];
    let turns = Turns::take(report, rounds, &all, |over| Ok(vec![stand.rate(over)?]));
    let rate = |over| turns.median(over, 0, Unit::MegabytesPerSecond);
    let row = |over, other: &str, of_other, floor: Option<(String, Measured)>| Row {
        title: title(over),
        ours: rate(over),
        other: Some((other.to_owned(), of_other)),
        floor,
        bar: NEAR,
    };
    report.add(row(IPV6, IPV4, rate(IPV4), None));
    report.add(row(SSH, IPV4, rate(IPV4), Some((PLAIN_SSH.to_owned(), rate(PLAIN_SSH)))));
    report.add(row(STREAMS, LOOPBACK, rate(LOOPBACK), None));
    Ok(())
}

impl Stand<'_> {
    fn new(tools: &Tools, mebibytes: usize) -> anyhow::Result<Stand<'_>> {
        let bed = |keep, take| {
            let bed = Testbed::up(1)?;
            bed.resolve_to(keep)?;
            [HEAD, "n0"].iter().try_for_each(|host| bed.take_family(host, take))?;
            anyhow::Ok(bed)
        };
        let beds = [(IPV4, bed(Family::V4, Family::V6)?), (IPV6, bed(Family::V6, Family::V4)?)];
        Ok(Stand { tools, beds, mebibytes })
    }

    /// Megabytes a second of the whole command.
    fn rate(&self, over: &str) -> anyhow::Result<f64> {
        let mut running = Running::start(&mut self.command(over)?, Stdio::piped(), LIMIT)?;
        let (mut read, wanted) = (0, self.mebibytes << 20);
        running.read_all(|part| read += part.len())?;
        ensure!(read == wanted, "{read} of {wanted} bytes arrived");
        Ok(wanted as f64 / 1e6 / running.finish()?.as_secs_f64())
    }

    fn command(&self, over: &str) -> anyhow::Result<Command> {
        let Some(convoke) = &self.tools.convoke else { bail!("Convoke cannot run a job yet") };
        let task =
            [self.tools.misbehave.display().to_string(), format!("blast:{}", self.mebibytes)];
        let bed = self.beds.iter().find(|(family, _)| *family == over);
        let (_, bed) = bed.unwrap_or(&self.beds[0]);
        let link = match over {
            IPV4 | IPV6 | LOOPBACK => "--link=tcp",
            _ => "--link=shell",
        };
        if over == LOOPBACK || over == STREAMS {
            let job = Job::one_each(1, Shell::default(), &task.each_ref().map(String::as_str));
            return self.tools.convoke_command(&job, &[link]);
        }
        if over == PLAIN_SSH {
            let mut command = bed.command(HEAD, "ssh")?;
            command.args(["-n", "n0"]).args(task);
            return Ok(command);
        }
        let path = convoke.to_str().context("the path of Convoke is no text")?;
        let mut command = bed.command(HEAD, path)?;
        command.args(["run", "--hosts", "n0", "-n", "1", link, "--"]).args(task);
        Ok(command)
    }
}
