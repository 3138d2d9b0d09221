//! Which hosts a job has, which task runs on which of them, and what is refused before anything starts.
//!
//! Programs share the job's hosts, or each has its own: then each is placed as if it were alone, and
//! their hosts together are the session's.

use std::collections::BTreeSet;

use alloc::{AllocError, Allocation, Source};
use engine::LATE_MAX;
use model::rankfile::RankFile;
use model::{HostList, Muster, Node, Placement, PlacementError, Rank, Request, Slots};

use crate::args::{AppArgs, By, LauncherName, OnMissing, RunArgs};
use crate::setup::SetupError;

/// Where everything would run: the nodes that are used, and what to tell of the host file.
pub(crate) struct Layout {
    pub(crate) placement: Placement,
    /// Nodes without tasks, for jobs that tasks start.
    pub(crate) idle: Vec<Node>,
    /// Those that are brought up once such a job needs them.
    pub(crate) later: Vec<Node>,
    /// Those that are not, where they could be.
    pub(crate) unused: Vec<Node>,
    /// Nodes without tasks, for whom of the others does not come up.
    pub(crate) spares: Vec<Node>,
    /// The first rank of each of the job's programs.
    pub(crate) first_ranks: Vec<Rank>,
    pub(crate) warnings: Vec<String>,
    nodes_min: Option<u32>,
    request: Request,
}

impl Layout {
    /// Places the tasks.
    pub(crate) fn of(args: &RunArgs) -> Result<Layout, SetupError> {
        if let Some((app, _)) = numbered_apps(args).find(|(_, app)| app.tasks == Some(0)) {
            let problem = PlacementError::NoTasks { per_node: false };
            return Err(SetupError::Placement(problem).in_app(args, app));
        }
        if args.app.hosts.is_some() { Layout::apart(args) } else { Layout::together(args) }
    }

    /// All programs on the job's hosts.
    fn together(args: &RunArgs) -> Result<Layout, SetupError> {
        let ranks = args.rankfile.as_deref().map(alloc::rank_file).transpose();
        let ranks = ranks.map_err(SetupError::Alloc)?;
        let mut allocation = allocation(args, ranks.as_ref()).map_err(SetupError::Alloc)?;
        let spares = take_spares(args.spares, &mut allocation.nodes)?;
        let first_ranks = first_ranks(args.apps().map(tasks_of));
        let request =
            Request { programs_from: first_ranks[1..].to_vec(), ..request(args, tasks(args)?) };
        let placement = match &ranks {
            Some(ranks) => by_rank_file(args, &request, ranks, &allocation)?,
            None => by_options(args, &request, &allocation)?,
        };
        let nodes_min = nodes_min(args, count(&placement.nodes))?;
        must_stay(args, nodes_min.is_some() || !spares.is_empty())?;
        let [idle, later, unused] = without_tasks(args, &placement, allocation.nodes);
        Ok(Layout {
            idle,
            later,
            unused,
            placement,
            spares,
            first_ranks,
            warnings: allocation.warnings,
            nodes_min,
            request,
        })
    }

    /// Each program on its own hosts.
    fn apart(args: &RunArgs) -> Result<Layout, SetupError> {
        let job_wide = [
            (args.rankfile.is_some(), "--rankfile"),
            (args.rankmap.is_some(), "--rankmap"),
            (args.on_missing == OnMissing::Continue, "--on-missing continue"),
            (args.min_nodes.is_some(), "--min-nodes"),
            (args.spares > 0, "--spares"),
        ];
        if let Some((_, option)) = job_wide.into_iter().find(|&(is_given, _)| is_given) {
            return Err(SetupError::OwnHosts(option));
        }
        let (allocations, warnings) = own_allocations(args)?;
        let apps = numbered_apps(args).zip(&allocations);
        let place = |((app, program), allocation): ((u32, &AppArgs), &Allocation)| {
            let placement = allocation.place(&request(args, program.tasks));
            placement.map_err(|error| SetupError::Placement(error).in_app(args, app))
        };
        let programs = apps.map(place).collect::<Result<Vec<_>, _>>()?;
        let placement = Placement::joined(&programs).map_err(SetupError::Placement)?;
        let nodes = allocations.into_iter().flat_map(|allocation| allocation.nodes);
        let [idle, later, unused] = without_tasks(args, &placement, nodes);
        Ok(Layout {
            first_ranks: first_ranks(programs.iter().map(|program| program.map.len())),
            request: request(args, Some(placement.map.len())),
            idle,
            later,
            unused,
            placement,
            spares: Vec::new(),
            warnings,
            nodes_min: None,
        })
    }

    /// The host names of the nodes, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.nodes().map(|node| node.name.clone()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.placement.nodes.iter().chain(&self.idle).chain(&self.spares)
    }

    /// The slots of all nodes that may have tasks, where each has some.
    pub(crate) fn universe_size(&self) -> Option<u32> {
        let nodes = self.placement.nodes.iter().chain(&self.idle).chain(&self.later);
        nodes.map(|node| node.slots).sum()
    }

    /// Which of the nodes the job needs.
    pub(crate) fn muster(&self) -> Muster {
        Muster {
            slots: self.nodes().map(Slots::from).collect(),
            spares: count(&self.spares),
            nodes_min: self.nodes_min,
            request: self.request.clone(),
        }
    }
}

