//! Which node gets which tasks: block placement, as users of Hydra and Open MPI expect it.
//!
//! Nodes are filled in order. How many tasks a node takes, and how many there are without `-n`:
//!
//! | given | a node takes | tasks without `-n` |
//! | --- | --- | --- |
//! | `--ppn P` | P, whatever its slots | P for each node |
//! | slots for at least one node | its slots; 1 where none are given | one for each slot |
//! | neither | 1, or its even share of `-n` | one for each node |
//!
//! In the last row nothing says how much room there is, so `-n` is spread evenly over all nodes,
//! the first ones taking one more. Where something does say, more tasks than room is an error:
//! wrapping around would overload nodes in silence.
//!
//! Only nodes that get tasks are members of the session. They are numbered anew, in order.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::task_map::TASKS_MAX;
use crate::{Node, NodeId, TaskMap, TaskMapError};

/// The nodes of a job and the tasks on them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Placement {
    /// The nodes that have tasks; a [`NodeId`] is an index here.
    pub nodes: Vec<Node>,
    /// Their tasks.
    pub map: TaskMap,
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
    /// Places `tasks` tasks (`-n`), `per_node` on a node (`--ppn`), as the module describes.
    pub fn block(
        nodes: &[Node],
        tasks: Option<u32>,
        per_node: Option<u32>,
    ) -> Result<Placement, PlacementError> {
        if nodes.is_empty() {
            return Err(PlacementError::NoNodes);
        }
        for (count, per_node) in [(tasks, false), (per_node, true)] {
            if count == Some(0) {
                return Err(PlacementError::NoTasks { per_node });
            }
        }
        let room = room(nodes, tasks, per_node);
        let slots = room.iter().copied().map(u64::from).sum();
        let tasks = match tasks {
            Some(tasks) if u64::from(tasks) > slots => {
                return Err(PlacementError::TooManyTasks { tasks, slots, nodes: nodes.len() });
            }
            Some(tasks) => tasks,
            None => u32::try_from(slots).map_err(|_| PlacementError::TooLarge(slots))?,
        };
        fill(nodes, &room, tasks)
    }
}

impl PlacementError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PlacementError::TooManyTasks { .. } => {
                Some("`--ppn N`, or `host:N` in the host list or file, changes how many fit")
            }
            PlacementError::NoNodes
            | PlacementError::NoTasks { .. }
            | PlacementError::TooLarge(_) => None,
        }
    }
}

/// How many tasks each node takes.
fn room(nodes: &[Node], tasks: Option<u32>, per_node: Option<u32>) -> Vec<u32> {
    if let Some(per_node) = per_node {
        return nodes.iter().map(|_| per_node).collect();
    }
    if nodes.iter().any(|node| node.slots.is_some()) {
        return nodes.iter().map(|node| node.slots.unwrap_or(1)).collect();
    }
    let count = nodes.len() as u64;
    let tasks = tasks.map_or(count, |tasks| count.max(u64::from(tasks)));
    let share = |index: u64| tasks / count + u64::from(index < tasks % count);
    (0..count).map(|index| u32::try_from(share(index)).unwrap_or(u32::MAX)).collect()
}

/// Fills the nodes in order until all tasks have a place.
fn fill(nodes: &[Node], room: &[u32], tasks: u32) -> Result<Placement, PlacementError> {
    let mut left = tasks;
    let mut used = Vec::new();
    let mut counts = Vec::new();
    for (node, room) in nodes.iter().zip(room) {
        let count = left.min(*room);
        if count > 0 {
            used.push(node.clone());
            counts.push(count);
        }
        left -= count;
    }
    let map = TaskMap::from_counts(counts).map_err(|error| match error {
        TaskMapError::TooLarge | TaskMapError::EmptyRun => PlacementError::TooLarge(tasks.into()),
    })?;
    Ok(Placement { nodes: used, map })
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
