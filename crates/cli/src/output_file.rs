//! Files that a command writes at its end, and that are opened before it begins: whoever waits for an
//! hour of work must not learn only then that there is no place for its result. What was there before
//! stays until then; without a result, no file is left that was not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use observe::{Timeline, TimelineFormat, TimelineFormatError};

/// An open file, as it was until [`OutputFile::write`].
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
    /// Whether it was made here and holds nothing yet.
    is_new: bool,
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("create `{}`", .0.display())]
    Create(PathBuf, #[source] io::Error),
    #[error("write `{}`", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error("use `--timeline`")]
    Timeline(#[source] TimelineFormatError),
}

impl OutputFile {
    /// Opens the file, and creates it where there is none.
    pub(crate) fn create(path: &Path) -> Result<OutputFile, OutputError> {
        let new = File::create_new(path);
        let is_new = new.is_ok();
        let file = new
            .or_else(|_| File::options().write(true).create(true).truncate(false).open(path))
            .map_err(|error| OutputError::Create(path.into(), error))?;
        Ok(OutputFile { path: path.into(), file, is_new })
    }

    /// Writes the whole text in place of what the file held.
    pub(crate) fn write(mut self, text: &str) -> Result<(), OutputError> {
        self.is_new = false;
        self.replace(text).map_err(|error| OutputError::Write(self.path.clone(), error))
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?; // a pipe has no length
        }
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path); // an empty file is all that is left of it then
        }
    }
}

/// The file of `--timeline`.
#[derive(Debug)]
pub(crate) struct TimelineFile {
    format: TimelineFormat,
    file: OutputFile,
}

impl TimelineFile {
    /// Creates the file, if one is wanted.
    pub(crate) fn create(path: Option<&Path>) -> Result<Option<TimelineFile>, OutputError> {
        let Some(path) = path else { return Ok(None) };
        let format = TimelineFormat::of(path).map_err(OutputError::Timeline)?;
        Ok(Some(TimelineFile { format, file: OutputFile::create(path)? }))
    }

    /// Writes the timeline of agents on `names`.
    pub(crate) fn write(
        self,
        timeline: &Timeline,
        names: &[String],
        title: &str,
    ) -> Result<(), OutputError> {
        self.file.write(&self.format.text(timeline, names, title))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_created_is_named() {
        let error = OutputFile::create(Path::new("/dev/null/file")).unwrap_err();
        assert_eq!(error.to_string(), "create `/dev/null/file`");
    }

    #[test]
    fn without_a_result_all_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "a long result of before").unwrap();
        for path in [&old, &new] {
            drop(OutputFile::create(path).unwrap());
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "a long result of before");
        assert!(!new.exists());
        for path in [&old, &new] {
            OutputFile::create(path).unwrap().write("a result").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "a result");
        }
    }

    #[test]
    fn a_timeline_of_an_unknown_format_is_refused_before_its_file_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.txt");
        assert!(TimelineFile::create(Some(&path)).is_err());
        assert!(!path.exists());
    }
}
