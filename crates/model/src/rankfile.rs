//! Rank files in Open MPI's grammar: `rank 0=host slot=1`, one rank a line, `#` comments.
//!
//! A slot here is one of the host's, from 0: no two ranks may have the same one. Open MPI's lists of
//! sockets and cores, `slot=0:1` or `slot=0-3`, bind a task; that is refused, not ignored.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::host_list::{HostListError, HostOptions, HostProblem};
use crate::task_map::TASKS_MAX;
use crate::tokens::tokens;
use crate::{HostList, HostName, Node, NodeId, Placement, TaskMap, TaskRun};

/// A rank file that was read: every rank from 0 has its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RankFile {
    places: Vec<Place>,
    hosts: Vec<Node>,
}

/// Where a rank goes.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Place {
    host: String,
    slot: Option<u32>,
    line: usize,
}

/// A rank file that cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RankFileError {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: RankProblem,
}

/// What can be wrong with a line of a rank file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RankProblem {
    /// Another form.
    #[error("`{0}` is not of the form `rank N=HOST` or `rank N=HOST slot=K`")]
    Form(String),
    /// No rank.
    #[error("`{0}` is not a rank from 0 to {max}", max = TASKS_MAX - 1)]
    Rank(String),
    /// No host.
    #[error("host `{0}`: {1}")]
    Host(String, HostProblem),
    /// Several hosts, or their slots.
    #[error("`{0}` is not the name of one host")]
    Hosts(String),
    /// Sockets, cores, or nothing known.
    #[error(
        "`slot={0}` binds a task to cores, which is not done; `slot=K` is one of the host's slots, from 0"
    )]
    Binding(String),
    /// A rank with two places.
    #[error("rank {0} has its place already, in line {1}")]
    RankTwice(u32, usize),
    /// A rank without a place, before one that has one.
    #[error("rank {0} is given a place, and rank {1} has none in any line")]
    Gap(u32, u32),
    /// A host that was not given.
    #[error("`{0}` is not among the hosts")]
    Unknown(String),
    /// A slot that the host does not have.
    #[error("`{0}` has {1} slots, from 0: there is no slot {2}")]
    NoSlot(String, u32, u32),
    /// A slot with two ranks.
    #[error("slot {1} of `{0}` has rank {2} already, in line {3}; `--oversubscribe` allows that")]
    SlotTwice(String, u32, usize, usize),
    /// More ranks than slots.
    #[error(
        "`{0}` has {1} slots, and the lines before have filled them; `--oversubscribe` allows more"
    )]
    Full(String, u32),
}

/// Reads the text of a rank file.
///
/// # Errors
/// The first line that cannot be understood, or a rank that has no line or two.
pub fn parse(text: &str) -> Result<RankFile, RankFileError> {
    let mut places = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, content) in (1..).zip(text.lines()) {
        let fail = |problem| RankFileError { line, problem };
        let Some((rank, host, slot)) = parse_line(content).map_err(fail)? else { continue };
        let place = Place { host: host_name(host).map_err(fail)?, slot, line };
        if let Some(known) = places.insert(rank, place) {
            return Err(fail(RankProblem::RankTwice(rank, known.line)));
        }
    }
    for ((&rank, place), expected) in places.iter().zip(0..) {
        if rank != expected {
            let problem = RankProblem::Gap(rank, expected);
            return Err(RankFileError { line: place.line, problem });
        }
    }
    let places: Vec<Place> = places.into_values().collect();
    Ok(RankFile { hosts: hosts(&places), places })
}

impl RankFile {
    /// How many ranks it has.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Its hosts, in the order of their first ranks, where no others say which there are.
    pub fn hosts(&self) -> &[Node] {
        &self.hosts
    }

