//! Jobs that tasks have started while theirs runs.

use bytes::{Bytes, BytesMut};
use engine::{Effect, Input, LinkEnd, LinkId, exit_code};
use model::{
    AgentId, ExitStatus, FilePattern, IdSet, JobId, NameReply, NameRequest, Rank, Slots,
    SpawnProgram, SpawnReply, SpawnRequest, SpawnedTasks, StatusRuns, TaskMap, Tree, Usage,
};
use wire::{IoSpec, JobFault, JobSpec, Launch, Message, Milestone, Origin, OutputSpec, Stream};

use crate::member::{
    JOB, Member, PARENT, app, is_stop, job, job_on_each, killed, launched_agent, messages, running,
};

const SPAWNED: JobId = JobId(1);
pub(crate) const CALLER: Rank = Rank(0);

/// `programs` with so many tasks each.
pub(crate) fn request(programs: &[(&str, u32)]) -> SpawnRequest {
    let program = |&(name, tasks): &(&str, u32)| SpawnProgram {
        tasks,
        argv: vec![name.as_bytes().to_vec(), b"argument".to_vec()],
        info: vec![],
    };
    SpawnRequest {
        programs: programs.iter().map(program).collect(),
        preput: vec![(b"PORT".to_vec(), b"tag#0".to_vec())],
    }
}

/// A head with a task and two slots on each of `n` nodes.
fn head(n: u32) -> Member {
    head_of(job_on_each(n), n)
}

fn head_of(job: JobSpec, n: u32) -> Member {
    let mut head = running(n, |config| {
        config.job = JobSpec { universe_size: Some(2 * n), ..job };
        config.muster.slots = vec![Slots::of(2); n as usize];
    });
    head.effects();
    head
}

/// One of two nodes that writes the tasks' standard output to files.
fn head_with_files() -> Member {
    let stdout = FilePattern::new("/out/%r").ok();
    let output = OutputSpec { stdout, ..OutputSpec::default() };
    head_of(JobSpec { io: IoSpec { output, ..IoSpec::default() }, ..job_on_each(2) }, 2)
}

fn asks(head: &mut Member, request: SpawnRequest) -> Vec<Message> {
    head.message(LinkId(1), Message::SpawnRequest(JOB, CALLER, Box::new(request)));
    head.sent()
}

fn reaches(head: &mut Member, child: u64, milestone: Milestone) {
    head.message(LinkId(child), Message::Reached(SPAWNED, milestone));
}

fn is_done(head: &mut Member, child: u64, job: JobId) {
    let done = Message::Done { job, statuses: StatusRuns::default(), by_order: false };
    head.message(LinkId(child), done);
}

fn faults(head: &mut Member, child: u64, fault: JobFault) {
    head.message(LinkId(child), Message::JobFault(SPAWNED, Box::new(fault)));
}

/// The answer among what was sent.
#[track_caller]
fn answer(sent: &[Message]) -> SpawnReply {
    let reply = |message: &Message| {
        let Message::SpawnReply(JOB, CALLER, reply) = message else { return None };
        Some((**reply).clone())
    };
    let replies: Vec<SpawnReply> = sent.iter().filter_map(reply).collect();
    let [reply] = &replies[..] else { panic!("{sent:?}") };
    reply.clone()
}

#[track_caller]
pub(crate) fn refusal(sent: &[Message]) -> String {
    match answer(sent) {
        SpawnReply::Refused(words) => words,
        SpawnReply::Started { .. } => panic!("it was started"),
    }
}

#[track_caller]
fn started(sent: &[Message]) -> Vec<SpawnedTasks> {
    match answer(sent) {
        SpawnReply::Started { programs, .. } => programs,
        SpawnReply::Refused(words) => panic!("{words}"),
    }
}

/// So many tasks were asked for, and are there.
fn all(tasks: u32) -> SpawnedTasks {
    SpawnedTasks { asked: tasks, created: tasks }
}

