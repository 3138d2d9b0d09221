//! How a session ended, in words: what failed, how much of the whole, where, why, and what to do.
//!
//! Causes that many nodes share are said once, with the folded list of their names: one command that
//! dies may take a thousand agents with it, and that is one fault. A task that
//! failed is a result and gets a line without `error:`, since nothing of ours went wrong.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::time::Duration;

use agent::StartPlan;
use engine::{HeadConfig, Outcome, SpawnedFault};
use model::{AgentId, ExitStatus, IdSet, Rank, Signal, TaskMap, fold_names};
use observe::{agent_name, seconds};
use wire::{AgentLoss, JobFault, LossCause};

mod members;
mod node_faults;
mod starts;

use members::{Level, level_of};

/// Causes shown of one kind; a thousand nodes with a thousand different words help nobody.
const CAUSES_MAX: usize = 20;

/// What the job was, for the words about it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What the user called each of the job's programs.
    names: Vec<String>,
    map: TaskMap,
    /// With fewer nodes the job does not run, if it may run with fewer than were planned.
    nodes_min: Option<u32>,
    /// What an agent's life hangs on where it was started.
    shell: &'static str,
}

impl Program {
    /// The programs, the places of its tasks, and how its agents are started.
    pub(crate) fn of(config: &HeadConfig) -> Program {
        let job = &config.job;
        let names = job.apps.iter().filter_map(|app| app.argv.first());
        let plan = StartPlan::decode(&config.session.bootstrap);
        let shell = plan.and_then(|plan| plan.bootstrapper()).map(|it| it.name());
        Program {
            names: names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
            map: job.map.clone(),
            nodes_min: config.muster.nodes_min,
            shell: shell.unwrap_or("remote shell"),
        }
    }

    /// None: only agents are told of.
    pub(crate) fn simulated() -> Program {
        Program {
            names: Vec::new(),
            map: TaskMap::default(),
            nodes_min: None,
            shell: "remote shell",
        }
    }

    /// What the user called it.
    pub(crate) fn name(&self) -> String {
        self.names.join(" : ")
    }

    /// How one of the programs is called in a message.
    pub(crate) fn quoted(&self, app: u32) -> String {
        let name = usize::try_from(app).ok().and_then(|app| self.names.get(app));
        let name = name.map_or("", String::as_str);
        if self.names.len() > 1 { format!("`{name}` of app {app}") } else { format!("`{name}`") }
    }
}

/// Everything that went wrong, for standard error; empty when nothing did.
pub(crate) fn outcome(
    outcome: &Outcome,
    names: &[String],
    program: &Program,
    is_quiet: bool,
) -> String {
    let map = outcome.map.as_ref().unwrap_or(&program.map);
    let mut report = Report { names, program, map, text: String::new() };
    report.members(outcome);
    let level = if outcome.members.is_empty() { Level::Error } else { Level::Warning };
    report.start_failures(level, &outcome.start_failures);
    for level in [Level::Error, Level::Warning] {
        let losses = outcome.losses.iter().filter(|loss| level_of(loss, &outcome.members) == level);
        report.losses(level, losses);
    }
    report.incomplete(&outcome.incomplete);
    report.node_faults(&outcome.faults);
    if !is_quiet {
        report.task_faults(outcome);
    }
    if outcome.timed_out {
        report.text += "error: the job was ended when its time was over (`--timeout`)\n";
    }
    report.text
}

/// The warnings in a text of [`outcome`], each with the lines that explain it.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match blocks.last_mut() {
            Some(block) if line.starts_with(' ') || line.starts_with("hint: ") => block.push(line),
            Some(_) | None => blocks.push(vec![line]),
        }
    }
    let blocks = blocks.iter().map(|block| block.join("\n"));
    blocks.filter_map(|block| Some(block.strip_prefix("warning: ")?.to_owned())).collect()
}

struct Report<'a> {
    names: &'a [String],
    program: &'a Program,
    /// Where the tasks ran.
    map: &'a TaskMap,
    text: String,
}

