//! Whether a program is one of Open MPI, which asks for PMIx: without it, each task runs as if it were alone.

use std::fs::File;
use std::path::Path;

use crate::elf;

/// The least number of the libraries of Open MPI since its version 2. Those of MPICH and its kin have 12, which Open MPI
/// has also had, ten years ago.
const NUMBER_MIN: u32 = 20;

/// The library of Open MPI that `program` is linked with, if it is.
pub(crate) fn library_of(program: &Path) -> Option<String> {
    let file = File::open(program).ok().filter(|_| program.is_file())?;
    elf::libraries(&file).into_iter().find(|name| is_of_open_mpi(name))
}

/// C, C++ and Fortran have libraries of their own: `libmpi_cxx.so.40`, `libmpi_mpifh.so.40`.
fn is_of_open_mpi(name: &str) -> bool {
    let number = name.strip_prefix("libmpi").and_then(|rest| rest.split_once(".so."));
    number
        .and_then(|(_, number)| number.parse().ok())
        .is_some_and(|number: u32| number >= NUMBER_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_open_mpi_are_told_from_those_of_mpich_and_others() {
        let open_mpi = ["libmpi.so.40", "libmpi.so.20", "libmpi_mpifh.so.40", "libmpi_cxx.so.40"];
        let others =
            ["libmpi.so.12", "libmpich.so.12", "libmpifort.so.12", "libmpi_abi.so.0", "libm.so.6"];
        assert!(open_mpi.into_iter().all(is_of_open_mpi));
        assert!(!others.into_iter().any(is_of_open_mpi));
    }

    #[test]
    fn this_program_a_directory_and_nothing_are_none_of_open_mpi() {
        for path in ["/proc/self/exe", "/", "/no/such", "/dev/zero"] {
            assert_eq!(library_of(Path::new(path)), None, "{path}");
        }
    }
}
