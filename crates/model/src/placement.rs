//! Which node gets which tasks: in blocks or in turn, as users of Hydra and Open MPI expect it.
//!
//! How many tasks a node takes before it is full, and how many there are without `-n`:
//!
//! | given | a node takes | tasks without `-n` |
//! | --- | --- | --- |
//! | `--ppn P` | P, whatever its slots | P for each node |
//! | slots for at least one node | its slots; 1 where none are given | one for each slot |
//! | neither | 1, or its even share of `-n` | one for each node |
//!
//! By slot, nodes are filled in order. By node (cyclic, S2-25), each that is not full gets one task
//! in turn. In the last row nothing says how much room there is, so `-n` is spread evenly over all
//! nodes, the first ones taking one more. Where something does say, more tasks than room is an error:
//! wrapping around would overload nodes in silence. Who oversubscribes wants that: when all nodes
//! are full they are filled again, as far as each one's `slots_max` lets them.
//!
//! Ranks follow the order in which tasks are placed, unless one of their own is asked for
//! (`--rank-by`): then the tasks stay where they are, and are counted node after node, or in turn.
//! Of several programs each is placed, and ranked, by itself, in the room that those before it have
//! left, as Open MPI does it.
//!
//! Only nodes that get tasks are members of the session. They are numbered anew, in order.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::task_map::{TASKS_MAX, stretches};
use crate::{HostList, Node, NodeId, Rank, TaskMap, TaskMapError, TaskRun};

/// The nodes of a job and the tasks on them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Placement {
    /// The nodes that have tasks; a [`NodeId`] is an index here.
    pub nodes: Vec<Node>,
    /// Their tasks.
    pub map: TaskMap,
}

/// The room for tasks on a node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Slots {
    /// How many, where something says it.
    pub given: Option<u32>,
    /// The most tasks that it takes when it is oversubscribed; at least its slots.
    pub max: Option<u32>,
}

/// What is asked of a placement.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Request {
    /// `-n`: how many tasks.
    pub tasks: Option<u32>,
    /// The first rank of each program but the first, ascending; then `tasks` is known.
    pub programs_from: Vec<Rank>,
    /// `--ppn`: how many a node takes, whatever its slots.
    pub per_node: Option<u32>,
    /// `--map-by`: where the next task goes.
    pub order: Order,
    /// `--rank-by`: which of the placed tasks gets the next rank; `None`: the one placed next.
    pub ranking: Option<Order>,
    /// `--oversubscribe`: whether nodes that are full take more.
    pub oversubscribe: bool,
}

/// In which order nodes get tasks, or tasks get ranks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// The same node, until it is full: consecutive ranks share a node.
    #[default]
    Slots,
    /// The next node that is not full: consecutive ranks are on different nodes.
    Nodes,
}

/// A job that cannot be placed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PlacementError {
    /// The allocation is empty.
    #[error("there are no nodes to run on")]
    NoNodes,
    /// `-n 0` or `--ppn 0`.
    #[error("the number of tasks{} must be at least 1", if *.per_node { " per node" } else { "" })]
    NoTasks {
        /// Whether it is the number per node.
        per_node: bool,
    },
    /// More tasks than room.
    #[error("{tasks} tasks do not fit into {slots} slots on {nodes} {}", node_word(*.nodes))]
    TooManyTasks {
        /// How many were asked for.
        tasks: u32,
        /// How many there is room for.
        slots: u64,
        /// On how many nodes.
        nodes: usize,
    },
    /// More tasks than a job can have.
    #[error("{0} tasks are more than the {TASKS_MAX} that a job can have")]
    TooLarge(u64),
}

impl Placement {
    /// Places the tasks as the module describes.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn of(nodes: &[Node], request: &Request) -> Result<Placement, PlacementError> {
        let slots: Vec<Slots> = nodes.iter().map(Slots::from).collect();
        Ok(Placement::on(nodes, &place(&slots, request)?))
    }

    /// The placement of `map`, whose [`NodeId`]s are indices of `nodes`: those without tasks are left
    /// out.
    pub(crate) fn on(nodes: &[Node], map: &TaskMap) -> Placement {
        let used = map.nodes();
        let nodes = used.iter().map(|node| nodes[node as usize].clone()).collect();
        Placement { nodes, map: map.without_gaps() }
    }

    /// Programs that were placed each on hosts of its own, as one job: ranks follow each other, and a
    /// node of several programs is one, with the slots of all.
    ///
    /// # Errors
    /// [`PlacementError::TooLarge`]
    pub fn joined(programs: &[Placement]) -> Result<Placement, PlacementError> {
        let hosts: HostList = programs.iter().flat_map(|it| &it.nodes).cloned().collect();
        let ids: BTreeMap<&str, NodeId> =
            hosts.nodes().iter().map(|node| node.name.as_str()).zip((0..).map(NodeId)).collect();
        let mut map = TaskMap::new();
        for program in programs {
            let nodes: Vec<NodeId> =
                program.nodes.iter().map(|node| ids[node.name.as_str()]).collect();
            let tasks = program.map.over(&nodes).and_then(|program| map.append(&program));
            let all = || programs.iter().map(|it| u64::from(it.map.len())).sum();
            tasks.map_err(|_| PlacementError::TooLarge(all()))?;
        }
        Ok(Placement { nodes: hosts.into_nodes(), map })
    }
}

