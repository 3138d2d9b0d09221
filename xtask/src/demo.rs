//! The demonstration: an unmodified MPICH program on hosts made of namespaces, or of loopback
//! addresses for who may make no namespaces.
//!
//! It is MPICH 5: over TCP, Debian's 4.0.2 with UCX often hangs in `MPI_Finalize` whatever launches
//! it, because ranks that wait in the final PMI barrier do not answer those that still disconnect
//! (pmodels/mpich#6596 took that barrier away).

use std::path::PathBuf;

use anyhow::Context;
use xshell::{Shell, cmd};

use crate::{dist, paths, setup};

const HOSTS: usize = 8;
const TASKS_PER_HOST: usize = 4;

/// What stands in for an MPI program where there is no MPICH.
const NO_MPI: &str = r#"echo "rank $PMI_RANK of $PMI_SIZE runs without MPI""#;

/// Builds what ships, makes the hosts, and runs 32 ranks there over a tree of real ssh.
pub(crate) fn demo(sh: &Shell, is_loopback: bool) -> anyhow::Result<()> {
    if let Err(error) = setup::setup_demo(sh) {
        println!("{error:#}; going on with what is there");
    }
    let is_loopback = is_loopback || !has_namespaces(sh);
    heading("building the static binary");
    let convoke = dist::dist(sh)?;
    cmd!(sh, "cargo build --quiet -p testbed").quiet().run()?;
    let program = program(sh)?;

    let tasks = HOSTS * TASKS_PER_HOST;
    let kind = if is_loopback {
        "loopback addresses with an sshd of yours, which share this machine's name"
    } else {
        "namespaces with an sshd each"
    };
    heading(&format!("making {HOSTS} hosts of {kind}, and running {tasks} ranks there"));
    let options = options(is_loopback);
    println!("$ convoke {options} {}\n", program.shown);
    let testbed = paths::target().join("debug/testbed");
    let kind = is_loopback.then_some("--loopback");
    let count = HOSTS.to_string();
    let script = format!(r#"convoke=$1; shift; exec "$convoke" {options} "$@""#);
    let words = program.words;
    cmd!(sh, "{testbed} {kind...} run {count} sh -c {script} demo {convoke} {words...}")
        .quiet()
        .run()
        .context("run the program")?;
    println!("\nThe hosts are gone again, and nothing of the job is left.");
    Ok(())
}

/// The command line, in which a shell puts the loopback hosts' configuration.
fn options(is_loopback: bool) -> String {
    let ssh_arg = if is_loopback { r#" --ssh-arg=-F --ssh-arg="$TESTBED_SSH_CONFIG""# } else { "" };
    let hosts: Vec<String> = (0..HOSTS).map(|i| format!("n{i}:{TASKS_PER_HOST}")).collect();
    let (hosts, tasks) = (hosts.join(","), HOSTS * TASKS_PER_HOST);
    format!("run{ssh_arg} --hosts {hosts} -n {tasks} --tree kary:2 --label --show-tree --stats")
}

/// Whether we may make namespaces, which root in a container may not.
fn has_namespaces(sh: &Shell) -> bool {
    let unshare = cmd!(sh, "unshare --net --mount --pid --fork --kill-child -- true");
    setup::is_root(sh).unwrap_or(false) && unshare.quiet().ignore_stderr().run().is_ok()
}

/// What runs, and what we say that runs.
struct Program {
    shown: &'static str,
    words: Vec<PathBuf>,
}

/// The ring, compiled; or a line of shell.
fn program(sh: &Shell) -> anyhow::Result<Program> {
    let mpicc = paths::mpich5().join("bin/mpicc");
    if !mpicc.exists() {
        println!("no MPICH 5 in {}: no MPI program will be run", paths::mpich5().display());
        let words = ["sh", "-c", NO_MPI].map(PathBuf::from).to_vec();
        return Ok(Program { shown: "sh -c ...", words });
    }
    let ring = paths::target().join("demo/ring");
    sh.create_dir(paths::target().join("demo"))?;
    cmd!(sh, "{mpicc} -O1 -o {ring} xtask/programs/ring.c").quiet().run()?;
    Ok(Program { shown: "./ring", words: vec![ring] })
}

fn heading(text: &str) {
    println!("\n== {text}");
}