impl Report<'_> {
    /// One block for each distinct cause, in the order in which they were heard of.
    fn causes(&mut self, causes: Vec<Cause>) {
        let blocks = self.blocks(causes);
        let left_out = blocks.len().saturating_sub(CAUSES_MAX);
        for Block { cause, .. } in blocks.into_iter().take(CAUSES_MAX) {
            let names = self.fold(&cause.agents);
            let from = self.from(&cause.by);
            self.line(format!("  {names}{from}: {}", cause.full_text()));
            self.words(&cause.words);
        }
        if left_out > 0 {
            self.line(format!("  and {left_out} more causes"));
        }
    }

    fn blocks(&self, causes: Vec<Cause>) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for cause in causes {
            let words = self.without_names(&cause.agents, &cause.words);
            let key = (cause.text.clone(), words, cause.by.is_empty());
            match blocks.iter_mut().find(|block| block.key == key) {
                Some(block) => block.cause.add(&cause),
                None => blocks.push(Block { key, cause }),
            }
        }
        blocks
    }

    /// The remote's own, under what they explain.
    fn words(&mut self, words: &str) {
        for words in words.lines().filter(|words| !words.trim().is_empty()) {
            self.line(format!("    {words}"));
        }
    }

    /// The words with each host's name as a place-holder, so that hosts that say the same are told
    /// of together.
    fn without_names(&self, agents: &IdSet, words: &str) -> String {
        let first = agents.first().map(|agent| agent_name(self.names, AgentId(agent)));
        match first {
            Some(name) => with_placeholder(words, &name),
            None => words.to_owned(),
        }
    }

    /// One line for each distinct cause: what many were lost of at once is one fault.
    fn losses<'l>(&mut self, level: Level, losses: impl Iterator<Item = &'l AgentLoss>) {
        let causes = losses.map(|loss| self.loss(loss)).collect();
        for Block { cause, .. } in self.blocks(causes) {
            let (names, count) = (self.fold(&cause.agents), cause.agents.len());
            let of = self.names.len();
            let who = match count {
                1 => format!("node {names}"),
                _ => format!("nodes {names} ({count} of {of})"),
            };
            let below = cause.below.difference(&cause.agents);
            let with = match (below.is_empty(), count) {
                (true, _) => String::new(),
                (false, 1) => format!(" (and {}, which it had started)", self.fold(&below)),
                (false, _) => format!(" (and {}, which they had started)", self.fold(&below)),
            };
            let text = if count == 1 { cause.full_text() } else { of_many(&cause.full_text()) };
            self.line(format!("{level}: lost {who}: {text}{with}"));
            self.words(&cause.words);
        }
    }

    /// In the singular; see [`of_many`].
    fn loss(&self, loss: &AgentLoss) -> Cause {
        let text = match loss.cause {
            LossCause::LinkClosed => {
                "its agent ended, and nothing tells why: its connection was closed".to_owned()
            }
            LossCause::LinkCut(_) => {
                format!("the network to it is cut, or it is down: no answer for {ELAPSED}")
            }
            LossCause::Silent(_) => {
                format!("its agent or the whole host hangs: no sign of life for {ELAPSED}")
            }
            LossCause::Killed(signal) => format!("its agent {}", killed_text(signal)),
            LossCause::Shell(status) => {
                format!("its {} {}", self.program.shell, status_text(status))
            }
            LossCause::Misbehaved => "it broke the protocol".to_owned(),
        };
        let silence = match loss.cause {
            LossCause::LinkCut(ms) | LossCause::Silent(ms) => millis(ms),
            LossCause::LinkClosed
            | LossCause::Killed(_)
            | LossCause::Shell(_)
            | LossCause::Misbehaved => Duration::ZERO,
        };
        let agents = IdSet::range(loss.agent.0, loss.agent.0);
        Cause {
            below: loss.agents.difference(&agents),
            agents,
            by: IdSet::new(),
            text,
            words: loss.words.clone(),
            shortest: silence,
            longest: silence,
        }
    }

    /// Whose output may not be all there.
    fn incomplete(&mut self, agents: &IdSet) {
        if !agents.is_empty() {
            let nodes = self.fold(agents);
            self.line(format!("warning: what the tasks on {nodes} wrote last may be missing"));
        }
    }

    /// What tasks did. The first is what decided; others that did the same are folded.
    /// Those that ended of the signal that the user sent did what they were told.
    fn task_faults(&mut self, outcome: &Outcome) {
        let mut lines: Vec<(String, IdSet)> = Vec::new();
        let told = |fault: &&JobFault| !is_as_told(fault, outcome.signal);
        for fault in outcome.faults.iter().filter(told) {
            let Some((rank, text)) = task_fault(fault) else { continue };
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, ranks)) => drop(ranks.insert(rank.0)),
                None => lines.push((text, IdSet::range(rank.0, rank.0))),
            }
        }
        for (text, ranks) in lines {
            let nodes = self.nodes_of(&ranks);
            let tasks = if ranks.len() == 1 { "task" } else { "tasks" };
            let text = if ranks.len() == 1 { text } else { text.replacen("was ", "were ", 1) };
            self.line(format!("{tasks} {ranks} on {nodes} {text}"));
        }
        self.spawned_task_faults(outcome);
    }

    /// What tasks of jobs did that others have spawned: the first of each job.
    fn spawned_task_faults(&mut self, outcome: &Outcome) {
        let told =
            outcome.spawned_faults.iter().filter(|it| !is_as_told(&it.fault, outcome.signal));
        let mut jobs = BTreeSet::new();
        for SpawnedFault { job, node, fault } in told {
            if let Some((rank, text)) = task_fault(fault).filter(|_| jobs.insert(*job)) {
                let node = node.map_or_else(String::new, |node| {
                    format!(" on {}", agent_name(self.names, node.agent()))
                });
                self.line(format!("task {rank} of job {}{node} {text}", job.0));
            }
        }
    }

    fn nodes_of(&self, ranks: &IdSet) -> String {
        let nodes = ranks.iter().filter_map(|rank| self.map.node_of(Rank(rank)));
        let agents: IdSet = nodes.map(|node| node.agent().0).collect();
        self.fold(&agents)
    }

    fn fold(&self, agents: &IdSet) -> String {
        let names: Vec<String> =
            agents.iter().map(|agent| agent_name(self.names, AgentId(agent))).collect();
        fold_names(names.iter().map(String::as_str))
    }

    fn line(&mut self, line: String) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Where a cause's text has its time, which does not make it another cause.
