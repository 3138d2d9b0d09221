//! A member whose tasks connect to `PMI_PORT`, and strangers who do.

use std::time::Duration;

use bytes::Bytes;
use engine::{CallerId, Effect, Input, PmiPort};
use model::{AgentId, ExitStatus, IdSet, PmiOffer, Rank, TaskMap, Tree};
use wire::{JobFault, JobSpec, JobWarning, Launch, Message};

use crate::member::{JOB, Member, PARENT, job, job_on_each, launch, running};

const OWN: u32 = 1000;
const PORT: PmiPort = PmiPort { port: 4000, uid: OWN };

/// Agent 1 with tasks that have begun and have not connected.
fn agent(tasks: u32) -> Member {
    begun(not_launched(job(1, tasks)), tasks)
}

fn begun(mut agent: Member, tasks: u32) -> Member {
    agent.message(PARENT, launch());
    for rank in 0..tasks {
        agent.input(Input::Spawned { job: JOB, rank: Rank(rank), result: Ok(100 + rank) });
    }
    agent.message(PARENT, Message::Ping { next_ms: 100_000 });
    agent.effects();
    agent
}

fn not_launched(job: JobSpec) -> Member {
    let job = JobSpec { pmi_port: true, ..job };
    let mut agent = Member::agent_of(1, Tree::Flat, IdSet::default(), job);
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: Some(PORT), open_mpi: vec![] });
    agent.effects();
    agent
}

fn connects(agent: &mut Member, caller: u64) {
    agent.input(Input::Caller { job: JOB, caller: CallerId(caller), uid: Some(OWN) });
}

fn says(agent: &mut Member, caller: u64, words: &'static str) {
    agent.input(Input::CallerData(JOB, CallerId(caller), Bytes::from_static(words.as_bytes())));
}

fn calls(agent: &mut Member, caller: u64, words: &'static str) -> Vec<Effect> {
    connects(agent, caller);
    says(agent, caller, words);
    agent.effects()
}

fn admitted(caller: u64, rank: u32) -> Effect {
    Effect::AdmitCaller { caller: CallerId(caller), job: JOB, rank: Rank(rank) }
}

/// Checks that this caller alone was turned away, and the user told why.
#[track_caller]
fn assert_refused(effects: &[Effect], caller: u64, why: &str) {
    let [Effect::DropCaller(dropped), Effect::Send { message, .. }] = effects else {
        panic!("{effects:?}")
    };
    assert_eq!(*dropped, CallerId(caller));
    let Message::Warning(JOB, JobWarning::RefusedCall { agent, words }) = message else {
        panic!("{message:?}")
    };
    assert_eq!((*agent, words.as_str()), (AgentId(1), why));
}

#[test]
fn tasks_are_told_the_port_and_their_number_and_no_descriptor() {
    let mut agent = not_launched(job(1, 2));
    agent.message(PARENT, launch());
    let effects = agent.effects();
    let env = |effect| if let Effect::Spawn(spawn) = effect { Some(spawn.env) } else { None };
    let envs: Vec<Vec<Bytes>> = effects.into_iter().filter_map(env).collect();
    assert_eq!(envs.len(), 2);
    for (rank, env) in envs.into_iter().enumerate() {
        let id = format!("PMI_ID={rank}");
        assert_eq!(env[..2], ["PMI_PORT=127.0.0.1:4000".to_owned(), id].map(Bytes::from));
        assert!(!env.iter().any(|variable| variable.starts_with(b"PMI_FD=")));
    }
}

#[test]
fn a_program_that_says_its_rank_is_the_task_from_then_on() {
    let mut agent = agent(2);
    assert_eq!(calls(&mut agent, 1, "cmd=init"), []);
    says(&mut agent, 1, "ack pmiid=1\ncmd=get_appnum\n");
    let effects = agent.effects();
    assert_eq!(effects[0], admitted(1, 1));
    let replies: Vec<&Effect> = effects[1..].iter().collect();
    let expected = "cmd=initack rc=0 rank=1 size=2 appnum=0 debug=0\n\
                    cmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n";
    let send = |data: &'static str| Effect::PmiSend { job: JOB, rank: Rank(1), data: data.into() };
    assert_eq!(replies, [&send(expected), &send("cmd=appnum appnum=0 rc=0\n")]);
    says(&mut agent, 1, "cmd=initack pmiid=0\n");
    assert_eq!(agent.effects(), [], "it is no caller any more");
}

