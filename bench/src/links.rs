//! One task's output by what the link to its agent runs over: IPv4, IPv6, and the streams of a remote
//! shell, which is ssh or has no cost of its own.
//!
//! The addresses are those of hosts in namespaces. Floors are encrypted pipes over the same ways: ssh
//! encrypts what our links have encrypted, and so it does with the floor.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use testbed::{Family, HEAD, Testbed};

use crate::jobs::{Job, Shell};
use crate::quantity::Unit;
use crate::report::{Bar, Report, Row};
use crate::run::Running;
use crate::sealed;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
const SSH: &str = "ssh's streams";
const PIPE_SSH: &str = "encrypted pipe through ssh";
const PIPE_V6: &str = "encrypted pipe over IPv6";
const LOOPBACK: &str = "TCP on one host";
const STREAMS: &str = "a shell's streams";
const PIPE_STREAMS: &str = "encrypted pair of sockets";

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
    let all = [IPV4, IPV6, PIPE_V6, SSH, PIPE_SSH, LOOPBACK, STREAMS, PIPE_STREAMS];
    let turns = Turns::take(report, rounds, &all, |over| Ok(vec![stand.rate(over)?]));
    let rate = |over| turns.median(over, 0, Unit::MegabytesPerSecond);
    for (over, other, floor) in
        [(IPV6, IPV4, PIPE_V6), (SSH, IPV4, PIPE_SSH), (STREAMS, LOOPBACK, PIPE_STREAMS)]
    {
        report.add(Row {
            title: title(over),
            ours: rate(over),
            other: Some((other.to_owned(), rate(other))),
            floor: Some((floor.to_owned(), rate(floor))),
            bar: NEAR,
        });
    }
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
        let task =
            [self.tools.misbehave.display().to_string(), format!("blast:{}", self.mebibytes)];
        let [(_, v4), (_, v6)] = &self.beds;
        match over {
            IPV6 => self.between(v6, "--link=tcp", &task),
            IPV4 => self.between(v4, "--link=tcp", &task),
            SSH => self.between(v4, "--link=shell", &task),
            LOOPBACK => self.on_one_host("--link=tcp", &task),
            STREAMS => self.on_one_host("--link=shell", &task),
            PIPE_V6 => pipe(v6.command(HEAD, &own_path()?)?, "n0", &task),
            PIPE_STREAMS => pipe(Command::new(own_path()?), sealed::STREAMS, &task),
            _ => pipe(v4.command(HEAD, &own_path()?)?, &format!("{}n0", sealed::SSH), &task),
        }
    }

    /// Ours, from the head of a testbed to its host.
    fn between(&self, bed: &Testbed, link: &str, task: &[String]) -> anyhow::Result<Command> {
        let Some(convoke) = &self.tools.convoke else { bail!("Convoke cannot run a job yet") };
        let mut command = bed.command(HEAD, convoke.to_str().context("a path is no text")?)?;
        command.args(["run", "--hosts", "n0", "-n", "1", link, "--"]).args(task);
        Ok(command)
    }

    /// Ours, where a shell costs nothing.
    fn on_one_host(&self, link: &str, task: &[String]) -> anyhow::Result<Command> {
        let task: Vec<&str> = task.iter().map(String::as_str).collect();
        self.tools.convoke_command(&Job::one_each(1, Shell::default(), &task), &[link])
    }
}

/// The floor's one task, over a way that `sealed` knows.
fn pipe(mut command: Command, way: &str, task: &[String]) -> anyhow::Result<Command> {
    command.args([sealed::HEAD, way, "1"]).args(task);
    Ok(command)
}

fn own_path() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("find this program")?;
    Ok(path.to_str().context("a path is no text")?.to_owned())
}
