//! The file of a session's log: a line that says what was run, the calibration if it was another than
//! usual, the log, and a line that says that it is whole.
//!
//! A log is not read to be believed. What stands before the steps is enough to run the same session
//! again, so a replay does that, compares line by line, and knows the whole state at any step.

use std::io::{self, BufRead, Write};

use crate::log::TextHash;

/// The first word of a log.
const MAGIC: &str = "convoke-simulation-log";

/// What each line of the calibration begins with.
const CALIBRATION: &str = "calibration|";

/// The first word of a log's last line.
const END: &str = "end ";

/// What a log says about itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogHeader {
    /// The commit of the build that wrote it, if known.
    pub commit: Option<String>,
    /// What was run, in the words of `simulate`'s command line.
    pub args: Vec<String>,
    /// The text of the calibration file that was given.
    pub calibration: Option<String>,
}

/// Why a log can't be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// It could not be read.
    #[error("read the log")]
    Read(#[source] io::Error),
    /// It does not start as a log does.
    #[error("this is no log of a simulation: its first line does not start with `{MAGIC}`")]
    NoLog,
    /// Another build wrote it.
    #[error("the log has version {found}, and this build replays version {}", LogFile::VERSION)]
    Version {
        /// Its version.
        found: String,
    },
    /// It has no end, or the beginning of one.
    #[error(
        "the log was cut off in or after line {lines}: no line after that says that it is whole"
    )]
    Truncated {
        /// How many lines there are.
        lines: usize,
    },
    /// Something stands behind its end.
    #[error("the log ends in line {end}, and more stands behind that")]
    Trailing {
        /// The number of its last line.
        end: usize,
    },
    /// Its lines are not those that its end counted.
    #[error("the log was changed: its end speaks of other lines than those before it")]
    Damaged,
}

/// A log as it stands in its file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFile {
    /// What its first line says.
    pub header: LogHeader,
    /// What happened.
    pub lines: Vec<String>,
}

impl LogFile {
    /// The version of the files that this build writes and replays.
    pub const VERSION: u32 = 2;

    /// Reads a whole log.
    pub fn read(reader: impl BufRead) -> Result<LogFile, LogError> {
        let mut lines = reader.lines();
        let first = lines.next().ok_or(LogError::NoLog)?.map_err(LogError::Read)?;
        let mut header = LogHeader::parse(&first)?;
        let mut lines = lines.collect::<io::Result<Vec<String>>>().map_err(LogError::Read)?;
        let end = lines.iter().position(|line| line.starts_with(END));
        let end = end.ok_or(LogError::Truncated { lines: lines.len() + 1 })?;
        if end + 1 < lines.len() {
            return Err(LogError::Trailing { end: end + 2 });
        }
        let end = lines.pop().unwrap_or_default();
        let expected = end_line(&lines);
        if end != expected {
            let cut = LogError::Truncated { lines: lines.len() + 2 };
            return Err(if expected.starts_with(&end) { cut } else { LogError::Damaged });
        }
        let steps = lines.iter().position(|line| !line.starts_with(CALIBRATION));
        let calibration = lines.drain(..steps.unwrap_or(lines.len()));
        let text: Vec<String> = calibration.map(|line| line[CALIBRATION.len()..].into()).collect();
        header.calibration = (!text.is_empty()).then(|| text.join("\n"));
        Ok(LogFile { header, lines })
    }
}

impl LogHeader {
    fn line(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        format!("{MAGIC} version={} commit={commit} {}", LogFile::VERSION, self.args.join(" "))
    }

    fn parse(line: &str) -> Result<LogHeader, LogError> {
        let cut = LogError::Truncated { lines: 1 };
        let mut words = line.split(' ');
        if words.next() != Some(MAGIC) {
            let is_cut = !line.is_empty() && MAGIC.starts_with(line);
            return Err(if is_cut { cut } else { LogError::NoLog });
        }
        let mut field = |name: &str| {
            let value = words.next().and_then(|word| word.strip_prefix(name));
            value.filter(|value| !value.is_empty())
        };
        let Some(version) = field("version=") else { return Err(cut) };
        if version != LogFile::VERSION.to_string() {
            return Err(LogError::Version { found: version.to_owned() });
        }
        let commit = field("commit=").ok_or(cut)?;
        let commit = (commit != "unknown").then(|| commit.to_owned());
        let args = words.map(str::to_owned).collect();
        Ok(LogHeader { commit, args, calibration: None })
    }
}

/// Writes a log as it comes.
pub struct LogWriter<W> {
    writer: W,
    lines: u64,
    hash: TextHash,
    error: Option<io::Error>,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log.
    pub fn new(writer: W, header: &LogHeader) -> LogWriter<W> {
        let mut log = LogWriter { writer, lines: 0, hash: TextHash::EMPTY, error: None };
        log.write(&header.line());
        for line in header.calibration.iter().flat_map(|text| text.lines()) {
            log.line(&format!("{CALIBRATION}{line}"));
        }
        log
    }

    /// Adds a line. An error is told at the end.
    pub fn line(&mut self, line: &str) {
        self.lines += 1;
        self.hash.add(line);
        self.write(line);
    }

    /// Ends the log. Returns the hash of its lines.
    pub fn finish(mut self) -> io::Result<u64> {
        let end = end_of(self.lines, self.hash);
        self.write(&end);
        self.writer.flush()?;
        self.error.map_or(Ok(self.hash.0), Err)
    }

    fn write(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = writeln!(self.writer, "{line}").err();
        }
    }
}

fn end_line(lines: &[String]) -> String {
    let mut hash = TextHash::EMPTY;
    lines.iter().for_each(|line| hash.add(line));
    end_of(lines.len() as u64, hash)
}

fn end_of(lines: u64, hash: TextHash) -> String {
    format!("{END}lines={lines} hash={:016x}", hash.0)
}
