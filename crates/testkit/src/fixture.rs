//! Finds the fixture programs of this crate from the tests of any other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the fixture program `name`, built for this run if need be.
///
/// Cargo builds the programs of a crate for that crate's own tests only, so the first call in a process asks
/// it to; when nothing has changed that takes a fraction of a second.
///
/// # Panics
///
/// When the programs cannot be built and are not there.
pub fn fixture(name: &str) -> PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let path = DIRECTORY.get_or_init(build).join(name);
    assert!(path.exists(), "no fixture `{}`: run `cargo build -p testkit --bins`", path.display());
    path
}

/// Builds all fixtures into the directory in which the running test was built.
fn build() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let directory = profile_directory(&test).to_owned();
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--package", "testkit", "--bins"]);
        command.arg("--target-dir").arg(directory.parent().unwrap_or(&directory));
        if directory.ends_with("release") {
            command.arg("--release");
        }
        run(&mut command);
    }
    directory
}

/// Tests lie in `deps` below the directory of their profile, other programs lie in it.
fn profile_directory(program: &Path) -> &Path {
    let parent = program.parent().expect("a program lies in a directory");
    if parent.ends_with("deps") { parent.parent().unwrap_or(parent) } else { parent }
}

#[expect(clippy::disallowed_methods, reason = "a test may wait for cargo")]
fn run(command: &mut Command) {
    let status = command.status().expect("cargo can be run");
    assert!(status.success(), "the fixture programs do not build");
}