fn has_stop(sent: &[Message], id: JobId) -> bool {
    sent.iter().any(|message| matches!(message, Message::Stop { job, .. } if *job == id))
}

/// A job with two tasks, both on node 2.
fn two_on_the_second(head: &mut Member) -> Vec<Message> {
    let mut request = request(&[("./worker", 1)]);
    request.programs[0].info.push((b"host".to_vec(), b"n2".to_vec()));
    asks(head, request)
}

#[test]
fn a_job_is_prepared_then_launched_then_answered_for_and_only_its_nodes_hear_of_it() {
    let mut head = head(2);
    let sent = two_on_the_second(&mut head);
    let [Message::Spawn(spec)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((spec.job, spec.map.len(), spec.map.nodes()), (SPAWNED, 1, IdSet::range(1, 1)));
    assert_eq!(spec.apps[0].argv, [&b"./worker"[..], b"argument"]);
    let origin = spec.origin.as_ref().unwrap();
    assert_eq!((origin.kvsname.as_str(), origin.preput.len()), ("kvs_0", 1));
    assert_ne!(spec.kvsname, origin.kvsname);
    reaches(&mut head, 2, Milestone::Prepared);
    let sent = head.sent();
    assert!(matches!(&sent[..], [Message::Launch(launch)] if launch.job == SPAWNED), "{sent:?}");
    reaches(&mut head, 2, Milestone::Created);
    let sent = head.sent();
    let kvsname = spec.kvsname.clone();
    assert_eq!(answer(&sent), SpawnReply::Started { kvsname, programs: vec![all(1)] });
    assert_eq!(sent.len(), 1);
}

#[test]
fn what_can_not_be_placed_is_refused_and_nobody_hears_of_it() {
    let on = |host: &str| {
        let mut request = request(&[("./worker", 1)]);
        request.programs[0].info.push((b"host".to_vec(), host.as_bytes().to_vec()));
        request
    };
    let nameless = SpawnRequest {
        programs: vec![SpawnProgram { tasks: 1, argv: vec![vec![]], info: vec![] }],
        preput: vec![],
    };
    for (request, words) in [
        (request(&[("./worker", 3)]), "3 tasks do not fit: 2 of 4 slots are free"),
        (request(&[("./worker", u32::MAX), ("b", u32::MAX)]), "do not fit: 2 of 4 slots are free"),
        (on("n3"), "`n3` is no host of the session: name it in `--hosts`"),
        (on("n["), "`n[`: "),
        (request(&[("./worker", 0)]), "the number of tasks must be at least 1"),
        (request(&[]), "it asks for no tasks"),
        (nameless, "it names no program"),
    ] {
        let mut head = head(2);
        let sent = asks(&mut head, request);
        assert!(refusal(&sent).contains(words), "{sent:?}");
        assert_eq!(sent.len(), 1);
    }
}

#[test]
fn a_refusal_names_the_option_that_brings_the_other_hosts_up_and_what_room_they_would_add() {
    let given = |name: &str, slots| (name.to_string(), slots);
    let on_n9 = || {
        let mut request = request(&[("./worker", 1)]);
        request.programs[0].info.push((b"host".to_vec(), b"n9".to_vec()));
        request
    };
    let [one, unknown] = [vec![given("n9", Slots::of(4))], vec![given("n9", Slots::default())]];
    let two = vec![given("n9", Slots::of(4)), given("n8", Slots::of(2))];
    for (unused, request, words) in [
        (
            &one,
            request(&[("a", 3)]),
            "free; `--all-hosts` adds the 4 slots of 1 host without tasks",
        ),
        (&two, request(&[("a", 3)]), "; `--all-hosts` adds the 6 slots of 2 hosts without tasks"),
        (&unknown, request(&[("a", 3)]), "; `--all-hosts` adds 1 host without tasks"),
        (
            &one,
            on_n9(),
            "no agent runs on `n9`, which has no tasks: `--all-hosts` adds its 4 slots",
        ),
        (&unknown, on_n9(), "no agent runs on `n9`, which has no tasks: `--all-hosts` adds it"),
    ] {
        let mut head = running(2, |config| {
            config.job = JobSpec { universe_size: Some(4), ..job_on_each(2) };
            config.muster.slots = vec![Slots::of(2); 2];
            config.unused = unused.clone();
        });
        head.effects();
        let refusal = refusal(&asks(&mut head, request));
        assert!(refusal.ends_with(words), "{refusal}");
    }
}

/// `programs` with so many tasks each, and with what is `soft`.
fn soft_request(programs: &[(u32, &str)]) -> SpawnRequest {
    let mut request = request(&vec![("./a", 0); programs.len()]);
    for (program, (tasks, soft)) in request.programs.iter_mut().zip(programs) {
        program.tasks = *tasks;
        program.info.push((b"soft".to_vec(), soft.as_bytes().to_vec()));
    }
    request
}

#[test]
fn as_many_tasks_are_started_as_soft_permits_and_as_there_are_slots_for() {
    for n in (1..=16).chain([31, 64, 100, 300]) {
        let odd = (n - 1) / 2 * 2 + 1;
        for (soft, tasks, created) in [
            ("1:100000", 1_000, n),
            ("0:100000", 1, 1),
            ("1:100001:2", 1_000, odd),
            ("100001:1:-2", 1_000, odd),
            ("1,100000", 1_000, 1),
        ] {
            let mut head = head(n);
            let sent = asks(&mut head, soft_request(&[(tasks, soft)]));
            let [Message::Spawn(spec), ..] = &sent[..] else { panic!("{sent:?}") };
            assert_eq!(spec.map.len(), created, "{n}: {soft}");
            for milestone in [Milestone::Prepared, Milestone::Created] {
                let nodes = spec.map.nodes();
                nodes.iter().for_each(|node| reaches(&mut head, u64::from(node) + 1, milestone));
            }
            let programs = started(&head.sent());
            assert_eq!(programs, [SpawnedTasks { asked: tasks, created }], "{n}: {soft}");
        }
    }
}

#[test]
fn what_other_programs_need_at_least_is_kept_for_them() {
    for (programs, created) in [
        (&[(9, "1:9"), (9, "1:9")][..], &[3, 1][..]),
        (&[(9, "1:9"), (2, "2")], &[2, 2]),
        (&[(2, "2"), (9, "1:9")], &[2, 2]),
        (&[(9, "1,4"), (9, "1:9")], &[1, 3]),
    ] {
        let mut head = head(4);
        let sent = asks(&mut head, soft_request(programs));
        let [Message::Spawn(spec), ..] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(spec.map.len(), 4);
        assert_eq!([spec.apps[1].first_rank.0, 4 - spec.apps[1].first_rank.0], created);
    }
}

#[test]
fn a_soft_number_that_can_not_be_had_or_understood_is_refused() {
    for (tasks, soft, words) in [
        (4, "2:4", "2 tasks do not fit: 1 of 2 slots are free"),
        (4, "5:9", "info key `soft` (`5:9`) permits none of the numbers from 1 to 4"),
        (4, "-2:0", "permits none of the numbers from 1 to 4"),
        (0, "0:4", "permits none of the numbers from 1 to 0"),
        (4, "1:4:", "info key `soft` (`1:4:`): `` is not a number of tasks"),
    ] {
        let sent = asks(&mut head(1), soft_request(&[(tasks, soft)]));
        assert!(refusal(&sent).contains(words), "{sent:?}");
    }
}

#[test]
fn programs_of_one_request_share_the_room_and_what_is_over_leaves_nothing_behind() {
    let mut head = head(2);
    let mut before = None;
    for number in 1..=300 {
        let sent = asks(&mut head, request(&[("./a", 1), ("./b", 1)]));
        let [Message::Spawn(spec), Message::Spawn(_)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((spec.job, spec.map.tasks_on(model::NodeId(0))), (JobId(number), 1));
        assert_eq!(spec.app_of(Rank(1)), 1);
        refusal(&asks(&mut head, request(&[("./c", 1)])));
        for milestone in [Milestone::Prepared, Milestone::Created] {
            for child in [1, 2] {
                head.message(LinkId(child), Message::Reached(JobId(number), milestone));
            }
        }
        assert_eq!(started(&head.sent()), [all(1), all(1)]);
        [1, 2].into_iter().for_each(|child| is_done(&mut head, child, JobId(number)));
        head.effects();
        let lines = head.lines_of_state();
        assert_eq!(lines, *before.get_or_insert(lines), "after {number}");
    }
}

#[test]
fn a_program_that_is_missing_ends_the_whole_of_its_job_and_nothing_else() {
    let mut head = head(2);
    asks(&mut head, request(&[("./a", 1), ("./missing", 1)]));
    reaches(&mut head, 1, Milestone::Prepared);
    let words = "`./missing` was not found".to_string();
    for child in [2, 1] {
        let (agent, words) = (AgentId(child), words.clone());
        faults(&mut head, child.into(), JobFault::Program { agent, app: 1, errno: 2, words });
    }
    let sent = head.sent();
    assert_eq!(refusal(&sent), "its program: `./missing` was not found");
    assert!(has_stop(&sent, SPAWNED) && !has_stop(&sent, JOB), "{sent:?}");
    [1, 2].into_iter().for_each(|child| is_done(&mut head, child, SPAWNED));
    assert_eq!((head.outcome().code, head.outcome().spawned_faults.len()), (0, 0));
    let sent = asks(&mut head, request(&[("./a", 2)]));
    assert!(matches!(&sent[..], [Message::Spawn(_), ..]), "its room is free: {sent:?}");
}

#[test]
fn files_that_can_not_be_made_are_the_askers_affair_whoever_writes_them() {
    let fault = |agent| {
        let words = "`/out/job1.0`".into();
        JobFault::Output { agent: AgentId(agent), errno: 13, words }
    };
    let mut head = head_with_files();
    asks(&mut head, request(&[("./a", 2)]));
    head.input(prepared(Some(fault(0))));
    let words = "its output: could not write `/out/job1.0` (os error 13)";
    assert_eq!(refusal(&head.sent()), words);
    [1, 2].into_iter().for_each(|child| is_done(&mut head, child, SPAWNED));
    assert!(head.effects().contains(&Effect::CloseFiles(SPAWNED)));
    let mut head = head_with_files();
    asks(&mut head, request(&[("./a", 2)]));
    faults(&mut head, 2, fault(2));
    let words = "its output: could not write `/out/job1.0` on n2 (os error 13)";
    assert_eq!(refusal(&head.sent()), words);
    assert_eq!(head.outcome().code, 0);
}

#[test]
fn a_job_is_launched_when_the_head_has_made_its_files_too() {
    let mut head = head_with_files();
    asks(&mut head, request(&[("./a", 2)]));
    [1, 2].into_iter().for_each(|child| reaches(&mut head, child, Milestone::Prepared));
    assert_eq!(head.sent(), []);
    head.input(prepared(None));
    let sent = head.sent();
    assert!(matches!(&sent[..], [Message::Launch(_), ..]), "{sent:?}");
}

#[test]
fn tasks_that_can_not_be_created_are_the_askers_affair_however_many_fail() {
    let mut head = head(2);
    asks(&mut head, request(&[("./a", 2)]));
    [1, 2].into_iter().for_each(|child| reaches(&mut head, child, Milestone::Prepared));
    head.effects();
    for child in [1, 2] {
        let (rank, words) = (Rank(0), "fork".to_string());
        faults(&mut head, child, JobFault::Spawn { rank, errno: 11, words });
        reaches(&mut head, child, Milestone::Created);
    }
    assert_eq!(refusal(&head.sent()), "its task 0: fork");
    assert_eq!(head.outcome().code, 0);
}

#[test]
fn a_failure_of_a_job_that_runs_is_a_failure_of_all_and_tells_job_and_node() {
    for fault in [
        JobFault::Task { rank: Rank(1), status: ExitStatus::Exited(7) },
        JobFault::Abort { rank: Rank(1), code: 7, message: String::new() },
    ] {
        let mut head = head(2);
        asks(&mut head, request(&[("./a", 2)]));
        for milestone in [Milestone::Prepared, Milestone::Created] {
            [1, 2].into_iter().for_each(|child| reaches(&mut head, child, milestone));
        }
        head.effects();
        faults(&mut head, 2, fault.clone());
        let sent = head.sent();
        assert!(has_stop(&sent, JOB) && has_stop(&sent, SPAWNED), "{sent:?}");
        assert_eq!(head.outcome().code, 7);
        let [told] = &head.outcome().spawned_faults[..] else { panic!() };
        assert_eq!((told.job, told.node, &told.fault), (SPAWNED, Some(model::NodeId(1)), &fault));
    }
}

#[test]
fn who_waits_while_all_is_ended_and_who_asks_then_is_refused() {
    let mut head = head(2);
    asks(&mut head, request(&[("./a", 1)]));
    let fault = JobFault::Task { rank: Rank(0), status: ExitStatus::Exited(3) };
    head.message(LinkId(2), Message::JobFault(JOB, Box::new(fault)));
    assert_eq!(refusal(&head.sent()), "the session is being ended");
    let sent = asks(&mut head, request(&[("./a", 1)]));
    assert_eq!(refusal(&sent), "the session is being ended");
}

#[test]
fn the_session_ends_when_its_last_job_has_whichever_that_is() {
    for order in [[JOB, SPAWNED], [SPAWNED, JOB]] {
        let mut head = head(2);
        two_on_the_second(&mut head);
        [Milestone::Prepared, Milestone::Created]
            .into_iter()
            .for_each(|milestone| reaches(&mut head, 2, milestone));
        head.effects();
        for (index, job) in order.into_iter().enumerate() {
            is_done(&mut head, 2, job);
            if job == JOB {
                is_done(&mut head, 1, job);
            }
            let sent = head.sent();
            assert_eq!(sent.contains(&Message::Shutdown), index == 1, "{sent:?}");
        }
    }
}

#[test]
fn the_loss_of_an_agent_ends_everything_however_far_a_spawn_has_come() {
    for reached in 0..=3 {
        let mut head = head(2);
        asks(&mut head, request(&[("./a", 2)]));
        for milestone in [Milestone::Prepared, Milestone::Created].into_iter().take(reached) {
            [1, 2].into_iter().for_each(|child| reaches(&mut head, child, milestone));
        }
        if reached == 3 {
            is_done(&mut head, 2, SPAWNED);
        }
        head.effects();
        let end = LinkEnd::Closed;
        head.input(Input::LinkDown { link: LinkId(2), end, words: String::new() });
        head.pass(std::time::Duration::from_secs(2));
        let sent = head.sent();
        assert!(has_stop(&sent, JOB) && has_stop(&sent, SPAWNED), "{reached}: {sent:?}");
        assert_eq!(head.outcome().code, exit_code::AGENT_LOST);
        [SPAWNED, JOB].into_iter().for_each(|job| is_done(&mut head, 1, job));
        assert!(head.sent().contains(&Message::Shutdown), "{reached}");
    }
}

/// What a task of the spawned job on node 2 is told of this key of a job.
#[track_caller]
fn reads(head: &mut Member, job: &str, key: &str) -> NameReply {
    let request = NameRequest::Value { job: job.into(), key: key.into() };
    asks_by_name(head, (SPAWNED, Rank(0)), request)
}

/// What a task on node 2 is answered.
#[track_caller]
fn asks_by_name(head: &mut Member, asker: (JobId, Rank), request: NameRequest) -> NameReply {
    head.message(LinkId(2), Message::NameRequest(asker.0, asker.1, Box::new(request)));
    let sent = head.sent();
    let [Message::NameReply(job, rank, reply)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*job, *rank), asker);
    (**reply).clone()
}

fn pairs(all: &[(&str, &str)]) -> Bytes {
    let mut out = BytesMut::new();
    for (key, value) in all {
        pmi::Pairs::append(&mut out, b"", key.as_bytes(), value.as_bytes());
    }
    out.freeze()
}

fn exchanges(head: &mut Member, fence: u32, all: &[(&str, &str)]) {
    for (child, payload) in [(1, pairs(all)), (2, Bytes::new())] {
        head.message(LinkId(child), Message::Enter { job: JOB, fence, payload });
    }
    head.effects();
}

#[test]
fn what_the_parents_have_exchanged_their_children_read_wherever_they_are() {
    let mut head = head(2);
    exchanges(&mut head, 0, &[("card-0", "a"), ("card-1", "b")]);
    two_on_the_second(&mut head);
    let found = |value: &str| NameReply::Found(value.into());
    assert_eq!(reads(&mut head, "kvs_0", "card-1"), found("b"));
    assert_eq!(reads(&mut head, "kvs_0", "card-2"), NameReply::NotFound);
    assert_eq!(reads(&mut head, "kvs_7", "card-1"), NameReply::NotFound);
    for fence in 1..=20 {
        exchanges(&mut head, fence, &[("card-0", &fence.to_string()), ("card-2", "c")]);
    }
    assert_eq!(reads(&mut head, "kvs_0", "card-0"), found("20"));
    assert_eq!(reads(&mut head, "kvs_0", "card-2"), found("c"));
}

#[test]
fn parents_read_what_their_children_were_given_as_long_as_these_are_there() {
    let mut head = head(2);
    let sent = asks(&mut head, request(&[("./a", 2)]));
    let [Message::Spawn(spec), ..] = &sent[..] else { panic!("{sent:?}") };
    let (job, key) = (spec.kvsname.clone().into_bytes(), b"PORT".to_vec());
    let value = NameRequest::Value { job: job.clone(), key };
    let tag = NameReply::Found(b"tag#0".to_vec());
    let of_parent = |head: &mut Member, request| asks_by_name(head, (JOB, Rank(1)), request);
    assert_eq!(of_parent(&mut head, value.clone()), tag);
    assert_eq!(of_parent(&mut head, NameRequest::Job(job.clone())), NameReply::Done);
    for milestone in [Milestone::Prepared, Milestone::Created] {
        [1, 2].into_iter().for_each(|child| reaches(&mut head, child, milestone));
    }
    [1, 2].into_iter().for_each(|child| is_done(&mut head, child, SPAWNED));
    head.effects();
    assert_eq!(of_parent(&mut head, value), NameReply::NotFound);
    assert_eq!(of_parent(&mut head, NameRequest::Job(job)), NameReply::NotFound);
}

/// Agent 1, with a task of the first job, and one of the job that it gets.
fn agent_with_a_spawned_job() -> Member {
    let mut agent = launched_agent(1);
    agent.message(PARENT, Message::Spawn(Box::new(spawned(job(1, 1)))));
    agent
}

fn spawned(job: JobSpec) -> JobSpec {
    let origin = Origin { kvsname: "kvs_0".into(), preput: vec![] };
    let apps = vec![app(0, "worker")];
    JobSpec { job: SPAWNED, kvsname: "kvs_0.1".into(), origin: Some(origin), apps, ..job }
}

fn prepared(fault: Option<JobFault>) -> Input {
    Input::Prepared { job: SPAWNED, fault, pmi_port: None, open_mpi: vec![] }
}

fn order_to_launch() -> Message {
    Message::Launch(Box::new(Launch { job: SPAWNED, members: IdSet::range(1, 9), map: None }))
}

#[test]
fn an_agent_tells_each_milestone_once_and_forgets_the_job_when_it_is_over() {
    let mut agent = agent_with_a_spawned_job();
    assert!(matches!(&agent.effects()[..], [Effect::Prepare { .. }]));
    agent.input(prepared(None));
    assert_eq!(agent.sent(), [Message::Reached(SPAWNED, Milestone::Prepared)]);
    agent.message(PARENT, order_to_launch());
    let effects = agent.effects();
    let [Effect::Spawn(spawn)] = &effects[..] else { panic!("{effects:?}") };
    for variable in [&b"PMI_SPAWNED=1"[..], b"CONVOKE_JOB=kvs_0.1"] {
        assert!(spawn.env.iter().any(|own| own == variable), "{:?}", spawn.env);
    }
    agent.input(Input::Spawned { job: SPAWNED, rank: Rank(0), result: Ok(200) });
    assert_eq!(agent.sent(), [Message::Reached(SPAWNED, Milestone::Created)]);
    ends(&mut agent);
    let sent = agent.sent();
    assert!(matches!(&sent[..], [Message::Done { job: SPAWNED, .. }]), "{sent:?}");
    agent.input(Input::TaskPmi { job: SPAWNED, rank: Rank(0), data: Bytes::from_static(b"late") });
    agent.message(PARENT, Message::Spawn(Box::new(spawned(job(1, 1)))));
    assert!(matches!(&agent.effects()[..], [Effect::Prepare { .. }]), "the number is free again");
}

#[test]
fn three_hundred_jobs_one_after_another_leave_nothing_on_the_agent_whose_task_asked() {
    const SPAWN: &[u8] = b"mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1\nspawnssofar=1\nendcmd\n";
    let mut agent = launched_agent(1);
    let say = |data| Input::TaskPmi { job: JOB, rank: CALLER, data };
    agent.input(say(Bytes::from_static(b"cmd=init pmi_version=1 pmi_subversion=1\n")));
    agent.effects();
    let mut before = None;
    for number in 1..=300 {
        agent.input(say(Bytes::from_static(SPAWN)));
        assert!(matches!(&agent.sent()[..], [Message::SpawnRequest(JOB, CALLER, _)]));
        agent.message(PARENT, Message::Spawn(Box::new(spawned(job(1, 1)))));
        agent.input(prepared(None));
        agent.message(PARENT, order_to_launch());
        agent.input(Input::Spawned { job: SPAWNED, rank: Rank(0), result: Ok(200) });
        let reply = SpawnReply::Started { kvsname: "kvs_0.1".into(), programs: vec![all(1)] };
        agent.message(PARENT, Message::SpawnReply(JOB, CALLER, Box::new(reply)));
        assert!(agent.effects().iter().any(|effect| matches!(effect, Effect::PmiSend { .. })));
        ends(&mut agent);
        agent.effects();
        let lines = agent.lines_of_state();
        assert_eq!(lines, *before.get_or_insert(lines), "after {number}");
    }
}

fn ends(agent: &mut Member) {
    let (job, rank, status) = (SPAWNED, Rank(0), ExitStatus::SUCCESS);
    agent.input(Input::TaskExited { job, rank, status, usage: Usage::default() });
    for stream in [Stream::Stdout, Stream::Stderr] {
        agent.input(Input::TaskOutputEnd { job, rank, stream });
    }
    agent.input(Input::TaskPmiClosed { job, rank });
    assert!(agent.effects().contains(&Effect::Sweep(SPAWNED)));
    agent.input(Input::Swept(SPAWNED));
}

#[test]
fn a_job_that_is_ended_before_it_was_launched_gives_back_what_was_prepared() {
    for is_prepared in [false, true] {
        let mut agent = agent_with_a_spawned_job();
        if is_prepared {
            agent.input(prepared(None));
        }
        agent.effects();
        agent.message(PARENT, Message::Stop { job: SPAWNED, grace_ms: 0 });
        let effects = agent.effects();
        assert!(effects.contains(&Effect::Sweep(SPAWNED)), "{effects:?}");
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::SignalTasks { .. })));
        if !is_prepared {
            agent.input(prepared(None));
        }
        agent.message(PARENT, order_to_launch());
        agent.input(Input::Swept(SPAWNED));
        let sent = agent.sent();
        assert!(matches!(&sent[..], [Message::Done { job: SPAWNED, .. }]), "{sent:?}");
    }
}

