//! Where output goes: from the options to what agents are told, and what cannot be meant.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::{FilePattern, FilePatternError};
use wire::{OutputSpec, Stream};

use crate::args::RunArgs;

/// Options about output that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputOptionError {
    #[error("use `{option}`")]
    Pattern {
        option: &'static str,
        #[source]
        source: FilePatternError,
    },
    #[error(
        "`{0}` is about files, and none are written: `--output` or `--outfile-pattern` name them"
    )]
    NoFiles(&'static str),
    #[error("`--label` has no lines to label: all output goes to files; `--tee` shows it, too")]
    NothingToLabel,
    #[error(
        "`--json -` is standard output, where the tasks write: `--output` has them write elsewhere"
    )]
    MixedRecord,
}

/// What becomes of output; names of files are as seen from `base`.
pub(crate) fn output_spec(args: &RunArgs, base: &Path) -> Result<OutputSpec, OutputOptionError> {
    let pattern = |option, path: &Path| {
        let text = base.join(path);
        let pattern = FilePattern::new(text.as_os_str().as_bytes());
        pattern.map_err(|source| OutputOptionError::Pattern { option, source })
    };
    let stdout = args.outfile_pattern.as_ref().map(|path| pattern("--outfile-pattern", path));
    let stderr = args.errfile_pattern.as_ref().map(|path| pattern("--errfile-pattern", path));
    let mut spec = OutputSpec {
        stdout: stdout.transpose()?,
        stderr: stderr.transpose()?,
        local: args.output_local,
        tee: args.tee,
        merged: args.merge_stderr,
    };
    if let Some(dir) = &args.output {
        spec.stdout = in_directory(&base.join(dir), ".out");
        spec.stderr = in_directory(&base.join(dir), ".err").filter(|_| !spec.merged);
    }
    check(args, &spec)?;
    Ok(spec)
}

/// `DIR/RANK.out`, whatever is in the name of the directory.
fn in_directory(dir: &Path, end: &str) -> Option<FilePattern> {
    let mut text = FilePattern::quoted(dir.as_os_str().as_bytes());
    text.extend_from_slice(b"/%0r");
    text.extend_from_slice(end.as_bytes());
    FilePattern::new(text).ok() // what is quoted stands for itself
}

fn check(args: &RunArgs, spec: &OutputSpec) -> Result<(), OutputOptionError> {
    let is_shown = |stream| spec.goes_to_user(stream);
    if args.tee && !spec.has_files() {
        return Err(OutputOptionError::NoFiles("--tee"));
    }
    if args.output_local && !spec.has_files() {
        return Err(OutputOptionError::NoFiles("--output-local"));
    }
    let shows_errors = is_shown(Stream::Stderr) && !spec.merged;
    if args.label && !is_shown(Stream::Stdout) && !shows_errors {
        return Err(OutputOptionError::NothingToLabel);
    }
    if is_record_printed(args) && is_shown(Stream::Stdout) {
        return Err(OutputOptionError::MixedRecord);
    }
    Ok(())
}

/// Whether the record of the job goes to standard output.
pub(crate) fn is_record_printed(args: &RunArgs) -> bool {
    args.json.as_deref() == Some(Path::new("-"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn spec(options: &str) -> Result<OutputSpec, String> {
        let line = format!("convoke run {options} prog");
        let words = line.split_ascii_whitespace().map(OsString::from);
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else { panic!() };
        output_spec(&args, Path::new("/base")).map_err(|error| error.to_string())
    }

    fn pattern(text: &str) -> Option<FilePattern> {
        Some(FilePattern::new(text).unwrap())
    }

    #[test]
    fn a_directory_gets_two_files_a_rank_whatever_it_is_called() {
        let found = spec("--output 100%r").unwrap();
        assert_eq!(found.stdout, pattern("/base/100%%r/%0r.out"));
        assert_eq!(found.stderr, pattern("/base/100%%r/%0r.err"));
        assert_eq!(spec("--output x --merge-stderr").unwrap().stderr, None);
        assert_eq!(spec("--outfile-pattern /a/%5t").unwrap().stdout, pattern("/a/%5t"));
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for (options, word) in [
            ("--tee", "`--tee` is about files"),
            ("--output-local", "`--output-local` is about files"),
            ("--output d --label", "`--label` has no lines"),
            ("--outfile-pattern %r --merge-stderr --label", "`--label` has no lines"),
            ("--json -", "`--json -`"),
            ("--json - --output d --tee", "`--json -`"),
            ("--json - --errfile-pattern %r", "`--json -`"),
            ("--outfile-pattern %q", "use `--outfile-pattern`"),
        ] {
            assert!(spec(options).unwrap_err().starts_with(word), "{options}");
        }
        for options in ["--output d --label --tee", "--json - --output d", "--outfile-pattern x -l"]
        {
            assert!(spec(options).is_ok(), "{options}");
        }
    }
}