#[test]
fn a_program_of_pmi_2_is_greeted_before_it_says_its_rank() {
    let mut agent = agent(2);
    let greeted = |caller| Effect::AnswerCaller {
        caller: CallerId(caller),
        data: "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n".into(),
    };
    let init = "cmd=init pmi_version=2 pmi_subversion=0\n";
    for (caller, rank, full_init) in [
        (1, 1, "36    cmd=fullinit;srcid=1;threaded=FALSE;"),
        (2, 0, "    23cmd=fullinit;pmirank=0;"),
    ] {
        assert_eq!(calls(&mut agent, caller, init), [greeted(caller)]);
        says(&mut agent, caller, full_init);
        let effects = agent.effects();
        assert_eq!(effects[0], admitted(caller, rank));
        let [Effect::PmiSend { data, .. }] = &effects[1..] else { panic!("{effects:?}") };
        let told = format!("rc=0;pmi-version=2;pmi-subversion=0;rank={rank};size=2;");
        assert!(data.windows(told.len()).any(|part| part == told.as_bytes()), "{data:?}");
    }
    for (caller, full_init, why) in [
        (3, "21    cmd=fullinit;srcid=1;", "it says that it is task 1, which is connected"),
        (
            4,
            "21    cmd=fullinit;srcid=2;",
            "it says that it is task 2, which does not run on this node",
        ),
    ] {
        calls(&mut agent, caller, init);
        says(&mut agent, caller, full_init);
        assert_refused(&agent.effects(), caller, why);
    }
}

#[test]
fn a_greeting_buys_nobody_time() {
    let mut agent = agent(1);
    connects(&mut agent, 1);
    agent.pass(Duration::from_secs(9));
    says(&mut agent, 1, "cmd=init pmi_version=2 pmi_subversion=0\n");
    agent.effects();
    agent.pass(Duration::from_secs(1));
    assert_refused(&agent.effects(), 1, "it has not said its rank within 10 s");
}

#[test]
fn a_program_of_pmi_2_that_is_not_offered_ends_the_job_with_the_reason() {
    let spec = JobSpec { pmi: PmiOffer::One, ..job(1, 1) };
    let mut agent = begun(not_launched(spec), 1);
    calls(&mut agent, 1, "cmd=init pmi_version=2 pmi_subversion=0\n");
    says(&mut agent, 1, "21    cmd=fullinit;srcid=0;");
    let sent = agent.sent();
    let told = sent.iter().any(|message| {
        let Message::JobFault(JOB, fault) = message else { return false };
        let words = "PMI-2 is what `--pmi` leaves out: use `--pmi auto`";
        matches!(&**fault, JobFault::Pmi { rank: Rank(0), words: told } if told == words)
    });
    assert!(told, "{sent:?}");
}

#[test]
fn whoever_is_not_a_tasks_only_program_is_turned_away_and_the_user_told() {
    let refusals = [
        (
            "GET / HTTP/1.1\n",
            "it does not say its rank, as `cmd=initack` and PMI-2's `cmd=fullinit` do, but `GET / \
             HTTP/1.1`",
        ),
        ("cmd=initack pmiid=2\n", "it says that it is task 2, which does not run on this node"),
        ("cmd=initack pmiid=0\n", "it says that it is task 0, which is connected"),
        ("cmd=initack pmiid=1\n", "it says that it is task 1, which has ended"),
    ];
    for (words, why) in refusals {
        let mut agent = agent(2);
        calls(&mut agent, 1, "cmd=initack pmiid=0\n");
        agent.exits(1, ExitStatus::SUCCESS);
        agent.effects();
        let effects = calls(&mut agent, 2, words);
        assert_refused(&effects, 2, why);
        let data = Bytes::from_static(b"cmd=get_appnum\n");
        agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
        assert!(matches!(agent.effects()[..], [Effect::PmiSend { .. }]), "task 0 is still served");
    }
}

#[test]
fn a_call_for_a_task_that_has_not_begun_is_refused() {
    let mut agent = not_launched(job(1, 1));
    let effects = calls(&mut agent, 1, "cmd=initack pmiid=0\n");
    assert_refused(&effects, 1, "it says that it is task 0, which has not begun");
}

#[test]
fn processes_of_the_own_user_and_of_root_may_call_and_no_others() {
    for (uid, why) in [
        (Some(OWN), None),
        (Some(0), None),
        (Some(1001), Some("it is a process of user 1001, and the tasks are of user 1000")),
        (None, Some("nothing tells whose process it is")),
    ] {
        let mut agent = agent(1);
        agent.input(Input::Caller { job: JOB, caller: CallerId(1), uid });
        let effects = agent.effects();
        match why {
            None => assert_eq!(effects, []),
            Some(why) => assert_refused(&effects, 1, why),
        }
        says(&mut agent, 1, "cmd=initack pmiid=0\n");
        assert_eq!(agent.effects().first() == Some(&admitted(1, 0)), why.is_none());
    }
}

