//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::{HOSTS_MAX, Rank, Tree};
use wire::Stdin;

use crate::signal_list::{self, SignalList};
use crate::{duration, manual};

/// Starts that one agent has in flight, unless the user says otherwise.
pub(crate) const WINDOW: u32 = 64;

/// The most nodes of a session: as many as `--hosts` takes.
const NODES_MAX: i64 = HOSTS_MAX.cast_signed();

/// Starts parallel jobs on many hosts.
#[derive(Debug, Parser)]
#[command(name = "convoke", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program as one parallel job.
    Run(Box<RunArgs>),
    /// Simulate a session in virtual time: the same code, on modelled hosts.
    Sim(SimArgs),
    /// Compare spawn trees, windows and strict batches for so many nodes, and recommend a command line.
    Plan(PlanArgs),
    /// Measure what starts cost on real hosts, for `sim` and `plan`.
    Calibrate(CalibrateArgs),
    /// Print a script that completes command lines.
    Completions {
        /// For which shell
        shell: CompletionShell,
    },
}

/// What `convoke calibrate` is told.
#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// Hosts to start agents on, the more the better: `n[01-16]`
    #[arg(long, short = 'H', value_name = "LIST")]
    pub(crate) hosts: Option<String>,

    /// File with one host a line
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,

    /// Command that runs another on a host: `CMD {host} {cmd}` [default: ssh]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) shell: Option<String>,

    /// Argument for ssh; repeat for several
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) ssh_arg: Vec<String>,

    /// Path of this program on the hosts [default: as here]
    #[arg(long, value_name = "PATH")]
    pub(crate) agent_path: Option<OsString>,

    /// Where to write what was measured
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// What `convoke sim` is told.
#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    /// How many nodes
    #[arg(long, short = 'N', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=NODES_MAX))]
    pub(crate) nodes: u32,

    /// Tasks on each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tasks_per_node: u32,

    /// Who starts whom, as for `convoke run`
    #[arg(long, value_name = "TREE", default_value = "adaptive")]
    pub(crate) tree: Tree,

    /// Starts that one agent has in flight
    #[arg(long, value_name = "N", default_value_t = WINDOW, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: u32,

    /// Leaves that one agent starts before it waits for all of them [default: it does not wait]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) batch: Option<u32>,

    /// What hosts and links cost [default: L = 257 ms, G = 7 ms]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,

    /// What is drawn at random follows from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Write when what happened to each agent: FILE.html, or FILE.json for Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
}

/// What `convoke plan` is told.
#[derive(Args, Debug)]
#[command(after_help = manual::PLAN_NOTES)]
pub(crate) struct PlanArgs {
    /// How many nodes
    #[arg(long, short = 'N', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=NODES_MAX))]
    pub(crate) nodes: u32,

    /// Tasks on each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tasks_per_node: u32,

    /// What hosts and links cost [default: L = 257 ms, G = 7 ms]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,

    /// Where costs vary, they are drawn from this seed and the next ones
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Draw time against the number of nodes
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
}

/// What `convoke run` is told.
#[derive(Args, Debug)]
#[command(after_help = manual::run_help())]
pub(crate) struct RunArgs {
    /// Hosts, with slots after a colon: `a,b:2,n[01-16]`
    #[arg(long, short = 'H', value_name = "LIST", help_heading = "Hosts")]
    pub(crate) hosts: Option<String>,

    /// File with one host a line, `host:slots`
    #[arg(long, short = 'f', value_name = "FILE", help_heading = "Hosts")]
    pub(crate) hostfile: Option<PathBuf>,

    /// Number of tasks [default: one for each slot]
    #[arg(short = 'n', long = "np", value_name = "N", help_heading = "Hosts")]
    pub(crate) tasks: Option<u32>,

    /// Tasks on each host, whatever its slots
    #[arg(long, value_name = "N", help_heading = "Hosts")]
    pub(crate) ppn: Option<u32>,

    /// Print which task would run where, and start nothing
    #[arg(long, help_heading = "Hosts")]
    pub(crate) show_map: bool,

    /// Set a variable for the tasks; NAME alone copies it
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Tasks")]
    pub(crate) env: Vec<OsString>,

