//! Which hosts the join waited for, one after the other.
//!
//! The last agent to join was waited for by all. Before it joined it waited for its turn, its shell
//! and so on; before its turn could come its parent had to join, and so up to the front end. What is
//! shorter than this chain delayed nobody. Where an agent never joined, it is the last.

use model::{AgentId, Time};

use crate::span::Span;
use crate::{Timeline, agent_name, seconds};

/// One stretch of time for which the join waited for one agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wait {
    /// Whose host it was.
    pub agent: AgentId,
    /// What for.
    pub kind: WaitKind,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// What the join waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitKind {
    /// The agent's parent was up and started others first.
    Turn,
    /// Starts of the agent that failed.
    Retries,
    /// The start of the agent, up to its link.
    Shell,
    /// Hello and welcome.
    Handshake,
    /// The agent looked its program up.
    Program,
    /// The news travelled to the front end.
    News,
}

impl WaitKind {
    /// What is waited for, to be read after the host's name.
    pub fn words(self) -> &'static str {
        match self {
            WaitKind::Turn => "waiting for its turn",
            WaitKind::Retries => "waiting for starts that failed",
            WaitKind::Shell => "waiting for its shell",
            WaitKind::Handshake => "waiting for its first words",
            WaitKind::Program => "looking up its program",
            WaitKind::News => "until the front end heard",
        }
    }
}

impl Wait {
    /// The wait as a line: `n17: 5.10 s waiting for its shell`.
    pub fn line(&self, names: &[String]) -> String {
        let time = seconds(self.to.since(self.from));
        format!("{}: {time} {}", agent_name(names, self.agent), self.kind.words())
    }
}

/// The chain of waits that ends with the last agent's joining, the first one first. Empty where
/// nothing is known of the starts.
pub fn critical_path(timeline: &Timeline) -> Vec<Wait> {
    let Some((mut agent, mut span)) = last_to_join(timeline) else { return Vec::new() };
    let mut path = Vec::new();
    if let (Some(from), Some(to)) = (span.joined, timeline.all_joined) {
        push(&mut path, agent, WaitKind::News, Some(from), Some(to));
    }
    // Bounded, since what peers say may be a circle.
    for _ in 0..=timeline.spans.len() {
        waits_of(&mut path, timeline, agent, span);
        let Some(parent) = span.parent.filter(|parent| *parent != AgentId::HEAD) else { break };
        let Some(parent_span) = timeline.spans.get(&parent) else { break };
        (agent, span) = (parent, parent_span);
    }
    path.reverse();
    path
}

fn last_to_join(timeline: &Timeline) -> Option<(AgentId, &Span)> {
    let started = timeline.spans.iter().filter(|(_, span)| !span.started.is_empty());
    // Who never joined was waited for in vain, and so for longer than all who did.
    let key = |span: &Span| (span.joined_at().is_none(), span.joined_at().or(span.given_up));
    started.max_by_key(|(_, span)| key(span)).map(|(agent, span)| (*agent, span))
}

/// One agent's waits, the last one first, down to the moment from which its parent could start it.
fn waits_of(path: &mut Vec<Wait>, timeline: &Timeline, agent: AgentId, span: &Span) {
    let is_last = path.iter().all(|wait| wait.agent == agent);
    if is_last {
        push(path, agent, WaitKind::Program, span.welcomed, span.joined);
    }
    push(path, agent, WaitKind::Handshake, span.link_up, span.welcomed);
    let (first, last) = (span.started.first().copied(), span.started.last().copied());
    let end = span.link_up.or(span.given_up).or(Some(timeline.end()));
    push(path, agent, WaitKind::Shell, last, end);
    push(path, agent, WaitKind::Retries, first, last);
    push(path, agent, WaitKind::Turn, parent_up(timeline, span), first);
}

fn parent_up(timeline: &Timeline, span: &Span) -> Option<Time> {
    match span.parent? {
        AgentId::HEAD => Some(Time::ZERO),
        parent => timeline.spans.get(&parent)?.welcomed,
    }
}

fn push(
    path: &mut Vec<Wait>,
    agent: AgentId,
    kind: WaitKind,
    from: Option<Time>,
    to: Option<Time>,
) {
    if let (Some(from), Some(to)) = (from, to)
        && from < to
    {
        path.push(Wait { agent, kind, from, to });
    }
}
