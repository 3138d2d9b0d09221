//! Which task runs on which node, in the compact form of `PMI_process_mapping`.
//!
//! Ranks are walked from 0; each run puts `tasks_per_node` ranks in a row on each of its nodes in
//! turn, and begins again `rounds` times. A block or a cyclic placement of any size is one or two
//! runs; only a layout that is irregular throughout needs one run a node. Every run covers exactly
//! its ranks: clients differ in what they make of a mapping that is too short
//! (`reference/pmi1.md` §8).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::{IdSet, NodeId, Rank};

/// The most tasks of one job: MPI ranks are C integers.
pub const TASKS_MAX: u32 = i32::MAX as u32;

/// The most bytes of a PMI-1 value: clients keep 1,024 with the terminating zero.
const PMI_VALUE_BYTES_MAX: usize = 1023;

/// Consecutive nodes that get equally many tasks in turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TaskRun {
    /// The node that gets the first ranks.
    pub first_node: NodeId,
    /// How many nodes get ranks, at least 1.
    pub node_count: u32,
    /// Ranks in a row on each of them, at least 1.
    pub tasks_per_node: u32,
    /// How often this is repeated, at least 1.
    pub rounds: u32,
}

/// The map of a job's tasks. A node may be in several runs.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<TaskRun>", into = "Vec<TaskRun>")]
pub struct TaskMap {
    runs: Vec<TaskRun>,
    /// The first rank of each run, and after the last one the number of tasks.
    starts: Vec<u32>,
}

/// Runs that make no map.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TaskMapError {
    /// A run without nodes or tasks.
    #[error("a run of the task map is empty")]
    EmptyRun,
    /// More tasks or nodes than there can be.
    #[error("the task map has more than {TASKS_MAX} tasks or nodes")]
    TooLarge,
}

impl TaskMap {
    /// The map without tasks.
    pub const fn new() -> TaskMap {
        TaskMap { runs: Vec::new(), starts: Vec::new() }
    }

    /// The map that gives node 0, 1, … these many tasks. Zero is a node without tasks.
    pub fn from_counts(counts: impl IntoIterator<Item = u32>) -> Result<TaskMap, TaskMapError> {
        let mut map = TaskMap::new();
        for (node, tasks_per_node) in (0..).zip(counts) {
            if tasks_per_node > 0 {
                map.push(TaskRun::block(NodeId(node), tasks_per_node))?;
            }
        }
        Ok(map)
    }

    /// The same map over other nodes: in the place of node 0 the first of these, and so on.
    ///
    /// # Errors
    /// [`TaskMapError::TooLarge`] where there are fewer nodes than the map has.
    pub fn over(&self, nodes: &[NodeId]) -> Result<TaskMap, TaskMapError> {
        let mut map = TaskMap::new();
        for run in &self.runs {
            let first = run.first_node.0 as usize;
            let nodes = nodes.get(first..first + run.node_count as usize);
            let stretches = stretches(nodes.ok_or(TaskMapError::TooLarge)?.iter().copied());
            let whole = stretches.len() == 1;
            for _ in 0..if whole { 1 } else { run.rounds } {
                for &(first_node, node_count) in &stretches {
                    let rounds = if whole { run.rounds } else { 1 };
                    map.push(TaskRun { first_node, node_count, rounds, ..*run })?;
                }
            }
        }
        Ok(map)
    }

    /// Adds the next ranks. A run that continues the last one becomes a part of it.
    pub fn push(&mut self, run: TaskRun) -> Result<(), TaskMapError> {
        if run.node_count == 0 || run.tasks_per_node == 0 || run.rounds == 0 {
            return Err(TaskMapError::EmptyRun);
        }
        let total = run.tasks().and_then(|tasks| tasks.checked_add(self.len()));
        let total = total.filter(|&total| total <= TASKS_MAX && run.end_node().is_some());
        let total = total.ok_or(TaskMapError::TooLarge)?;
        let mut run = run;
        while let Some(joined) = self.runs.last().and_then(|last| last.joined(&run)) {
            self.runs.pop();
            self.starts.pop();
            run = joined;
        }
        if self.runs.is_empty() {
            self.starts = alloc::vec![0];
        }
        self.runs.push(run);
        self.starts.push(total);
        Ok(())
    }

    /// Adds the ranks of another map behind those of this one.
    pub fn append(&mut self, other: &TaskMap) -> Result<(), TaskMapError> {
        other.runs.iter().try_for_each(|run| self.push(*run))
    }

    /// The runs in the order of their ranks.
    pub fn runs(&self) -> &[TaskRun] {
        &self.runs
    }

