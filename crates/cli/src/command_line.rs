//! The words of the command line, which may be several programs': `convoke run -n 1 a : -n 4 b`, or
//! a line each in a `--configfile`.
//!
//! Each part is read by itself. What is said of the job in any of them holds for all, as Hydra has
//! it: so these options come together in one command line, which is then read as if it had been
//! written so, and options that exclude each other do so wherever they stand. What is said of a
//! program holds for no other. `--hosts` may be either: said once it is the job's, and said of each
//! program it is each one's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use alloc::TextError;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches, Parser};

use crate::args::{AppArgs, Cli, Command, RunArgs};
use crate::args_prepass::with_long_np;

/// Why a command line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// With its own words, of which some are no error: `--help`.
    #[error(transparent)]
    Clap(clap::Error),
    #[error("{0}: {1}")]
    In(Place, String),
    #[error("{0}: no program")]
    NoProgram(Place),
    #[error("{0}: `{1}` is said of the whole job, and was said otherwise in {2}")]
    Contradiction(Place, String, Place),
    #[error(
        "{0}: no `--hosts`, and {1} has its own: give it once, for the whole job, or to each program"
    )]
    NoHosts(Place, Place),
    #[error("use config file `{0}`")]
    ConfigFile(String, #[source] TextError),
    #[error("config file `{0}` names no program")]
    Empty(String),
    #[error("`--configfile {0}` has the programs, and none can be on the command line")]
    Both(String),
    #[error("`--configfile {0}` has the programs: `{1}` is said of one of them, in its line")]
    OptionOfApp(String, String),
    #[error("{0}: a quote is not closed")]
    Quote(Place),
    #[error("{0}: the next program belongs into the next line, not behind a `:`")]
    Colon(Place),
    #[error("{0}: a config file cannot use another")]
    Nested(Place),
}

/// Where a program stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// On the command line, with its number.
    App(usize),
    /// In a line, from 1, of a file.
    Line(String, usize),
    /// On the command line, before what the file has.
    Options,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::App(number) => write!(f, "app {number}"),
            Place::Line(path, line) => write!(f, "config file `{path}`, line {line}"),
            Place::Options => write!(f, "the command line"),
        }
    }
}

/// One program's words, its options before it.
struct Part {
    place: Place,
    words: Vec<OsString>,
}

/// Reads the command line, our own name first.
pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Cli, LineError> {
    let mut start: Vec<OsString> = words.collect();
    let rest = start.split_off(start.len().min(2));
    if start.get(1).is_none_or(|command| command != "run") {
        let words = start.into_iter().chain(with_long_np(rest.into_iter()));
        return Cli::try_parse_from(words).map_err(LineError::Clap);
    }
    let parts: Vec<Part> = (0..)
        .zip(rest.split(|word| word == ":"))
        .map(|(number, words)| Part::new(Place::App(number), words.iter().cloned()))
        .collect();
    if let [only] = parts.as_slice() {
        let cli = read_run(&only.words)?;
        let Command::Run(args) = &cli.command else { return Ok(cli) };
        return match &args.configfile {
            Some(file) => with_config_file(only, args, file),
            None => Ok(cli),
        };
    }
    read_parts(&parts)
}

fn with_config_file(line: &Part, args: &RunArgs, file: &Path) -> Result<Cli, LineError> {
    let path = file.display().to_string();
    if !args.app.command.is_empty() {
        return Err(LineError::Both(path));
    }
    let matches = line.matches()?;
    let of_app = AppArgs::augment_args(clap::Command::new("app"));
    if let Some(arg) = of_app.get_arguments().find(|arg| is_given(&matches, arg)) {
        return Err(LineError::OptionOfApp(path, name_of(arg)));
    }
    let text = alloc::read_text("config file", file)
        .map_err(|source| LineError::ConfigFile(path.clone(), source))?;
    let options = Part { place: Place::Options, words: line.words.clone() };
    let lines = config_lines(&path, &text)?;
    if lines.is_empty() {
        return Err(LineError::Empty(path));
    }
    read_parts(&[options].into_iter().chain(lines).collect::<Vec<_>>())
}

