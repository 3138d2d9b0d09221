//! Reading a host file. Its grammar is `model::hostfile`'s.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use model::hostfile::{self, HostFile};

use crate::AllocError;

/// The most bytes of a host file: a million lines of 64, so that a wrong path such as `/dev/zero`
/// is an error and not all of memory.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

/// Reads the file; a pipe will do as well.
pub(crate) fn read(path: &Path) -> Result<HostFile, AllocError> {
    let bytes =
        read_bytes(path).map_err(|source| AllocError::Read { path: path.into(), source })?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(AllocError::TooLarge { path: path.into() });
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| AllocError::NotText {
        path: path.into(),
        line: line_at(&bytes, error.valid_up_to()),
    })?;
    let file = hostfile::parse(text)
        .map_err(|source| AllocError::HostFile { path: path.into(), source })?;
    if file.hosts.nodes().is_empty() {
        return Err(AllocError::NoHosts { path: path.into() });
    }
    Ok(file)
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
