//! The server as clients and the tree see it: `data/*.txt`, one file per part of `reference/pmi1.md`.
//!
//! Commands: `job size=N local=RANKS [universe=N] [mapping=M] [spawned] [appnums=...] [pmi=auto|1|2]`, `send RANK` (each line of
//! input with its line end, in one read), `frame RANK` (each line of input as a frame, in one read), `raw RANK` (each line of input one read, escapes undone, no line end added),
//! `repeat RANK N` (one read of N times the input, then a line end), `exchange` (the pending exchange comes back,
//! with the input's `key=value` from elsewhere), `held [stale]` (the same, but those came from below, and others are
//! elsewhere), `fetched KEY` (with its value as input, or none), `await GROUP` (others wait in its barrier), `meet GROUP` (its exchange
//! comes back, with the input's pairs), `closed RANK`, `exit RANK [missed]`, `state`, `call` (each line of input is what
//! one read of a connection to `PMI_PORT` finds), `connected RANK [2]` (that was a task's, which sent each line of input
//! behind it, or each as a frame), `hung-up RANK` (such a connection has ended), `answer RANK done|missing|taken|FOUND` (of
//! the name service), `close FIRST LEFT RIGHT` (the ring is closed), `gathered` (the allgather comes back, with the
//! input's `RANK=VALUE` from elsewhere, `*N` behind a value for N times that), `spawned RANK TASKS[/ASKED],...` (its job of so many tasks for each program runs), `spawned RANK refused`
//! (with the input's reason).

#![expect(clippy::unwrap_used, reason = "a malformed test file fails the test")]

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use model::{
    NameReply, NameRequest, PairName, PmiOffer, Rank, RankGroup, RingPlace, RingStretch,
    SpawnReply, SpawnRequest, SpawnedTasks,
};
use pmi::{
    Call, ClientState, Effect, Introduction, JobInfo, LocalTask, Message, MessageBuffer, Pairs,
    Server, Snapshot, Values,
};
use testkit::{Case, run_datadriven};

/// Of a message that is longer, only the front is shown.
const SHOWN_MAX: usize = 2_000;
const FRONT_BYTES: usize = 120;

#[test]
fn every_command_of_the_protocol_is_answered_as_clients_expect() {
    run("commands.txt");
}

#[test]
fn what_does_not_fit_the_limits_is_refused() {
    run("limits.txt");
}

#[test]
fn a_client_that_breaks_the_protocol_is_named_and_heard_no_more() {
    run("violations.txt");
}

#[test]
fn requests_may_be_cut_and_joined_anywhere() {
    run("framing.txt");
}

#[test]
fn groups_meet_apart_from_the_others() {
    run("groups.txt");
}

#[test]
fn a_group_that_cannot_meet_ends_its_callers_part() {
    run("bad_groups.txt");
}

#[test]
fn a_barrier_exchanges_what_was_put_and_releases_everybody() {
    run("barrier.txt");
}

#[test]
fn pairs_that_are_not_here_are_fetched_once_for_all_who_read_them() {
    run("held.txt");
}

#[test]
fn the_end_of_a_client_is_normal_only_when_it_has_finalized_or_never_spoke() {
    run("ends.txt");
}

#[test]
fn who_connects_to_the_port_says_its_rank_and_may_do_so_again_once_it_has_finalized() {
    run("port.txt");
}

#[test]
fn a_client_may_initialise_again_on_the_same_connection() {
    run("reinit.txt");
}

#[test]
fn the_calls_of_old_clients_work_within_the_node() {
    run("legacy.txt");
}

#[test]
fn every_command_of_pmi_2_is_answered_as_all_its_clients_expect() {
    run("pmi2_commands.txt");
}

#[test]
fn frames_of_pmi_2_may_be_cut_joined_and_wrong() {
    run("pmi2_framing.txt");
}

#[test]
fn threads_of_a_client_get_their_own_answers_in_any_order() {
    run("pmi2_threads.txt");
}

#[test]
fn tasks_of_both_dialects_meet_and_read_each_other() {
    run("dialects.txt");
}

