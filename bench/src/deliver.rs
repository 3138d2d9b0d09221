//! What it takes longer when all hosts lack the program than when all have it, beside what one
//! transfer of it takes by `ssh HOST 'cat >FILE'`, for each level of the tree.
//!
//! That many transfers would do if each host had processors of its own. Here all hosts share this
//! machine's, so the floor is what as many `ssh` take longer to write the program and look at its sum
//! than to do nothing, all at once.
//!
//! Hosts are namespaces with an sshd each, and have a disk of their own for the cache, which is empty
//! before each run that is to lack the program.

use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use testbed::{HEAD, RUN_DIR, Testbed};

use crate::report::{Bar, Report, Row};
use crate::run;
use crate::tools::Tools;
use crate::turns::Turns;

/// No single run is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

const ADDED: &str = "added";
const TRANSFERS: &str = "a transfer a level";
const FLOOR: &str = "as many ssh at once";

/// The tree for it: whoever has the program passes it on, and one more level has it each time.
const TREE: &str = "binomial";

/// Adds the row.
pub(crate) fn measure(tools: &Tools, report: &mut Report) -> anyhow::Result<()> {
    let levels: u32 = report.settings().pick(6, 3);
    let n = (1 << levels) - 1;
    let title = format!("{n} hosts that lack the program: what it takes longer");
    if !report.settings().wants(&title) {
        return Ok(());
    }
    let Some(convoke) = &tools.convoke else { anyhow::bail!("Convoke cannot run a job yet") };
    let convoke = convoke.display().to_string();
    let bed = Testbed::up(n)?;
    let disk = format!("mkdir -p {RUN_DIR}/.cache; mount -t tmpfs disk {RUN_DIR}/.cache");
    on_all(&bed, &disk)?;
    let rounds = report.settings().pick(5, 1);
    let send = format!("cat >{RUN_DIR}/.cache/sent; sha256sum {RUN_DIR}/.cache/sent");
    let turns = Turns::take(report, rounds, &[ADDED, TRANSFERS, FLOOR], |who| {
        let longer = |with: &mut Command, without: &mut Command| -> anyhow::Result<f64> {
            let with = run::time(with, LIMIT)?;
            Ok(with.saturating_sub(run::time(without, LIMIT)?).as_secs_f64())
        };
        let seconds = match who {
            ADDED => {
                on_all(&bed, &format!("rm -rf {RUN_DIR}/.cache/*"))?;
                let mut lacking = job(&bed, &convoke, "/nowhere/convoke")?;
                longer(&mut lacking, &mut job(&bed, &convoke, &convoke)?)?
            }
            FLOOR => {
                let mut sending = ssh(&bed, &send, &convoke, n)?;
                longer(&mut sending, &mut ssh(&bed, "true", &convoke, n)?)?
            }
            _ => {
                run::time(&mut ssh(&bed, &send, &convoke, 1)?, LIMIT)?.as_secs_f64()
                    * f64::from(levels)
            }
        };
        Ok(vec![seconds])
    });
    report.add(Row {
        title,
        ours: turns.seconds(ADDED, 0),
        other: Some((format!("{levels} × `ssh HOST 'cat >FILE'`"), turns.seconds(TRANSFERS, 0))),
        floor: Some((FLOOR.to_owned(), turns.seconds(FLOOR, 0))),
        bar: Bar::RatioAtMost(1.2),
    });
    Ok(())
}

fn job(bed: &Testbed, convoke: &str, path: &str) -> anyhow::Result<Command> {
    let mut command = bed.command(HEAD, convoke)?;
    command.args(["run", "--hosts", &bed.host_list(), "--tree", TREE, "--agent-path", path]);
    command.args(["--", "/bin/true"]);
    Ok(command)
}

/// The script on the first so many hosts at once, each with the program as its standard input.
fn ssh(bed: &Testbed, script: &str, program: &str, hosts: usize) -> anyhow::Result<Command> {
    let mut command = bed.command(HEAD, "/bin/bash")?;
    let all = r#"for host in "${@:3}"; do ssh "$host" "$1" <"$2" >/dev/null & done; wait"#;
    command.args(["-c", all, "floor", script, program]).args(bed.hosts().iter().take(hosts));
    Ok(command)
}

fn on_all(bed: &Testbed, script: &str) -> anyhow::Result<()> {
    for host in bed.hosts() {
        ensure!(bed.run(host, script)?.status.success(), "`{script}` failed on {host}");
    }
    Ok(())
}
