//! What can be wrong with a calibration.

use std::io;
use std::path::PathBuf;

/// A calibration that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// The file could not be read.
    #[error("read calibration `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The text is no calibration, or only the beginning of one.
    #[error("calibration `{}` is incomplete or malformed", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        #[source]
        source: toml::de::Error,
    },
    /// It was written for another version.
    #[error("calibration `{}` has version {found}, and this build reads version {expected}", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// A parameter has a value that it can't have.
    #[error("calibration `{}`: `{field}` is impossible: {why}", .path.display())]
    Impossible {
        /// The file; empty for a calibration that is in no file.
        path: PathBuf,
        /// The parameter, such as `launch.gap_ms`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
}

impl CalibrationError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            CalibrationError::Read { .. } => "name a file that can be read",
            CalibrationError::Malformed { .. } => {
                "if the file was cut off, calibrate again; if it was edited, mend the line"
            }
            CalibrationError::Version { .. } => "calibrate again with this build",
            CalibrationError::Impossible { .. } => "correct the value, or calibrate again",
        }
    }
}
