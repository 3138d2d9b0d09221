//! What runs a script: the program that its `#!` line names.
//!
//! `execve` says only that there is no such file when it is the interpreter that is missing, though
//! the script is plainly there. So it is looked for beforehand, once per job and node, and the
//! error names both. What has no such line is left to `execve`: whether a binary can be run is the
//! kernel's to say.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

/// Bytes at the front of a file that the kernel looks at.
const FRONT_BYTES: u64 = 256;

/// A script cannot be run since its interpreter cannot.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is to be run by `{}`, which {}", .script.display(), .interpreter.display(), words(*.errno))]
pub(crate) struct InterpreterError {
    /// The script.
    pub(crate) script: PathBuf,
    /// As its first line names it.
    pub(crate) interpreter: PathBuf,
    /// What keeps it from running.
    pub(crate) errno: Errno,
}

/// Checks that what runs `program` can be run itself, by a task that starts in `dir`.
///
/// A program that cannot be read, or has no `#!` line, passes.
pub(crate) fn check(program: &Path, dir: &Path) -> Result<(), InterpreterError> {
    let Ok(front) = front(program) else { return Ok(()) };
    let Some(interpreter) = interpreter(&front) else { return Ok(()) };
    usable(&dir.join(interpreter)).map_err(|errno| InterpreterError {
        script: program.to_owned(),
        interpreter: interpreter.to_owned(),
        errno,
    })
}

fn front(program: &Path) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    File::open(program)?.take(FRONT_BYTES).read_to_end(&mut front)?;
    Ok(front)
}

/// The first word behind `#!`, which ends at a blank or with the line.
fn interpreter(front: &[u8]) -> Option<&Path> {
    let line = front.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0);
    let word = line.split(is_blank).find(|word| !word.is_empty())?;
    Some(Path::new(OsStr::from_bytes(word)))
}

fn usable(path: &Path) -> Result<(), Errno> {
    let stat = rustix::fs::stat(path)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(Errno::ACCESS);
    }
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

fn words(errno: Errno) -> String {
    match errno {
        Errno::NOENT | Errno::NOTDIR => "does not exist".to_owned(),
        Errno::ACCESS => "is not executable".to_owned(),
        other => format!("cannot be used: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_the_line_is_the_interpreter() {
        let of = |text: &str| interpreter(text.as_bytes()).map(Path::to_owned);
        assert_eq!(of("#!/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(of("#! \t/usr/bin/env  python3 -u\n"), Some("/usr/bin/env".into()));
        assert_eq!(of("#!/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(of("#!\n/bin/sh\n"), None);
        assert_eq!(of("# !/bin/sh\n"), None);
        assert_eq!(of("\u{7f}ELF"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_script_whose_interpreter_is_missing_names_both() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        let check = |line: &str| {
            std::fs::write(&script, line).unwrap();
            check(&script, dir.path())
        };
        assert!(check("#!/bin/sh\n").is_ok());
        assert!(check("no script\n").is_ok());
        let missing = check("#!/no/such\n").unwrap_err();
        let expected =
            format!("`{}` is to be run by `/no/such`, which does not exist", script.display());
        assert_eq!((missing.to_string(), missing.errno), (expected, Errno::NOENT));
        assert_eq!(check("#!/bin\n").unwrap_err().errno, Errno::ACCESS);
        assert_eq!(check("#!script\n").unwrap_err().errno, Errno::ACCESS);
    }

    #[test]
    fn a_program_that_is_not_there_passes() {
        assert!(check(Path::new("/no/such"), Path::new("/")).is_ok());
    }
}
