//! The command line.

use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::{HOSTS_MAX, Order, PmiOffer, Rank, RankMap, Route, RouteError, Tree};
use wire::Stdin;

use crate::signal_list::{self, SignalList};
use crate::{duration, manual};

/// Starts that one agent has in flight, unless the user says otherwise.
pub(crate) const WINDOW: u32 = 64;

/// The default of `--push-max`.
pub(crate) const PUSH_BYTES_MAX: u64 = 16 << 20;

/// The most redundant links that an agent opens: each costs two processes a handshake and a descriptor.
const REDUNDANCY_MAX: i64 = 8;

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
    /// Remove the programs that hosts, or this one, have cached and that do not run.
    Clean(CleanArgs),
    /// Print a script that completes command lines.
    Completions {
        /// For which shell
        shell: CompletionShell,
    },
}

/// Where more hosts are named, and how they are reached, for commands that run no job.
#[derive(Args, Debug)]
pub(crate) struct ReachArgs {
    /// File with one host a line
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,

    /// Command that runs another on a host: `CMD {host} {cmd}` [default: ssh]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) shell: Option<String>,

    /// Argument for ssh; repeat for several
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) ssh_arg: Vec<String>,
}

/// What `convoke clean` is told.
#[derive(Args, Debug)]
pub(crate) struct CleanArgs {
    /// Hosts to clean [default: this one]
    #[arg(long, short = 'H', value_name = "LIST")]
    pub(crate) hosts: Option<String>,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// What `convoke calibrate` is told.
#[derive(Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// Hosts to start agents on, the more the better: `n[01-16]`
    #[arg(long, short = 'H', value_name = "LIST")]
    pub(crate) hosts: Option<String>,

    #[command(flatten)]
    pub(crate) reach: ReachArgs,

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

    /// Which way a job's messages go, as for `convoke run`
    #[arg(long, value_name = "ROUTE", default_value = "same")]
    pub(crate) route: RouteName,

    /// Redundant links that each agent opens beside those of the route, once the job is launched
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=REDUNDANCY_MAX))]
    pub(crate) redundancy: u8,

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
#[command(
    after_help = manual::run_help(),
    override_usage = "convoke run [OPTIONS] PROGRAM [ARG]... [: [OPTIONS] PROGRAM [ARG]...]..."
)]
pub(crate) struct RunArgs {
    /// The first program, or the only one.
    #[command(flatten)]
    pub(crate) app: AppArgs,

    /// The others, behind colons or in further lines of the file.
    #[arg(skip)]
    pub(crate) more_apps: Vec<AppArgs>,

