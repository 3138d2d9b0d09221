//! Options in the documents: each must exist.

use std::collections::BTreeSet;

use crate::sources::Source;

/// Options of programs that are not ours.
const FOREIGN: [&str; 3] = ["--ignored", "--cflags", "--libs"];

/// A document whose tables begin with what other programs call it.
const OF_OTHERS: &str = "docs/coming-from.md";

/// Options in a document that no help and no usage text of ours knows.
pub(crate) fn unknown_options(files: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = files
        .iter()
        .filter(|file| tells_options(file))
        .flat_map(|file| options(&file.text))
        .collect();
    let is_known = |option: &str| known.contains(option) || FOREIGN.contains(&option);
    let documents = files.iter().filter(|file| is_document(file));
    let lines =
        documents.flat_map(|file| file.lines().map(move |(number, line)| (file, number, line)));
    lines
        .flat_map(|(file, number, line)| {
            let unknown = options(ours(file, line)).filter(|option| !is_known(option));
            unknown
                .map(move |option| format!("{}:{number}: no option {option}", file.path.display()))
        })
        .collect()
}

/// Whether options are defined or explained there: snapshots of `--help`, and other programs here.
fn tells_options(file: &Source) -> bool {
    let path = file.path.to_string_lossy();
    let is_help = path.starts_with("crates/cli/src/snapshots/") && path.contains("help");
    let is_other_program = [
        "crates/sim/src/bin/",
        "crates/testbed/src/",
        "crates/testkit/src/bin/",
        "xtask/src/",
        "bench/src/",
    ]
    .iter()
    .any(|dir| path.starts_with(dir));
    is_help || (is_other_program && file.is_rust())
}

/// Whether users read it; the change log may name what is gone.
fn is_document(file: &Source) -> bool {
    file.path.extension().is_some_and(|extension| extension == "md")
        && !file.path.ends_with("CHANGELOG.md")
}

/// The part of a document's line that is about our options.
fn ours<'a>(file: &Source, line: &'a str) -> &'a str {
    let is_row = file.path.ends_with(OF_OTHERS) && line.starts_with("| ");
    let rest = is_row.then(|| line[2..].split_once(" | "));
    rest.flatten().map_or(line, |(_, rest)| rest)
}

/// The long options in a text, without what an `=` gives them.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let is_of_option = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let words = text.split(move |c: char| !is_of_option(c));
    words.map(|word| word.trim_end_matches('-')).filter(|word| {
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_by_its_two_dashes() {
        let found: Vec<&str> =
            options("`--tree kary:2`, --ssh-arg=-F -- -n --- a--b --on-failure.").collect();
        assert_eq!(found, ["--tree", "--ssh-arg", "--on-failure"]);
    }

    #[test]
    fn an_option_that_no_help_knows_is_told_with_its_place() {
        let file = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
        let files = [
            file("crates/cli/src/snapshots/help.snap", "--hosts <LIST>"),
            file("docs/guide.md", "`--hosts a`\n`--hots a`"),
            file(OF_OTHERS, "| `--machinefile F` | `--hostfile F` | as `--hosts` |"),
        ];
        let told =
            ["docs/guide.md:2: no option --hots", "docs/coming-from.md:1: no option --hostfile"];
        assert_eq!(unknown_options(&files), told);
    }
}
