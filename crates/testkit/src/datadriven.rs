//! Tests as text: a file of commands, each followed by the output that it must have.
//!
//! ```text
//! # A comment.
//! command word key=value
//! lines of input
//! ----
//! output, up to the next empty line
//! ```
//!
//! With `UPDATE=1` in the environment the outputs in the file are replaced, to be reviewed as a diff.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A command of a test file.
#[derive(Debug)]
pub struct Case<'a> {
    /// Where it begins in the file, for messages.
    pub line: usize,
    /// Its first word.
    pub command: &'a str,
    /// Its further words.
    pub args: Vec<&'a str>,
    /// The lines between the command and `----`.
    pub input: Vec<&'a str>,
}

impl<'a> Case<'a> {
    /// The value of the argument `key=value`.
    pub fn arg(&self, key: &str) -> Option<&'a str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Runs every case of the file at `path` in order, and compares what `run` returns with the file.
///
/// # Panics
///
/// When an output differs, with both, or when the file cannot be read or is malformed.
pub fn run_datadriven(path: &Path, mut run: impl FnMut(&Case<'_>) -> String) {
    let shown = path.display();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("read {shown}: {error}"));
    let updates = std::env::var_os("UPDATE").is_some();
    let mut updated = String::new();
    for block in blocks(&text) {
        updated.push_str(block.comments);
        let Some((case, expected)) = block.case() else { continue };
        let output = run(&case);
        let output = output.trim_end_matches('\n');
        assert!(
            updates || output == expected,
            "{shown}:{}: output differs (UPDATE=1 rewrites it)\n--- expected\n{expected}\n--- got\n{output}\n",
            case.line,
        );
        let _ = writeln!(updated, "{}\n{SEPARATOR}\n{output}", block.question);
    }
    if updates {
        let updated = updated.trim_end_matches('\n').to_owned() + "\n";
        fs::write(path, updated).unwrap_or_else(|error| panic!("write {shown}: {error}"));
    }
}

const SEPARATOR: &str = "----";

/// Comments, and the case that follows them, if any does.
struct Block<'a> {
    line: usize,
    comments: &'a str,
    question: &'a str,
    answer: &'a str,
}

impl<'a> Block<'a> {
    fn case(&self) -> Option<(Case<'a>, &'a str)> {
        let mut lines = self.question.lines();
        let mut words = lines.next()?.split_ascii_whitespace();
        let command = words.next()?;
        let case = Case { line: self.line, command, args: words.collect(), input: lines.collect() };
        Some((case, self.answer))
    }
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let (comments, after) = split_lines(rest, |l| !l.is_empty() && !l.starts_with('#'));
        let (question, after) = split_lines(after, |l| l == SEPARATOR);
        let after = after.strip_prefix(SEPARATOR).unwrap_or(after);
        let after = after.strip_prefix('\n').unwrap_or(after);
        let (answer, after) = split_lines(after, str::is_empty);
        let line_of_case = line + comments.lines().count();
        line += rest[..rest.len() - after.len()].lines().count();
        rest = after;
        let (question, answer) = (question.trim_end(), answer.trim_end());
        blocks.push(Block { line: line_of_case, comments, question, answer });
    }
    blocks
}

/// Splits before the first line for which `ends` holds.
fn split_lines(text: &str, ends: impl Fn(&str) -> bool) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if ends(line.trim_end_matches('\n')) {
            break;
        }
        at += line.len();
    }
    text.split_at(at)
}
