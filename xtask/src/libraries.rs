//! The client libraries for C, laid out as they are installed: `lib`, with `lib/pkgconfig`, and `include`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::paths;

/// Each library by the name that follows `-l`, the package that it is built from, and what it is.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("pmi", "ffi-pmi", "Client library for PMI-1 with the functions of Slurm's"),
    ("pmi2", "ffi-pmi2", "Client library for PMI-2 with the functions of Slurm's, and extensions"),
];

/// Builds them with a profile of cargo's, and installs them in `dir`.
///
/// They are dynamic and need the system's C library, other than the program that ships.
pub(crate) fn install(sh: &Shell, profile: &str, dir: &Path) -> anyhow::Result<()> {
    let packages = LIBRARIES.iter().flat_map(|(_, package, _)| ["-p", package]);
    cmd!(sh, "cargo build --quiet --profile {profile} {packages...}").quiet().run()?;
    let built = paths::target().join(if profile == "dev" { "debug" } else { profile });
    let (lib, include) = (dir.join("lib"), dir.join("include"));
    sh.create_dir(lib.join("pkgconfig"))?;
    sh.create_dir(&include)?;
    for (name, _, description) in LIBRARIES {
        let soname = format!("lib{name}.so.0");
        // New files, since one that a program uses must not be written to.
        sh.remove_path(lib.join(&soname))?;
        sh.copy_file(built.join(format!("libconvoke_{name}.so")), lib.join(&soname))?;
        link(sh, &soname, lib.join(format!("lib{name}.so")))?;
        sh.copy_file(format!("crates/ffi/include/{name}.h"), include.join(format!("{name}.h")))?;
        let pkgconfig = lib.join("pkgconfig").join(format!("{name}.pc"));
        sh.write_file(pkgconfig, package(name, description))?;
    }
    // Slurm's headers are `slurm/pmi.h` and `slurm/pmi2.h`.
    link(sh, ".", include.join("slurm"))
}

fn link(sh: &Shell, to: &str, link: PathBuf) -> anyhow::Result<()> {
    sh.remove_path(&link)?;
    Ok(symlink(to, link)?)
}

/// What pkg-config reads, wherever the directory is moved to.
fn package(name: &str, description: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: {name}\nDescription: {description}\nVersion: {version}\n\
         Libs: -L${{libdir}} -l{name}\nCflags: -I${{includedir}}\n"
    )
}