impl Order {
    /// The same tasks on the same nodes, counted in this order.
    ///
    /// # Errors
    /// [`TaskMapError::TooLarge`], which no map that exists is.
    pub fn ranked(self, map: &TaskMap) -> Result<TaskMap, TaskMapError> {
        fill(self, &map.counts(), map.len())
    }
}

impl Slots {
    /// So many slots.
    pub fn of(slots: u32) -> Slots {
        Slots { given: Some(slots), max: None }
    }
}

impl From<&Node> for Slots {
    fn from(node: &Node) -> Slots {
        Slots { given: node.slots, max: node.slots_max }
    }
}

impl Request {
    /// How many tasks there are, when each node takes so many before it is full.
    fn count(&self, nodes: &[Slots], room: &[u32]) -> Result<u32, PlacementError> {
        let slots: u64 = room.iter().copied().map(u64::from).sum();
        let Some(tasks) = self.tasks else {
            return u32::try_from(slots).map_err(|_| PlacementError::TooLarge(slots));
        };
        let limits = nodes.iter().map(|node| self.limit(node).map(u64::from));
        match if self.oversubscribe { limits.sum() } else { Some(slots) } {
            Some(slots) if u64::from(tasks) > slots => {
                Err(PlacementError::TooManyTasks { tasks, slots, nodes: nodes.len() })
            }
            Some(_) | None => Ok(tasks),
        }
    }

    /// How many tasks `node` takes however often it is filled.
    fn limit(&self, node: &Slots) -> Option<u32> {
        node.max.filter(|_| self.per_node.is_none())
    }

    /// How many of so many tasks each program has.
    fn programs(&self, tasks: u32) -> impl Iterator<Item = u32> + '_ {
        let ends = self.programs_from.iter().map(move |rank| rank.0.min(tasks)).chain([tasks]);
        ends.scan(0, |start, end| Some(end.saturating_sub(core::mem::replace(start, end))))
    }
}

impl PlacementError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PlacementError::TooManyTasks { .. } => Some(
                "`host:N` in the host list or file, or `--ppn N`, says how many fit; `--oversubscribe` runs more",
            ),
            PlacementError::NoNodes
            | PlacementError::NoTasks { .. }
            | PlacementError::TooLarge(_) => None,
        }
    }
}

/// Which task runs on which of `nodes`, whose indices are the map's [`NodeId`]s. The nodes that get
/// tasks are the first ones.
///
/// # Errors
/// See [`PlacementError`].
pub fn place(nodes: &[Slots], request: &Request) -> Result<TaskMap, PlacementError> {
    let room = room(nodes, request)?;
    let tasks = request.count(nodes, &room)?;
    let mut used = alloc::vec![0; nodes.len()];
    let mut free = room.clone();
    let mut map = TaskMap::new();
    let too_large = |_| PlacementError::TooLarge(tasks.into());
    for tasks in request.programs(tasks) {
        let mut program = TaskMap::new();
        while program.len() < tasks {
            if free.iter().all(|free| *free == 0) {
                let more = |(index, node)| {
                    let more = request.limit(node).map(|limit| limit.saturating_sub(used[index]));
                    more.unwrap_or(room[index]).min(room[index])
                };
                free = nodes.iter().enumerate().map(more).collect();
            }
            let filled = fill(request.order, &free, tasks - program.len()).map_err(too_large)?;
            for ((used, free), count) in used.iter_mut().zip(&mut free).zip(filled.counts()) {
                *used += count;
                *free -= count;
            }
            program.append(&filled).map_err(too_large)?;
        }
        let ranked = match request.ranking {
            Some(order) => order.ranked(&program).map_err(too_large)?,
            None => program,
        };
        map.append(&ranked).map_err(too_large)?;
    }
    Ok(map)
}