/// Reads the parts as one command.
fn read_parts(parts: &[Part]) -> Result<Cli, LineError> {
    let of_run = RunArgs::augment_args(clap::Command::new("run"));
    let of_app = AppArgs::augment_args(clap::Command::new("app"));
    let is_of_job =
        |arg: &&clap::Arg| of_app.get_arguments().all(|own| own.get_id() != arg.get_id());
    let mut job: BTreeMap<String, (Place, Vec<OsString>)> = BTreeMap::new();
    let mut apps = Vec::new();
    for part in parts {
        let matches = part.matches()?;
        for arg in of_run.get_arguments().filter(is_of_job) {
            if !is_given(&matches, arg) || arg.get_id() == "configfile" && part.is_options() {
                continue;
            }
            let may_be_own = arg.get_id() == "hosts" && !part.is_options();
            if may_be_own && !job.contains_key("--hosts") {
                continue;
            }
            if arg.get_id() == "configfile" {
                return Err(LineError::Nested(part.place.clone()));
            }
            let words = words_of(&matches, arg);
            match job.get(&name_of(arg)) {
                Some((place, known)) if *known != words => {
                    let (here, there) = (part.place.clone(), place.clone());
                    return Err(LineError::Contradiction(here, name_of(arg), there));
                }
                Some(_) => {}
                None => drop(job.insert(name_of(arg), (part.place.clone(), words))),
            }
        }
        if !part.is_options() {
            let mut app = AppArgs::from_arg_matches(&matches).map_err(LineError::Clap)?;
            if !job.contains_key("--hosts") {
                app.hosts = matches.get_one("hosts").cloned();
            }
            apps.push((part.place.clone(), app));
        }
    }
    let hosts = hosts_of_job(&mut apps)?;
    let options = job.into_values().flat_map(|(_, words)| words);
    let words: Vec<OsString> = options.chain(["--".into(), "program".into()]).collect();
    let mut cli = read_run(&words)?;
    if let Command::Run(args) = &mut cli.command {
        args.hosts = args.hosts.take().or(hosts);
        let mut apps = apps.into_iter().map(|(_, app)| app);
        args.app = apps.next().unwrap_or_else(|| args.app.clone());
        args.more_apps = apps.collect();
    }
    Ok(cli)
}

/// The hosts that only one program says: they are the job's. Else each says its own, or none does.
fn hosts_of_job(apps: &mut [(Place, AppArgs)]) -> Result<Option<String>, LineError> {
    let said = apps.iter().filter(|(_, app)| app.hosts.is_some()).count();
    if said == 1 {
        return Ok(apps.iter_mut().find_map(|(_, app)| app.hosts.take()));
    }
    let place = |has_own| apps.iter().find(|(_, app)| app.hosts.is_some() == has_own);
    match (place(false), place(true)) {
        (Some((without, _)), Some((with, _))) => {
            Err(LineError::NoHosts(without.clone(), with.clone()))
        }
        (_, _) => Ok(None),
    }
}

fn read_run(words: &[OsString]) -> Result<Cli, LineError> {
    let start = ["convoke".into(), "run".into()];
    Cli::try_parse_from(start.into_iter().chain(words.iter().cloned())).map_err(LineError::Clap)
}

impl Part {
    fn new(place: Place, words: impl Iterator<Item = OsString>) -> Part {
        Part { place, words: with_long_np(words) }
    }

    fn is_options(&self) -> bool {
        self.place == Place::Options
    }

    fn matches(&self) -> Result<ArgMatches, LineError> {
        let command = RunArgs::augment_args(clap::Command::new("run").no_binary_name(true));
        command.try_get_matches_from(&self.words).map_err(|error| self.explain(error))
    }

    /// Says where an error is, in clap's own words.
    fn explain(&self, error: clap::Error) -> LineError {
        if !error.use_stderr() {
            return LineError::Clap(error);
        }
        if error.kind() == ErrorKind::MissingRequiredArgument {
            return LineError::NoProgram(self.place.clone());
        }
        let text = error.to_string();
        let words = text.strip_prefix("error: ").unwrap_or(&text);
        // Behind the first paragraph are tips and usage, of a command line that has one program.
        let words = words.split("\n\n").next().unwrap_or(words).trim_end();
        LineError::In(self.place.clone(), words.to_owned())
    }
}

fn is_given(matches: &ArgMatches, arg: &clap::Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// What the user calls an option.
fn name_of(arg: &clap::Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (_, Some(short)) if arg.get_id() == "tasks" => format!("-{short}"),
        (Some(long), _) => format!("--{long}"),
        (None, _) => arg.get_id().to_string(),
    }
}

/// The words that say the same again.
fn words_of(matches: &ArgMatches, arg: &clap::Arg) -> Vec<OsString> {
    let name = name_of(arg);
    if !arg.get_action().takes_values() {
        return vec![name.into()];
    }
    let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    values.map(|value| [OsStr::new(&name), "=".as_ref(), value].into_iter().collect()).collect()
}

