//! `convoke completions`: scripts that complete command lines, made of the same options as `--help`.

use clap::CommandFactory;
use clap_complete::{Generator, generate, shells};

use crate::args::{Cli, CompletionShell};
use crate::streams::print;

/// Prints the script for `shell`.
pub(crate) fn completions(shell: CompletionShell) -> u8 {
    match shell {
        CompletionShell::Bash => print_script(shells::Bash),
        CompletionShell::Zsh => print_script(shells::Zsh),
        CompletionShell::Fish => print_script(shells::Fish),
    }
}

fn print_script(generator: impl Generator) -> u8 {
    let mut script = Vec::new();
    generate(generator, &mut Cli::command(), "convoke", &mut script);
    print(&String::from_utf8_lossy(&script))
}
