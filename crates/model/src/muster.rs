//! Which nodes a job runs on when some of those that were meant for it are missing.
//!
//! Nodes are in the order of the host list, and the last of them may be spares. With all nodes but spares
//! there, the job runs as it was planned. Else its tasks are placed anew, over the first nodes that are
//! there, as many as the job was planned for; more of them only where its tasks need more slots, and
//! fewer only where the user lets a job run with fewer. Nodes keep their numbers.

use alloc::vec::Vec;

use crate::{IdSet, NodeId, PlacementError, Request, Slots, TaskMap, place};

/// What a job needs of its nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Muster {
    /// The room on each node.
    pub slots: Vec<Slots>,
    /// How many of the last nodes are spares.
    pub spares: u32,
    /// With fewer nodes the job does not run; `None`: with as many as it was planned for.
    pub nodes_min: Option<u32>,
    /// What is asked of the placement.
    pub request: Request,
}

impl Muster {
    /// All of so many nodes, none of them a spare, and without any the job does not run.
    pub fn strict(nodes: u32) -> Muster {
        let slots = (0..nodes).map(|_| Slots::default()).collect();
        Muster { slots, ..Muster::default() }
    }

    /// How many nodes the job was planned for: the first ones.
    pub fn planned(&self) -> u32 {
        let nodes = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        nodes.saturating_sub(self.spares)
    }

    /// With fewer nodes the job does not run.
    pub fn nodes_min(&self) -> u32 {
        self.nodes_min.unwrap_or(self.planned())
    }

    /// Whether the job may run elsewhere than was planned.
    pub fn is_movable(&self) -> bool {
        self.spares > 0 || self.nodes_min.is_some()
    }

    /// Places the tasks on nodes of those that are there.
    pub fn place(&self, there: &IdSet) -> Result<TaskMap, PlacementError> {
        let nodes: Vec<NodeId> = there.iter().map(NodeId).collect();
        let planned = usize::try_from(self.planned()).unwrap_or(usize::MAX).min(nodes.len());
        let mut placed = self.place_on(&nodes[..planned]);
        for more in planned + 1..=nodes.len() {
            if !matches!(placed, Err(PlacementError::TooManyTasks { .. })) {
                break;
            }
            placed = self.place_on(&nodes[..more]);
        }
        placed
    }

    fn place_on(&self, nodes: &[NodeId]) -> Result<TaskMap, PlacementError> {
        let slots = |node: &NodeId| self.slots.get(node.0 as usize).copied().unwrap_or_default();
        let slots: Vec<Slots> = nodes.iter().map(slots).collect();
        let map = place(&slots, &self.request)?;
        map.over(nodes).map_err(|_| PlacementError::TooLarge(map.len().into()))
    }
}
