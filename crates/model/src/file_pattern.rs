//! Names of files for each task, from one pattern: `/scratch/run/%5t.%h`.
//!
//! | letter | meaning | whose |
//! | --- | --- | --- |
//! | `%r`, `%t` | the rank | Hydra's, Slurm's |
//! | `%h` | the host name, as the user wrote it | Hydra's |
//! | `%N` | the host name up to its first dot | Slurm's |
//! | `%n`, `%p` | the number of the node | Slurm's, Hydra's |
//! | `%j` | the number of the job | |
//! | `%%` | a percent sign | both |
//!
//! A number between the two, as in `%5r`, is a width that is filled with zeros, as Slurm has it; `%0r`
//! stands for the width that the largest of its kind has.
//!
//! Files of a job that tasks have started are none of the first job's: where a pattern tells tasks apart and
//! has no `%j`, the file's own name begins with `job1.` and so on. One that has no letter is a file of all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{JobId, NodeId, Rank};

/// A pattern whose every letter has a meaning.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct FilePattern(Vec<u8>);

/// A task, as far as names of files tell.
#[derive(Clone, Copy, Debug)]
pub struct FileOwner<'a> {
    /// Its job.
    pub job: JobId,
    /// The task.
    pub rank: Rank,
    /// How many there are.
    pub n_tasks: u32,
    /// Its node.
    pub node: NodeId,
    /// How many there are.
    pub n_nodes: u32,
    /// Its node's name.
    pub host: &'a str,
}

/// A text that is no pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FilePatternError {
    /// A letter without a meaning.
    #[error(
        "`%{0}` means nothing in the name of a file: it may have %r, %t, %h, %N, %n, %p, %j and %%"
    )]
    Letter(char),
    /// A percent sign at the end.
    #[error("the name of a file ends in a lone `%`; `%%` is a percent sign")]
    Lone,
    /// A width that is too large, or of what has none.
    #[error("`%{0}`: a width has at most two digits, and only a rank or a node's number has one")]
    Width(String),
}

/// A part of a pattern.
enum Part<'a> {
    Text(&'a [u8]),
    Field(Field, Width),
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Field {
    Rank,
    Node,
    Host,
    ShortHost,
    Job,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Width {
    Natural,
    Digits(usize),
    Largest,
}

impl FilePattern {
    /// Understands a pattern.
    pub fn new(text: impl Into<Vec<u8>>) -> Result<FilePattern, FilePatternError> {
        let text = text.into();
        parts(&text).try_for_each(|part| part.map(drop))?;
        Ok(FilePattern(text))
    }

    /// The text of a pattern that stands for `name` itself, whatever percent signs that has.
    pub fn quoted(name: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(name.len());
        for &byte in name {
            text.extend((byte == b'%').then_some(b'%'));
            text.push(byte);
        }
        text
    }

    /// The name of this task's file.
    pub fn expand(&self, owner: &FileOwner<'_>) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.0.len() + 8);
        // It was understood when it was made.
        for part in parts(&self.0).flatten() {
            match part {
                Part::Text(text) => name.extend_from_slice(text),
                Part::Field(field, width) => owner.append(field, width, &mut name),
            }
        }
        if owner.job != JobId::FIRST && !self.is_shared() && !self.tells_jobs_apart() {
            let own_name = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
            name.splice(own_name..own_name, format!("job{}.", owner.job.0).into_bytes());
        }
        name
    }

    /// Whether it names one file for all tasks of all jobs.
    pub fn is_shared(&self) -> bool {
        self.fields().next().is_none()
    }

    fn tells_jobs_apart(&self) -> bool {
        self.fields().any(|field| field == Field::Job)
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        parts(&self.0).flatten().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Field(field, _) => Some(field),
        })
    }
}

impl FileOwner<'_> {
    fn append(&self, field: Field, width: Width, name: &mut Vec<u8>) {
        let (number, count) = match field {
            Field::Rank => (self.rank.0, self.n_tasks),
            Field::Node => (self.node.0, self.n_nodes),
            Field::Job => (self.job.0, 0),
            Field::Host => return name.extend_from_slice(self.host.as_bytes()),
            Field::ShortHost => {
                let short = self.host.split('.').next().unwrap_or_default();
                return name.extend_from_slice(short.as_bytes());
            }
        };
        let width = match width {
            Width::Natural => 1,
            Width::Digits(digits) => digits,
            Width::Largest => format!("{}", count.saturating_sub(1)).len(),
        };
        name.extend_from_slice(format!("{number:0width$}").as_bytes());
    }
}

impl TryFrom<Vec<u8>> for FilePattern {
    type Error = FilePatternError;