/// The programs of a config file: a line each, unless it ends in a backslash and goes on in the next.
fn config_lines(path: &str, text: &str) -> Result<Vec<Part>, LineError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parts = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let place = Place::Line(path.to_owned(), number);
        let mut line = line.to_owned();
        if line.trim_start().starts_with('#') {
            continue;
        }
        while line.ends_with('\\') && !line.ends_with("\\\\") {
            line.pop();
            let Some((_, more)) = lines.next() else { break };
            line.push_str(more);
        }
        let words = bootstrap::split(&line).ok_or_else(|| LineError::Quote(place.clone()))?;
        if words.iter().any(|word| word == ":") {
            return Err(LineError::Colon(place));
        }
        if !words.is_empty() {
            parts.push(Part::new(place, words.into_iter().map(OsString::from)));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn each_program_has_its_own_options_and_the_job_has_those_of_all() {
        let args = run("-n 1 --label a x : -np 2 --env V=1 --hosts h b : --wdir /w -- c -n 5");
        let apps: Vec<_> =
            args.apps().map(|app| (app.tasks, app.command.join(OsStr::new(" ")))).collect();
        let expected = [(Some(1), "a x"), (Some(2), "b"), (None, "c -n 5")];
        assert_eq!(apps, expected.map(|(tasks, command)| (tasks, command.into())));
        assert!(args.label);
        assert_eq!(args.hosts.as_deref(), Some("h"));
        let own: Vec<_> = args.apps().map(|app| (app.env.len(), app.wdir.is_some())).collect();
        assert_eq!(own, [(0, false), (1, false), (0, true)]);
    }

    #[test]
    fn what_is_said_of_the_job_twice_must_be_the_same() {
        assert!(run("--hosts h --label a : --hosts h --label b").label);
        let errors = ["--hosts h a : b : --hosts i c", "--shell x{host} a : --launcher ssh b"];
        insta::assert_snapshot!(errors.map(error).join("\n"));
    }

    #[test]
    fn hosts_that_are_said_once_are_the_jobs_and_else_each_programs_own() {
        let hosts = |args: &RunArgs| {
            let own: Vec<_> = args.apps().map(|app| app.hosts.clone()).collect();
            (args.hosts.clone(), own)
        };
        let some = |text: &str| Some(text.to_owned());
        for line in ["--hosts h a : b", "a : --hosts h b"] {
            assert_eq!(hosts(&run(line)), (some("h"), vec![None, None]));
        }
        let own = (None, vec![some("h"), some("i:2")]);
        assert_eq!(hosts(&run("--hosts h a : -H i:2 b")), own);
        assert_eq!(hosts(&run_file("", "--hosts h a\n-H i:2 b").unwrap()), own);
        let same = run_file("--hosts h", "--hosts h a\nb").unwrap();
        assert_eq!(hosts(&same), (some("h"), vec![None, None]));
        assert_eq!(hosts(&run("--hosts h a")), (some("h"), vec![None]));
    }

    #[test]
    fn a_part_without_a_program_or_with_a_wrong_option_is_named() {
        let errors = ["a :", ": a", "a : : b", "-n 2 a : -n 3", "a : --no-such b", "a : -n x b"];
        insta::assert_snapshot!(errors.map(error).join("\n"));
    }

    #[test]
    fn a_config_file_has_a_program_in_each_line() {
        let text = "# programs\r\n-n 1 a 'x  y' # z\n\n  \n-n 2 --env V=\"1 2\" \\\n  b\n--label c";
        let args = run_file("--hosts h", text).unwrap();
        let apps: Vec<_> = args.apps().map(|app| (app.tasks, app.command.len())).collect();
        assert_eq!(apps, [(Some(1), 4), (Some(2), 1), (None, 1)]);
        assert_eq!(args.more_apps[0].env, ["V=1 2"]);
        assert!(args.label);
        assert_eq!(args.hosts.as_deref(), Some("h"));
    }

    #[test]
    fn a_bad_config_file_is_an_error_that_names_the_line() {
        let cases = [
            ("", "# nothing\n"),
            ("", "a\n\n-n 2 \\\n --no-such b"),
            ("", "a 'b"),
            ("", "a : b"),
            ("", "-n 2"),
            ("", "--configfile x a"),
            ("--hosts h", "a\n--hosts i b"),
            ("-n 3", "a"),
        ];
        let errors = cases.map(|(options, text)| run_file(options, text).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
        assert!(error("--configfile f a").contains("none can be on the command line"));
        assert!(error("--configfile /no/such").contains("read config file"));
    }

    fn read_line(line: &str) -> Result<Box<RunArgs>, String> {
        let words = ["convoke", "run"].into_iter().chain(line.split_whitespace());
        let cli = read(words.map(OsString::from)).map_err(|error| agent::error_chain(&error))?;
        let Command::Run(args) = cli.command else { panic!("not a run") };
        Ok(args)
    }

    fn run(line: &str) -> Box<RunArgs> {
        read_line(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn error(line: &str) -> String {
        read_line(line).unwrap_err()
    }

    fn run_file(options: &str, text: &str) -> Result<Box<RunArgs>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().display().to_string();
        let line = format!("{options} --configfile {path}");
        read_line(&line).map_err(|error| error.replace(&path, "F"))
    }
}
