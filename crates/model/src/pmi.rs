//! Which dialects of PMI the tasks of a job may speak.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A dialect of PMI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PmiDialect {
    /// PMI-1, which MPICH and its relatives speak unless they are told otherwise.
    One,
    /// PMI-2.
    Two,
}

/// What an agent offers the tasks of a job; `--pmi`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub enum PmiOffer {
    /// Whatever a task speaks, each message in its own dialect.
    #[default]
    Auto,
    /// PMI-1 alone.
    One,
    /// PMI-2 alone.
    Two,
    /// Nothing: tasks are told nothing about each other.
    None,
}

impl PmiOffer {
    /// Whether a task may speak `dialect`.
    pub fn has(self, dialect: PmiDialect) -> bool {
        match self {
            PmiOffer::Auto => true,
            PmiOffer::One => dialect == PmiDialect::One,
            PmiOffer::Two => dialect == PmiDialect::Two,
            PmiOffer::None => false,
        }
    }
}

impl fmt::Display for PmiDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PmiDialect::One => "PMI-1",
            PmiDialect::Two => "PMI-2",
        })
    }
}

/// A word that is none of [`PmiOffer`]'s.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected auto, 1, 2 or none")]
pub struct PmiOfferError;

impl FromStr for PmiOffer {
    type Err = PmiOfferError;

    fn from_str(text: &str) -> Result<PmiOffer, PmiOfferError> {
        match text {
            "auto" => Ok(PmiOffer::Auto),
            "1" => Ok(PmiOffer::One),
            "2" => Ok(PmiOffer::Two),
            "none" => Ok(PmiOffer::None),
            _ => Err(PmiOfferError),
        }
    }
}