/// Fills nodes that have so much room, in order or in turn, with up to `tasks` tasks.
fn fill(order: Order, room: &[u32], tasks: u32) -> Result<TaskMap, TaskMapError> {
    match order {
        Order::Slots => fill_slots(room, tasks),
        Order::Nodes => fill_nodes(room, tasks),
    }
}

/// How many tasks each node takes before it is full.
fn room(nodes: &[Slots], request: &Request) -> Result<Vec<u32>, PlacementError> {
    let Request { tasks, per_node, .. } = *request;
    if nodes.is_empty() {
        return Err(PlacementError::NoNodes);
    }
    for (count, per_node) in [(tasks, false), (per_node, true)] {
        if count == Some(0) {
            return Err(PlacementError::NoTasks { per_node });
        }
    }
    if let Some(per_node) = per_node {
        return Ok(nodes.iter().map(|_| per_node).collect());
    }
    if nodes.iter().any(|node| node.given.is_some()) {
        return Ok(nodes.iter().map(|node| node.given.unwrap_or(1)).collect());
    }
    let count = nodes.len() as u64;
    let tasks = tasks.map_or(count, |tasks| count.max(u64::from(tasks)));
    let share = |index: u64| tasks / count + u64::from(index < tasks % count);
    Ok((0..count).map(|index| u32::try_from(share(index)).unwrap_or(u32::MAX)).collect())
}

fn fill_slots(room: &[u32], mut left: u32) -> Result<TaskMap, TaskMapError> {
    let mut map = TaskMap::new();
    for (node, room) in (0..).map(NodeId).zip(room) {
        let tasks = left.min(*room);
        if tasks > 0 {
            map.push(TaskRun::block(node, tasks))?;
        }
        left -= tasks;
    }
    Ok(map)
}

/// One task for each node that is not full, in turn.
fn fill_nodes(room: &[u32], mut left: u32) -> Result<TaskMap, TaskMapError> {
    let mut map = TaskMap::new();
    let mut open: Vec<(u32, u32)> = (0..).zip(room.iter().copied()).collect();
    let mut level = 0;
    loop {
        open.retain(|&(_, room)| room > level);
        let Some(next) = open.iter().map(|&(_, room)| room).min() else { return Ok(map) };
        let stretches = stretches(open.iter().map(|&(node, _)| NodeId(node)));
        let a_round = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let rounds = (next - level).min(left / a_round);
        match stretches.as_slice() {
            [_] if rounds == 0 => {}
            [(first, count)] => map.push(round(*first, *count, rounds))?,
            many => {
                let one_by_one = (0..rounds).flat_map(|_| many);
                one_by_one.into_iter().try_for_each(|(first, n)| map.push(round(*first, *n, 1)))?;
            }
        }
        left -= rounds * a_round;
        level += rounds;
        if level < next {
            fill_in_part(&mut map, &stretches, left)?;
            return Ok(map);
        }
    }
}

/// The last round, which does not reach all nodes.
fn fill_in_part(
    map: &mut TaskMap,
    stretches: &[(NodeId, u32)],
    mut left: u32,
) -> Result<(), TaskMapError> {
    for (first, count) in stretches {
        let count = left.min(*count);
        if count > 0 {
            map.push(round(*first, count, 1))?;
        }
        left -= count;
    }
    Ok(())
}

fn round(first_node: NodeId, node_count: u32, rounds: u32) -> TaskRun {
    TaskRun { first_node, node_count, tasks_per_node: 1, rounds }
}

fn node_word(nodes: usize) -> &'static str {
    if nodes == 1 { "node" } else { "nodes" }
}

impl fmt::Display for Placement {
    /// Writes the table of `--show-map`: a heading and one line for each node.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 3]> =
            (0..).zip(&self.nodes).map(|(id, node)| self.row(id, node)).collect();
        let width = |column: usize, heading: &str| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(heading.len())
        };
        let (name_width, slots_width) = (width(0, "node"), width(1, "slots"));
        writeln!(f, "{:name_width$}  {:>slots_width$}  ranks", "node", "slots")?;
        for [name, slots, ranks] in &rows {
            writeln!(f, "{name:name_width$}  {slots:>slots_width$}  {ranks}")?;
        }
        Ok(())
    }
}

impl Placement {
    fn row(&self, id: u32, node: &Node) -> [String; 3] {
        let slots = node.slots.map_or_else(|| "-".into(), |slots| format!("{slots}"));
        [node.name.clone(), slots, format!("{}", self.map.ranks_on(NodeId(id)))]
    }
}
