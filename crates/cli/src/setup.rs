//! From the command line to what the head is given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use agent::{Hosts, Launcher, LinkChoice, OutputFileError, OutputFiles, PlanError, StartPlan};
use alloc::AllocError;
use bootstrap::CommandError;
use bytes::Bytes;
use engine::HeadConfig;
use model::{JobId, Node, PlacementError, PmiOffer, Rank, RankMapMisfit, Tree};
use wire::{App, IoSpec, JobSpec, SessionSpec, Stdin};

use crate::args::{AppArgs, Deliver, LauncherName, LinkName, OnFailure, RunArgs};
use crate::environment::{self, EnvError};
use crate::layout::Layout;
use crate::memory::{self, Shortage};
use crate::output_file::OutputError;
use crate::output_spec::{OutputOptionError, output_spec};
use crate::redundancy::{RedundancyError, check_redundancy};

/// How long a start may be silent: a login with its scripts and a name service that times out once
/// takes less.
const START_TIMEOUT_MS: u32 = 30_000;

/// Two missed heartbeats and a third are 7.5 s: a cut link is noticed within ten.
const HEARTBEAT_MS: u32 = 2_500;

/// The kernel's own limit, from the first byte that is not acknowledged: which may be that of a
/// heartbeat, a period after the cut. Then the tasks are killed, and the shell may still say why the
/// node is gone: all is over within ten seconds.
const LINK_TIMEOUT_MS: u32 = 6_500;

