//! The rules of this repository that neither rustfmt nor clippy know.

use std::path::Path;

use anyhow::bail;
use xshell::Shell;

use crate::sources::{self, Source};
use crate::steps::PURE_CRATES;
use crate::{options, promises, statuses};

/// A longer file is rarely one subject.
const FILE_LINES_MAX: usize = 700;

/// What the wire format is made of; `docs/wire.md` describes it.
const WIRE_SOURCES: [&str; 6] = [
    "crates/wire/src/message.rs",
    "crates/wire/src/payload.rs",
    "crates/wire/src/job_spec.rs",
    "crates/wire/src/frame.rs",
    "crates/wire/src/handshake.rs",
    "crates/wire/src/channel.rs",
];

/// The line of `docs/wire.md` that carries the hash.
const WIRE_HASH_LABEL: &str = "Hash of the definitions: ";

/// Words that must not reach the main branch, written so that this file passes.
const MARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("TO", "DO")];

/// Directories of a machine, not of the project, written so that this file passes.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// What a crate's root may not contain: it declares modules in reading order.
const LOGIC: [&str; 9] =
    ["fn ", "struct ", "enum ", "impl", "trait ", "const ", "static ", "type ", "macro_rules!"];

/// Checks everything and says all that is wrong.
pub(crate) fn tidy(sh: &Shell) -> anyhow::Result<()> {
    let files = sources::read_all(sh)?;
    let mut wrong: Vec<String> = files.iter().flat_map(check_file).collect();
    wrong.extend(undeclared_modules(&files));
    wrong.extend(roots_with_std(&files));
    wrong.extend(wire_document(&files));
    wrong.extend(promises::untold(sh, &files));
    wrong.extend(missing_tests(&files));
    wrong.extend(options::unknown_options(&files));
    wrong.extend(statuses::untold(&files));
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{} untidy:\n  {}", wrong.len(), wrong.join("\n  "))
}

fn check_file(file: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in file.lines() {
        let mut complain =
            |what: &str| wrong.push(format!("{}:{number}: {what}", file.path.display()));
        if MARKS.iter().any(|mark| line.contains(mark)) {
            complain("unfinished: a mark without an issue");
        }
        if MACHINE_PATHS.iter().any(|path| names_machine_path(line, path)) {
            complain("the path of one machine");
        }
        if file.is_rust() && file.stem() == "lib" && is_logic(line) {
            complain("logic in a crate's root; give it a module");
        }
    }
    if file.is_rust() && file.text.lines().count() > FILE_LINES_MAX {
        wrong.push(format!("{}: more than {FILE_LINES_MAX} lines", file.path.display()));
    }
    wrong
}

/// Whether `line` names `path` from the root directory, not as a part of a longer one.
fn names_machine_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"}*_.-/".contains(c))
    })
}

fn is_logic(line: &str) -> bool {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    LOGIC.iter().any(|word| line.starts_with(word))
}

/// Source files that no other file of their crate declares: they are compiled by nobody.
fn undeclared_modules(files: &[Source]) -> Vec<String> {
    let modules = files.iter().filter(|file| {
        let entry = matches!(file.stem(), "lib" | "main" | "mod");
        file.is_rust() && !entry && !file.path.components().any(|part| part.as_os_str() == "bin")
    });
    let dead = modules.filter(|file| {
        let declaration = format!("mod {};", file.stem());
        let in_same_crate = |other: &&Source| other.src_dir() == file.src_dir();
        file.src_dir().is_some()
            && !files.iter().filter(in_same_crate).any(|other| other.text.contains(&declaration))
    });
    dead.map(|file| format!("{}: declared nowhere", file.path.display())).collect()
}

/// Pure crates whose root does not put the standard library out of reach.
fn roots_with_std(files: &[Source]) -> Vec<String> {
    let roots = PURE_CRATES.map(|name| format!("crates/{name}/src/lib.rs"));
    let is_pure = |path: &str| {
        files.iter().any(|file| {
            file.path == Path::new(path) && file.text.lines().any(|line| line == "#![no_std]")
        })
    };
    roots
        .into_iter()
        .filter(|path| !is_pure(path))
        .map(|path| format!("{path}: lacks #![no_std]"))
        .collect()
}

/// The wire document, if its hash is not that of the definitions it describes.
fn wire_document(files: &[Source]) -> Option<String> {
    let text_of =
        |path: &str| files.iter().find(|file| file.path == Path::new(path)).map(|f| &*f.text);
    let definitions: Vec<&str> = WIRE_SOURCES.iter().filter_map(|path| text_of(path)).collect();
    let expected = format!("{WIRE_HASH_LABEL}`{:016x}`", fnv1a(definitions.concat().as_bytes()));
    let document = text_of("docs/wire.md").unwrap_or_default();
    let is_current = document.lines().any(|line| line.trim() == expected);
    (!is_current).then(|| {
        format!("docs/wire.md: describe the definitions as they are, then write `{expected}`")
    })
}

/// FNV-1a, 64 bits: it need only notice changes, not withstand an attacker.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Tests that a document names as `crate/tests/file.rs::test` and that are not there.
fn missing_tests(files: &[Source]) -> Vec<String> {
    let documents = files.iter().filter(|file| file.path.extension().is_some_and(|e| e == "md"));
    let named = documents.flat_map(|document| {
        document.text.split('`').filter_map(named_test).map(|test| (&document.path, test))
    });
    let is_missing = |file: &str, test: &str| {
        let (path, function) = (Path::new("crates").join(file), format!("fn {test}("));
        !files.iter().any(|source| source.path == path && source.text.contains(&function))
    };
    named
        .filter(|(_, (file, test))| is_missing(file, test))
        .map(|(path, (file, test))| format!("{}: no test {file}::{test}", path.display()))
        .collect()
}

/// The file and the name in `crate/tests/file.rs::test`.
fn named_test(words: &str) -> Option<(&str, &str)> {
    let (file, test) = words.split_once("::")?;
    (file.ends_with(".rs") && !test.contains([' ', ':'])).then_some((file, test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_file_and_name() {
        assert_eq!(named_test("sim/tests/job.rs::it_runs"), Some(("sim/tests/job.rs", "it_runs")));
        assert_eq!(named_test("engine::tree::branches"), None);
    }

    #[test]
    fn a_machine_path_counts_only_at_its_beginning() {
        let path = MACHINE_PATHS[0];
        assert!(names_machine_path(&format!("see {path}main"), path));
        assert!(names_machine_path(&format!("{path}main"), path));
        assert!(!names_machine_path(&format!("target{path}main"), path));
    }

    #[test]
    fn a_crates_root_may_declare_but_not_decide() {
        assert!(is_logic("pub fn main() {"));
        assert!(is_logic("impl Thing {"));
        assert!(!is_logic("pub mod function;"));
        assert!(!is_logic("pub use fence::{Fence, PeerError};"));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // From the published test vectors of FNV-1a, 64 bits.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
