//! What `convoke man` and `convoke completions` write is understood by those who read it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::collections::BTreeSet;
use std::fs;

use support::convoke::Convoke;
use support::stand::run_example;

/// Loads the script as a user's shell does, and completes the beginning of an option.
const BASH: &str = r#"
source <("$CONVOKE" completions bash)
COMP_WORDS=(convoke run --hostf) COMP_CWORD=2
_convoke convoke --hostf run
echo "${COMPREPLY[@]}"
"#;

const FISH: &str = r#"
$CONVOKE completions fish | source
complete -C "convoke run --hostf"
"#;

/// Only a terminal makes zsh complete. What is typed is echoed, so that `ready` must not occur in it.
const ZSH: &str = r#"
dir=$(mktemp -d)
$CONVOKE completions zsh >$dir/_convoke
zmodload zsh/zpty
zpty terminal 'TERM=dumb zsh -f -i'
zpty -w terminal "fpath=($dir \$fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy"
zpty -r -m terminal seen '*ready*'
zpty -w -n terminal $'convoke run --hostf\t'
zpty -r -m terminal seen '*--hostfile*'
print -r -- "$seen"
rm -r $dir
"#;

#[test]
fn bash_zsh_and_fish_complete_an_option() {
    for (shell, script) in [("bash", BASH), ("zsh", ZSH), ("fish", FISH)] {
        let ended = Convoke::script("completions", shell, script).run().with_status(0);
        assert!(ended.text().contains("--hostfile"), "{shell}: {ended:?}");
        assert_eq!(ended.stderr, "", "{shell}");
    }
}

#[test]
fn groff_renders_every_manual_page_without_a_warning_and_with_every_option() {
    let pages = tempfile::tempdir().unwrap();
    run_example("man", pages.path());
    for command in ["", "run", "sim", "plan", "calibrate", "completions"] {
        let dash = if command.is_empty() { "" } else { "-" };
        let page = pages.path().join(format!("convoke{dash}{command}.1"));
        let page = page.to_string_lossy();
        let render = Convoke::script("groff", "sh", "groff -man -ww -Tascii -P-cbou \"$1\"");
        let shown = render.args(["sh", &page]).run().with_status(0);
        assert_eq!(shown.stderr, "", "{page}");
        for option in options(command) {
            assert!(shown.text().contains(&option), "{page} lacks {option}: {}", shown.text());
        }
    }
}

#[test]
fn the_page_of_a_run_says_how_it_ends_and_what_it_reads() {
    let pages = tempfile::tempdir().unwrap();
    run_example("man", pages.path());
    let page = fs::read_to_string(pages.path().join("convoke-run.1")).unwrap();
    for words in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "a node was lost"] {
        assert!(page.contains(words), "{page}");
    }
}

/// The long options that `convoke COMMAND --help` shows.
fn options(command: &str) -> BTreeSet<String> {
    let run = Convoke::script("help", "sh", "\"$CONVOKE\" $1 --help").args(["sh", command]);
    let help = run.run().with_status(0).text();
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}
