//! Text that a user names by its path.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes of a file: a million lines of 64, so that a wrong path such as `/dev/zero` is an
/// error and not all of memory.
const BYTES_MAX: u64 = 64 << 20;

/// A file that cannot be read as text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// What the system says.
    #[error("read {kind} `{}`", path.display())]
    Read {
        /// What is in the file: `host file`.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// No such file is this large.
    #[error("{kind} `{}` has more than {} MiB", path.display(), BYTES_MAX >> 20)]
    TooLarge {
        /// What should be in the file.
        kind: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// It is no text.
    #[error("{kind} `{}`, line {line}: not UTF-8 text", path.display())]
    NotText {
        /// What should be in the file.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
    },
}

/// Reads the file, a `kind` of file such as `host file`; a pipe will do as well.
///
/// # Errors
/// See [`TextError`].
pub fn read_text(kind: &'static str, path: &Path) -> Result<String, TextError> {
    let bytes =
        read_bytes(path).map_err(|source| TextError::Read { kind, path: path.into(), source })?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(TextError::TooLarge { kind, path: path.into() });
    }
    String::from_utf8(bytes).map_err(|error| TextError::NotText {
        kind,
        path: path.into(),
        line: line_at(error.as_bytes(), error.utf8_error().valid_up_to()),
    })
}

/// Reads one byte more than is allowed, if there is one.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn line_at(bytes: &[u8], position: usize) -> usize {
    bytes.iter().take(position).filter(|&&byte| byte == b'\n').count() + 1
}
