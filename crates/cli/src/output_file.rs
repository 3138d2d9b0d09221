//! Files that a command writes at its end, and that are opened before it begins: whoever waits for an
//! hour of work must not learn only then that there is no place for its result.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use observe::{Timeline, TimelineFormat, TimelineFormatError};

/// An open file, empty until [`OutputFile::write`].
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
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
    /// Creates the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<OutputFile, OutputError> {
        let file = File::create(path).map_err(|error| OutputError::Create(path.into(), error))?;
        Ok(OutputFile { path: path.into(), file })
    }

    /// Writes the whole text.
    pub(crate) fn write(mut self, text: &str) -> Result<(), OutputError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| OutputError::Write(self.path, error))
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
        let error = OutputFile::create(Path::new("/no/such/file")).unwrap_err();
        assert_eq!(error.to_string(), "create `/no/such/file`");
    }

    #[test]
    fn a_timeline_of_an_unknown_format_is_refused_before_its_file_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.txt");
        assert!(TimelineFile::create(Some(&path)).is_err());
        assert!(!path.exists());
    }
}
