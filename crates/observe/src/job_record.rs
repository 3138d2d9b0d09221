//! The record of a job as JSON: what became of the whole, of each node, of each task, and of the jobs that tasks have
//! spawned. `docs/json.md`
//! describes it; a change that its readers could trip over counts [`VERSION`] up.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Outcome, SpawnedJob};
use model::{AgentId, ExitStatus, IdSet, JobId, NodeId, Rank, Signal, StatusRuns, TaskMap, Time};
use serde::Serialize;
use wire::{App, JobSpec, TaskRecord, app_of};

use crate::Timeline;

/// The version of the format.
const VERSION: u32 = 1;

/// A job, for its record.
#[derive(Clone, Copy, Debug)]
pub struct RecordedJob<'a> {
    /// The job as it was planned.
    pub spec: &'a JobSpec,
    /// The host names of the nodes, in order.
    pub names: &'a [String],
    /// With how many of them the session began; others got an agent when they were needed.
    pub begun: usize,
    /// Which task ran where.
    pub map: &'a TaskMap,
    /// When the session began, since 1970.
    pub began: Duration,
    /// The exit status.
    pub status: u8,
    /// What the user was told of what went wrong.
    pub words: &'a str,
    /// What the user was warned of, before, meanwhile and at the end.
    pub warnings: &'a [String],
}

/// The record of a job as the head saw it, as one JSON document.
pub fn job_record(job: &RecordedJob<'_>, outcome: &Outcome, timeline: &Timeline) -> String {
    let first = Tasks {
        job: JobId::FIRST,
        apps: &job.spec.apps,
        map: job.map,
        statuses: &outcome.statuses,
        records: &outcome.records,
        names: job.names,
    };
    let document = Document {
        format: "convoke-run",
        version: VERSION,
        status: job.status,
        words: job.words.lines().collect(),
        warnings: job.warnings,
        apps: first.apps(),
        tasks: job.map.len(),
        signal: outcome.signal.map(SignalRecord::of),
        timed_out: outcome.timed_out,
        began_at: job.began.as_secs_f64(),
        seconds: Seconds::of(timeline),
        nodes: nodes(job, outcome),
        ranks: first.ranks(),
        spawned: spawned(job, outcome),
        spawned_left_out: outcome.spawned.left_out(),
    };
    // Serializing plain structs to memory does not fail.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    status: u8,
    words: Vec<&'a str>,
    warnings: &'a [String],
    apps: Vec<AppRecord>,
    tasks: u32,
    /// What the user ended it with.
    signal: Option<SignalRecord>,
    timed_out: bool,
    began_at: f64,
    seconds: Seconds,
    nodes: Vec<NodeRecord<'a>>,
    ranks: Vec<RankRecord<'a>>,
    /// Jobs that tasks have started.
    spawned: Vec<SpawnedRecord<'a>>,
    /// How many more of those there were.
    spawned_left_out: u32,
}

#[derive(Serialize)]
struct SpawnedRecord<'a> {
    job: u32,
    /// Who asked for it.
    spawner: Spawner,
    apps: Vec<AppRecord>,
    tasks: u32,
    ranks: Vec<RankRecord<'a>>,
}

#[derive(Serialize)]
struct Spawner {
    job: u32,
    rank: u32,
}

#[derive(Serialize)]
struct AppRecord {
    /// As text: what is no UTF-8 is replaced.
    command: Vec<String>,
    directory: String,
    first_rank: u32,
    tasks: u32,
}

/// When the head heard of what, from the begin of the session.
#[derive(Serialize)]
struct Seconds {
    joined: Option<f64>,
    tasks_ended: Option<f64>,
    total: f64,
}

#[derive(Serialize)]
struct NodeRecord<'a> {
    node: u32,
    host: &'a str,
    state: NodeState,
    /// Whether what its tasks wrote last may be missing.
    output_incomplete: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum NodeState {
    /// It took part to the end.
    Ok,
    /// No agent joined there.
    NotStarted,
    /// Its agent was lost.
    Lost,
}

