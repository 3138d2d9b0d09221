//! The shape of the spawn tree, as the user names it. `engine::tree` plans with it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::route::{Route, RouteError};

/// Who starts whom.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum Tree {
    /// One parent starts everything below it.
    Flat,
    /// Each agent starts one other.
    Chain,
    /// Each agent starts at most this many, in parts of near-equal size. 0 counts as 1.
    Kary(u16),
    /// Each agent starts one that takes half of the rest, until nothing is left.
    Binomial,
    /// The root starts about √n agents, and each of those a flat part (S1).
    TwoLevel,
    /// The tree that is complete first for these two costs (S2).
    Greedy {
        /// From a start until the started agent can itself start others.
        latency: Duration,
        /// How long one start keeps its parent from the next.
        gap: Duration,
    },
    /// No plan: agents are handed hosts as they become free. The costs are measured; these hold
    /// until they are.
    Adaptive {
        /// From a start until the started agent can itself start others.
        latency: Duration,
        /// How long one start keeps its parent from the next.
        gap: Duration,
    },
    /// The tree of a route: who passes messages on starts, too (S0-39).
    Routed(Route),
    /// A k-ary tree with the degree of ScELA's rule (S3-10), see `engine::tree::scela_degree`.
    Scela {
        /// Cores of a node, each of which may have a task that holds a connection.
        cores: u16,
        /// The most levels, unless that takes too many connections.
        depth_max: u8,
        /// The most connections that one process handles well.
        connections_max: u16,
    },
}

/// A text that names no tree.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TreeError {
    /// The first word is unknown.
    #[error(
        "tree `{0}` is none of flat, chain, kary:K, binomial, two-level, greedy, greedy:LATENCY,GAP, \
         adaptive, route:ROUTE, scela:CORES"
    )]
    Unknown(String),
    /// A shape that has no parameters was given some.
    #[error("tree `{0}` takes no parameters")]
    Parameters(String),
    /// The number after `kary:` is missing or no number.
    #[error("tree kary: `{text}` is not a number of children from 1 to 65535")]
    Children {
        /// What was read as a number.
        text: String,
        /// What is wrong with it; absent for 0.
        #[source]
        source: Option<ParseIntError>,
    },
    /// `greedy:` without two times.
    #[error("tree greedy: `{0}` is not LATENCY,GAP")]
    Times(String),
    /// A time that cannot be read.
    #[error(
        "tree greedy: `{0}` is not a time of at most an hour, such as 257 (milliseconds), 257ms or 1.5s"
    )]
    Time(String),
    /// What follows `route:` names no route.
    #[error("tree route")]
    Route(#[source] RouteError),
    /// `scela:` without its numbers.
    #[error(
        "tree scela: `{0}` is not CORES, CORES,DEPTH or CORES,DEPTH,CONNECTIONS, each from 1 on"
    )]
    Scela(String),
}

impl Tree {
    /// The latency that is assumed where none was measured: S2's constant for ssh in a cluster.
    pub const ASSUMED_LATENCY: Duration = Duration::from_millis(257);

    /// The gap that is assumed where none was measured: S2's constant for one fork and exec of
    /// ssh. The shape depends on the two only by their quotient.
    pub const ASSUMED_GAP: Duration = Duration::from_millis(7);

    /// The most that a latency or a gap in a tree's name can be: an hour.
    pub const COST_MAX: Duration = Duration::from_secs(3_600);

    /// The greedy tree for the assumed costs.
    pub const fn greedy() -> Tree {
        Tree::Greedy { latency: Tree::ASSUMED_LATENCY, gap: Tree::ASSUMED_GAP }
    }

    /// The adaptive tree, which takes the assumed costs until it has measured its own.
    pub const fn adaptive() -> Tree {
        Tree::Adaptive { latency: Tree::ASSUMED_LATENCY, gap: Tree::ASSUMED_GAP }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Tree::Flat => f.write_str("flat"),
            Tree::Chain => f.write_str("chain"),
            Tree::Kary(children) => write!(f, "kary:{children}"),
            Tree::Binomial => f.write_str("binomial"),
            Tree::TwoLevel => f.write_str("two-level"),
            Tree::Greedy { latency, gap } => {
                write!(f, "greedy:{},{}", time_text(latency), time_text(gap))
            }
            Tree::Adaptive { .. } => f.write_str("adaptive"),
            Tree::Routed(route) => write!(f, "route:{route}"),
            Tree::Scela { cores, depth_max, connections_max } => {
                write!(f, "scela:{cores},{depth_max},{connections_max}")
            }
        }
    }
}