#[test]
fn names_are_asked_for_elsewhere_and_answered_in_order() {
    run("names.txt");
}

#[test]
fn what_another_job_has_exchanged_is_asked_for_elsewhere_and_found_in_either_dialect() {
    run("other_jobs.txt");
}

#[test]
fn a_spawn_is_asked_for_elsewhere_and_its_job_begins_with_what_was_put_for_it() {
    run("spawn.txt");
}

#[test]
fn tasks_in_a_ring_learn_who_is_next_to_them() {
    run("ring.txt");
}

#[test]
fn tasks_of_an_allgather_learn_what_all_have_brought_in_order_of_rank() {
    run("allgather.txt");
}

#[test]
fn quiet_puts_are_answered_only_where_they_are_refused() {
    run("quiet_puts.txt");
}

#[test]
fn clients_that_read_snapshots_get_one_with_the_answer_that_lets_them_out() {
    run("snapshots.txt");
}

#[test]
fn a_dialect_that_is_not_offered_is_refused_with_the_option_that_helps() {
    run("offer.txt");
}

fn run(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let mut session = None;
    run_datadriven(&path, |case| {
        if case.command == "job" {
            session = Some(Session::new(case));
            return "ok".to_owned();
        }
        session.as_mut().expect("a file begins with `job`").perform(case)
    });
}

struct Session {
    server: Server,
    size: u32,
    ranks: Vec<Rank>,
    pending: Bytes,
}

impl Session {
    fn new(case: &Case<'_>) -> Session {
        let ranks: Vec<Rank> = list(case.arg("local").unwrap()).into_iter().map(Rank).collect();
        let appnums = case.arg("appnums").map_or_else(|| vec![0; ranks.len()], list);
        let tasks = ranks.iter().zip(appnums);
        let tasks = tasks.map(|(&rank, appnum)| LocalTask { rank, appnum }).collect();
        let size = case.arg("size").unwrap().parse().unwrap();
        let info = JobInfo {
            universe_size: case.arg("universe").map(|n| n.parse().unwrap()),
            offer: case.arg("pmi").map_or(PmiOffer::Auto, |offer| offer.parse().unwrap()),
            process_mapping: case.arg("mapping").map(|mapping| match mapping {
                "huge" => "(0,1,1),".repeat(200),
                mapping => mapping.to_owned(),
            }),
            spawner: case.args.contains(&"spawned").then(|| "kvs_0".to_owned()),
            preput: case
                .args
                .contains(&"spawned")
                .then(|| (b"FROM".to_vec(), b"port 1".to_vec()))
                .into_iter()
                .collect(),
            ..JobInfo::new("kvs_1".to_owned(), size, tasks)
        };
        Session { server: Server::new(info), size, ranks, pending: Bytes::new() }
    }

    fn perform(&mut self, case: &Case<'_>) -> String {
        let rank = || Rank(case.args[0].parse().unwrap());
        match case.command {
            "send" => self.server.on_bytes(rank(), lines(&case.input).as_bytes()),
            "frame" => {
                self.server.on_bytes(rank(), frames(&case.input).as_bytes());
            }
            "raw" => case.input.iter().for_each(|l| self.server.on_bytes(rank(), &unescape(l))),
            "repeat" => {
                let bytes = case.input[0].repeat(case.args[1].parse().unwrap()) + "\n";
                self.server.on_bytes(rank(), bytes.as_bytes());
            }
            "exchange" => {
                let pairs = self.exchanged(case);
                if let Err(error) = self.server.on_exchange_complete(&[pairs]) {
                    return error.to_string();
                }
            }
            "held" => {
                let pairs = self.exchanged(case);
                let is_stale = case.args.contains(&"stale");
                if let Err(error) = self.server.on_exchange_held(&[pairs], is_stale) {
                    return error.to_string();
                }
            }
            "fetched" => {
                let name = PairName { space: vec![], key: case.args[0].as_bytes().to_vec() };
                let value = case.input.first().map(|value| Bytes::from(unescape(value)));
                self.server.on_fetched(&name, value.as_ref());
            }
            "await" => self.server.on_group_awaited(&group(case)),
            "meet" => {
                let group = group(case);
                let pairs = self.exchanged(case);
                if let Err(error) = self.server.on_group_complete(&group, pairs) {
                    return error.to_string();
                }
            }
            "call" => return call(case),
            "connected" => self.server.on_call(&introduction(case)),
            "hung-up" => self.server.on_call_ended(rank()),
            "close" => {
                let value = |index: usize| case.args[index].as_bytes().to_vec();
                let first = case.args[0].parse().unwrap();
                let (left, right) = (value(1), value(2));
                self.server.on_ring_closed(&RingPlace { first, left, right });
            }
            "gathered" => {
                let values = self.gathered(case);
                if let Err(error) = self.server.on_allgathered(&[values]) {
                    return error.to_string();
                }
            }
            "answer" => self.server.on_name_reply(rank(), &name_reply(case)),
            "spawned" => self.server.on_spawn_reply(rank(), &spawn_reply(case)),
            "closed" => self.server.on_closed(rank()),
            "exit" => self.server.on_task_exit(rank(), case.args.contains(&"missed")),
            "state" => return self.states(),
            other => panic!("no command `{other}`"),
        }
        self.effects()
    }

