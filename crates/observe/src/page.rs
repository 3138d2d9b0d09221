//! A timeline as one page: the tree of agents with their times, and what the join waited for.
//!
//! Style, script and data are in the page, and nothing is fetched. The critical path is plain text, so
//! it can be read where scripts do not run; the tree is drawn from the data by the page's script.
//! Whatever a host is called, its name is text: it is escaped in HTML, and in the script's data no
//! `<` is left that could end the script.

use std::collections::BTreeSet;
use std::fmt::Write;

use model::{AgentId, Time};
use serde::Serialize;

use crate::span::Phase;
use crate::{Span, Timeline, Wait, agent_name, critical_path, seconds};

/// Rows that are drawn; what the join waited for is among them, whatever the size of the tree. More
/// make browsers slow.
const ROWS_MAX: usize = 2_000;

/// Everything of the page that does not depend on the session.
const TEMPLATE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Data {
    /// The whole session, in microseconds.
    total: u64,
    phases: Vec<&'static str>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    depth: u32,
    critical: bool,
    /// Phase, from and to, in microseconds.
    bars: Vec<(usize, u64, u64)>,
}

/// The page of a session of agents on `names`.
pub(crate) fn page(timeline: &Timeline, names: &[String], title: &str) -> String {
    let path = critical_path(timeline);
    let rows = rows(timeline, names, &path);
    let left_out = timeline.spans.len().saturating_sub(rows.len() + 1);
    let data =
        Data { total: us(timeline.end()), phases: Phase::ALL.map(Phase::name).to_vec(), rows };
    // Of these types nothing can fail to become text.
    let data = serde_json::to_string(&data).unwrap_or_default();
    TEMPLATE
        .replace("{{title}}", &html_text(title))
        .replace("{{summary}}", &html_text(&summary(timeline, names, left_out)))
        .replace("{{path}}", &path_items(&path, names))
        .replace("{{data}}", &script_data(&data))
}

/// The agents to draw, each after its parent, in the order of their starts.
fn rows(timeline: &Timeline, names: &[String], path: &[Wait]) -> Vec<Row> {
    let critical: BTreeSet<AgentId> = path.iter().map(|wait| wait.agent).collect();
    let mut room = ROWS_MAX.saturating_sub(critical.len());
    let mut rows = Vec::new();
    for (agent, span, depth) in in_tree_order(timeline) {
        let is_critical = critical.contains(&agent);
        if !is_critical && room == 0 {
            continue;
        }
        room -= usize::from(!is_critical);
        let phases = span.phases(timeline.end()).into_iter();
        rows.push(Row {
            name: agent_name(names, agent),
            depth,
            critical: is_critical,
            bars: phases.map(|(phase, from, to)| (phase as usize, us(from), us(to))).collect(),
        });
    }
    rows
}

/// Not recursive, since a chain may be as long as the session is large.
fn in_tree_order(timeline: &Timeline) -> Vec<(AgentId, &Span, u32)> {
    let mut children: Vec<(Option<AgentId>, Option<Time>, AgentId)> = timeline
        .spans
        .iter()
        .filter(|(agent, _)| **agent != AgentId::HEAD)
        .map(|(agent, span)| (span.parent, span.started.first().copied(), *agent))
        .collect();
    children.sort();
    let of = |parent: Option<AgentId>| {
        let first = children.partition_point(|child| child.0 < parent);
        children[first..].iter().take_while(move |child| child.0 == parent)
    };
    let mut order = Vec::new();
    let roots = of(Some(AgentId::HEAD)).chain(of(None));
    let mut open: Vec<(AgentId, u32)> = roots.map(|child| (child.2, 0)).collect();
    open.reverse();
    while let Some((agent, depth)) = open.pop() {
        let Some(span) = timeline.spans.get(&agent) else { continue };
        order.push((agent, span, depth));
        let below: Vec<_> = of(Some(agent)).map(|child| (child.2, depth + 1)).collect();
        open.extend(below.into_iter().rev());
        // Bounded, since what peers say may be a circle.
        if order.len() > timeline.spans.len() {
            break;
        }
    }
    order
}

fn summary(timeline: &Timeline, names: &[String], left_out: usize) -> String {
    let time = |time: Option<Time>| {
        time.map_or("never".to_owned(), |time| seconds(time.since(Time::ZERO)))
    };
    let mut text = format!(
        "{} agents. All joined: {}. All tasks ended: {}. Over: {}.",
        names.len(),
        time(timeline.all_joined),
        time(timeline.job_done),
        time(timeline.over),
    );
    if left_out > 0 {
        // Writing to a String does not fail.
        let _ = write!(text, " {left_out} agents are not drawn.");
    }
    text
}

fn path_items(path: &[Wait], names: &[String]) -> String {
    path.iter().map(|wait| format!("<li>{}</li>\n", html_text(&wait.line(names)))).collect()
}

fn html_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // A brace could be taken for a place-holder of the template.
            '{' => out += "&#123;",
            _ => out.push(c),
        }
    }
    out
}

/// JSON that no HTML parser takes for anything else.
fn script_data(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn us(time: Time) -> u64 {
    time.as_nanos() / 1_000
}
