//! The binary that ships: fully static, so that it runs on any node it is sent to; and what is
//! installed beside it, written by itself.

use std::path::PathBuf;

use anyhow::ensure;
use xshell::{Shell, cmd};

use crate::{elf, libraries, paths};

/// Static; and a handshake's arithmetic without asking the processor for vectors, which costs more
/// than they win. The build's id tells its agents from another's.
const FLAGS: &str = "-C target-feature=+crt-static -C link-arg=-Wl,--build-id=sha1 \
                     --cfg curve25519_dalek_backend=\"serial\"";

/// Builds `target/dist/convoke` and returns where it is.
pub(crate) fn dist(sh: &Shell) -> anyhow::Result<PathBuf> {
    let built = build(sh, "convoke", "convoke")?;
    let binary = paths::target().join("dist/convoke");
    sh.create_dir(paths::target().join("dist"))?;
    // A new file, since a running binary cannot be written to.
    sh.remove_path(&binary)?;
    sh.copy_file(built, &binary)?;
    ensure!(elf::is_static(&sh.read_binary_file(&binary)?), "{} is not static", binary.display());
    Ok(binary)
}

/// Builds the same, and writes manual pages, completion scripts and client libraries beside it, named as
/// they are installed.
pub(crate) fn package(sh: &Shell) -> anyhow::Result<PathBuf> {
    let binary = dist(sh)?;
    let dir = paths::target().join("dist");
    let man = dir.join("man");
    cmd!(sh, "cargo run --quiet -p convoke --example man -- {man}").quiet().run()?;
    sh.create_dir(dir.join("completions"))?;
    for (shell, file) in [("bash", "convoke"), ("zsh", "_convoke"), ("fish", "convoke.fish")] {
        let script = cmd!(sh, "{binary} completions {shell}").quiet().read()?;
        sh.write_file(dir.join("completions").join(file), script + "\n")?;
    }
    libraries::install(sh, "library", &dir)?;
    Ok(binary)
}

/// Builds one static program and returns where it is.
///
/// The target is named also where it is the host: without it, the flags would apply to procedural
/// macros too, which cannot be static. A target directory of its own keeps other builds warm.
pub(crate) fn build(sh: &Shell, package: &str, program: &str) -> anyhow::Result<PathBuf> {
    let target = target(sh)?;
    let build_dir = paths::target().join("static");
    let what = ["--release", "-p", package, "--bin", program];
    cmd!(sh, "cargo build --quiet {what...} --target {target} --target-dir {build_dir}")
        .env("RUSTFLAGS", FLAGS)
        .quiet()
        .run()?;
    Ok(build_dir.join(target).join("release").join(program))
}

/// The target with musl where the toolchain has it (`rustup target add`), else the one with glibc.
///
/// Every agent is a new process, and glibc's start-up asks the processor some hundred times what
/// it is. In a virtual machine each question costs microseconds: 0.8 ms against 0.25 ms.
fn target(sh: &Shell) -> anyhow::Result<String> {
    let named = |libc: &str| format!("{}-unknown-linux-{libc}", std::env::consts::ARCH);
    let musl = named("musl");
    let libraries = cmd!(sh, "rustc --print target-libdir --target {musl}").quiet().read()?;
    Ok(if sh.path_exists(libraries) { musl } else { named("gnu") })
}
