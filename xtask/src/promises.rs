//! What the papers promise: each line of `docs/papers.md` has a state, and what shows it.

use std::collections::BTreeSet;
use std::path::Path;

use xshell::Shell;

use crate::paths;
use crate::sources::Source;

/// Where the states are.
const DOCUMENT: &str = "docs/papers.md";

/// The list of what the papers promise, which does not live in the repository.
const CHECKLIST: &str = "../shared/papers/CHECKLIST.md";

/// Promises that are untold, told twice, or told without what their state asks for.
pub(crate) fn untold(sh: &Shell, files: &[Source]) -> Vec<String> {
    let document = files.iter().find(|file| file.path == Path::new(DOCUMENT));
    let text = document.map_or("", |file| &*file.text);
    let checklist = sh.read_file(paths::root().join(CHECKLIST)).unwrap_or_default();
    let wrong = missing(&checklist, text).into_iter().chain(unproven(text));
    wrong.map(|what| format!("{DOCUMENT}: {what}")).collect()
}

/// Promises of the list on which the document is silent.
fn missing(checklist: &str, document: &str) -> Vec<String> {
    let told: BTreeSet<&str> = document.lines().filter_map(row).map(|row| row.id).collect();
    let ids = checklist.lines().filter_map(promise);
    ids.filter(|id| !told.contains(id)).map(|id| format!("lacks {id}")).collect()
}

/// Rows whose state is none, or lacks what the document says of that state.
fn unproven(document: &str) -> Vec<String> {
    let names: BTreeSet<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| *")?.split_once("* |"))
        .map(|it| it.0)
        .collect();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in document.lines().filter_map(row) {
        if !seen.insert(row.id) {
            wrong.push(format!("tells of {} twice", row.id));
        }
        let lacks = match row.state {
            "done" | "reproduced" => (!shows(row.why, &names)).then_some("a test or a command"),
            "later" => (!row.why.contains("**")).then_some("what it waits for"),
            "declined" => row.why.is_empty().then_some("a reason"),
            "cited" => None,
            _ => Some("a state"),
        };
        wrong.extend(lacks.map(|lacks| format!("{} is `{}` and lacks {lacks}", row.id, row.state)));
    }
    wrong
}

/// Whether `why` names a test or a command, itself, by a short name or as another promise does.
fn shows(why: &str, names: &BTreeSet<&str>) -> bool {
    why.contains('`') || why.starts_with("as S") || why.split('*').any(|word| names.contains(word))
}

struct Row<'a> {
    id: &'a str,
    state: &'a str,
    why: &'a str,
}

/// A line such as `| S0-01 | about | done | why |`.
fn row(line: &str) -> Option<Row<'_>> {
    let mut cells = line.strip_prefix("| ")?.splitn(4, " | ");
    let id = cells.next().filter(|id| is_id(id))?;
    let (_, state) = (cells.next()?, cells.next()?);
    let why = cells.next().unwrap_or_default().trim_end_matches('|').trim();
    Some(Row { id, state: state.trim_end_matches('|').trim(), why })
}

/// The promise that a line such as `- S0-01 prop ...` of the list is about.
fn promise(line: &str) -> Option<&str> {
    line.strip_prefix("- ")?.split(' ').next().filter(|id| is_id(id))
}

fn is_id(text: &str) -> bool {
    let parts = text.split_once('-');
    let is_number = |number: &str| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    parts.is_some_and(|(paper, number)| {
        paper.strip_prefix('S').is_some_and(is_number) && is_number(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_known_by_its_number() {
        assert_eq!(promise("- S0-01 prop  Runtime has four roles"), Some("S0-01"));
        assert_eq!(promise("- see S0-01"), None);
        assert_eq!(missing("- S0-01 a\n- S0-02 b", "| S0-02 | b | cited | |"), ["lacks S0-01"]);
    }

    #[test]
    fn a_state_needs_what_it_says() {
        let document = "| *links* | `a.rs::b` |\n\
            | S0-01 | a | done | *links* |\n\
            | S0-02 | b | done | surely |\n\
            | S0-03 | c | later | some day |\n\
            | S0-04 | d | declined | |\n\
            | S0-05 | e | cited | |\n\
            | S0-05 | e | soon | |\n";
        let wrong = [
            "S0-02 is `done` and lacks a test or a command",
            "S0-03 is `later` and lacks what it waits for",
            "S0-04 is `declined` and lacks a reason",
            "tells of S0-05 twice",
            "S0-05 is `soon` and lacks a state",
        ];
        assert_eq!(unproven(document), wrong);
    }
}