#[test]
fn a_job_goes_only_to_those_below_that_have_tasks_of_it() {
    let first = JobSpec { ..job_on_each(3) };
    let mut agent = Member::agent_of(1, Tree::Flat, IdSet::range(2, 3), first);
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: None, open_mpi: vec![] });
    for child in [2, 3] {
        agent.child_joins(child);
        agent.joined(child, IdSet::range(child, child));
    }
    let members = IdSet::range(1, 3);
    agent.message(PARENT, Message::Launch(Box::new(Launch { job: JOB, members, map: None })));
    agent.effects();
    let map = TaskMap::from_counts([0, 0, 2]).unwrap();
    agent.message(PARENT, Message::Spawn(Box::new(spawned(JobSpec { map, ..job(1, 1) }))));
    let to_third = |effects: &[Effect]| {
        let sends = effects
            .iter()
            .all(|effect| matches!(effect, Effect::Send { links, .. } if links[..] == [LinkId(3)]));
        sends && effects.len() == 1
    };
    assert!(to_third(&agent.effects()));
    agent.message(LinkId(3), Message::Reached(SPAWNED, Milestone::Prepared));
    assert_eq!(agent.sent(), [Message::Reached(SPAWNED, Milestone::Prepared)]);
    agent.message(PARENT, order_to_launch());
    assert!(to_third(&agent.effects()));
    agent.message(LinkId(2), Message::Reached(SPAWNED, Milestone::Created));
    let closes = agent.effects().contains(&Effect::Close(LinkId(2)));
    assert!(closes, "agent 2 has nothing to do with that job");
}