#[derive(Serialize)]
struct RankRecord<'a> {
    job: u32,
    rank: u32,
    /// Which of the apps it belongs to.
    app: u32,
    node: u32,
    host: &'a str,
    state: RankState,
    exit_code: Option<u8>,
    signal: Option<SignalRecord>,
    core_dumped: bool,
    #[serde(flatten)]
    process: Option<ProcessRecord>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum RankState {
    Exited,
    Signaled,
    /// It was not launched, or nobody was left to tell.
    Unknown,
}

#[derive(Serialize)]
struct SignalRecord {
    number: u8,
    name: String,
}

/// What is known of its process.
#[derive(Serialize)]
struct ProcessRecord {
    pid: u32,
    wall_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    max_rss_kib: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    last_stderr_lines: Vec<String>,
}

impl Seconds {
    fn of(timeline: &Timeline) -> Seconds {
        let seconds = |at: Time| at.since(Time::ZERO).as_secs_f64();
        Seconds {
            joined: timeline.all_joined.map(seconds),
            tasks_ended: timeline.job_done.map(seconds),
            total: seconds(timeline.end()),
        }
    }
}

/// The tasks of one job, and what is known of them.
struct Tasks<'a> {
    job: JobId,
    apps: &'a [App],
    map: &'a TaskMap,
    statuses: &'a StatusRuns,
    records: &'a [TaskRecord],
    /// The host names of the nodes.
    names: &'a [String],
}

impl<'a> Tasks<'a> {
    fn apps(&self) -> Vec<AppRecord> {
        let (apps, tasks) = (self.apps, self.map.len());
        let ends = apps.iter().skip(1).map(|next| next.first_rank.0.min(tasks)).chain([tasks]);
        let record = |(app, end): (&App, u32)| AppRecord {
            command: app.argv.iter().map(|word| text(word)).collect(),
            directory: text(&app.dir),
            first_rank: app.first_rank.0,
            tasks: end.saturating_sub(app.first_rank.0),
        };
        apps.iter().zip(ends).map(record).collect()
    }

    fn ranks(&self) -> Vec<RankRecord<'a>> {
        let records: BTreeMap<Rank, &TaskRecord> =
            self.records.iter().map(|record| (record.rank, record)).collect();
        let record = |rank: u32| {
            let known = records.get(&Rank(rank)).copied();
            let status = known.map(|known| known.status).or_else(|| self.statuses.get(Rank(rank)));
            let node = self.map.node_of(Rank(rank)).map_or(0, |node| node.0);
            let host = self.names.get(node as usize).map_or("", String::as_str);
            let (job, app) = (self.job.0, app_of(self.apps, Rank(rank)));
            let process = known.map(ProcessRecord::of);
            let (state, exit_code, signal, core_dumped) = ending(status);
            RankRecord {
                job,
                rank,
                app,
                node,
                host,
                state,
                exit_code,
                signal,
                core_dumped,
                process,
            }
        };
        (0..self.map.len()).map(record).collect()
    }
}

fn spawned<'a>(job: &RecordedJob<'a>, outcome: &'a Outcome) -> Vec<SpawnedRecord<'a>> {
    let record = |(id, spawned): (JobId, &'a SpawnedJob)| {
        let SpawnedJob { spawner, apps, map, statuses, records } = spawned;
        let tasks = Tasks { job: id, apps, map, statuses, records, names: job.names };
        SpawnedRecord {
            job: id.0,
            spawner: Spawner { job: spawner.0.0, rank: spawner.1.0 },
            apps: tasks.apps(),
            tasks: map.len(),
            ranks: tasks.ranks(),
        }
    };
    outcome.spawned.iter().map(record).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn nodes<'a>(job: &RecordedJob<'a>, outcome: &Outcome) -> Vec<NodeRecord<'a>> {
    let all =
        |sets: &mut dyn Iterator<Item = &IdSet>| sets.fold(IdSet::new(), |all, set| all.union(set));
    let lost = all(&mut outcome.losses.iter().map(|loss| &loss.agents));
    let missing = all(&mut outcome.start_failures.iter().map(|failure| &failure.agents));
    let is_known = |(node, _): &(u32, &String)| {
        let id = NodeId(*node).agent().0;
        let is_begun = usize::try_from(*node).is_ok_and(|node| node < job.begun);
        is_begun || [&outcome.members, &missing, &lost].iter().any(|set| set.contains(id))
    };
    let record = |(node, host): (u32, &'a String)| {
        let agent = NodeId(node).agent();
        let state = match agent {
            AgentId(id) if missing.contains(id) => NodeState::NotStarted,
            AgentId(id) if lost.contains(id) => NodeState::Lost,
            AgentId(_) => NodeState::Ok,
        };
        NodeRecord { node, host, state, output_incomplete: outcome.incomplete.contains(agent.0) }
    };
    (0..).zip(job.names).filter(is_known).map(record).collect()
}

