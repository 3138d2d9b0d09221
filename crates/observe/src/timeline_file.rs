//! A timeline as a file, in the format that its name asks for.

use std::path::{Path, PathBuf};

use crate::Timeline;
use crate::chrome_trace::chrome_trace;
use crate::page::page;

/// What a timeline is written as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimelineFormat {
    /// Chrome's trace format, which Perfetto reads.
    Json,
    /// One page that needs nothing else.
    Html,
}

/// A file name that says no format.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{}` ends neither in .json nor in .html", .0.display())]
pub struct TimelineFormatError(PathBuf);

impl TimelineFormat {
    /// The format of a file of this name.
    pub fn of(path: &Path) -> Result<TimelineFormat, TimelineFormatError> {
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("json") => Ok(TimelineFormat::Json),
            Some("html") => Ok(TimelineFormat::Html),
            Some(_) | None => Err(TimelineFormatError(path.to_owned())),
        }
    }

    /// The text of the file: the timeline of agents on `names`, under a title where it has one.
    pub fn text(self, timeline: &Timeline, names: &[String], title: &str) -> String {
        match self {
            TimelineFormat::Json => chrome_trace(timeline, names),
            TimelineFormat::Html => page(timeline, names, title),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_format() {
        assert_eq!(TimelineFormat::of(Path::new("a.json")), Ok(TimelineFormat::Json));
        assert_eq!(TimelineFormat::of(Path::new("/x/a.b.html")), Ok(TimelineFormat::Html));
        for name in ["a", "a.txt", ".json", "json"] {
            assert!(TimelineFormat::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
