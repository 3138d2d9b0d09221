//! Host files, in Hydra's grammar, in Open MPI's, or in both: `host:4`, `host slots=4`.
//!
//! A line is one host, or a range of them, `n[01-16]:4`, and what is said of it as `name=value`. A
//! line that begins with `^` takes hosts out again, wherever they stand. Options that only steer
//! Hydra itself are read and reported as ignored. Any other word is an error: the bare number of
//! other launchers would otherwise silently mean one slot. Nothing is read here; whoever opens the
//! file adds its path to the error.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::host_list::{Excluded, HostList, HostListError, HostOptions, HostProblem, SLOTS_MAX};
use crate::host_name::parse_port;
use crate::tokens::{column_of, tokens};

/// Options of Hydra's that do not matter here.
const IGNORED: [&str; 2] = ["binding", "ifname"];

/// The names that Open MPI and PRRTE have for one option.
const USER: [&str; 4] = ["user", "username", "user_name", "user-name"];
const SLOTS: [&str; 5] = ["slots", "slot", "cpus", "cpu", "count"];
const SLOTS_LIMIT: [&str; 6] =
    ["max_slots", "max-slots", "slots_max", "slots-max", "cpus_max", "cpus-max"];

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
///
/// # Errors
/// The first line that cannot be understood, or takes out a host that no line has.
pub fn parse(text: &str) -> Result<HostFile, HostFileError> {
    let mut file = HostFile::default();
    let mut excluded = Excluded::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, content) in (1..).zip(text.lines()) {
        let found = parse_line(&mut file, &mut excluded, line, content);
        found.map_err(|HostListError { column, problem }| HostFileError {
            line,
            column,
            problem,
        })?;
    }
    excluded.take_out_of(&mut file.hosts).map_err(|(line, problem)| HostFileError {
        line,
        column: 1,
        problem,
    })?;
    Ok(file)
}

fn parse_line(
    file: &mut HostFile,
    excluded: &mut Excluded,
    line: usize,
    content: &str,
) -> Result<(), HostListError> {
    let mut words = tokens(content);
    let Some(host) = words.next() else { return Ok(()) };
    let before_host = column_of(content, host) - 1;
    let at_host =
        |error: HostListError| HostListError { column: before_host + error.column, ..error };
    if let Some(host) = host.strip_prefix('^') {
        excluded.add(line, host).map_err(at_host)?;
        return match words.next() {
            Some(word) => Err(trailing(content, word)),
            None => Ok(()),
        };
    }
    let mut options = HostOptions::default();
    while let Some(name) = words.next() {
        let (Some("="), Some(value)) = (words.next(), words.next()) else {
            return Err(trailing(content, name));
        };
        if IGNORED.contains(&name) {
            let option = format!("{name}={value}");
            file.warnings.push(HostFileWarning { line, option });
        } else {
            take_option(&mut options, name, value)
                .map_err(|problem| HostListError { column: column_of(content, name), problem })?;
        }
    }
    file.hosts.add_text(host, &options).map_err(at_host)
}

fn take_option<'a>(
    options: &mut HostOptions<'a>,
    name: &str,
    value: &'a str,
) -> Result<(), HostProblem> {
    if USER.contains(&name) {
        let user = Some(value).filter(|value| is_user(value));
        set(&mut options.user, "user", user, || HostProblem::User(value.to_string()))
    } else if SLOTS.contains(&name) {
        set(&mut options.slots, "slots", slots(value), || HostProblem::Slots(value.to_string()))
    } else if SLOTS_LIMIT.contains(&name) {
        let slots = slots(value);
        set(&mut options.slots_max, "max_slots", slots, || HostProblem::Slots(value.to_string()))
    } else if name == "port" {
        let port = parse_port(value);
        set(&mut options.port, "port", port, || HostProblem::Port(value.to_string()))
    } else {
        Err(HostProblem::Option(format!("{name}={value}")))
    }
}

fn set<T>(
    option: &mut Option<T>,
    name: &'static str,
    value: Option<T>,
    problem: impl Fn() -> HostProblem,
) -> Result<(), HostProblem> {
    match option.replace(value.ok_or_else(problem)?) {
        Some(_) => Err(HostProblem::Twice(name)),
        None => Ok(()),
    }
}

fn slots(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|slots| is_number && (1..=SLOTS_MAX).contains(slots))
}

fn trailing(content: &str, word: &str) -> HostListError {
    HostListError {
        column: column_of(content, word),
        problem: HostProblem::Trailing(word.to_string()),
    }
}

fn is_user(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '+');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}