    /// Places the ranks on `nodes`; those that get none are left out.
    ///
    /// # Errors
    /// The line of the first rank, in their order, that cannot go where it is to go.
    pub fn place(&self, nodes: &[Node], oversubscribe: bool) -> Result<Placement, RankFileError> {
        let index_of = indices(nodes);
        let mut room = Room::default();
        let mut map = TaskMap::new();
        for (rank, place) in self.places.iter().enumerate() {
            let fail = |problem| RankFileError { line: place.line, problem };
            let index = index_of.get(place.host.as_str()).copied().flatten();
            let index = index.ok_or_else(|| fail(RankProblem::Unknown(place.host.clone())))?;
            room.take(index, &nodes[index], rank, place, oversubscribe).map_err(fail)?;
            let node = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            map.push(TaskRun::block(node, 1)).expect("no more ranks than there can be");
        }
        Ok(Placement::on(nodes, &map))
    }
}

/// What is taken of the nodes.
#[derive(Default)]
struct Room {
    /// By node and slot: the rank and its line.
    slots: BTreeMap<(usize, u32), (usize, usize)>,
    /// By node: how many ranks.
    counts: BTreeMap<usize, u32>,
}

impl Room {
    fn take(
        &mut self,
        index: usize,
        node: &Node,
        rank: usize,
        place: &Place,
        oversubscribe: bool,
    ) -> Result<(), RankProblem> {
        let name = || place.host.clone();
        if let (Some(slot), Some(slots)) = (place.slot, node.slots)
            && slot >= slots
        {
            return Err(RankProblem::NoSlot(name(), slots, slot));
        }
        let taken = place.slot.and_then(|slot| {
            let before = self.slots.insert((index, slot), (rank, place.line));
            before.map(|(rank, line)| RankProblem::SlotTwice(name(), slot, rank, line))
        });
        if let Some(problem) = taken.filter(|_| !oversubscribe) {
            return Err(problem);
        }
        let limit = if oversubscribe { node.slots_max } else { node.slots };
        let count = self.counts.entry(index).or_default();
        *count += 1;
        match limit {
            Some(limit) if *count > limit => Err(RankProblem::Full(name(), limit)),
            Some(_) | None => Ok(()),
        }
    }
}

/// A rank, its host's text, and its slot.
type Line<'a> = (u32, &'a str, Option<u32>);

/// `rank N=HOST`, and perhaps `slot=K`. `None` where there is nothing.
fn parse_line(content: &str) -> Result<Option<Line<'_>>, RankProblem> {
    let words: Vec<&str> = tokens(content).collect();
    let (rank, host, slot) = match words.as_slice() {
        [] => return Ok(None),
        ["rank", rank, "=", host] => (rank, host, None),
        ["rank", rank, "=", host, "slot" | "slots", "=", slot] => (rank, host, Some(*slot)),
        _ => return Err(RankProblem::Form(content.trim().to_string())),
    };
    let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
    let rank = number(rank).filter(|&rank| rank < TASKS_MAX);
    let rank = rank.ok_or_else(|| RankProblem::Rank(words[1].to_string()))?;
    let binding = |slot: &str| RankProblem::Binding(slot.to_string());
    let slot = slot.map(|slot| number(slot).ok_or_else(|| binding(slot))).transpose()?;
    Ok(Some((rank, host, slot)))
}

/// The name of one host, as host lists have it.
fn host_name(text: &str) -> Result<String, RankProblem> {
    let mut list = HostList::new();
    let wrong = |error: HostListError| RankProblem::Host(text.to_string(), error.problem);
    list.add_text(text, &HostOptions::default()).map_err(wrong)?;
    match list.nodes() {
        [Node { name, slots: None, .. }] => Ok(name.clone()),
        _ => Err(RankProblem::Hosts(text.to_string())),
    }
}

/// The hosts, each once.
fn hosts(places: &[Place]) -> Vec<Node> {
    let mut known = BTreeSet::new();
    let names = places.iter().map(|place| &place.host).filter(|host| known.insert(*host));
    names.map(|name| Node { name: name.clone(), slots: None, slots_max: None }).collect()
}

/// The nodes by their whole names, and by their hosts' where only one is called so.
fn indices(nodes: &[Node]) -> BTreeMap<&str, Option<usize>> {
    let mut indices = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let bare = HostName::of(&node.name).host;
        indices.entry(bare).and_modify(|known| *known = None).or_insert(Some(index));
    }
    let whole = nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), Some(index)));
    indices.extend(whole);
    indices
}