    fn try_from(text: Vec<u8>) -> Result<FilePattern, FilePatternError> {
        FilePattern::new(text)
    }
}

impl From<FilePattern> for Vec<u8> {
    fn from(pattern: FilePattern) -> Vec<u8> {
        pattern.0
    }
}

/// The parts of a pattern; after an error there is no more.
fn parts(mut rest: &[u8]) -> impl Iterator<Item = Result<Part<'_>, FilePatternError>> {
    core::iter::from_fn(move || {
        let part = match rest.iter().position(|&byte| byte == b'%') {
            _ if rest.is_empty() => return None,
            Some(0) => field(&mut rest),
            percent => {
                let text;
                (text, rest) = rest.split_at(percent.unwrap_or(rest.len()));
                Ok(Part::Text(text))
            }
        };
        if part.is_err() {
            rest = &[];
        }
        Some(part)
    })
}

/// What begins with a percent sign.
fn field<'a>(rest: &mut &'a [u8]) -> Result<Part<'a>, FilePatternError> {
    let after = &rest[1..];
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (width, tail) = after.split_at(digits);
    let letter = *tail.first().ok_or(FilePatternError::Lone)?;
    *rest = &tail[1..];
    if letter == b'%' && digits == 0 {
        return Ok(Part::Text(&tail[..1]));
    }
    let field = match letter {
        b'r' | b't' => Field::Rank,
        b'n' | b'p' => Field::Node,
        b'h' => Field::Host,
        b'N' => Field::ShortHost,
        b'j' => Field::Job,
        _ => return Err(FilePatternError::Letter(char::from(letter))),
    };
    let is_number = matches!(field, Field::Rank | Field::Node);
    match width {
        [] => Ok(Part::Field(field, Width::Natural)),
        [b'0'] if is_number => Ok(Part::Field(field, Width::Largest)),
        [_] | [_, _] if is_number => {
            let digits = width.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
            Ok(Part::Field(field, Width::Digits(digits)))
        }
        _ => {
            let text = &after[..digits + 1];
            Err(FilePatternError::Width(String::from_utf8_lossy(text).into_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn name(pattern: &'static str) -> String {
        name_in(JobId::FIRST, pattern)
    }

    fn name_in(job: JobId, pattern: &'static str) -> String {
        let owner = FileOwner {
            job,
            rank: Rank(7),
            n_tasks: 1_000,
            node: NodeId(3),
            n_nodes: 16,
            host: "n3.example.org",
        };
        let pattern = FilePattern::new(pattern).unwrap();
        String::from_utf8(pattern.expand(&owner)).unwrap()
    }

    #[test]
    fn each_letter_stands_for_what_it_means_in_hydra_or_slurm() {
        assert_eq!(name("/o/%r|%t|%h|%N|%n|%p|%j|%%"), "/o/7|7|n3.example.org|n3|3|3|0|%");
        assert_eq!(name("all"), "all");
    }

    #[test]
    fn a_width_is_filled_with_zeros_and_zero_is_the_width_of_the_largest() {
        assert_eq!(name("%5t %1r %0r %0n %12n"), "00007 7 007 03 000000000003");
    }

    #[test]
    fn files_of_another_job_are_none_of_the_first_ones_unless_one_file_is_everybodys() {
        for (pattern, of_job_12) in [
            ("%0r.out", "job12.007.out"),
            ("/o/%h/%r", "/o/n3.example.org/job12.7"),
            ("/o/%r/log", "/o/7/job12.log"),
            ("/o/%j/%r", "/o/12/7"),
            ("/o/job%j.all", "/o/job12.all"),
            ("/o/100%%", "/o/100%"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(name_in(JobId(12), pattern), of_job_12, "{pattern}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_by_name() {
        let error = |text: &'static str| FilePattern::new(text).unwrap_err().to_string();
        assert!(error("out.%q").starts_with("`%q` means nothing"));
        assert!(error("out.%").contains("lone `%`"));
        assert!(error("%5h").starts_with("`%5h`: a width"));
        assert!(error("%0j").starts_with("`%0j`: a width"));
        assert!(error("%100r").starts_with("`%100r`: a width"));
        assert!(error("%5%").starts_with("`%%` means nothing"));
    }

    #[test]
    fn a_quoted_name_stands_for_itself() {
        let text = FilePattern::quoted(b"/100%r/%%");
        let pattern = FilePattern::new(text).unwrap();
        let (job, rank, node) = (JobId(1), Rank(0), NodeId(0));
        let owner = FileOwner { job, rank, n_tasks: 1, node, n_nodes: 1, host: "a" };
        assert_eq!(pattern.expand(&owner), b"/100%r/%%");
    }
}