    /// Working directory of the tasks [default: the current one]
    #[arg(long, value_name = "DIR", help_heading = "Tasks")]
    pub(crate) wdir: Option<PathBuf>,

    /// The task that reads standard input, or `all`, or `none`
    #[arg(long, value_name = "RANK", default_value = "0", value_parser = parse_stdin, help_heading = "Tasks")]
    pub(crate) stdin: Stdin,

    /// What to do with the other tasks when one fails
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop", help_heading = "Tasks")]
    pub(crate) on_failure: OnFailure,

    /// Time from SIGTERM to SIGKILL
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration::parse, help_heading = "Tasks")]
    pub(crate) grace: Duration,

    /// How long the command may take
    #[arg(long, value_name = "TIME", value_parser = duration::parse, help_heading = "Tasks")]
    pub(crate) timeout: Option<Duration>,

    /// Put `[RANK] ` before every line of output
    #[arg(long, short = 'l', help_heading = "Output")]
    pub(crate) label: bool,

    /// Write what each task writes to DIR/RANK.out and DIR/RANK.err
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["outfile_pattern", "errfile_pattern"], help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Files for standard output: %r is the rank (%5r: filled with zeros), %h the host, %n the node
    #[arg(long, value_name = "PATTERN", help_heading = "Output")]
    pub(crate) outfile_pattern: Option<PathBuf>,

    /// The same for standard error
    #[arg(long, value_name = "PATTERN", conflicts_with = "merge_stderr", help_heading = "Output")]
    pub(crate) errfile_pattern: Option<PathBuf>,

    /// Write these files on the hosts of their tasks, not here
    #[arg(long, help_heading = "Output")]
    pub(crate) output_local: bool,

    /// Show what goes to files, too
    #[arg(long, help_heading = "Output")]
    pub(crate) tee: bool,

    /// Let tasks write standard error where they write standard output
    #[arg(long, help_heading = "Output")]
    pub(crate) merge_stderr: bool,

    /// Signals that go to every task: names or numbers, or `all`, or `none`
    #[arg(long, value_name = "LIST", default_value = "USR1,USR2", value_parser = signal_list::parse, help_heading = "Tasks")]
    pub(crate) forward_signals: SignalList,

    /// How agents are started [default: ssh]
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Agents")]
    pub(crate) launcher: Option<LauncherName>,

    /// Command that runs another on a host: `CMD {host} {cmd}`
    #[arg(long, value_name = "COMMAND", conflicts_with = "launcher", help_heading = "Agents")]
    pub(crate) shell: Option<String>,

    /// Argument for ssh; repeat for several
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Agents")]
    pub(crate) ssh_arg: Vec<String>,

    /// Path of this program on the hosts [default: as here]
    #[arg(long, value_name = "PATH", help_heading = "Agents")]
    pub(crate) agent_path: Option<OsString>,

    /// What links between agents run over
    #[arg(long, value_name = "WHAT", value_enum, default_value = "auto", help_heading = "Agents")]
    pub(crate) link: LinkName,

    /// Who starts whom: flat, chain, kary:K, binomial, two-level, greedy, greedy:L,G, scela:CORES,
    /// route:ROUTE or adaptive [default: adaptive]
    #[arg(long, value_name = "TREE", help_heading = "Agents")]
    pub(crate) tree: Option<Tree>,

    /// Starts that one agent has in flight
    #[arg(long, value_name = "N", default_value_t = WINDOW, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Agents")]
    pub(crate) window: u32,

    /// Leaves that one agent starts before it waits for all of them [default: it does not wait]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Agents")]
    pub(crate) batch: Option<u32>,

    /// How often a start is tried again
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Agents")]
    pub(crate) retries: u32,

    /// How long all agents may take to join [default: as long as some do]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, help_heading = "Agents")]
    pub(crate) join_timeout: Option<Duration>,

    /// Afterwards, print counts and times on standard error
    #[arg(long, help_heading = "Words")]
    pub(crate) stats: bool,

    /// Afterwards, draw who started whom, and when they joined
    #[arg(long, help_heading = "Words")]
    pub(crate) show_tree: bool,

    /// Write when what happened to each agent: FILE.html, or FILE.json for Perfetto
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub(crate) timeline: Option<PathBuf>,

    /// Write what became of the job, each node and each task, as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub(crate) json: Option<PathBuf>,

    /// Say what happens
    #[arg(long, short, help_heading = "Words")]
    pub(crate) verbose: bool,

    /// No progress, and no words about tasks that failed
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Words")]
    pub(crate) quiet: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// What a failed task means for the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OnFailure {
    /// They are ended
    Stop,
    /// They end by themselves
    Continue,
}

