//! Rank maps in Hydra's grammar: the hosts of all ranks by their numbers, in one line.
//!
//! ```text
//! map     = "(" "vector" "," blocks ")" | blocks
//! blocks  = item *("," item)
//! item    = block | "[" block *("," block) "]x" TIMES
//! block   = HOST | "(" FIRST "," HOSTS "," RANKS ")"
//! ```
//!
//! A host is meant by its number in the list, from 0. A block is so many ranks on each of so many
//! hosts from the first; one number is one rank. Blanks may be anywhere between. This is the text
//! of `PMI_process_mapping` with two short forms, as MPICH's `mpl_rankmap.c` reads it.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;

use crate::{Node, NodeId, Placement, TASKS_MAX, TaskMap, TaskRun};

/// The most blocks of a map once its repetitions are written out.
const BLOCKS_MAX: usize = 1 << 20;

/// A rank map that was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RankMap {
    /// Its [`NodeId`]s are the numbers of hosts.
    map: TaskMap,
}

/// A rank map that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct RankMapError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: RankMapProblem,
}

/// What can be wrong with the text of a rank map.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RankMapProblem {
    /// Something else where this belongs.
    #[error("{0} is expected, and not {1}")]
    Expected(String, String),
    /// More than a job can have.
    #[error("more than {TASKS_MAX} ranks or hosts, or more than {BLOCKS_MAX} blocks")]
    TooLarge,
}

/// Ranks that cannot go where the map sends them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RankMapMisfit {
    /// A number that is no host's.
    #[error("host {number} gets ranks, and there {} {hosts} host{}, from 0", be(*.hosts), plural(*.hosts))]
    NoHost {
        /// The largest such number.
        number: u32,
        /// How many hosts there are.
        hosts: usize,
    },
    /// More ranks than slots.
    #[error("{ranks} ranks go to `{host}`, which has {slots} slot{}; `--oversubscribe` allows more",
        plural(*.slots as usize))]
    Full {
        /// The host's name.
        host: String,
        /// How many ranks it is to have.
        ranks: u32,
        /// How many it takes.
        slots: u32,
    },
}

impl RankMap {
    /// How many ranks it has; at least one.
    pub fn tasks(&self) -> u32 {
        self.map.len()
    }

    /// Places the ranks on `nodes`; those that get none are left out.
    ///
    /// # Errors
    /// A host that is not there, or that has too few slots.
    pub fn place(&self, nodes: &[Node], oversubscribe: bool) -> Result<Placement, RankMapMisfit> {
        let hosts = nodes.len();
        if self.map.node_count() as usize > hosts {
            return Err(RankMapMisfit::NoHost { number: self.map.node_count() - 1, hosts });
        }
        for (node, ranks) in nodes.iter().zip(self.map.counts()) {
            let limit = if oversubscribe { node.slots_max } else { node.slots };
            if let Some(slots) = limit.filter(|&slots| ranks > slots) {
                return Err(RankMapMisfit::Full { host: node.name.clone(), ranks, slots });
            }
        }
        Ok(Placement::on(nodes, &self.map))
    }
}

impl FromStr for RankMap {
    type Err = RankMapError;

    fn from_str(text: &str) -> Result<RankMap, RankMapError> {
        let mut reader = Reader { text, at: 0, blocks: 0, map: TaskMap::new() };
        reader.read()?;
        Ok(RankMap { map: reader.map })
    }
}

/// The text, and what was read of it.
struct Reader<'a> {
    text: &'a str,
    /// What comes next, in bytes.
    at: usize,
    /// How many there are, repetitions written out.
    blocks: usize,
    map: TaskMap,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), RankMapError> {
        let is_vector = self.takes("(") && self.takes("vector");
        if is_vector {
            self.expect(",")?;
        } else {
            self.at = 0;
        }
        self.item()?;
        while self.takes(",") {
            self.item()?;
        }
        if is_vector {
            self.expect(")")?;
        }
        if self.rest().is_empty() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    fn item(&mut self) -> Result<(), RankMapError> {
        if !self.takes("[") {
            let block = self.block()?;
            return self.push(&[block], 1);
        }
        let mut blocks = alloc::vec![self.block()?];
        while self.takes(",") {
            blocks.push(self.block()?);
        }
        self.expect("]")?;
        self.expect("x")?;
        let times = self.count()?;
        self.push(&blocks, times)
    }

    fn block(&mut self) -> Result<TaskRun, RankMapError> {
        if !self.takes("(") {
            return Ok(TaskRun::block(NodeId(self.number()?), 1));
        }
        let first_node = NodeId(self.number()?);
        self.expect(",")?;
        let node_count = self.count()?;
        self.expect(",")?;
        let tasks_per_node = self.count()?;
        self.expect(")")?;
        Ok(TaskRun { first_node, node_count, tasks_per_node, rounds: 1 })
    }

    fn push(&mut self, blocks: &[TaskRun], times: u32) -> Result<(), RankMapError> {
        let too_large = self.error(RankMapProblem::TooLarge);
        self.blocks = self.blocks.saturating_add(blocks.len().saturating_mul(times as usize));
        if self.blocks > BLOCKS_MAX {
            return Err(too_large);
        }
        for block in (0..times).flat_map(|_| blocks) {
            self.map.push(*block).map_err(|_| too_large.clone())?;
        }
        Ok(())
    }

    /// How many hosts, ranks, or times.
    fn count(&mut self) -> Result<u32, RankMapError> {
        let zero = self.unexpected("a number from 1");
        let number = self.number()?;
        if number == 0 { Err(zero) } else { Ok(number) }
    }

    fn number(&mut self) -> Result<u32, RankMapError> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.unexpected("a number"));
        }
        let number = rest[..digits].parse().map_err(|_| self.error(RankMapProblem::TooLarge))?;
        self.at += digits;
        Ok(number)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    fn expect(&mut self, word: &str) -> Result<(), RankMapError> {
        if self.takes(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    /// What comes, behind blanks.
    fn rest(&mut self) -> &str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
        &self.text[self.at..]
    }

    fn unexpected(&mut self, what: &str) -> RankMapError {
        let found = self.rest().chars().next().map_or("the end".to_string(), |c| format!("`{c}`"));
        self.error(RankMapProblem::Expected(what.to_string(), found))
    }

    fn error(&mut self, problem: RankMapProblem) -> RankMapError {
        self.rest();
        RankMapError { column: self.text[..self.at].chars().count() + 1, problem }
    }
}

fn be(hosts: usize) -> &'static str {
    if hosts == 1 { "is" } else { "are" }
}

fn plural(hosts: usize) -> &'static str {
    if hosts == 1 { "" } else { "s" }
}