    /// The pairs of this node and then those in the input, as the tree concatenates them.
    fn exchanged(&mut self, case: &Case<'_>) -> Bytes {
        let mut all = BytesMut::from(&self.pending[..]);
        for line in &case.input {
            let (key, value) = line.split_once('=').unwrap();
            Pairs::append(&mut all, b"", key.as_bytes(), value.as_bytes());
        }
        if case.args.contains(&"garbled") {
            all.extend_from_slice(b"\x05");
        }
        all.freeze()
    }

    /// The values of this node with those in the input.
    fn gathered(&self, case: &Case<'_>) -> Bytes {
        let mut all = Values::of(self.size + 1);
        all.merge(&self.pending).unwrap();
        for line in &case.input {
            let (rank, value) = line.split_once('=').unwrap();
            let (value, times) = value.split_once('*').unwrap_or((value, "1"));
            let value = unescape(value).repeat(times.parse().unwrap());
            all.insert(Rank(rank.parse().unwrap()), value.into()).unwrap();
        }
        all.encode()
    }

    fn states(&self) -> String {
        let name = |rank: &Rank| match self.server.state(*rank) {
            ClientState::NotPmi => format!("{rank} not PMI\n"),
            ClientState::Active => format!("{rank} active\n"),
            ClientState::Finalized => format!("{rank} finalized\n"),
        };
        self.ranks.iter().map(name).collect()
    }

    fn effects(&mut self) -> String {
        let mut out = String::new();
        while let Some(effect) = self.server.poll_effect() {
            self.show(&mut out, effect);
        }
        if out.is_empty() { "(nothing)".to_owned() } else { out }
    }

