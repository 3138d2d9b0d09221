//! From the command line to what the head is given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use agent::{Hosts, Launcher, LinkChoice, OutputFileError, OutputFiles, PlanError, StartPlan};
use alloc::{AllocError, Allocation};
use bootstrap::CommandError;
use bytes::Bytes;
use engine::HeadConfig;
use model::rankfile::RankFile;
use model::{JobId, Muster, Node, Placement, PlacementError, PmiOffer, Rank, Request, Slots, Tree};
use wire::{App, IoSpec, JobSpec, SessionSpec, Stdin};

use crate::args::{AppArgs, Deliver, LauncherName, LinkName, OnFailure, OnMissing, RunArgs};
use crate::environment::{self, EnvError};
use crate::memory::{self, Shortage};
use crate::output_file::OutputError;
use crate::output_spec::{OutputOptionError, output_spec};

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
    #[error("rank file `{}` places {in_file} task{}, and {tasks} are asked for", path.display(), plural(*.in_file))]
    OtherRanks { path: PathBuf, in_file: u32, tasks: u32 },
    #[error("app {app}: the number of tasks must be at least 1")]
    NoTasks { app: u32 },
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

/// Where everything would run: the nodes that are used, and what to tell of the host file.
pub(crate) struct Layout {
    pub(crate) placement: Placement,
    /// Nodes without tasks, for whom of the others does not come up.
    pub(crate) spares: Vec<Node>,
    pub(crate) warnings: Vec<String>,
    nodes_min: Option<u32>,
    request: Request,
    universe_size: Option<u32>,
}

impl Layout {
    /// Places the tasks.
    pub(crate) fn of(args: &RunArgs) -> Result<Layout, SetupError> {
        let ranks = args.rankfile.as_deref().map(alloc::rank_file).transpose();
        let ranks = ranks.map_err(SetupError::Alloc)?;
        let mut allocation = allocation(args, ranks.as_ref()).map_err(SetupError::Alloc)?;
        let spares = take_spares(args.spares, &mut allocation.nodes)?;
        let request = request(args)?;
        let placement = match (&args.rankfile, &ranks) {
            (Some(path), Some(ranks)) => by_rank_file(&request, path, ranks, &allocation)?,
            (_, _) => allocation.place(&request).map_err(SetupError::Placement)?,
        };
        let nodes_min = nodes_min(args, count(&placement.nodes))?;
        must_stay(args, nodes_min.is_some() || !spares.is_empty())?;
        let slots = allocation.nodes.iter().map(|node| node.slots);
        let universe_size = slots.sum::<Option<u32>>();
        let warnings = allocation.warnings;
        Ok(Layout { placement, spares, warnings, nodes_min, request, universe_size })
    }

    /// The first rank of each of the job's programs.
    pub(crate) fn first_ranks(args: &RunArgs) -> Vec<Rank> {
        let counts = args.apps().map(tasks_of);
        let starts = counts.scan(0_u32, |next, tasks| {
            let first = *next;
            *next = next.saturating_add(tasks);
            Some(Rank(first))
        });
        starts.collect()
    }

    /// The host names of the nodes, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.nodes().map(|node| node.name.clone()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.placement.nodes.iter().chain(&self.spares)
    }

    /// Which of the nodes the job needs.
    fn muster(&self) -> Muster {
        Muster {
            slots: self.nodes().map(Slots::from).collect(),
            spares: count(&self.spares),
            nodes_min: self.nodes_min,
            request: self.request.clone(),
        }
    }
}

/// Refuses what says where tasks are where they may come to be elsewhere.
fn must_stay(args: &RunArgs, is_movable: bool) -> Result<(), SetupError> {
    let fixed = [
        (args.rankfile.is_some(), "--rankfile"),
        (args.output.is_some(), "--output"),
        (args.outfile_pattern.is_some(), "--outfile-pattern"),
        (args.errfile_pattern.is_some(), "--errfile-pattern"),
    ];
    let given = fixed.into_iter().find(|&(is_given, _)| is_movable && is_given);
    given.map_or(Ok(()), |(_, option)| Err(SetupError::NotMovable(option)))
}

/// Takes the last hosts from the others, one of which must be left.
fn take_spares(spares: u32, nodes: &mut Vec<Node>) -> Result<Vec<Node>, SetupError> {
    let hosts = count(nodes);
    let left = hosts.checked_sub(spares).filter(|&left| left > 0 || spares == 0);
    let left = left.ok_or(SetupError::TooManySpares { spares, hosts })?;
    Ok(nodes.split_off(usize::try_from(left).unwrap_or(usize::MAX)))
}