/// Why a command line cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Alloc(AllocError),
    #[error(transparent)]
    Placement(PlacementError),
    #[error("`--spares {spares}`: there {} only {hosts} host{}", be(*.hosts), plural(*.hosts))]
    TooManySpares { spares: u32, hosts: u32 },
    #[error(
        "`{0}` says where each task is or what its file is called, and with `--spares` or \
         `--on-missing continue` that is known only once it is known who is there"
    )]
    NotMovable(&'static str),
    #[error("`--min-nodes` has no meaning without `--on-missing continue`")]
    MinWithoutContinue,
    #[error("`--min-nodes {min}`: the job runs on only {nodes} node{}", plural(*.nodes))]
    MinTooLarge { min: u32, nodes: u32 },
    #[error("`--stdin {rank}`: there {} only {tasks} task{}", be(*.tasks), plural(*.tasks))]
    NoSuchTask { rank: u32, tasks: u32 },
    #[error(
        "`--pmi none` leaves nothing that tasks could connect to by `--pmi-port`: drop one of them"
    )]
    PortOfNone,
    #[error("{source_name} places {placed} task{}, and {tasks} {} asked for", plural(*.placed), be(*.tasks))]
    OtherRanks { source_name: String, placed: u32, tasks: u32 },
    #[error("use `--rankmap`")]
    RankMap(#[source] RankMapMisfit),
    #[error(
        "`{0}` is said of all hosts of the job, and with `--hosts` of its own each program is placed \
         on those alone"
    )]
    OwnHosts(&'static str),
    #[error("app {0}")]
    InApp(u32, #[source] Box<SetupError>),
    #[error(transparent)]
    Env(EnvError),
    #[error("find the current directory")]
    Dir(#[source] io::Error),
    #[error("find this program's own path; `--agent-path` gives it")]
    OwnPath(#[source] io::Error),
    #[error("`--agent-path {0}` is not absolute")]
    RelativeAgent(String),
    #[error("the agent's path {0:?} has a newline in it, which no command of `csh` can hold")]
    NewlineInAgent(OsString),
    #[error(
        "`--link shell` needs a remote shell for each agent, and `--launcher local-bulk` starts many \
         with one command"
    )]
    NoStreams,
    #[error(transparent)]
    Redundancy(RedundancyError),
    #[error("use `--shell`")]
    Shell(#[source] PlanError),
    #[error(transparent)]
    Host(CommandError),
    #[error("`--launcher` starts {agents} agents on this machine: they take {shortage}")]
    TooManyHere { agents: u64, shortage: Shortage },
    #[error(transparent)]
    Output(OutputError),
    #[error(transparent)]
    OutputOption(OutputOptionError),
    #[error(transparent)]
    Files(OutputFileError),
    #[error("draw random numbers")]
    Random(#[source] io::Error),
}

impl SetupError {
    /// Says which program it is about, where there are several.
    pub(crate) fn in_app(self, args: &RunArgs, app: u32) -> SetupError {
        if args.more_apps.is_empty() { self } else { SetupError::InApp(app, Box::new(self)) }
    }
}

/// What the head is given.
pub(crate) fn head_config(args: &RunArgs, layout: &Layout) -> Result<HeadConfig, SetupError> {
    let (names, muster) = (layout.names(), layout.muster());
    let rooms =
        |nodes: &[Node]| nodes.iter().map(|node| (node.name.clone(), node.into())).collect();
    Ok(HeadConfig {
        tree: args.tree.unwrap_or(Tree::adaptive()),
        session: session(args, layout)?,
        job: job(args, layout, muster.is_movable())?,
        muster,
        names,
        later: rooms(&layout.later),
        unused: rooms(&layout.unused),
        join_timeout: args.join_timeout,
        children_max: u32::MAX,
        reports_started: false,
        push_bytes_max: args.push_max,
        forward_signals: args.forward_signals.0.clone(),
        timeout: args.timeout,
        seed: random()?,
    })
}

fn session(args: &RunArgs, layout: &Layout) -> Result<SessionSpec, SetupError> {
    let names = layout.names();
    let n = names.len() as u64;
    let link = match args.link {
        LinkName::Auto => LinkChoice::Auto,
        LinkName::Tcp => LinkChoice::Tcp,
        LinkName::Shell => LinkChoice::Shell,
    };
    let (program, deliver) = (agent_path(args)?, args.deliver == Deliver::Auto);
    let plan = StartPlan { launcher: launcher(args), program, deliver, link };
    if matches!(plan.launcher, Launcher::Local | Launcher::LocalBulk) {
        check_memory(n, memory::free())?;
    }
    let bootstrapper = plan.bootstrapper().map_err(SetupError::Shell)?;
    let others = layout.later.iter().chain(&layout.unused).map(|node| &node.name);
    let mut all = names.iter().chain(others);
    all.try_for_each(|name| bootstrapper.check_host(name)).map_err(SetupError::Host)?;
    let is_bulk = bootstrapper.is_bulk();
    if is_bulk && link == LinkChoice::Shell {
        return Err(SetupError::NoStreams);
    }
    check_redundancy(args.route.0, args.redundancy).map_err(SetupError::Redundancy)?;
    Ok(SessionSpec {
        bootstrap: plan.encode(),
        bulk_max: if is_bulk { u32::try_from(n).unwrap_or(u32::MAX) } else { 1 },
        window: args.window,
        batch: args.batch,
        retries_max: args.retries,
        start_timeout_ms: START_TIMEOUT_MS,
        heartbeat_ms: HEARTBEAT_MS,
        link_timeout_ms: LINK_TIMEOUT_MS,
        marks: args.timeline.is_some(),
        route: args.route.0,
        redundancy: args.redundancy,
        pushes_contacts: n <= engine::CONTACTS_PUSHED_MAX,
    })
}

fn check_memory(agents: u64, free: u64) -> Result<(), SetupError> {
    let wanted = agents.saturating_mul(memory::AGENT_PRIVATE);
    memory::check(wanted, free).map_err(|shortage| SetupError::TooManyHere { agents, shortage })
}

fn launcher(args: &RunArgs) -> Launcher {
    match (&args.shell, args.launcher) {
        (Some(shell), _) => Launcher::Shell(shell.clone()),
        (None, None | Some(LauncherName::Ssh)) => Launcher::Ssh(args.ssh_arg.clone()),
        (None, Some(LauncherName::Local)) => Launcher::Local,
        (None, Some(LauncherName::LocalBulk)) => Launcher::LocalBulk,
    }
}

fn agent_path(args: &RunArgs) -> Result<OsString, SetupError> {
    let path = match &args.agent_path {
        Some(path) if Path::new(path).is_absolute() => path.clone(),
        Some(path) => return Err(SetupError::RelativeAgent(path.to_string_lossy().into_owned())),
        None => bootstrap::own_program().map_err(SetupError::OwnPath)?,
    };
    if path.as_bytes().contains(&b'\n') {
        return Err(SetupError::NewlineInAgent(path));
    }
    Ok(path)
}

fn job(args: &RunArgs, layout: &Layout, is_movable: bool) -> Result<JobSpec, SetupError> {
    let base = current_directory()?;
    let output = output_spec(args, &base).map_err(SetupError::OutputOption)?;
    let ours = std::env::vars_os().collect();
    let apps = args.apps().zip(&layout.first_ranks);
    let tasks = layout.placement.map.len();
    if let Stdin::Task(Rank(rank)) = args.stdin
        && rank >= tasks
    {
        return Err(SetupError::NoSuchTask { rank, tasks });
    }
    if args.pmi_port && args.pmi == PmiOffer::None {
        return Err(SetupError::PortOfNone);
    }
    Ok(JobSpec {
        job: JobId(0),
        apps: apps
            .map(|(app, first)| program(app, *first, &base, &ours))
            .collect::<Result<_, _>>()?,
        env: environment::of_job(&ours),
        map: layout.placement.map.clone(),
        is_movable,
        kvsname: format!("convoke-{:016x}", random()?),
        universe_size: layout.universe_size(),
        pmi: args.pmi,
        pmi_port: args.pmi_port,
        origin: None,
        io: IoSpec { stdin: args.stdin, output, records: args.json.is_some() },
        stop_on_failure: args.on_failure == OnFailure::Stop,
        grace_ms: u32::try_from(args.grace.as_millis()).unwrap_or(u32::MAX),
    })
}

fn program(
    app: &AppArgs,
    first_rank: Rank,
    base: &Path,
    ours: &BTreeMap<OsString, OsString>,
) -> Result<App, SetupError> {
    let dir = app.wdir.as_ref().map_or(base.to_owned(), |dir| logical(&base.join(dir)));
    Ok(App {
        first_rank,
        argv: app.command.iter().map(|word| bytes(word)).collect(),
        env: environment::of_app(ours, &app.env, &dir).map_err(SetupError::Env)?,
        dir: bytes(dir.as_os_str()),
    })
}

/// Makes the files of output that are written here, if any are.
pub(crate) fn output_files(config: &HeadConfig) -> Result<Option<OutputFiles>, SetupError> {
    let output = &config.job.io.output;
    if output.local || !output.has_files() {
        return Ok(None);
    }
    let mut files = OutputFiles::new(Hosts::All(config.all_names()));
    files.create(Arc::new(config.job.clone())).map_err(SetupError::Files)?;
    Ok(Some(files))
}

/// As the user's shell shows it where that is true, since home directories are often links that
/// exist on every node while what they point to does not.
fn current_directory() -> Result<PathBuf, SetupError> {
    let current = std::env::current_dir().map_err(SetupError::Dir)?;
    let shown = std::env::var_os("PWD").map(PathBuf::from).filter(|pwd| pwd.is_absolute());
    let same = |pwd: &PathBuf| std::fs::canonicalize(pwd).is_ok_and(|real| real == current);
    Ok(shown.filter(same).unwrap_or(current))
}

/// An absolute path without `.` and `..`, as `cd` has it (POSIX, XCU cd, step 8): a shell takes no other
/// as its `PWD`.
fn logical(path: &Path) -> PathBuf {
    let mut logical = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => logical.push(name),
            Component::ParentDir => drop(logical.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    logical
}

fn bytes(text: &OsStr) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn random() -> Result<u64, SetupError> {
    let mut bytes = [0; 8];
    os::machine::random_bytes(&mut bytes).map_err(SetupError::Random)?;
    Ok(u64::from_le_bytes(bytes))
}

fn be(n: u32) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn plural(n: u32) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_as_a_shell_names_it() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a/b/..", "/a"),
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../../..", "/"),
            ("/a/b/../c d", "/a/c d"),
        ] {
            assert_eq!(logical(Path::new(path)), Path::new(expected));
        }
    }

    #[test]
    fn more_local_agents_than_memory_are_refused() {
        const GIGABYTE: u64 = 1_000_000_000;
        assert!(check_memory(64, GIGABYTE).is_ok());
        let error = check_memory(100_000, 22 * GIGABYTE).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--launcher` starts 100000 agents on this machine: they take 100.0 GB, and 22.0 GB are free"
        );
    }
}
