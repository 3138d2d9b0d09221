//! Exit statuses: the constants, `docs/exit-status.md`, and what `--help` and the manual page say.

use std::path::Path;

use crate::sources::Source;

const CONSTANTS: &str = "crates/engine/src/exit_code.rs";
const DOCUMENT: &str = "docs/exit-status.md";
const HELP: &str = "crates/cli/src/manual.rs";

/// Constants that the document does not have, and statuses of the document that the help lacks.
pub(crate) fn untold(files: &[Source]) -> Vec<String> {
    let text_of = |path: &str| {
        let file = files.iter().find(|file| file.path == Path::new(path));
        file.map_or("", |file| &*file.text)
    };
    let (constants, document, help) = (text_of(CONSTANTS), text_of(DOCUMENT), text_of(HELP));
    let constants = constants.lines().filter_map(constant);
    let undocumented = constants
        .filter(|name| !document.contains(&format!("`{name}`")))
        .map(|name| format!("{DOCUMENT}: lacks `{name}`"));
    let unhelpful = document
        .lines()
        .filter_map(status)
        .filter(|status| !help.contains(&format!("(\"{status}\",")))
        .map(|status| format!("{HELP}: lacks status {status}"));
    undocumented.chain(unhelpful).collect()
}

/// The name in a line such as `pub const AGENT_LOST: u8 = 251;`.
fn constant(line: &str) -> Option<&str> {
    line.strip_prefix("pub const ")?.split_once(": u8").map(|(name, _)| name)
}

/// The number in a row such as `| 251 | ...`.
fn status(line: &str) -> Option<u8> {
    line.strip_prefix("| ")?.split(" | ").next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_belongs_into_the_document_and_its_status_into_the_help() {
        let file = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
        let files = [
            file(CONSTANTS, "pub const LOST: u8 = 251;\npub const LATE: u8 = 124;"),
            file(DOCUMENT, "| 251 | `LOST` | a node |\n| 0 | | well |\n| case | 9 |"),
            file(HELP, "(\"0\", \"well\"),"),
        ];
        let told = [format!("{DOCUMENT}: lacks `LATE`"), format!("{HELP}: lacks status 251")];
        assert_eq!(untold(&files), told);
    }
}
