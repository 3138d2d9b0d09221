//! What else a program needs to run: a script the program that its `#!` line names, a program that is
//! linked dynamically its loader.
//!
//! `execve` says only that there is no such file when one of those is missing, though the program is
//! plainly there. So it is looked for beforehand, once per job and node, and the error names both.
//! Whether a binary can be run at all is the kernel's to say, which may know emulators for other
//! machines; [`machine_words`] explains what it says.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::elf::Elf;

/// Bytes at the front of a file that the kernel looks at.
const FRONT_BYTES: u64 = 256;

/// Scripts that are run by scripts: as many as the kernel follows.
const DEPTH_MAX: u32 = 5;

/// A program cannot be run since what it needs cannot.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {} `{}`, which {}", .program.display(), .need.words(), .interpreter.display(), words(*.errno))]
pub(crate) struct InterpreterError {
    /// The script, or what is linked dynamically.
    pub(crate) program: PathBuf,
    /// Which of the two it is.
    pub(crate) need: Need,
    /// As its first line or its header names it.
    pub(crate) interpreter: PathBuf,
    /// What keeps it from running.
    pub(crate) errno: Errno,
}

/// What a program needs another for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    /// A script: to be run.
    Run,
    /// A dynamically linked program: to be loaded.
    Load,
}

impl Need {
    fn words(self) -> &'static str {
        match self {
            Need::Run => "is to be run by",
            Need::Load => "is to be loaded by",
        }
    }
}

/// Checks that what runs or loads `program` can be run itself, by a task that starts in `dir`.
///
/// A program that cannot be read, or needs nothing, passes.
pub(crate) fn check(program: &Path, dir: &Path) -> Result<(), InterpreterError> {
    let mut program = program.to_owned();
    for _ in 0..DEPTH_MAX {
        let Some((need, interpreter)) = needed(&program) else { return Ok(()) };
        let path = dir.join(&interpreter);
        if let Err(errno) = usable(&path) {
            return Err(InterpreterError { program, need, interpreter, errno });
        }
        if need == Need::Load {
            return Ok(());
        }
        program = path;
    }
    Ok(())
}

/// Which machine `program` is for and which this is, for the user whose program is refused here.
/// `None` when it is none for a machine.
pub(crate) fn machine_words(program: &Path) -> Option<String> {
    let (front, file) = front(program).ok()?;
    let elf = Elf::of(&front, &file)?;
    let here = rustix::system::uname();
    let here = here.machine().to_string_lossy();
    Some(format!("it is for {}, and this machine is {here}", elf.machine()))
}

fn needed(program: &Path) -> Option<(Need, PathBuf)> {
    let (front, file) = front(program).ok()?;
    if let Some(interpreter) = interpreter(&front) {
        return Some((Need::Run, interpreter.to_owned()));
    }
    // An emulator for other machines looks for their loaders elsewhere.
    let elf = Elf::of(&front, &file).filter(Elf::may_run_here)?;
    elf.loader.map(|loader| (Need::Load, loader))
}

/// The first bytes of the file, and the file.
fn front(program: &Path) -> io::Result<(Vec<u8>, File)> {
    // To open a pipe could take for ever, and to read one would not be for us.
    if !std::fs::metadata(program)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut front = Vec::new();
    let file = File::open(program)?;
    (&file).take(FRONT_BYTES).read_to_end(&mut front)?;
    Ok((front, file))
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
    use std::os::unix::fs::PermissionsExt;

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
    fn what_runs_a_script_is_checked_in_its_turn() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        std::fs::write(&inner, "#!/no/such\n").unwrap();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o755)).unwrap();
        let outer = dir.path().join("outer");
        std::fs::write(&outer, "#!inner\n").unwrap();
        let error = check(&outer, dir.path()).unwrap_err();
        assert_eq!((error.program, error.need), (inner.clone(), Need::Run));
        std::fs::write(&inner, "#!inner\n").unwrap();
        assert!(check(&outer, dir.path()).is_ok());
    }

    #[test]
    fn this_program_has_what_it_needs() {
        assert!(check(Path::new("/proc/self/exe"), Path::new("/")).is_ok());
    }

    #[test]
    fn a_program_that_is_not_there_passes() {
        assert!(check(Path::new("/no/such"), Path::new("/")).is_ok());
    }
}