    fn show(&mut self, out: &mut String, effect: Effect) {
        let _ = match effect {
            Effect::Reply { rank, bytes } => {
                messages(&bytes).iter().for_each(|message| {
                    let _ = writeln!(out, "{rank}< {message}");
                });
                Ok(())
            }
            Effect::ReplyWithSnapshot { rank, bytes } => {
                messages(&bytes).iter().for_each(|message| {
                    let _ = writeln!(out, "{rank}< {message} (with the snapshot)");
                });
                Ok(())
            }
            Effect::ReplyInMemory { replies, bytes } => {
                for (rank, reply) in replies {
                    messages(&reply).iter().for_each(|message| {
                        let _ = writeln!(out, "{rank}< {message} (with the memory)");
                    });
                }
                messages(&bytes).iter().for_each(|message| {
                    let _ = writeln!(out, "memory: {message}");
                });
                Ok(())
            }
            Effect::KeepSnapshot(bytes) if bytes.is_empty() => writeln!(out, "no snapshot"),
            Effect::KeepSnapshot(bytes) => {
                let snapshot = Snapshot::new(&bytes).unwrap();
                let value = |key: &&str| {
                    let value = snapshot.get(key.as_bytes()).unwrap();
                    value.map(|value| format!(" {key}={}", value.escape_ascii()))
                };
                let keys = ["PMI_process_mapping", "card-0", "card-1", "card-2", "card-3"];
                let pairs: String = keys.iter().filter_map(value).collect();
                writeln!(out, "snapshot of {} bytes:{pairs}", bytes.len())
            }
            Effect::Exchange { pairs } => {
                self.pending = pairs.clone();
                let pairs: String =
                    Pairs::new(pairs).map(|pair| show_pair(&pair.unwrap())).collect();
                writeln!(out, "exchange{pairs}")
            }
            Effect::ExchangeGroup { group, pairs } => {
                self.pending = pairs.clone();
                let pairs: String =
                    Pairs::new(pairs).map(|pair| show_pair(&pair.unwrap())).collect();
                writeln!(out, "exchange of {}:{}{pairs}", group.ranks, group.tag)
            }
            Effect::Ring(RingStretch { count, left, right }) => {
                let [left, right] = [left, right].map(|value| value.escape_ascii().to_string());
                writeln!(out, "ring of {count}, `{left}` to `{right}`")
            }
            Effect::Allgather(values) => {
                self.pending = values.clone();
                let mut all = Values::of(self.size);
                all.merge(&values).unwrap();
                let values: String =
                    all.iter().map(|value| format!(" `{}`", value.escape_ascii())).collect();
                writeln!(out, "allgather{values}")
            }
            Effect::Ask { rank, request } => {
                writeln!(out, "{rank} asks: {}", show_request(request))
            }
            Effect::Fetch(PairName { space, key }) => {
                writeln!(out, "fetch `{}` of `{}`", key.escape_ascii(), space.escape_ascii())
            }
            Effect::Spawn { rank, request } => {
                writeln!(out, "{rank} spawns:{}", show_spawn(&request))
            }
            Effect::Leave => writeln!(out, "leave"),
            Effect::Abort { rank, code, message } => {
                writeln!(out, "abort by {rank}: code {code}, message `{message}`")
            }
            Effect::Violation { rank, error } => writeln!(out, "violation by {rank}: {error}"),
            Effect::ClosedActive { rank } => writeln!(out, "{rank} ended while active"),
        };
    }
}

/// What a client finds in a reply: lines, and frames with their length before them.
/// Whole, or the front of a very long one.
fn messages(bytes: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    let mut buffer = MessageBuffer::default();
    buffer.feed(bytes, |message| {
        let mut text = match message.unwrap() {
            Message::Line(line) => line.escape_ascii().to_string(),
            Message::Frame(body) => format!("[{}] {}", body.len(), body.escape_ascii()),
        };
        if text.len() > SHOWN_MAX {
            text.truncate(FRONT_BYTES);
            text.push('…');
        }
        messages.push(text);
        ControlFlow::Continue(())
    });
    assert!(buffer.unfinished().is_empty(), "replies are whole messages");
    messages
}

fn call(case: &Case<'_>) -> String {
    let (mut call, mut out) = (Call::default(), String::new());
    for piece in &case.input {
        let mut answer = Vec::new();
        let said = call.feed(&unescape(piece), &mut answer);
        messages(&answer).iter().for_each(|line| out.push_str(&format!("< {line}\n")));
        match said {
            Ok(None) => {}
            Ok(Some(Introduction { rank, by_initack, bytes })) => {
                let how = if by_initack { "initack" } else { "fullinit" };
                return out + &format!("rank {rank} by {how}, then `{}`", bytes.escape_ascii());
            }
            Err(error) => return out + &error.to_string(),
        }
    }
    if out.is_empty() { "(nothing)".to_owned() } else { out }
}

/// Of the task in the first argument, by `initack`, or as clients of PMI-2 do.
fn introduction(case: &Case<'_>) -> Introduction {
    let rank = case.args[0];
    let said = match case.args.get(1) {
        None => format!("cmd=initack pmiid={rank}\n{}", lines(&case.input)),
        Some(_) => {
            let init = frames(&[&format!("cmd=fullinit;srcid={rank};threaded=FALSE;")]);
            format!("cmd=init pmi_version=2 pmi_subversion=0\n{init}{}", frames(&case.input))
        }
    };
    Call::default().feed(said.as_bytes(), &mut Vec::new()).unwrap().unwrap()
}

