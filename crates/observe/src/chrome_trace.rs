//! A timeline in Chrome's trace format, for Perfetto and its like.
//!
//! A process for each agent, numbered by its id and named like its host; its phases follow each
//! other on one thread. The critical path of the join is a thread of the front end's.

use model::{AgentId, Time};
use serde::Serialize;

use crate::{Timeline, agent_name, critical_path};

/// The thread of an agent's phases.
const PHASES: u32 = 1;

/// The front end's thread for the critical path.
const CRITICAL_PATH: u32 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trace<'a> {
    trace_events: Vec<Event<'a>>,
    display_time_unit: &'static str,
}

/// One complete event (`X`) or one piece of metadata (`M`); times in microseconds.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    cat: &'static str,
    ph: &'static str,
    ts: u64,
    dur: u64,
    pid: u32,
    tid: u32,
    args: Args,
}

#[derive(Default, Serialize)]
struct Args {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

/// The timeline of agents on `names` as the text of a trace.
pub(crate) fn chrome_trace(timeline: &Timeline, names: &[String]) -> String {
    let mut trace = Trace { trace_events: Vec::new(), display_time_unit: "ms" };
    let head = (AgentId::HEAD, None);
    let agents = timeline.spans.iter().map(|(agent, span)| (*agent, Some(span)));
    let without_head = agents.filter(|(agent, _)| *agent != AgentId::HEAD);
    for (agent, span) in std::iter::once(head).chain(without_head) {
        trace.trace_events.push(process_name(names, agent));
        let Some(span) = span else { continue };
        let parent = span.parent.map(|parent| agent_name(names, parent));
        for (phase, from, to) in span.phases(timeline.end()) {
            let args = Args { parent: parent.clone(), ..Args::default() };
            trace.trace_events.push(complete(phase.name(), agent, PHASES, (from, to), args));
        }
    }
    trace.trace_events.extend(session_phases(timeline));
    for wait in critical_path(timeline) {
        let args = Args { host: Some(agent_name(names, wait.agent)), ..Args::default() };
        let times = (wait.from, wait.to);
        let name = wait.kind.words();
        trace.trace_events.push(complete(name, AgentId::HEAD, CRITICAL_PATH, times, args));
    }
    // Of these types nothing can fail to become text.
    serde_json::to_string(&trace).unwrap_or_default()
}

/// The whole session's phases, as far as it came.
fn session_phases(timeline: &Timeline) -> Vec<Event<'static>> {
    let Timeline { all_joined, job_done, over, .. } = *timeline;
    let steps = [
        ("join", Some(Time::ZERO), all_joined),
        ("job", all_joined, job_done),
        ("teardown", job_done, over),
    ];
    let known = steps.into_iter().filter_map(|(name, from, to)| {
        let times = (from?, to.unwrap_or(timeline.end()));
        Some(complete(name, AgentId::HEAD, PHASES, times, Args::default()))
    });
    known.collect()
}

fn process_name(names: &[String], agent: AgentId) -> Event<'static> {
    Event {
        name: "process_name",
        cat: "",
        ph: "M",
        ts: 0,
        dur: 0,
        pid: agent.0,
        tid: 0,
        args: Args { name: Some(agent_name(names, agent)), ..Args::default() },
    }
}

fn complete(
    name: &str,
    agent: AgentId,
    tid: u32,
    (from, to): (Time, Time),
    args: Args,
) -> Event<'_> {
    let us = |time: Time| time.as_nanos() / 1_000;
    let dur = us(to).saturating_sub(us(from));
    Event { name, cat: "session", ph: "X", ts: us(from), dur, pid: agent.0, tid, args }
}
