//! Benchmarks, each alone: a run beside another measurement is no measurement.

use anyhow::bail;
use xshell::{Shell, cmd};

use crate::{dist, paths, setup};

/// Builds everything optimised and runs the benchmark that `arguments` name.
pub(crate) fn bench(sh: &Shell, arguments: &[&str]) -> anyhow::Result<()> {
    if arguments.is_empty() {
        bail!("which benchmark: launch, pmi, connect, io, memory, model, batch, deliver or route?");
    }
    setup::setup_bench(sh)?;
    let convoke = dist::dist(sh)?;
    // Of the modelled shell only the modelled time shall count, and of a client what it asks for, for us and for the
    // peers: static, since the start-up of a dynamic program takes longer than all that it asks.
    let shell = dist::build(sh, "testbed", "testbed-shell")?;
    let pmi_client = dist::build(sh, "testkit", "pmi-client")?;
    cmd!(sh, "cargo build --quiet --release -p testbed").quiet().run()?;
    cmd!(sh, "cargo run --quiet --release -p bench -- {arguments...}")
        .env("CONVOKE", convoke)
        .env("TESTBED", paths::target().join("release/testbed"))
        .env("TESTBED_SHELL", shell)
        .env("PMI_CLIENT", pmi_client)
        .env("MPICH5", paths::mpich5())
        .quiet()
        .run()?;
    Ok(())
}