#[test]
fn who_says_nothing_for_ten_seconds_is_turned_away_and_no_other() {
    let mut agent = agent(2);
    connects(&mut agent, 1);
    agent.pass(Duration::from_secs(4));
    connects(&mut agent, 2);
    agent.pass(Duration::from_millis(5_999));
    assert_eq!(agent.effects(), []);
    agent.pass(Duration::from_millis(1));
    assert_refused(&agent.effects(), 1, "it has not said its rank within 10 s");
    says(&mut agent, 2, "cmd=initack pmiid=0\n");
    assert_eq!(agent.effects().first(), Some(&admitted(2, 0)));
    agent.pass(Duration::from_secs(60));
    assert_eq!(agent.effects(), [], "who is admitted may be silent");
}

#[test]
fn so_many_may_wait_and_who_hangs_up_makes_room() {
    let mut agent = agent(1);
    (0..1024).for_each(|caller| connects(&mut agent, caller));
    assert_eq!(agent.effects(), []);
    connects(&mut agent, 5000);
    assert_refused(&agent.effects(), 5000, "1024 others have connected and not said their ranks");
    agent.input(Input::CallerGone(JOB, CallerId(17)));
    connects(&mut agent, 5001);
    assert_eq!(agent.effects(), []);
}

#[test]
fn the_user_is_told_of_a_few_strangers_and_not_of_a_thousand() {
    let mut agent = agent(1);
    let mut warnings = 0;
    for caller in 0..1000 {
        let effects = calls(&mut agent, caller, "hello\n");
        assert_eq!(effects.first(), Some(&Effect::DropCaller(CallerId(caller))));
        warnings += effects.len() - 1;
    }
    assert_eq!(warnings, 8);
}

#[test]
fn a_further_program_of_a_task_may_follow_one_that_has_finalized_and_none_that_has_not() {
    for (words, is_let_in) in [("cmd=finalize\n", true), ("", false)] {
        let mut agent = agent(1);
        calls(&mut agent, 1, "cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n");
        let data = Bytes::from_static(words.as_bytes());
        agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
        agent.input(Input::TaskPmiClosed { job: JOB, rank: Rank(0) });
        agent.effects();
        let effects = calls(&mut agent, 2, "cmd=initack pmiid=0\n");
        if is_let_in {
            assert_eq!(effects[0], admitted(2, 0));
        } else {
            let why = "it says that it is task 0, which has closed its connection before it had \
                       finalized PMI";
            assert_refused(&effects, 2, why);
            agent.pass(Duration::from_secs(1));
            let fault = Box::new(JobFault::Unfinalized { rank: Rank(0), status: None });
            assert!(agent.sent().contains(&Message::JobFault(JOB, fault)));
        }
    }
}

#[test]
fn once_the_tasks_have_ended_nobody_is_let_in_and_nobody_told() {
    let mut agent = agent(1);
    connects(&mut agent, 1);
    agent.exits(0, ExitStatus::SUCCESS);
    assert!(agent.effects().contains(&Effect::Sweep(JOB)));
    says(&mut agent, 1, "cmd=initack pmiid=0\n");
    assert_eq!(agent.effects(), []);
    connects(&mut agent, 2);
    assert_eq!(agent.effects(), [Effect::DropCaller(CallerId(2))]);
}

#[test]
fn the_port_is_kept_where_the_job_is_placed_anew() {
    let spec = JobSpec { pmi_port: true, is_movable: true, ..job_on_each(2) };
    let mut agent = Member::agent_of(1, Tree::Flat, IdSet::default(), spec);
    agent.input(Input::Prepared { job: JOB, fault: None, pmi_port: Some(PORT), open_mpi: vec![] });
    connects(&mut agent, 1);
    let map = Some(TaskMap::from_counts([2]).unwrap());
    let launch = Launch { job: JOB, members: IdSet::range(1, 1), map };
    agent.message(PARENT, Message::Launch(Box::new(launch)));
    for rank in 0..2 {
        agent.input(Input::Spawned { job: JOB, rank: Rank(rank), result: Ok(100 + rank) });
    }
    agent.effects();
    says(&mut agent, 1, "cmd=initack pmiid=1\n");
    assert_eq!(agent.effects().first(), Some(&admitted(1, 1)));
    assert_eq!(calls(&mut agent, 2, "cmd=initack pmiid=0\n").first(), Some(&admitted(2, 0)));
}

#[test]
fn the_head_tells_the_user_of_a_refusal_and_the_job_goes_on() {
    let mut head = running(1, |_| {});
    while head.engine.poll_event().is_some() {}
    let warning = JobWarning::RefusedCall { agent: AgentId(1), words: "why".into() };
    head.message(engine::LinkId(1), Message::Warning(JOB, warning.clone()));
    assert_eq!(head.engine.poll_event(), Some(proto::Event::JobWarning(JOB, warning)));
    assert_eq!(head.effects(), []);
    assert_eq!(head.outcome().faults, []);
}