/// With how many nodes the job runs though others are missing, if it does.
fn nodes_min(args: &RunArgs, nodes: u32) -> Result<Option<u32>, SetupError> {
    match (args.on_missing, args.min_nodes) {
        (OnMissing::Abort, None) => Ok(None),
        (OnMissing::Abort, Some(_)) => Err(SetupError::MinWithoutContinue),
        (OnMissing::Continue, None) => Ok(Some(1)),
        (OnMissing::Continue, Some(min)) if min <= nodes => Ok(Some(min)),
        (OnMissing::Continue, Some(min)) => Err(SetupError::MinTooLarge { min, nodes }),
    }
}

fn count(nodes: &[Node]) -> u32 {
    u32::try_from(nodes.len()).unwrap_or(u32::MAX)
}

fn allocation(args: &RunArgs, ranks: Option<&RankFile>) -> Result<Allocation, AllocError> {
    let allocation = match (&args.hosts, &args.hostfile, ranks) {
        (None, None, Some(ranks)) => Allocation::from_rank_file(ranks),
        (hosts, file, _) => alloc::allocate(hosts.as_deref(), file.as_deref())?,
    };
    match &args.exclude {
        Some(list) => allocation.exclude(list),
        None => Ok(allocation),
    }
}

/// What the user asks of the placement.
fn request(args: &RunArgs) -> Result<Request, SetupError> {
    Ok(Request {
        tasks: tasks(args)?,
        per_node: args.ppn,
        order: args.map_by.order(),
        oversubscribe: args.oversubscribe,
        ..Request::default()
    })
}

/// The file says how many tasks there are; `-n` must say the same or nothing.
fn by_rank_file(
    request: &Request,
    path: &Path,
    ranks: &RankFile,
    allocation: &Allocation,
) -> Result<Placement, SetupError> {
    let in_file = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
    if let Some(tasks) = request.tasks.filter(|&tasks| tasks != in_file) {
        return Err(SetupError::OtherRanks { path: path.into(), in_file, tasks });
    }
    let placement = ranks.place(&allocation.nodes, request.oversubscribe);
    let wrong = |source| SetupError::Alloc(AllocError::RankFile { path: path.into(), source });
    placement.map_err(wrong)
}

/// How many tasks there are to be, where that does not follow from the hosts.
fn tasks(args: &RunArgs) -> Result<Option<u32>, SetupError> {
    if args.more_apps.is_empty() {
        return Ok(args.app.tasks);
    }
    if let Some((app, _)) = (0..).zip(args.apps()).find(|(_, app)| app.tasks == Some(0)) {
        return Err(SetupError::NoTasks { app });
    }
    let all: u64 = args.apps().map(|app| u64::from(tasks_of(app))).sum();
    let all = u32::try_from(all).map_err(|_| PlacementError::TooLarge(all));
    all.map(Some).map_err(SetupError::Placement)
}

/// The tasks of one of several programs.
fn tasks_of(app: &AppArgs) -> u32 {
    app.tasks.unwrap_or(1)
}

/// What the head is given.
pub(crate) fn head_config(args: &RunArgs, layout: &Layout) -> Result<HeadConfig, SetupError> {
    let (names, muster) = (layout.names(), layout.muster());
    Ok(HeadConfig {
        tree: args.tree.unwrap_or(Tree::adaptive()),
        session: session(args, &names)?,
        job: job(args, layout, muster.is_movable())?,
        muster,
        names,
        join_timeout: args.join_timeout,
        children_max: u32::MAX,
        forward_signals: args.forward_signals.0.clone(),
        timeout: args.timeout,
        seed: random()?,
    })
}

fn session(args: &RunArgs, names: &[String]) -> Result<SessionSpec, SetupError> {
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
    names.iter().try_for_each(|name| bootstrapper.check_host(name)).map_err(SetupError::Host)?;
    let is_bulk = bootstrapper.is_bulk();
    if is_bulk && link == LinkChoice::Shell {
        return Err(SetupError::NoStreams);
    }
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
    let apps = args.apps().zip(Layout::first_ranks(args));
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
            .map(|(app, first)| program(app, first, &base, &ours))
            .collect::<Result<_, _>>()?,
        env: environment::of_job(&ours),
        map: layout.placement.map.clone(),
        is_movable,
        kvsname: format!("convoke-{:016x}", random()?),
        universe_size: layout.universe_size,
        pmi: args.pmi,
        pmi_port: args.pmi_port,
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
    if output.local || (output.stdout.is_none() && output.stderr.is_none()) {
        return Ok(None);
    }
    let hosts = Hosts::All(config.names.clone());
    let files = OutputFiles::create(Arc::new(config.job.clone()), hosts);
    files.map(Some).map_err(SetupError::Files)
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