    /// How many tasks there are.
    pub fn len(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// One more than the largest node that has tasks.
    pub fn node_count(&self) -> u32 {
        self.runs.iter().filter_map(TaskRun::end_node).max().unwrap_or(0)
    }

    /// The ranks on `node`.
    pub fn ranks_on(&self, node: NodeId) -> IdSet {
        let mut ranks = IdSet::new();
        for (first, count) in self.blocks_on(node) {
            ranks.insert_range(first, first + count - 1);
        }
        ranks
    }

    /// How many tasks `node` has.
    pub fn tasks_on(&self, node: NodeId) -> u32 {
        self.blocks_on(node).map(|(_, count)| count).sum()
    }

    /// The node of `rank`, if there is such a task.
    pub fn node_of(&self, rank: Rank) -> Option<NodeId> {
        let index = self.starts.partition_point(|&start| start <= rank.0).checked_sub(1)?;
        let run = self.runs.get(index)?;
        let in_round = (rank.0 - self.starts[index]) % run.tasks_a_round();
        Some(NodeId(run.first_node.0 + in_round / run.tasks_per_node))
    }

    /// The number of `rank` among the tasks of its node, if there is such a task.
    pub fn local_rank(&self, rank: Rank) -> Option<u32> {
        let node = self.node_of(rank)?;
        let before = |(first, count): (u32, u32)| rank.0.saturating_sub(first).min(count);
        Some(self.blocks_on(node).map(before).sum())
    }

    /// The nodes that have tasks.
    pub fn nodes(&self) -> IdSet {
        let mut nodes = IdSet::new();
        for run in &self.runs {
            nodes.insert_range(run.first_node.0, run.first_node.0 + (run.node_count - 1));
        }
        nodes
    }

    /// How many tasks each node has, up to the last one that has any.
    pub fn counts(&self) -> Vec<u32> {
        let mut counts = alloc::vec![0; self.node_count() as usize];
        for run in &self.runs {
            for count in &mut counts[run.first_node.0 as usize..][..run.node_count as usize] {
                *count += run.tasks_per_node * run.rounds;
            }
        }
        counts
    }

    /// The same map with its nodes numbered anew in their order, without those that have no tasks.
    pub fn without_gaps(&self) -> TaskMap {
        let mut numbers = Vec::new();
        let mut next = 0;
        for &(start, end) in self.nodes().ranges() {
            numbers.push((start, next));
            next += end - start + 1;
        }
        let mut map = TaskMap::new();
        for run in &self.runs {
            let range = numbers.partition_point(|&(start, _)| start <= run.first_node.0) - 1;
            let (start, number) = numbers[range];
            let first_node = NodeId(number + (run.first_node.0 - start));
            map.push(TaskRun { first_node, ..*run }).expect("no more tasks and nodes than before");
        }
        map
    }

    /// The value of `PMI_process_mapping`, or `None` if it would not fit a PMI-1 value. Nodes without
    /// tasks are no nodes of the job: the others are numbered without them.
    pub fn process_mapping(&self) -> Option<String> {
        let mut text = String::from("(vector");
        for run in &self.without_gaps().runs {
            let TaskRun { first_node, node_count, tasks_per_node, rounds } = run;
            for _ in 0..*rounds {
                write!(text, ",({},{node_count},{tasks_per_node})", first_node.0).ok()?;
                if text.len() >= PMI_VALUE_BYTES_MAX {
                    return None;
                }
            }
        }
        text.push(')');
        Some(text)
    }

    /// First rank and number of ranks of each block of ranks that `node` has.
    fn blocks_on(&self, node: NodeId) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.runs.iter().zip(&self.starts).flat_map(move |(run, start)| {
            let offset = node.0.checked_sub(run.first_node.0);
            let offset = offset.filter(|&offset| offset < run.node_count);
            let first = start + offset.unwrap_or(0) * run.tasks_per_node;
            let rounds = if offset.is_some() { run.rounds } else { 0 };
            (0..rounds).map(move |round| (first + round * run.tasks_a_round(), run.tasks_per_node))
        })
    }
}

/// Nodes without gaps between them: the first, and how many.
pub(crate) fn stretches(nodes: impl IntoIterator<Item = NodeId>) -> Vec<(NodeId, u32)> {
    let mut stretches: Vec<(NodeId, u32)> = Vec::new();
    for node in nodes {
        match stretches.last_mut() {
            Some((first, count)) if first.0 + *count == node.0 => *count += 1,
            Some(_) | None => stretches.push((node, 1)),
        }
    }
    stretches
}

impl TaskRun {
    /// `tasks` ranks in a row on one node.
    pub const fn block(node: NodeId, tasks: u32) -> TaskRun {
        TaskRun { first_node: node, node_count: 1, tasks_per_node: tasks, rounds: 1 }
    }

    fn tasks(&self) -> Option<u32> {
        let round = self.node_count.checked_mul(self.tasks_per_node)?;
        round.checked_mul(self.rounds)
    }

    fn tasks_a_round(&self) -> u32 {
        self.node_count * self.tasks_per_node
    }

    fn end_node(&self) -> Option<u32> {
        self.first_node.0.checked_add(self.node_count)
    }

    /// Both as one run, if they are: more rounds, more nodes, or more ranks in a row on one node.
    fn joined(&self, next: &TaskRun) -> Option<TaskRun> {
        let same_tasks = self.tasks_per_node == next.tasks_per_node;
        let same_nodes = (self.first_node, self.node_count) == (next.first_node, next.node_count);
        let one_node = self.node_count == 1 && self.rounds == 1 && next.rounds == 1;
        if same_nodes && one_node {
            let tasks_per_node = self.tasks_per_node + next.tasks_per_node;
            return Some(TaskRun { tasks_per_node, ..*self });
        }
        if same_nodes && same_tasks {
            return Some(TaskRun { rounds: self.rounds + next.rounds, ..*self });
        }
        let continues = self.end_node() == Some(next.first_node.0);
        let one_round = self.rounds == 1 && next.rounds == 1;
        (same_tasks && continues && one_round)
            .then(|| TaskRun { node_count: self.node_count + next.node_count, ..*self })
    }
}

impl TryFrom<Vec<TaskRun>> for TaskMap {
    type Error = TaskMapError;

    fn try_from(runs: Vec<TaskRun>) -> Result<TaskMap, TaskMapError> {
        let mut map = TaskMap::new();
        runs.into_iter().try_for_each(|run| map.push(run))?;
        Ok(map)
    }
}

impl From<TaskMap> for Vec<TaskRun> {
    fn from(map: TaskMap) -> Vec<TaskRun> {
        map.runs
    }
}