    /// File with a program in each line, with its options and its arguments
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Each program, separated from the next by `:`"
    )]
    pub(crate) configfile: Option<PathBuf>,

    /// Hosts, with slots after a colon: `a,b:2,n[01-16]`, and user and port: `me@n1/2222:4`;
    /// given to each of several programs: its own
    #[arg(long, short = 'H', value_name = "LIST", help_heading = "Hosts")]
    pub(crate) hosts: Option<String>,

    /// File with one host a line: `host:4`, `host slots=4 max_slots=8 user=me port=2222`
    #[arg(long, short = 'f', value_name = "FILE", help_heading = "Hosts")]
    pub(crate) hostfile: Option<PathBuf>,

    /// Leave these hosts out, or with @FILE those of a host file
    #[arg(long, value_name = "LIST", help_heading = "Hosts")]
    pub(crate) exclude: Option<String>,

    /// File that says where each rank goes, one a line: `rank 0=host slot=1`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ppn", "map_by", "rank_by", "on_missing", "spares"], help_heading = "Hosts")]
    pub(crate) rankfile: Option<PathBuf>,

    /// The host of each rank, by its number in the list: `0,1,1,0`, or Hydra's `(vector,(0,2,1))`
    #[arg(long, value_name = "MAP", conflicts_with_all = ["rankfile", "ppn", "map_by", "rank_by", "on_missing", "spares"], help_heading = "Hosts")]
    pub(crate) rankmap: Option<RankMap>,

    /// Tasks on each host, whatever its slots
    #[arg(long, value_name = "N", help_heading = "Hosts")]
    pub(crate) ppn: Option<u32>,

    /// Where the next task goes: to the same host until that is full, or to the next one
    #[arg(long, value_name = "WHAT", value_enum, default_value = "slot", help_heading = "Hosts")]
    pub(crate) map_by: By,

    /// Which of a program's placed tasks gets the next rank [default: the one placed next]
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Hosts")]
    pub(crate) rank_by: Option<By>,

    /// Fill hosts that are full again, up to their max_slots
    #[arg(long, help_heading = "Hosts")]
    pub(crate) oversubscribe: bool,

    /// Bring up the hosts without tasks at once, and not when a job that a task starts needs them
    /// (MPI_Comm_spawn)
    #[arg(long, conflicts_with_all = ["on_missing", "spares"], help_heading = "Hosts")]
    pub(crate) all_hosts: bool,

    /// What to do when nodes do not come up: end, or run the job on the others
    #[arg(long, value_name = "WHAT", value_enum, default_value = "abort", help_heading = "Hosts")]
    pub(crate) on_missing: OnMissing,

    /// With `--on-missing continue`: how many nodes there must be [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Hosts")]
    pub(crate) min_nodes: Option<u32>,

    /// How many of the last hosts are brought up only to stand in for others that do not come up
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Hosts")]
    pub(crate) spares: u32,

    /// Print which task would run where, and start nothing
    #[arg(long, help_heading = "Hosts")]
    pub(crate) show_map: bool,

    /// The task that reads standard input, or `all`, or `none`
    #[arg(long, value_name = "RANK", default_value = "0", value_parser = parse_stdin, help_heading = "Tasks")]
    pub(crate) stdin: Stdin,

    /// What to do with the other tasks when one fails
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop", help_heading = "Tasks")]
    pub(crate) on_failure: OnFailure,

    /// Time from SIGTERM to SIGKILL
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration::parse, help_heading = "Tasks")]
    pub(crate) grace: Duration,

    /// What tasks may speak to find each other: auto, 1 (PMI-1), 2 (PMI-2) or none
    #[arg(long, value_name = "DIALECT", default_value = "auto", help_heading = "Tasks")]
    pub(crate) pmi: PmiOffer,

    /// Let tasks connect to PMI_PORT, for wrappers that close PMI_FD or lose it
    #[arg(long, help_heading = "Tasks")]
    pub(crate) pmi_port: bool,

    /// Bytes of keys and values that a fence brings to every host: those of a larger one are fetched as they are read
    #[arg(long, value_name = "BYTES", default_value_t = PUSH_BYTES_MAX, help_heading = "Tasks")]
    pub(crate) push_max: u64,

    /// How long the command may take
    #[arg(long, value_name = "TIME", value_parser = duration::parse, help_heading = "Tasks")]
    pub(crate) timeout: Option<Duration>,

    /// Put `[RANK] ` before every line of output
    #[arg(long, short = 'l', help_heading = "Output")]
    pub(crate) label: bool,

    /// Write what each task writes to DIR/RANK.out and DIR/RANK.err, of a job that tasks start to
    /// DIR/job1.RANK.out and so on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["outfile_pattern", "errfile_pattern"], help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Files for standard output: %r is the rank (%5r: filled with zeros), %h the host, %n the
    /// node, %j the job
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

    /// Command that runs another on a host: `CMD {host} {cmd}`, with `{user}` and `{port}` if hosts
    /// have them
    #[arg(long, value_name = "COMMAND", conflicts_with = "launcher", help_heading = "Agents")]
    pub(crate) shell: Option<String>,

    /// Argument for ssh; repeat for several
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Agents")]
    pub(crate) ssh_arg: Vec<String>,

    /// Path of this program on the hosts [default: as here]
    #[arg(long, value_name = "PATH", help_heading = "Agents")]
    pub(crate) agent_path: Option<OsString>,

    /// What to do about hosts where that is missing, or of another build
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", help_heading = "Agents")]
    pub(crate) deliver: Deliver,

    /// What links between agents run over
    #[arg(long, value_name = "WHAT", value_enum, default_value = "auto", help_heading = "Agents")]
    pub(crate) link: LinkName,

    /// Who starts whom: flat, chain, kary:K, binomial, two-level, greedy, greedy:L,G, scela:CORES,
    /// route:ROUTE or adaptive [default: adaptive]
    #[arg(long, value_name = "TREE", help_heading = "Agents")]
    pub(crate) tree: Option<Tree>,

    /// Which way a job's messages go: same (as the agents came up), kary:K, binomial or direct
    #[arg(long, value_name = "ROUTE", default_value = "same", help_heading = "Agents")]
    pub(crate) route: RouteName,

    /// Redundant links that each agent opens beside those of the route, once the job is launched
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=REDUNDANCY_MAX), help_heading = "Agents")]
    pub(crate) redundancy: u8,

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

    /// Write what became of the job, each node and each task, and of the jobs that tasks start, as
    /// JSON; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Words")]
    pub(crate) json: Option<PathBuf>,

    /// Say what happens
    #[arg(long, short, help_heading = "Words")]
    pub(crate) verbose: bool,

    /// No progress, and no words about tasks that failed
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Words")]
    pub(crate) quiet: bool,
}