/// How many hosts may get an agent while the session runs: none where a routing tree is made of the members that it
/// begins with, or where one command starts many agents and knows no single one.
fn later_max(args: &RunArgs) -> usize {
    let may_grow = args.route.0.is_none() && args.launcher != Some(LauncherName::LocalBulk);
    if may_grow { LATE_MAX } else { 0 }
}

/// The nodes without tasks: those that are brought up nevertheless, those that are once they are needed, and those that
/// are not.
fn without_tasks(
    args: &RunArgs,
    placement: &Placement,
    nodes: impl IntoIterator<Item = Node>,
) -> [Vec<Node>; 3] {
    let used = placement.nodes.iter().map(|node| node.name.clone());
    let mut known: BTreeSet<String> = used.collect();
    let others = nodes.into_iter().filter(|node| known.insert(node.name.clone()));
    let mut others: Vec<Node> = others.collect();
    match (args.all_hosts, args.on_missing, args.spares) {
        (true, ..) => [others, Vec::new(), Vec::new()],
        (false, OnMissing::Abort, 0) => {
            let unused = others.split_off(later_max(args).min(others.len()));
            [Vec::new(), others, unused]
        }
        (false, ..) => Default::default(), // the option is no way out
    }
}

/// The hosts of each program, without those that are left out, and what to tell of that.
fn own_allocations(args: &RunArgs) -> Result<(Vec<Allocation>, Vec<String>), SetupError> {
    let file = args.hostfile.as_deref();
    let allocate = |(app, program): (u32, &AppArgs)| {
        let allocation = alloc::allocate(program.hosts.as_deref(), file);
        allocation.map_err(|error| SetupError::Alloc(error).in_app(args, app))
    };
    let mut programs = numbered_apps(args).map(allocate).collect::<Result<Vec<_>, _>>()?;
    let Some(list) = &args.exclude else { return Ok((programs, Vec::new())) };
    let all: HostList = programs.iter().flat_map(|program| &program.nodes).cloned().collect();
    let all = Allocation { nodes: all.into_nodes(), source: Source::Hosts, warnings: Vec::new() };
    let left = all.exclude(list).map_err(SetupError::Alloc)?;
    let names: BTreeSet<&str> = left.nodes.iter().map(|node| node.name.as_str()).collect();
    for (app, program) in (0..).zip(&mut programs) {
        program.nodes.retain(|node| names.contains(node.name.as_str()));
        if program.nodes.is_empty() {
            let error = AllocError::AllExcluded(list.clone());
            return Err(SetupError::Alloc(error).in_app(args, app));
        }
    }
    Ok((programs, left.warnings))
}

fn numbered_apps(args: &RunArgs) -> impl Iterator<Item = (u32, &AppArgs)> {
    (0..).zip(args.apps())
}

/// Where each of the programs begins that have so many tasks.
fn first_ranks(counts: impl Iterator<Item = u32>) -> Vec<Rank> {
    let starts = counts.scan(0_u32, |next, tasks| {
        let first = *next;
        *next = next.saturating_add(tasks);
        Some(Rank(first))
    });
    starts.collect()
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

/// The hosts of the whole job.
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

/// What the user asks of the placement of so many tasks.
fn request(args: &RunArgs, tasks: Option<u32>) -> Request {
    Request {
        tasks,
        programs_from: Vec::new(),
        per_node: args.ppn,
        order: args.map_by.order(),
        ranking: args.rank_by.map(By::order),
        oversubscribe: args.oversubscribe,
    }
}

fn by_rank_file(
    args: &RunArgs,
    request: &Request,
    ranks: &RankFile,
    allocation: &Allocation,
) -> Result<Placement, SetupError> {
    let path = args.rankfile.clone().unwrap_or_default();
    let source = format!("rank file `{}`", path.display());
    agree(request, u32::try_from(ranks.len()).unwrap_or(u32::MAX), source)?;
    let placement = ranks.place(&allocation.nodes, args.oversubscribe);
    placement.map_err(|source| SetupError::Alloc(AllocError::RankFile { path, source }))
}

fn by_options(
    args: &RunArgs,
    request: &Request,
    allocation: &Allocation,
) -> Result<Placement, SetupError> {
    let Some(ranks) = &args.rankmap else {
        return allocation.place(request).map_err(SetupError::Placement);
    };
    agree(request, ranks.tasks(), "`--rankmap`".into())?;
    allocation.place_ranks(ranks, args.oversubscribe).map_err(SetupError::RankMap)
}

/// What says where each rank goes says how many there are; `-n` must say the same or nothing.
fn agree(request: &Request, placed: u32, source_name: String) -> Result<(), SetupError> {
    match request.tasks {
        Some(tasks) if tasks != placed => {
            Err(SetupError::OtherRanks { source_name, placed, tasks })
        }
        Some(_) | None => Ok(()),
    }
}

/// How many tasks there are to be, where that does not follow from the hosts.
fn tasks(args: &RunArgs) -> Result<Option<u32>, SetupError> {
    if args.more_apps.is_empty() {
        return Ok(args.app.tasks);
    }
    let all: u64 = args.apps().map(|app| u64::from(tasks_of(app))).sum();
    let all = u32::try_from(all).map_err(|_| PlacementError::TooLarge(all));
    all.map(Some).map_err(SetupError::Placement)
}

/// The tasks of one of several programs on the same hosts.
fn tasks_of(app: &AppArgs) -> u32 {
    app.tasks.unwrap_or(1)
}
