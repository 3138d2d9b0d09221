//! The binary that ships: fully static, so that it runs on any node it is sent to.

use std::path::PathBuf;

use anyhow::ensure;
use xshell::{Shell, cmd};

use crate::{elf, paths};

/// Builds `target/dist/convoke` and returns where it is.
///
/// The target is named although it is the host: without it, the flags would apply to procedural
/// macros too, which cannot be static. A target directory of its own keeps other builds warm.
pub(crate) fn dist(sh: &Shell) -> anyhow::Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let build_dir = paths::target().join("static");
    cmd!(sh, "cargo build --release -p convoke --target {target} --target-dir {build_dir}")
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CONVOKE_BUILD", build_name(sh))
        .quiet()
        .run()?;
    let binary = paths::target().join("dist/convoke");
    sh.create_dir(paths::target().join("dist"))?;
    // A new file, since a running binary cannot be written to.
    sh.remove_path(&binary)?;
    sh.copy_file(build_dir.join(target).join("release/convoke"), &binary)?;
    ensure!(elf::is_static(&sh.read_binary_file(&binary)?), "{} is not static", binary.display());
    Ok(binary)
}

/// What tells this build's agents from another's: the commit, and whether the tree differs from it.
fn build_name(sh: &Shell) -> String {
    cmd!(sh, "git describe --always --dirty --abbrev=40")
        .quiet()
        .ignore_stderr()
        .read()
        .unwrap_or_default()
}
