//! `-np 4` and `-ppn 4`, which every MPI user types and clap would read as `-n p`.

use std::ffi::OsString;

/// Options that stand before the program and are followed by a value of their own.
const WITH_VALUE: [&str; 31] = [
    "-n",
    "-np",
    "-ppn",
    "-H",
    "-f",
    "--np",
    "--ppn",
    "--hosts",
    "--hostfile",
    "--env",
    "--wdir",
    "--tree",
    "--launcher",
    "--shell",
    "--ssh-arg",
    "--agent-path",
    "--link",
    "--window",
    "--batch",
    "--join-timeout",
    "--timeout",
    "--on-failure",
    "--grace",
    "--stdin",
    "--retries",
    "--timeline",
    "--json",
    "--forward-signals",
    "--output",
    "--outfile-pattern",
    "--errfile-pattern",
];

/// Gives both options two dashes, up to the program: what follows is the program's.
pub(crate) fn with_long_np(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut state = State::Command;
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        let next = state.after(text, out.len());
        out.push(match text {
            "-np" if state == State::Options => "--np".into(),
            "-ppn" if state == State::Options => "--ppn".into(),
            _ => arg,
        });
        state = next;
    }
    out
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    /// Our own name, and the subcommand.
    Command,
    /// An option or the program.
    Options,
    /// The value of the option before.
    Value,
    /// The program's.
    Program,
}

impl State {
    fn after(self, arg: &str, index: usize) -> State {
        match self {
            State::Command if index == 0 => State::Command,
            State::Command | State::Value => State::Options,
            State::Options if arg == "--" || !arg.starts_with('-') => State::Program,
            State::Options if WITH_VALUE.contains(&arg) => State::Value,
            State::Options => State::Options,
            State::Program => State::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(line: &str) -> String {
        let words = with_long_np(line.split(' ').map(OsString::from));
        words.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn np_gets_two_dashes_before_the_program_only() {
        assert_eq!(
            pass("convoke run -np 4 --hosts a prog -np 3"),
            "convoke run --np 4 --hosts a prog -np 3"
        );
        assert_eq!(pass("convoke run -ppn 2 -- prog"), "convoke run --ppn 2 -- prog");
    }

    #[test]
    fn a_value_that_looks_like_an_option_stays() {
        assert_eq!(pass("convoke run --ssh-arg -np x"), "convoke run --ssh-arg -np x");
    }
}