impl FromStr for Tree {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Tree, TreeError> {
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        match (name, parameters) {
            ("flat", None) => Ok(Tree::Flat),
            ("chain", None) => Ok(Tree::Chain),
            ("binomial", None) => Ok(Tree::Binomial),
            ("two-level", None) => Ok(Tree::TwoLevel),
            ("greedy", None) => Ok(Tree::greedy()),
            ("adaptive", None) => Ok(Tree::adaptive()),
            ("kary", children) => parse_kary(children.unwrap_or_default()),
            ("greedy", Some(times)) => parse_greedy(times),
            ("scela", numbers) => parse_scela(numbers.unwrap_or_default()),
            ("route", Some(route)) => route.parse().map(Tree::Routed).map_err(TreeError::Route),
            ("flat" | "chain" | "binomial" | "two-level" | "adaptive", Some(_)) => {
                Err(TreeError::Parameters(name.to_string()))
            }
            (_, _) => Err(TreeError::Unknown(text.to_string())),
        }
    }
}

fn parse_kary(text: &str) -> Result<Tree, TreeError> {
    match text.parse() {
        Ok(0) => Err(TreeError::Children { text: text.to_string(), source: None }),
        Ok(children) => Ok(Tree::Kary(children)),
        Err(source) => Err(TreeError::Children { text: text.to_string(), source: Some(source) }),
    }
}

/// MAX_DEPTH is what the paper's figure shows, MAX_CONN what it measured.
fn parse_scela(text: &str) -> Result<Tree, TreeError> {
    let wrong = || TreeError::Scela(text.to_string());
    let numbers: Vec<u16> =
        text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let (cores, depth, connections_max) = match numbers[..] {
        [cores] => (cores, 3, 128),
        [cores, depth] => (cores, depth, 128),
        [cores, depth, connections] => (cores, depth, connections),
        _ => return Err(wrong()),
    };
    let depth_max = u8::try_from(depth).map_err(|_| wrong())?;
    let is_something = cores > 0 && depth_max > 0 && connections_max > 0;
    is_something.then_some(Tree::Scela { cores, depth_max, connections_max }).ok_or_else(wrong)
}

fn parse_greedy(text: &str) -> Result<Tree, TreeError> {
    let (latency, gap) = text.split_once(',').ok_or_else(|| TreeError::Times(text.to_string()))?;
    Ok(Tree::Greedy { latency: parse_time(latency)?, gap: parse_time(gap)? })
}

/// Reads `257`, `257ms`, `1.028s`, `70us` or `5ns`, exactly.
fn parse_time(text: &str) -> Result<Duration, TreeError> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let decimals = match unit {
        "s" => 9,
        "" | "ms" => 6,
        "us" | "µs" => 3,
        "ns" => 0,
        _ => return Err(TreeError::Time(text.to_string())),
    };
    parse_scaled(number, decimals)
        .map(Duration::from_nanos)
        .filter(|&time| time <= Tree::COST_MAX)
        .ok_or_else(|| TreeError::Time(text.to_string()))
}

/// The decimal `number` times 10^`decimals`, when that is a whole number.
fn parse_scaled(number: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = fraction.trim_end_matches('0');
    let is_exact = !whole.is_empty() && !fraction.is_empty() && digits.len() <= decimals;
    is_exact.then(|| alloc::format!("{whole}{digits:0<decimals$}").parse().ok()).flatten()
}

/// The shortest exact text that [`parse_time`] reads back.
fn time_text(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        n if n % 1_000_000 == 0 => alloc::format!("{}ms", n / 1_000_000),
        n if n % 1_000 == 0 => alloc::format!("{}us", n / 1_000),
        n => alloc::format!("{n}ns"),
    }
}
