//! The tracked files of the repository, as tidy reads them.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

/// A tracked text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path within the repository.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
}

/// All tracked files that are text.
pub(crate) fn read_all(sh: &Shell) -> anyhow::Result<Vec<Source>> {
    let names = cmd!(sh, "git ls-files -z").quiet().read()?;
    let paths = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    // A file that was deleted and not yet committed is listed, but not there.
    Ok(paths.filter_map(|path| Some(Source { text: sh.read_file(&path).ok()?, path })).collect())
}

impl Source {
    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    /// The file's name without its extension.
    pub(crate) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// The directory named `src` that it lies in, if any.
    pub(crate) fn src_dir(&self) -> Option<&Path> {
        self.path.ancestors().skip(1).find(|dir| dir.ends_with("src"))
    }

    /// Its lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}
