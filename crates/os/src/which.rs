//! Finds the executable that a command names, so that a failure can say where it was looked for.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No directory of the search path has a file of this name.
    #[error("no program `{program}` in {}", join(.searched))]
    NotFound {
        /// As given.
        program: String,
        /// Every directory that was looked in, in order.
        searched: Vec<PathBuf>,
    },
    /// The path that was given does not exist.
    #[error("no such program: `{}`", .path.display())]
    Missing {
        /// The path, made absolute.
        path: PathBuf,
    },
    /// The file is there, but may not be executed.
    #[error("not executable: `{}`", .path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The name is that of a directory.
    #[error("a directory, not a program: `{}`", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Something else was in the way, such as a directory that may not be searched.
    #[error("look for program `{}`", .path.display())]
    Other {
        /// The file that was asked about.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Finds `program` as a task would that starts in `dir` with `path_list` as its `PATH`.
///
/// A name with a slash is relative to `dir`. Otherwise the first executable file of that name
/// wins; an empty entry of `path_list` is `dir`.
///
/// # Errors
/// When there is none. A file that is no executable is reported only when nothing better follows.
pub fn which(program: &OsStr, path_list: &OsStr, dir: &Path) -> Result<PathBuf, ResolveError> {
    if program.as_bytes().contains(&b'/') {
        return executable(dir.join(program));
    }
    let mut searched = Vec::new();
    let mut unusable = None;
    for entry in path_list.as_bytes().split(|byte| *byte == b':') {
        let directory = dir.join(OsStr::from_bytes(entry));
        let file = directory.join(program);
        match executable(file) {
            // An empty name joins to the directory itself.
            Ok(path) if !program.is_empty() => return Ok(path),
            Ok(_) | Err(ResolveError::Missing { .. } | ResolveError::NotFound { .. }) => {}
            Err(error) => {
                if !program.is_empty() {
                    unusable.get_or_insert(error);
                }
            }
        }
        searched.push(directory);
    }
    let program = program.to_string_lossy().into_owned();
    Err(unusable.unwrap_or(ResolveError::NotFound { program, searched }))
}

fn executable(path: PathBuf) -> Result<PathBuf, ResolveError> {
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(source) => return Err(not_there(path, source)),
    };
    if metadata.is_dir() {
        return Err(ResolveError::Directory { path });
    }
    match rustix::fs::accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(path),
        Err(rustix::io::Errno::ACCESS) => Err(ResolveError::NotExecutable { path }),
        Err(errno) => Err(ResolveError::Other { path, source: errno.into() }),
    }
}

fn not_there(path: PathBuf, source: io::Error) -> ResolveError {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    if missing.contains(&source.kind()) {
        ResolveError::Missing { path }
    } else {
        ResolveError::Other { path, source }
    }
}

fn join(paths: &[PathBuf]) -> String {
    let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    texts.join(":")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_bare_name_is_found_in_the_path_and_a_missing_one_names_what_was_searched() {
        let dir = Path::new("/");
        assert_eq!(find("sh", "/nowhere:/bin", dir).unwrap(), Path::new("/bin/sh"));
        assert_eq!(find("sh", "/nowhere:bin", dir).unwrap(), Path::new("/bin/sh"));
        let text = find("no-such", "/bin:/usr/bin", dir).unwrap_err().to_string();
        assert_eq!(text, "no program `no-such` in /bin:/usr/bin");
        assert!(matches!(find("", "/bin", dir), Err(ResolveError::NotFound { .. })));
    }

    #[test]
    fn a_name_with_a_slash_is_relative_to_the_directory_of_the_task() {
        let dir = tempfile::tempdir().unwrap();
        file(dir.path(), "run", 0o755);
        assert_eq!(find("./run", "", dir.path()).unwrap(), dir.path().join("./run"));
        assert!(matches!(find("./walk", "", dir.path()), Err(ResolveError::Missing { .. })));
        assert!(matches!(find("run/x", "", dir.path()), Err(ResolveError::Missing { .. })));
    }

    #[test]
    fn what_is_there_but_cannot_run_is_named_unless_something_better_follows() {
        let dir = tempfile::tempdir().unwrap();
        file(dir.path(), "ls", 0o644);
        std::fs::create_dir(dir.path().join("cat")).unwrap();
        let path = dir.path().to_str().unwrap();
        let found = find("ls", path, Path::new("/"));
        assert!(matches!(found, Err(ResolveError::NotExecutable { path }) if path.ends_with("ls")));
        assert!(matches!(find("cat", path, Path::new("/")), Err(ResolveError::Directory { .. })));
        let both = format!("{path}:/bin");
        assert_eq!(find("ls", &both, Path::new("/")).unwrap(), Path::new("/bin/ls"));
    }

    fn find(program: &str, path_list: &str, dir: &Path) -> Result<PathBuf, ResolveError> {
        which(OsStr::new(program), OsStr::new(path_list), dir)
    }

    fn file(dir: &Path, name: &str, mode: u32) {
        let path = dir.join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}