const ELAPSED: &str = "{elapsed}";

/// What kept some nodes away.
struct Cause {
    agents: IdSet,
    /// Others that were lost with them.
    below: IdSet,
    /// Who could not start them, where somebody else could not either.
    by: IdSet,
    /// With [`ELAPSED`] where it tells a time.
    text: String,
    /// The remote's own.
    words: String,
    shortest: Duration,
    longest: Duration,
}

impl Cause {
    /// Adds nodes with the same cause.
    fn add(&mut self, other: &Cause) {
        self.agents = self.agents.union(&other.agents);
        self.below = self.below.union(&other.below);
        self.by = self.by.union(&other.by);
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
    }

    fn full_text(&self) -> String {
        let (shortest, longest) = (seconds(self.shortest), seconds(self.longest));
        if shortest == longest {
            self.text.replace(ELAPSED, &longest)
        } else {
            self.text.replace(ELAPSED, &format!("{shortest} to {longest}"))
        }
    }
}

/// A loss's words, said of several nodes. A bulk launcher is one for them all.
fn of_many(text: &str) -> String {
    const PLURALS: [(&str, &str); 9] = [
        ("its remote shell was ", "their remote shells were "),
        ("its remote shell ", "their remote shells "),
        ("its agent program was ", "their agent programs were "),
        ("its agent program ", "their agent programs "),
        ("its agent or the whole host hangs", "their agents or the whole hosts hang"),
        ("its agent was ", "their agents were "),
        (
            "its agent ended, and nothing tells why: its connection was ",
            "their agents ended, and nothing tells why: their connections were ",
        ),
        ("the network to it is cut, or it is down", "the network to them is cut, or they are down"),
        ("it broke ", "they broke "),
    ];
    let plural = PLURALS.iter().find(|(one, _)| text.starts_with(one));
    plural.map_or_else(
        || text.replacen("its ", "their ", 1),
        |(one, many)| text.replacen(one, many, 1),
    )
}

/// `words` with `{host}` for each `name` that is not a part of a longer word.
fn with_placeholder(words: &str, name: &str) -> String {
    let is_inner = |c: char| c.is_alphanumeric();
    let mut text = String::new();
    let mut rest = words;
    while let Some(at) = rest.find(name).filter(|_| !name.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let is_word = !after.starts_with(is_inner)
            && !before.chars().next_back().or(text.chars().next_back()).is_some_and(is_inner);
        text.push_str(before);
        text.push_str(if is_word { "{host}" } else { name });
        rest = after;
    }
    text + rest
}

/// A cause and what makes it one with others: its text, its words without host names, and whether it
/// is told who found it.
struct Block {
    key: (String, String, bool),
    cause: Cause,
}

fn is_as_told(fault: &JobFault, told: Option<Signal>) -> bool {
    match fault {
        JobFault::Task { status: ExitStatus::Signaled { signal, .. }, .. } => Some(*signal) == told,
        JobFault::Task { .. }
        | JobFault::Program { .. }
        | JobFault::Directory { .. }
        | JobFault::Output { .. }
        | JobFault::Spawn { .. }
        | JobFault::Unfinalized { .. }
        | JobFault::Abort { .. }
        | JobFault::Pmi { .. } => false,
    }
}