/// Ways to start agents.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LauncherName {
    /// OpenSSH's client
    Ssh,
    /// Processes on this machine, whatever the hosts are called
    Local,
    /// The same, many at once without standard input
    LocalBulk,
}

/// What links run over.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LinkName {
    /// TCP, or the remote shell's streams where no address answers
    Auto,
    /// TCP only
    Tcp,
    /// The remote shell's streams only
    Shell,
}

/// The shells of those who work on clusters; each generator is code that every agent's binary holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CompletionShell {
    /// source <(convoke completions bash)
    Bash,
    /// convoke completions zsh >DIR/_convoke, with DIR in $fpath
    Zsh,
    /// convoke completions fish | source
    Fish,
}

fn parse_stdin(text: &str) -> Result<Stdin, String> {
    match text {
        "none" => Ok(Stdin::Nobody),
        "all" => Ok(Stdin::All),
        rank => match rank.parse() {
            Ok(rank) => Ok(Stdin::Task(Rank(rank))),
            Err(_) => Err("neither a rank, nor `all` or `none`".into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Box<RunArgs>, clap::Error> {
        let words = line.split(' ').map(OsString::from);
        let cli = Cli::try_parse_from(crate::args_prepass::with_long_np(words))?;
        let Command::Run(args) = cli.command else { panic!("not a run") };
        Ok(args)
    }

    #[test]
    fn options_after_the_program_are_the_programs() {
        let args = parse("convoke run -n 4 prog -n 5 --label --").unwrap();
        assert_eq!(args.tasks, Some(4));
        assert!(!args.label);
        assert_eq!(args.command, ["prog", "-n", "5", "--label", "--"]);
    }

    #[test]
    fn a_lone_double_dash_before_the_program_is_not_the_program() {
        let args = parse("convoke run -np 2 -- prog -- x").unwrap();
        assert_eq!(args.tasks, Some(2));
        assert_eq!(args.command, ["prog", "--", "x"]);
    }

    #[test]
    fn an_unknown_option_is_an_error_and_not_the_program() {
        assert!(parse("convoke run --no-such prog").is_err());
        assert!(parse("convoke run").is_err());
        assert!(parse("convoke run --window 0 prog").is_err());
        assert!(parse("convoke run --batch 0 prog").is_err());
        assert!(parse("convoke run --shell x{host} --launcher ssh prog").is_err());
    }

    #[test]
    fn ssh_arguments_may_begin_with_a_dash() {
        let args = parse("convoke run --ssh-arg -p --ssh-arg 2222 prog").unwrap();
        assert_eq!(args.ssh_arg, ["-p", "2222"]);
    }

    #[test]
    fn the_help_is_whole() {
        let mut command = <Cli as clap::CommandFactory>::command();
        let run = command.find_subcommand_mut("run").unwrap();
        insta::assert_snapshot!(run.render_long_help().to_string());
    }

    #[test]
    fn the_help_of_the_other_commands_is_whole() {
        let mut command = <Cli as clap::CommandFactory>::command();
        let others = command.get_subcommands_mut().filter(|it| it.get_name() != "run");
        let help: Vec<String> = others.map(|it| it.render_long_help().to_string()).collect();
        insta::assert_snapshot!(help.join("\n=====\n"));
    }

    #[test]
    fn the_prepass_knows_every_option_with_a_value() {
        let mut command = <Cli as clap::CommandFactory>::command();
        let run = command.find_subcommand_mut("run").unwrap();
        for arg in run.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            let Some(long) = arg.get_long() else { continue };
            let line = format!("convoke run --{long} -np prog");
            let words = line.split(' ').map(OsString::from);
            assert_eq!(crate::args_prepass::with_long_np(words).get(3), Some(&"-np".into()));
        }
    }
}
