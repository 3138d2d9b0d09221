//! What `docs/guide.md` shows is what one sees: its commands are run on real hosts, and their output
//! is compared.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::path::Path;

use support::stand::{mpi_program, profile_directory};
use testbed::{HEAD, Testbed, command};

/// What the guide says that the reader has, and where: a shell on one of the machines.
const PREPARE: &str = r#"
set -e
printf 'n0:2\nn1:2\n# n2 is being repaired\nn3:2\n' >hosts.txt
printf '3\n1\n2\n' >numbers.txt
"#;

/// A command of the guide, and the lines that it shows below.
struct Shown {
    command: String,
    lines: Vec<String>,
}

#[test]
fn the_guides_commands_say_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/guide.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::rename(mpi_program("ring", 5, dir.path()), dir.path().join("ring")).unwrap();
    let bed = Testbed::up(4).unwrap();
    run(&bed, dir.path(), PREPARE);
    let shown = commands(&guide);
    assert!(shown.len() >= 10, "the guide shows no commands");
    let wrong: Vec<String> = shown
        .iter()
        .filter_map(|shown| {
            let said = run(&bed, dir.path(), &shown.command);
            let differ = !is_as_shown(&shown.lines, said.lines());
            differ.then(|| format!("$ {}\n{said}", shown.command))
        })
        .collect();
    assert!(wrong.is_empty(), "these say otherwise:\n{}", wrong.join("\n"));
}

/// What a shell command on the head says on both its streams.
fn run(bed: &Testbed, dir: &Path, words: &str) -> String {
    let mut bash = bed.command(HEAD, "bash").unwrap();
    let path = format!("{}:/usr/bin:/bin", profile_directory().display());
    let script = format!("cd '{}'\nexec 2>&1\n{words}", dir.display());
    let output = command::capture(bash.args(["-c", &script]).env("PATH", path)).unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The commands in the guide's `console` blocks; one that ends in `\` goes on.
fn commands(guide: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let blocks = guide.split("```console\n").skip(1);
    for line in blocks.filter_map(|block| block.split("```").next()).flat_map(str::lines) {
        let line = line.to_owned();
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => {
                shown.push(Shown { command: command.to_owned(), lines: Vec::new() });
            }
            (None, Some(last)) if last.command.ends_with('\\') => {
                last.command += &format!("\n{line}");
            }
            (None, last) => last.unwrap().lines.push(line),
        }
    }
    shown
}

/// Whether what was said are the shown lines, in any order, since tasks say them. In a shown line
/// `...` stands for any text, and alone for any lines.
fn is_as_shown<'a>(shown: &[String], said: impl Iterator<Item = &'a str>) -> bool {
    let mut said: Vec<&str> = said.collect();
    let all = shown.iter().filter(|line| *line != "...").all(|line| {
        let found = said.iter().position(|said| matches(line, said));
        found.map(|at| said.remove(at)).is_some()
    });
    all && (said.is_empty() || shown.iter().any(|line| line == "..."))
}

/// Whether `said` is `shown`, in which `...` stands for any text.
fn matches(shown: &str, said: &str) -> bool {
    let Some((before, after)) = shown.split_once("...") else { return shown == said };
    let Some(rest) = said.strip_prefix(before) else { return false };
    (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
}

#[test]
fn dots_stand_for_any_text_or_any_lines() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_shown(&shown("a\nb 1 ... s"), ["b 1 2 s", "a"].into_iter()));
    assert!(!is_as_shown(&shown("a\nb"), ["a"].into_iter()));
    assert!(!is_as_shown(&shown("a"), ["a", "b"].into_iter()));
    assert!(is_as_shown(&shown("a\n..."), ["a", "b"].into_iter()));
}
