//! Host files in Hydra's grammar: one `host[:slots] [option=value …]` a line, `#` comments.
//!
//! Beyond Hydra, the host may have ranges, `n[01-16]:4`. `user=NAME` becomes `NAME@host`. The
//! options that only steer Hydra itself are read and reported as ignored. Any other word is an
//! error: the bare number of other launchers would otherwise silently mean one slot. Nothing is
//! read here; whoever opens the file adds its path to the error.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::host_list::{HostList, HostListError, HostProblem};

/// Options of Hydra's that do not matter here.
const IGNORED: [&str; 2] = ["binding", "ifname"];

/// A host file that was read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostFile {
    /// The nodes, a repeated host once with its slots added.
    pub hosts: HostList,
    /// What was read and does not matter.
    pub warnings: Vec<HostFileWarning>,
}

/// An option that is ignored.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: `{option}` is ignored")]
pub struct HostFileWarning {
    /// Where, from 1.
    pub line: usize,
    /// The option with its value.
    pub option: String,
}

/// A host file that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct HostFileError {
    /// Where, from 1.
    pub line: usize,
    /// Where in the line, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: HostProblem,
}

/// Reads the text of a host file. Lines end with LF or CRLF, the last one with or without.
pub fn parse(text: &str) -> Result<HostFile, HostFileError> {
    let mut file = HostFile::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, content) in (1..).zip(text.lines()) {
        parse_line(&mut file, line, content).map_err(|error| HostFileError {
            line,
            column: error.column,
            problem: error.problem,
        })?;
    }
    Ok(file)
}

fn parse_line(file: &mut HostFile, line: usize, content: &str) -> Result<(), HostListError> {
    let content = content.split('#').next().unwrap_or_default();
    let mut words = content.split_ascii_whitespace();
    let Some(host) = words.next() else { return Ok(()) };
    let mut user = None;
    for word in words {
        match word.split_once('=') {
            Some(("user", name)) if is_user(name) => user = Some(name),
            Some((option, _)) if IGNORED.contains(&option) => {
                file.warnings.push(HostFileWarning { line, option: word.to_string() });
            }
            Some(_) | None => {
                let problem = HostProblem::Trailing(word.to_string());
                return Err(HostListError { column: column_of(content, word), problem });
            }
        }
    }
    let before_host = column_of(content, host) - 1;
    file.hosts
        .add_text(host, user)
        .map_err(|error| HostListError { column: before_host + error.column, ..error })
}

fn is_user(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '+');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// The column of `word`, which is a slice of `line`; searching for its text could find an earlier
/// one.
fn column_of(line: &str, word: &str) -> usize {
    let at = word.as_ptr() as usize - line.as_ptr() as usize;
    line[..at].chars().count() + 1
}