/// The state, the exit code, the signal, and whether a core file was left.
fn ending(status: Option<ExitStatus>) -> (RankState, Option<u8>, Option<SignalRecord>, bool) {
    match status {
        None => (RankState::Unknown, None, None, false),
        Some(ExitStatus::Exited(code)) => (RankState::Exited, Some(code), None, false),
        Some(ExitStatus::Signaled { signal, core }) => {
            (RankState::Signaled, None, Some(SignalRecord::of(signal)), core)
        }
    }
}

impl SignalRecord {
    fn of(signal: Signal) -> SignalRecord {
        SignalRecord { number: signal.0, name: signal.to_string() }
    }
}

impl ProcessRecord {
    fn of(record: &TaskRecord) -> ProcessRecord {
        let seconds = |us: u64| Duration::from_micros(us).as_secs_f64();
        let usage = &record.usage;
        let words = text(&record.last_words);
        ProcessRecord {
            pid: record.pid,
            wall_seconds: seconds(record.wall_us),
            user_seconds: seconds(usage.user_us),
            system_seconds: seconds(usage.system_us),
            max_rss_kib: usage.rss_max_kib,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            last_stderr_lines: words.lines().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::{JobId, StatusRuns, Usage};
    use wire::{AgentLoss, LossCause};

    use super::*;

    /// Two tasks of one program, all others of another.
    fn spec(map: &TaskMap) -> JobSpec {
        let app = |first_rank, argv: &[&str], dir: &str| App {
            first_rank: Rank(first_rank),
            argv: argv.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect(),
            env: Vec::new(),
            dir: Bytes::copy_from_slice(dir.as_bytes()),
        };
        let apps = vec![app(0, &["./ring", "a b"], "/home/user"), app(2, &["./hub"], "/tmp")];
        JobSpec::new(JobId(0), apps, map.clone())
    }

    #[test]
    fn a_job_with_a_crash_and_a_lost_node_is_told_rank_by_rank() {
        let usage = Usage { user_us: 1_500_000, rss_max_kib: 20_480, ..Usage::default() };
        let segv = ExitStatus::Signaled { signal: Signal::SEGV, core: true };
        let words = Bytes::from_static(b"ring: lost\n\xff\n");
        let record = |rank, status, last_words| TaskRecord {
            rank: Rank(rank),
            pid: 100 + rank,
            status,
            wall_us: 2_000_000,
            usage,
            last_words,
        };
        let statuses: StatusRuns =
            [(Rank(0), segv), (Rank(1), ExitStatus::SUCCESS)].into_iter().collect();
        let loss = AgentLoss {
            agent: AgentId(2),
            agents: IdSet::range(2, 2),
            again: IdSet::new(),
            cause: LossCause::LinkClosed,
            words: String::new(),
        };
        let outcome = Outcome {
            statuses,
            records: vec![record(1, ExitStatus::SUCCESS, Bytes::new()), record(0, segv, words)],
            losses: vec![loss],
            incomplete: IdSet::range(2, 2),
            ..Outcome::default()
        };
        let map = TaskMap::from_counts([2, 1]).unwrap();
        let spec = spec(&map);
        let job = RecordedJob {
            spec: &spec,
            names: &["a".to_owned(), "b".to_owned()],
            begun: 2,
            map: &map,
            began: Duration::from_millis(1_700_000_000_250),
            status: 139,
            words: "task 0 on a was killed\nerror: lost node b\n",
            warnings: &["host file `hosts`, line 2: `binding` is ignored".to_owned()],
        };
        insta::assert_snapshot!(job_record(&job, &outcome, &Timeline::default()));
    }
}
