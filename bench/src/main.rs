//! `bench NAME [--quick] [--only TEXT]`: what Convoke costs, beside its peers and its floors.
//!
//! Every figure comes with its peer's and its floor's from the same run, in turns. A run beside other
//! work is no measurement, so the table says what else the machine did. `launch`, `pmi` and `connect` use the
//! modelled shell and start up to some thousand processes; all runs are bounded in time, and what a
//! failed one leaves behind is ended by the marker in its environment.

mod batch;
mod connect;
mod deliver;
mod init;
mod io;
mod launch;
mod links;
mod memory;
mod model;
mod namespaces;
mod pmi;

mod held;
mod jobs;
mod plan;
mod processes;
mod quantity;
mod quiet;
mod report;
mod route;
mod run;
mod sealed;
mod settings;
mod tools;
mod turns;

use std::process::ExitCode;

use anyhow::bail;

use crate::report::Report;
use crate::settings::Settings;
use crate::tools::Tools;

const USAGE: &str = "\
usage: bench launch|pmi|connect|io|memory|model|batch|deliver|route [--quick] [--only TEXT]
  --quick      fewer and smaller runs
  --only TEXT  only rows whose title contains TEXT; the table in bench/results stays as it is";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((name, options)) = words.split_first() else { bail!("no benchmark named\n{USAGE}") };
    match *name {
        sealed::HEAD => return sealed::run_head(options),
        sealed::AGENT => return sealed::run_agent(options),
        _ => {}
    }
    let settings = Settings::parse(options)?;
    let measure: fn(&Tools, &mut Report) -> anyhow::Result<()> = match *name {
        "batch" => batch::measure,
        "connect" => connect::measure,
        "deliver" => deliver::measure,
        "launch" => launch::measure,
        "pmi" => pmi::measure,
        "io" => io::measure,
        "memory" => memory::measure,
        "model" => self::model::measure,
        "route" => route::measure,
        other => bail!("no benchmark `{other}`\n{USAGE}"),
    };
    let tools = Tools::find()?;
    let mut report = Report::new(name, settings, &tools.peers()?)?;
    measure(&tools, &mut report)?;
    report.finish()
}
