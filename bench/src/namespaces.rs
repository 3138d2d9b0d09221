//! Launch over real ssh, into hosts with a network and an sshd of their own.
//!
//! On two processors, the key exchanges are nearly all of it; the floor is as many plain
//! `ssh HOST true` started at once.

use std::process::Command;
use std::time::Duration;

use testbed::{HEAD, Testbed};

use crate::jobs::Launcher;
use crate::report::{Bar, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

use Launcher::{Convoke, Floor, Hydra4, Hydra5};

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Adds the row of real ssh.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let n = report.settings().pick(64, 8);
    let title = format!("{n} namespaces with real sshd");
    if !report.settings().wants(&title) {
        return Ok(());
    }
    let bed = Testbed::up(n)?;
    let rounds = report.settings().pick(5, 1);
    let turns = Turns::take(report, rounds, &[Convoke, Hydra5, Floor], |who| {
        let elapsed = run::time(&mut command(tools, &bed, who)?, LIMIT)?;
        Ok(vec![elapsed.as_secs_f64()])
    });
    report.add(Row {
        title,
        ours: turns.seconds(Convoke, 0),
        other: Some((Hydra5.to_string(), turns.seconds(Hydra5, 0))),
        floor: Some(("plain ssh".to_owned(), turns.seconds(Floor, 0))),
        bar: Bar::RatioAtMost(1.05),
    });
    Ok(())
}

fn command(tools: &Tools, bed: &Testbed, who: Launcher) -> anyhow::Result<Command> {
    let (hosts, n) = (bed.host_list(), bed.hosts().len().to_string());
    match who {
        Convoke => {
            let Some(convoke) = &tools.convoke else {
                anyhow::bail!("Convoke cannot run a job yet")
            };
            let mut command = bed.command(HEAD, &convoke.display().to_string())?;
            command.args(["run", "--hosts", &hosts, "-n", &n, "--", "/bin/true"]);
            Ok(command)
        }
        Hydra4 | Hydra5 => {
            let mpiexec = if who == Hydra4 { &tools.hydra4 } else { &tools.hydra5 };
            let mut command = bed.command(HEAD, &mpiexec.display().to_string())?;
            command.args([
                "-launcher",
                "ssh",
                "-hosts",
                &hosts,
                "-n",
                &n,
                "-ppn",
                "1",
                "/bin/true",
            ]);
            Ok(command)
        }
        Launcher::Srun => anyhow::bail!("srun needs no ssh"),
        Floor => {
            let mut command = bed.command(HEAD, "/bin/sh")?;
            let script = "for host; do ssh -n $host true & done; wait";
            command.args(["-c", script, "floor"]).args(bed.hosts());
            Ok(command)
        }
    }
}
