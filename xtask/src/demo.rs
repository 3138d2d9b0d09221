//! The demonstration: an unmodified MPICH program on hosts made of namespaces.
//!
//! It is MPICH 5: over TCP, Debian's 4.0.2 with UCX often hangs in `MPI_Finalize` whatever launches
//! it, because ranks that wait in the final PMI barrier do not answer those that still disconnect
//! (pmodels/mpich#6596 took that barrier away).

use anyhow::{Context, ensure};
use xshell::{Shell, cmd};

use crate::{dist, paths, setup};

const HOSTS: usize = 8;
const TASKS_PER_HOST: usize = 4;

/// Builds what ships, makes the hosts, and runs 32 ranks there over a tree of real ssh.
pub(crate) fn demo(sh: &Shell) -> anyhow::Result<()> {
    setup::setup(sh)?;
    ensure!(cmd!(sh, "id -u").quiet().read()? == "0", "hosts made of namespaces need root");
    heading("building the static binary");
    let convoke = dist::dist(sh)?;
    cmd!(sh, "cargo build --quiet -p testbed").quiet().run()?;
    let ring = compile_ring(sh)?;

    let hosts: Vec<String> = (0..HOSTS).map(|i| format!("n{i}:{TASKS_PER_HOST}")).collect();
    let (hosts, tasks) = (hosts.join(","), (HOSTS * TASKS_PER_HOST).to_string());
    heading(&format!("making {HOSTS} hosts with an sshd each, and running {tasks} ranks there"));
    println!(
        "$ convoke run --hosts {hosts} -n {tasks} --tree kary:2 --label --show-tree --stats ./ring\n"
    );
    let testbed = paths::target().join("debug/testbed");
    let count = HOSTS.to_string();
    cmd!(sh, "{testbed} run {count} {convoke} run --hosts {hosts} -n {tasks} --tree kary:2 --label --show-tree --stats {ring}")
        .quiet()
        .run()
        .context("run the ring")?;
    println!("\nThe hosts are gone again, and nothing of the job is left.");
    Ok(())
}

fn compile_ring(sh: &Shell) -> anyhow::Result<std::path::PathBuf> {
    let ring = paths::target().join("demo/ring");
    sh.create_dir(paths::target().join("demo"))?;
    let mpicc = paths::mpich5().join("bin/mpicc");
    cmd!(sh, "{mpicc} -O1 -o {ring} xtask/programs/ring.c").quiet().run()?;
    Ok(ring)
}

fn heading(text: &str) {
    println!("\n== {text}");
}