#[test]
fn an_answer_comes_to_the_task_that_asked() {
    let mut agent = launched_agent(1);
    let ask = b"cmd=init pmi_version=1 pmi_subversion=1\nmcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1\nspawnssofar=1\nendcmd\n";
    agent.input(Input::TaskPmi { job: JOB, rank: CALLER, data: Bytes::from_static(ask) });
    let effects = agent.effects();
    assert!(matches!(&messages(&effects)[..], [Message::SpawnRequest(JOB, CALLER, _)]));
    let reply = SpawnReply::Refused("no room".into());
    agent.message(PARENT, Message::SpawnReply(JOB, CALLER, Box::new(reply)));
    let data = Bytes::from_static(b"cmd=spawn_result rc=-1 status=1 msg=no_room\n");
    assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: CALLER, data }]);
}

#[test]
fn one_that_dies_after_it_has_asked_takes_the_session_with_it_and_is_not_answered() {
    let mut head = head(2);
    asks(&mut head, request(&[("./a", 2)]));
    head.message(
        LinkId(1),
        Message::JobFault(JOB, Box::new(JobFault::Task { rank: CALLER, status: killed() })),
    );
    assert!(head.effects().iter().any(is_stop));
    reaches(&mut head, 1, Milestone::Prepared);
    reaches(&mut head, 2, Milestone::Prepared);
    assert_eq!(head.sent(), [], "a job that is being ended is not launched");
}
