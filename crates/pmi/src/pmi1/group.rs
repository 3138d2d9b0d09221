//! The groups that barriers of PMI-1.2 name (`reference/pmi1.md` §6).

use alloc::vec::Vec;

use model::IdSet;

use crate::{ClientError, Excerpt};

/// What a client asks for with `barrier_in`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    /// The barrier of all, in which everybody takes part in the same order.
    Whole,
    /// A barrier of all apart from that, with this tag.
    World(i32),
    /// The tasks on this node, with this tag.
    Node(i32),
    /// These ranks, with this tag.
    Ranks(IdSet, i32),
}

/// What is wrong with a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GroupFault {
    /// It is no list of ranks, or its tag is no number.
    #[error("not ranks with a tag")]
    NoGroup,
    /// A rank beyond the last of the job.
    #[error("the job has no rank {0}")]
    NoSuchRank(u32),
    /// A rank that is in it more than once.
    #[error("rank {0} is in it twice")]
    Twice(u32),
    /// The caller is not a member.
    #[error("the caller is not in it")]
    Stranger,
}

impl Scope {
    /// Understands the field `group` of a `barrier_in`, in a job of `size` ranks.
    pub(crate) fn parse(group: Option<&[u8]>, size: u32) -> Result<Scope, ClientError> {
        let Some(group) = group else { return Ok(Scope::Whole) };
        parse(group, size).map_err(|fault| ClientError::Group { group: Excerpt::new(group), fault })
    }
}

fn parse(group: &[u8], size: u32) -> Result<Scope, GroupFault> {
    let text = core::str::from_utf8(group).map_err(|_| GroupFault::NoGroup)?;
    let (members, tag) = match text.split_once(':') {
        Some((members, tag)) => (members, tag.parse().map_err(|_| GroupFault::NoGroup)?),
        None if text == "WORLD" => return Ok(Scope::Whole),
        None => (text, 0),
    };
    match members {
        "WORLD" => Ok(Scope::World(tag)),
        "NODE" => Ok(Scope::Node(tag)),
        ranks => Ok(Scope::Ranks(parse_ranks(ranks, size)?, tag)),
    }
}

fn parse_ranks(text: &str, size: u32) -> Result<IdSet, GroupFault> {
    let ranks = text.split(',').map(|rank| rank.parse().map_err(|_| GroupFault::NoGroup));
    let mut ranks: Vec<u32> = ranks.collect::<Result<_, _>>()?;
    ranks.sort_unstable();
    if let Some(last) = ranks.last().filter(|last| **last >= size) {
        return Err(GroupFault::NoSuchRank(*last));
    }
    if let Some(pair) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(GroupFault::Twice(pair[0]));
    }
    Ok(ranks.into_iter().collect())
}
