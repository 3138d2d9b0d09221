//! What a run came to.

use std::collections::BTreeMap;
use std::fmt;

use engine::Outcome;
use model::{AgentId, Time};
use proto::Event;

/// What a run came to, in virtual time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The head's exit status; absent when it was killed.
    pub code: Option<u8>,
    /// How it ended, as the head saw it.
    pub outcome: Outcome,
    /// What the head told its observers, and when.
    pub events: Vec<(Time, Event)>,
    /// When the last agent was welcomed by its parent.
    pub welcomed_at: Option<Time>,
    /// When the head ended.
    pub ended_at: Option<Time>,
    /// When the last process ended.
    pub empty_at: Time,
    /// Messages sent, by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// Bytes of these messages, as links carry them, by kind.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Starts of each agent.
    pub starts: BTreeMap<AgentId, u32>,
    /// Runs of the bootstrapper.
    pub shells: u32,
    /// Welcomes received, by agent.
    pub welcomes: BTreeMap<AgentId, u32>,
    /// Connections that found a listening socket full, each time.
    pub syns_dropped: u64,
    /// The most links that one process held at once.
    pub links_max: usize,
    /// The most output bytes that were under way on one link, not yet credited.
    pub uncredited_max: i64,
    /// The most output bytes that waited at the head for the reader of its output.
    pub unwritten_max: u64,
    /// Output bytes that the head wrote.
    pub output_bytes: u64,
    /// Output bytes that were written to files, at the head and on nodes.
    pub file_bytes: u64,
    /// Bytes of the user's input that a task read.
    pub input_bytes: u64,
    /// Things that happened.
    pub steps: u64,
    /// Faults that found something to hurt.
    pub faults_struck: u32,
    /// A hash of all that happened, in order.
    pub hash: u64,
}

/// A run in which something happened that must not be.
#[derive(Debug)]
pub struct Failure {
    /// What must not be.
    pub violations: Vec<String>,
    /// The last things that happened.
    pub log: Vec<String>,
    /// What the run came to.
    pub report: Box<Report>,
}

impl Report {
    /// How many messages of this kind were sent.
    pub fn sent(&self, kind: &str) -> u64 {
        self.messages.get(kind).copied().unwrap_or(0)
    }

    /// When the head first told of an event like this.
    pub fn time_of(&self, is_it: impl Fn(&Event) -> bool) -> Option<Time> {
        self.events.iter().find(|(_, event)| is_it(event)).map(|&(time, _)| time)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.log {
            writeln!(f, "  {line}")?;
        }
        for violation in &self.violations {
            writeln!(f, "violation: {violation}")?;
        }
        write!(f, "outcome: {:?}", self.report.outcome)
    }
}

impl std::error::Error for Failure {}