/// A task's fault, as what follows its name.
fn task_fault(fault: &JobFault) -> Option<(Rank, String)> {
    Some(match fault {
        JobFault::Task { rank, status } => (*rank, status_text(*status)),
        JobFault::Spawn { rank, errno, words } => {
            (*rank, format!("could not be created: {words}: {}", errno_text(*errno)))
        }
        JobFault::Unfinalized { rank, status: Some(status) } => {
            (*rank, format!("{} before it had finalized PMI", status_text(*status)))
        }
        JobFault::Unfinalized { rank, status: None } => {
            (*rank, "closed its PMI connection before it had finalized PMI".to_owned())
        }
        JobFault::Abort { rank, code, message } => {
            let message = message.trim_end();
            let colon = if message.is_empty() { "" } else { ": " };
            (*rank, format!("aborted with code {code}{colon}{message}"))
        }
        JobFault::Pmi { rank, words } => (*rank, format!("broke the PMI protocol: {words}")),
        JobFault::Program { .. } | JobFault::Directory { .. } | JobFault::Output { .. } => {
            return None;
        }
    })
}

/// "Exec format error", on every Linux.
const ENOEXEC: i32 = 8;

/// The system's words without the number, which `strerror` would not give either.
fn errno_text(errno: i32) -> String {
    if errno == ENOEXEC {
        return "neither a script with a `#!` line nor a program for this machine".to_owned();
    }
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn status_text(status: ExitStatus) -> String {
    match status {
        ExitStatus::Exited(code) => format!("exited with status {code}"),
        ExitStatus::Signaled { signal, core } => {
            let dumped = if core { ", core dumped" } else { "" };
            format!("{}{dumped}", killed_text(signal))
        }
    }
}

fn killed_text(signal: Signal) -> String {
    format!("was killed by signal {} ({signal})", signal.0)
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

#[cfg(test)]
mod tests {
    use wire::{ShellFailureKind, StartCause, StartFailure};

    use super::*;

    fn names() -> Vec<String> {
        (1..=8).map(|n| format!("n{n}")).collect()
    }

    fn report(outcome: &Outcome) -> String {
        let map = TaskMap::from_counts([2; 8]).unwrap();
        let program =
            Program { names: vec!["./ring".into()], map, nodes_min: None, shell: "remote shell" };
        super::outcome(outcome, &names(), &program, false)
    }

    fn failure(agent: u32, cause: StartCause, words: &str) -> StartFailure {
        let agents = IdSet::range(agent, agent);
        let words = words.to_owned();
        StartFailure { agents, cause, words, elapsed_ms: 1200, attempts: 1, by: AgentId(0) }
    }

    #[test]
    fn hosts_that_fail_of_the_same_are_told_of_together() {
        let refused = StartCause::Shell(ShellFailureKind::Refused, ExitStatus::Exited(255));
        let denied = StartCause::Shell(ShellFailureKind::Auth, ExitStatus::Exited(255));
        let words = |n| format!("ssh: connect to host n{n} port 22: Connection refused\n");
        let outcome = Outcome {
            start_failures: vec![
                failure(2, refused, &words(2)),
                failure(3, refused, &words(3)),
                failure(7, denied, "Permission denied (publickey)."),
                failure(5, StartCause::Silent, ""),
                failure(8, StartCause::Deadline, ""),
            ],
            ..Outcome::default()
        };
        insta::assert_snapshot!(report(&outcome));
    }

    #[test]
    fn warnings_are_told_from_errors_with_what_explains_them() {
        let text = "warning: 1 task ran\nwarning: could not\n  n2: refused\n    ssh: why\n\
                    hint: do\nerror: lost n3\n  n3: cut\ntask 0 on n1 exited with status 1\n";
        assert_eq!(
            warnings(text),
            ["1 task ran", "could not\n  n2: refused\n    ssh: why\nhint: do"]
        );
        assert!(warnings("error: x\n    warning: of the shell's\n").is_empty());
    }

    #[test]
    fn who_was_tried_from_two_places_is_told_of_with_both_causes() {
        let refused = StartCause::Shell(ShellFailureKind::Refused, ExitStatus::Exited(255));
        let denied = StartCause::Shell(ShellFailureKind::Auth, ExitStatus::Exited(255));
        let from = |by, agent, cause| {
            let words = format!("ssh: n{agent}: no such luck\n");
            StartFailure { by: AgentId(by), ..failure(agent, cause, &words) }
        };
        let start_failures = vec![
            from(2, 5, refused),
            from(0, 5, denied),
            from(3, 6, refused),
            from(0, 6, denied),
            from(2, 7, StartCause::NoShell(2)),
            from(0, 7, StartCause::NoShell(2)),
            from(4, 8, StartCause::Silent),
        ];
        insta::assert_snapshot!(report(&Outcome { start_failures, ..Outcome::default() }));
    }

    #[test]
    fn a_failed_task_is_a_result_and_equal_ones_are_folded() {
        let segv = ExitStatus::Signaled { signal: Signal::SEGV, core: true };
        let outcome = Outcome {
            faults: vec![
                JobFault::Task { rank: Rank(3), status: ExitStatus::Exited(3) },
                JobFault::Task { rank: Rank(9), status: segv },
                JobFault::Task { rank: Rank(4), status: ExitStatus::Exited(3) },
                JobFault::Abort { rank: Rank(1), code: 5, message: "no input\n".into() },
            ],
            ..Outcome::default()
        };
        insta::assert_snapshot!(report(&outcome));
    }

    #[test]
    fn a_missing_program_is_one_error_for_all_nodes() {
        let words = "no such program: `/w/./ring`".to_owned();
        let fault = |n| {
            let (agent, words) = (AgentId(n), words.clone());
            JobFault::Program { agent, app: 0, errno: 2, words }
        };
        let outcome = Outcome { faults: (1..=8).map(fault).collect(), ..Outcome::default() };
        insta::assert_snapshot!(report(&outcome));
    }

    #[test]
    fn nodes_with_faults_are_told_of_in_their_order_whichever_was_heard_of_first() {
        let words = |n| format!("on-{n}");
        let faults: [fn(u32, String) -> JobFault; 3] = [
            |n, words| JobFault::Program { agent: AgentId(n), app: 0, errno: 2, words },
            |n, words| JobFault::Directory { agent: AgentId(n), errno: 2, words },
            |n, words| JobFault::Output { agent: AgentId(n), errno: 20, words },
        ];
        for fault in faults {
            let told = |order: [u32; 3]| {
                let faults = order.map(|n| fault(n, words(n))).to_vec();
                report(&Outcome { faults, ..Outcome::default() })
            };
            let expected = told([1, 2, 3]);
            for order in [[1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
                assert_eq!(told(order), expected);
            }
        }
    }

    fn loss(agent: u32, agents: IdSet, cause: LossCause, words: &str) -> AgentLoss {
        let (agent, again, words) = (AgentId(agent), IdSet::new(), words.to_owned());
        AgentLoss { agent, agents, again, cause, words }
    }

    fn only(agent: u32) -> IdSet {
        IdSet::range(agent, agent)
    }

    #[test]
    fn a_lost_node_is_named_with_those_below_it_and_the_cause() {
        let keeper = "convoke agent: its keeper was killed";
        let losses = vec![
            loss(5, IdSet::range(5, 7), LossCause::Silent(8000), ""),
            loss(1, only(1), LossCause::LinkCut(8000), ""),
            loss(2, only(2), LossCause::Killed(Signal::KILL), ""),
            loss(3, only(3), LossCause::Shell(ExitStatus::Exited(255)), keeper),
            loss(4, only(4), LossCause::LinkClosed, ""),
            loss(8, only(8), LossCause::Misbehaved, "it spoke before it said hello"),
        ];
        let incomplete = IdSet::range(4, 7);
        let outcome = Outcome { losses, incomplete, timed_out: true, ..Outcome::default() };
        insta::assert_snapshot!(report(&outcome));
    }

    #[test]
    fn nodes_that_are_lost_of_one_cause_are_one_fault() {
        let killed = ExitStatus::Signaled { signal: Signal::KILL, core: false };
        let closed = |agent: u32| {
            let words = format!("Connection to n{agent} closed by remote host.");
            loss(agent, only(agent), LossCause::Shell(ExitStatus::Exited(255)), &words)
        };
        let losses = vec![
            loss(4, IdSet::range(4, 5), LossCause::Shell(killed), ""),
            loss(3, only(3), LossCause::Shell(killed), ""),
            closed(1),
            closed(2),
            loss(6, only(6), LossCause::Silent(7200), ""),
            loss(7, only(7), LossCause::Silent(8100), ""),
        ];
        insta::assert_snapshot!(report(&Outcome { losses, ..Outcome::default() }));
    }

    #[test]
    fn a_session_without_failures_says_nothing() {
        assert_eq!(report(&Outcome::default()), "");
    }

    #[test]
    fn a_short_name_inside_another_word_is_not_the_host() {
        assert_eq!(
            with_placeholder("no path to a: find a.b or cab", "a"),
            "no path to {host}: find {host}.b or cab"
        );
        assert_eq!(with_placeholder("n1 n10 n1", "n1"), "{host} n10 {host}");
        assert_eq!(with_placeholder("x", ""), "x");
    }
}