impl RunArgs {
    /// The programs, in the order of their ranks.
    pub(crate) fn apps(&self) -> impl Iterator<Item = &AppArgs> {
        iter::once(&self.app).chain(&self.more_apps)
    }
}

/// What one program of a job is told.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Each program, separated from the next by `:`")]
pub(crate) struct AppArgs {
    /// Number of tasks [default: one for each slot; where there are several programs, one]
    #[arg(short = 'n', long = "np", value_name = "N")]
    pub(crate) tasks: Option<u32>,

    /// Set a variable for the tasks; NAME alone copies it
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,

    /// Working directory of the tasks [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) wdir: Option<PathBuf>,

    /// Its hosts, where each program has its own.
    #[arg(skip)]
    pub(crate) hosts: Option<String>,

    /// The program and its arguments
    #[arg(
        required_unless_present = "configfile",
        trailing_var_arg = true,
        value_name = "PROGRAM",
        value_hint = ValueHint::CommandWithArguments,
        help_heading = "Arguments"
    )]
    pub(crate) command: Vec<OsString>,
}

/// In which order hosts get tasks, or tasks get ranks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum By {
    /// Consecutive ranks share a host
    Slot,
    /// Consecutive ranks are on different hosts
    Node,
}

impl By {
    pub(crate) fn order(self) -> Order {
        match self {
            By::Slot => Order::Slots,
            By::Node => Order::Nodes,
        }
    }
}

/// The routing tree, if it is not the spawn tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RouteName(pub(crate) Option<Route>);

impl std::str::FromStr for RouteName {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<RouteName, RouteError> {
        Route::parse_or_same(text).map(RouteName)
    }
}

/// What a failed task means for the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OnFailure {
    /// They are ended
    Stop,
    /// They end by themselves
    Continue,
}

/// What nodes that do not come up mean for the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OnMissing {
    /// The job does not run
    Abort,
    /// It runs on them: on fewer nodes, with fewer tasks unless `-n` is given
    Continue,
}

/// Whether hosts are sent this program.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Deliver {
    /// They are sent this program, and keep it in a cache
    Auto,
    /// Nothing: a start there fails
    Never,
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
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let options = crate::args_prepass::with_long_np(words[2..].iter().cloned());
        let cli = Cli::try_parse_from(words[..2].iter().cloned().chain(options))?;
        let Command::Run(args) = cli.command else { panic!("not a run") };
        Ok(args)
    }

    #[test]
    fn options_after_the_program_are_the_programs() {
        let args = parse("convoke run -n 4 prog -n 5 --label --").unwrap();
        assert_eq!(args.app.tasks, Some(4));
        assert!(!args.label);
        assert_eq!(args.app.command, ["prog", "-n", "5", "--label", "--"]);
    }

    #[test]
    fn a_lone_double_dash_before_the_program_is_not_the_program() {
        let args = parse("convoke run -np 2 -- prog -- x").unwrap();
        assert_eq!(args.app.tasks, Some(2));
        assert_eq!(args.app.command, ["prog", "--", "x"]);
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
            let words = [format!("--{long}"), "-np".into(), "prog".into()].map(OsString::from);
            let passed = crate::args_prepass::with_long_np(words.into_iter());
            assert_eq!(passed[1], "-np", "--{long}");
        }
    }
}
