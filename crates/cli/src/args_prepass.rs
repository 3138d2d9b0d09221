//! `-np 4`, `-ppn 4` and `-configfile F`, which MPI users type and clap would read as `-n p`.

use std::ffi::OsString;

/// Options that stand before the program and are followed by a value of their own.
const WITH_VALUE: &[&str] = &[
    "-n",
    "-np",
    "-ppn",
    "-configfile",
    "-H",
    "-f",
    "--np",
    "--ppn",
    "--configfile",
    "--map-by",
    "--rank-by",
    "--rankmap",
    "--hosts",
    "--exclude",
    "--rankfile",
    "--hostfile",
    "--env",
    "--wdir",
    "--tree",
    "--route",
    "--redundancy",
    "--launcher",
    "--shell",
    "--ssh-arg",
    "--agent-path",
    "--link",
    "--deliver",
    "--window",
    "--batch",
    "--join-timeout",
    "--timeout",
    "--on-failure",
    "--grace",
    "--stdin",
    "--pmi",
    "--push-max",
    "--retries",
    "--on-missing",
    "--min-nodes",
    "--spares",
    "--timeline",
    "--json",
    "--forward-signals",
    "--output",
    "--outfile-pattern",
    "--errfile-pattern",
];

/// Gives these options two dashes, up to the program: what follows is the program's. `args` begin
/// behind `convoke run`, or behind a colon.
pub(crate) fn with_long_np(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut state = State::Options;
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        let next = state.after(text);
        out.push(match text {
            "-np" if state == State::Options => "--np".into(),
            "-ppn" if state == State::Options => "--ppn".into(),
            "-configfile" if state == State::Options => "--configfile".into(),
            _ => arg,
        });
        state = next;
    }
    out
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    /// An option or the program.
    Options,
    /// The value of the option before.
    Value,
    /// The program's.
    Program,
}

impl State {
    fn after(self, arg: &str) -> State {
        match self {
            State::Value => State::Options,
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
        assert_eq!(pass("-np 4 --hosts a prog -np 3"), "--np 4 --hosts a prog -np 3");
        assert_eq!(pass("-ppn 2 -- prog"), "--ppn 2 -- prog");
        assert_eq!(pass("-configfile f"), "--configfile f");
    }

    #[test]
    fn a_value_that_looks_like_an_option_stays() {
        assert_eq!(pass("--ssh-arg -np x"), "--ssh-arg -np x");
    }
}