fn lines(input: &[&str]) -> String {
    input.iter().flat_map(|line| [line, "\n"]).collect()
}

fn frames(input: &[&str]) -> String {
    input.iter().map(|body| format!("{:6}{body}", body.len())).collect()
}

/// The group in the first argument: `0-2,5:7`.
fn group(case: &Case<'_>) -> RankGroup {
    let (ranks, tag) = case.args[0].split_once(':').unwrap();
    RankGroup { ranks: ranks.parse().unwrap(), tag: tag.parse().unwrap() }
}

fn show_request(request: NameRequest) -> String {
    let text = |bytes: Vec<u8>| bytes.escape_ascii().to_string();
    match request {
        NameRequest::Publish { service, port } => {
            format!("publish `{}` at `{}`", text(service), text(port))
        }
        NameRequest::Lookup(service) => format!("look `{}` up", text(service)),
        NameRequest::Unpublish(service) => format!("unpublish `{}`", text(service)),
        NameRequest::Value { job, key } => format!("get `{}` of `{}`", text(key), text(job)),
        NameRequest::Job(job) => format!("is there `{}`", text(job)),
    }
}

/// The answer of the name service in the second argument: `done`, `missing`, `taken`, or a port or value.
fn name_reply(case: &Case<'_>) -> NameReply {
    match case.args[1] {
        "done" => NameReply::Done,
        "missing" => NameReply::NotFound,
        "taken" => NameReply::Taken,
        port => NameReply::Found(unescape(port)),
    }
}

fn show_spawn(request: &SpawnRequest) -> String {
    let text = |bytes: &[u8]| format!("`{}`", bytes.escape_ascii());
    let pairs = |name: &str, pairs: &[(Vec<u8>, Vec<u8>)]| -> String {
        let pair =
            |(key, value): &(Vec<u8>, Vec<u8>)| format!(" {name} {}={}", text(key), text(value));
        pairs.iter().map(pair).collect()
    };
    let mut shown = pairs("preput", &request.preput);
    for program in &request.programs {
        let argv: Vec<String> = program.argv.iter().map(|word| text(word)).collect();
        shown += &format!("\n  {} of {}", program.tasks, argv.join(" "));
        shown += &pairs("info", &program.info);
    }
    shown
}

/// `spawned RANK TASKS`, for several programs with commas between, or `spawned RANK refused`, with the reason as input.
fn spawn_reply(case: &Case<'_>) -> SpawnReply {
    match case.args[1] {
        "refused" => SpawnReply::Refused(case.input.join(" ")),
        programs => {
            let programs = programs.split(',').map(spawned_tasks).collect();
            SpawnReply::Started { kvsname: "kvs_2".into(), programs }
        }
    }
}

/// `CREATED`, or `CREATED/ASKED`.
fn spawned_tasks(text: &str) -> SpawnedTasks {
    let (created, asked) = text.split_once('/').unwrap_or((text, text));
    SpawnedTasks { asked: asked.parse().unwrap(), created: created.parse().unwrap() }
}

fn show_pair(pair: &pmi::Pair) -> String {
    let (key, value) = pair.key_value.split_at(pair.key_bytes);
    let space = if pair.space.is_empty() { "" } else { ":" };
    format!(" {}{space}{}={}", pair.space.escape_ascii(), key.escape_ascii(), value.escape_ascii())
}

fn list(text: &str) -> Vec<u32> {
    text.split(',').map(|n| n.parse().unwrap()).collect()
}

/// Undoes `\n`, `\0` and `\xff`, which is all that the files need.
fn unescape(text: &str) -> Vec<u8> {
    let text = text.replace("\\n", "\n").replace("\\0", "\0");
    let mut parts = text.split("\\xff");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(0xff);
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}
