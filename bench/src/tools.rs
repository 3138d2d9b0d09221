//! Where everything is: the product, its peers, the modelled shell, the floors.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use testbed::command;

use crate::jobs::{Job, Launcher, Shell};
use crate::{report, run};

/// How long the product may take to say one word.
const SMOKE_LIMIT: Duration = Duration::from_secs(10);

/// Programs and a directory for this run's files.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The binary that ships; nothing if it cannot run a job.
    pub(crate) convoke: Option<PathBuf>,
    /// Debian's MPICH.
    pub(crate) hydra4: PathBuf,
    /// PyPI's MPICH.
    pub(crate) hydra5: PathBuf,
    /// The modelled remote shell.
    pub(crate) shell: PathBuf,
    /// A client of PMI-1 and PMI-2 without an MPI library.
    pub(crate) pmi_client: PathBuf,
    /// One that does what `MPI_Init` does.
    pub(crate) pmi_init: PathBuf,
    /// A task that writes floods.
    pub(crate) misbehave: PathBuf,
    /// Removed at the end.
    pub(crate) scratch: TempDir,
}

impl Tools {
    /// Builds what is ours, and finds the rest.
    pub(crate) fn find() -> anyhow::Result<Tools> {
        raise_descriptor_limit()?;
        let own = env::current_exe().context("find this program")?;
        let profile_dir = own.parent().context("this program has no directory")?;
        let target = profile_dir.parent().context("this program is not below target/")?;
        build_fixtures(target)?;
        let mut tools = Tools {
            convoke: Some(find_convoke(target)?),
            hydra4: "/usr/bin/mpiexec.hydra".into(),
            hydra5: path_of("MPICH5", &target.join("mpich5")).join("bin/mpiexec.hydra"),
            shell: path_of("TESTBED_SHELL", &profile_dir.join("testbed-shell")),
            pmi_client: path_of("PMI_CLIENT", &profile_dir.join("pmi-client")),
            pmi_init: profile_dir.join("pmi-init"),
            misbehave: profile_dir.join("misbehave"),
            scratch: tempfile::tempdir().context("make a directory")?,
        };
        for path in [&tools.hydra4, &tools.hydra5, &tools.shell, &tools.pmi_client] {
            ensure!(path.exists(), "no `{}`: run `cargo xtask setup --bench`", path.display());
        }
        tools.compile_floors()?;
        tools.drop_convoke_unless_it_works();
        Ok(tools)
    }

    /// The programs that are compared with, and their versions.
    pub(crate) fn peers(&self) -> anyhow::Result<String> {
        let [four, five] = [&self.hydra4, &self.hydra5].map(|path| {
            let said = command::check("asking Hydra", Command::new(path).arg("--version"))?;
            let version = hydra_version(&said).map(str::to_owned);
            version.with_context(|| format!("{} told no version: `{said}`", path.display()))
        });
        Ok(format!("Hydra {} and {}", four?, five?))
    }

    /// The program made of `floors/NAME.c`.
    pub(crate) fn floor(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A file of this run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The MPI program that does nothing, made with PyPI's MPICH.
    pub(crate) fn mpi_program(&self) -> anyhow::Result<PathBuf> {
        let program = self.file("mpi");
        let mut compile = Command::new(self.hydra5.with_file_name("mpicc"));
        compile.args(["-O2", "-o"]).arg(&program).arg(sources().join("mpi.c"));
        command::check("compiling an MPI program", &mut compile)?;
        Ok(program)
    }

    fn compile_floors(&self) -> anyhow::Result<()> {
        for name in ["tree", "spawn", "pmi", "task", "map"] {
            let mut compile = Command::new("cc");
            compile.args(["-O2", "-Wall", "-static", "-o"]).arg(self.floor(name));
            compile.arg(sources().join(format!("{name}.c")));
            command::check("compiling a floor", &mut compile)?;
        }
        Ok(())
    }

    fn drop_convoke_unless_it_works(&mut self) {
        let job = Job::one_each(1, Shell::default(), &["/bin/echo", "works"]);
        let said = self
            .command(Launcher::Convoke, &job)
            .and_then(|mut command| run::capture(&mut command, SMOKE_LIMIT));
        match said {
            Ok(captured) if captured.output == b"works\n" => {}
            Ok(captured) => {
                let words = String::from_utf8_lossy(&captured.output).into_owned();
                report::say(&format!("Convoke cannot run a job yet: it printed `{words}`"));
                self.convoke = None;
            }
            Err(error) => {
                report::say(&format!("Convoke cannot run a job yet: {error:#}"));
                self.convoke = None;
            }
        }
    }
}

/// Where the sources of the floors are.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("floors")
}

/// The word after `Version:`.
fn hydra_version(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.trim().strip_prefix("Version:")).map(str::trim)
}

/// Peers hold several descriptors for each host.
fn raise_descriptor_limit() -> anyhow::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised)
        .context("raise the limit of descriptors")
}

/// The fixtures and the modelled shell, if cargo runs this program.
fn build_fixtures(target: &Path) -> anyhow::Result<()> {
    let Some(cargo) = env::var_os("CARGO") else { return Ok(()) };
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "-p", "testbed", "-p", "testkit", "--target-dir"]);
    command::check("building the fixtures", build.arg(target)).map(drop)?;
    Ok(())
}

/// `$CONVOKE`, or what `cargo xtask dist` makes, made here and now.
fn find_convoke(target: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os("CONVOKE") {
        return fs::canonicalize(&path).with_context(|| format!("find {}", path.display()));
    }
    let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let dir = target.join("static");
    if let Some(cargo) = env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--release", "-p", "convoke", "--target", &triple]);
        build.arg("--target-dir").arg(&dir).env("RUSTFLAGS", "-C target-feature=+crt-static");
        command::check("building Convoke", &mut build)?;
    }
    Ok(dir.join(triple).join("release/convoke"))
}

fn path_of(variable: &str, default: &Path) -> PathBuf {
    env::var_os(variable).map_or_else(|| default.to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydra_s_version_is_found_in_its_words() {
        let said = "HYDRA build details:\n    Version:          4.0.2\n    Release Date:   Thu\n";
        assert_eq!(hydra_version(said), Some("4.0.2"));
        assert_eq!(hydra_version("usage"), None);
    }
}
