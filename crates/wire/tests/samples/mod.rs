//! One message of every kind, with every field set, for the golden frames.

use core::time::Duration;

use bytes::Bytes;
use model::{
    AgentId, ExitStatus, FilePattern, IdSet, JobId, NameReply, NameRequest, PairName, PmiOffer,
    Rank, RankGroup, RingStretch, Route, Signal, SpawnProgram, SpawnReply, SpawnRequest,
    StatusRuns, TaskMap, Tree, Usage,
};
use wire::{
    AgentLoss, App, Collective, Contact, Exchanged, Forward, Hello, IoSpec, JobFault, JobSpec,
    JobWarning, Launch, LossCause, Mark, MarkKind, Message, Milestone, Origin, Output, OutputSpec,
    Part, Payload, Reads, Routes, SessionSpec, ShellFailureKind, StartCause, StartFailure, Stats,
    Stdin, Stream, TaskRecord, Welcome, Work,
};

const JOB: JobId = JobId(1);

/// One message of every variant, in the order of the variants.
pub(crate) fn messages() -> Vec<Message> {
    vec![
        Message::Hello(Hello { attempt: 2, pid: 4711 }),
        Message::Welcome(Box::new(welcome())),
        Message::Job(Box::new(job_spec())),
        Message::Joined(IdSet::range(3, 300)),
        Message::StartFailed(vec![start_failure()]),
        Message::JoinDeadline,
        Message::Launch(Box::new(launch())),
        Message::JobFault(JOB, Box::new(job_fault())),
        Message::Enter { job: JOB, fence: 1, payload: Bytes::from_static(b"cards below") },
        Message::Release { job: JOB, fence: 1, payload: Bytes::from_static(b"all cards") },
        Message::Output(output(Stream::Stdout)),
        Message::OutputCredit(1 << 20),
        input(),
        Message::InputEnd(JOB),
        Message::InputCredit(JOB, 65_536),
        Message::InputClosed(JOB),
        Message::Signal(JOB, Signal(10)),
        Message::Stop { job: JOB, grace_ms: 2_000 },
        Message::Done { job: JOB, statuses: statuses(), by_order: true },
        Message::Lost(agent_loss()),
        Message::Shutdown,
        Message::Bye(Box::new(stats())),
        Message::Ping { next_ms: 3_000 },
        Message::Suspend(true),
        Message::MoreWork(3),
        Message::Work(Box::new(work())),
        Message::Marks(marks()),
        Message::Records(JOB, vec![task_record()]),
        Message::GroupEnter { job: JOB, group: group(), payload: Bytes::from_static(b"cards") },
        Message::GroupRelease { job: JOB, group: group(), payload: Bytes::from_static(b"all") },
        Message::GroupAwaited(JOB, group()),
        Message::Warning(JOB, job_warning()),
        Message::NameRequest(JOB, Rank(3), Box::new(name_request())),
        Message::NameReply(JOB, Rank(3), Box::new(NameReply::Found(b"tag#0$".to_vec()))),
        Message::SpawnRequest(JOB, Rank(3), Box::new(spawn_request())),
        Message::SpawnReply(JOB, Rank(3), Box::new(SpawnReply::Refused("no slots".into()))),
        Message::Spawn(Box::new(spawned_job())),
        Message::Reached(JOB, Milestone::Created),
        Message::RingEnter(JOB, 2, Box::new(ring_stretch())),
        Message::RingPlace(JOB, 2, Box::new(ring_stretch().close())),
        Message::AllgatherEnter(JOB, 2, Bytes::from_static(b"\x03\x02\x01ab")),
        Message::AllgatherRelease(JOB, 2, Bytes::from_static(b"\0\x05\x01abcde")),
        Message::Contacts(vec![contact()]),
        Message::Resolve(AgentId(9)),
        Message::Route(Box::new(Routes { members: IdSet::range(1, 9), contacts: vec![contact()] })),
        Message::Attach([0, 7]),
        Message::Received([16, 300]),
        Message::Routed,
        forward(),
        Message::Gone(IdSet::range(2, 3)),
        Message::Held(JOB, 1, true),
        Message::Fetch(JOB, pair_name()),
        Message::Fetched(JOB, pair_name(), Some(Bytes::from_static(b"tag#0$"))),
        Message::EnterPart(JOB, part(Collective::Fence, false)),
        Message::ReleasePart(JOB, part(Collective::Allgather, true)),
    ]
}

fn part(of: Collective, is_last: bool) -> Part {
    let mut payload = Payload::from(Bytes::from(b"some cards".repeat(30)));
    if is_last {
        payload.pack();
    }
    Part { of, number: 1, is_last, payload }
}

/// Messages whose frames take other paths than those of [`messages`].
pub(crate) fn further_messages() -> Vec<(&'static str, Message)> {
    vec![
        ("output_stderr", Message::Output(output(Stream::Stderr))),
        ("joined_nobody", Message::Joined(IdSet::new())),
    ]
}

/// The name of a message's golden file. A variant that is added needs a sample above too.
pub(crate) fn name(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "hello",
        Message::Welcome(_) => "welcome",
        Message::Job(_) => "job",
        Message::Joined(_) => "joined",
        Message::StartFailed(_) => "start_failed",
        Message::JoinDeadline => "join_deadline",
        Message::Launch(_) => "launch",
        Message::JobFault(..) => "job_fault",
        Message::Enter { .. } => "enter",
        Message::Release { .. } => "release",
        Message::Held(..) => "held",
        Message::Fetch(..) => "fetch",
        Message::Fetched(..) => "fetched",
        Message::EnterPart(..) => "enter_part",
        Message::ReleasePart(..) => "release_part",
        Message::Output(_) => "output",
        Message::OutputCredit(_) => "output_credit",
        Message::Input { .. } => "input",
        Message::InputEnd(..) => "input_end",
        Message::InputCredit(..) => "input_credit",
        Message::InputClosed(_) => "input_closed",
        Message::Signal(..) => "signal",
        Message::Stop { .. } => "stop",
        Message::Done { .. } => "done",
        Message::Lost(_) => "lost",
        Message::Shutdown => "shutdown",
        Message::Bye(_) => "bye",
        Message::Ping { .. } => "ping",
        Message::Suspend(_) => "suspend",
        Message::MoreWork(_) => "more_work",
        Message::Work(_) => "work",
        Message::Marks(_) => "marks",
        Message::Records(..) => "records",
        Message::GroupEnter { .. } => "group_enter",
        Message::GroupRelease { .. } => "group_release",
        Message::GroupAwaited(..) => "group_awaited",
        Message::Warning(..) => "warning",
        Message::NameRequest(..) => "name_request",
        Message::NameReply(..) => "name_reply",
        Message::SpawnRequest(..) => "spawn_request",
        Message::SpawnReply(..) => "spawn_reply",
        Message::Spawn(_) => "spawn",
        Message::Reached(..) => "reached",
        Message::RingEnter(..) => "ring_enter",
        Message::RingPlace(..) => "ring_place",
        Message::AllgatherEnter(..) => "allgather_enter",
        Message::AllgatherRelease(..) => "allgather_release",
        Message::Contacts(_) => "contacts",
        Message::Resolve(_) => "resolve",
        Message::Route(_) => "route",
        Message::Attach(_) => "attach",
        Message::Received(_) => "received",
        Message::Routed => "routed",
        Message::Forward(_) => "forward",
        Message::Gone(_) => "gone",
    }
}

fn group() -> Box<RankGroup> {
    Box::new(RankGroup { ranks: [0, 2, 3].into_iter().collect(), tag: 1234 })
}

fn welcome() -> Welcome {
    Welcome {
        tree: Tree::Greedy {
            latency: Duration::from_millis(257),
            gap: Duration::from_micros(7_500),
        },
        below: IdSet::range(4, 7).union(&IdSet::range(12, 12)),
        names: "n[04-07,12]".into(),
        own_name: "n03".into(),
        session: SessionSpec {
            bootstrap: vec![1, 0, 255],
            bulk_max: 1,
            window: 16,
            batch: Some(8),
            retries_max: 4,
            start_timeout_ms: 30_000,
            heartbeat_ms: 3_000,
            link_timeout_ms: 9_000,
            marks: true,
            route: Some(Route::Kary(3)),
            redundancy: 2,
            pushes_contacts: true,
        },
    }
}

fn forward() -> Message {
    let message = Message::OutputCredit(7);
    Message::Forward(Forward::new(AgentId(4), AgentId(9), Some(AgentId(8)), &message).unwrap())
}

fn contact() -> (AgentId, Contact) {
    let addresses = ["10.0.0.4:4711", "[fd00::4]:4711"].map(|text| text.parse().unwrap());
    (AgentId(4), Contact::from(addresses.to_vec()))
}

fn work() -> Work {
    Work { below: IdSet::range(8, 9), names: "n[08-09]".into() }
}

fn launch() -> Launch {
    let map = TaskMap::from_counts([2, 0, 3]).unwrap();
    Launch { job: JOB, members: IdSet::range(1, 1).union(&IdSet::range(3, 3)), map: Some(map) }
}

fn ring_stretch() -> RingStretch {
    RingStretch { count: 300, left: b"first".to_vec(), right: b"last".to_vec() }
}

fn spawn_request() -> SpawnRequest {
    let program = SpawnProgram {
        tasks: 2,
        argv: vec![b"./worker".to_vec(), b"x y".to_vec()],
        info: vec![(b"wdir".to_vec(), b"/tmp".to_vec())],
    };
    SpawnRequest { programs: vec![program], preput: vec![preput()] }
}

fn spawned_job() -> JobSpec {
    let origin = Origin { kvsname: "kvs_0".into(), preput: vec![preput()] };
    JobSpec { job: JobId(9), origin: Some(origin), ..job_spec() }
}

fn preput() -> (Vec<u8>, Vec<u8>) {
    (b"PARENT_ROOT_PORT_NAME".to_vec(), b"tag#0$".to_vec())
}

fn name_request() -> NameRequest {
    NameRequest::Publish { service: b"ocean".to_vec(), port: b"tag#0$".to_vec() }
}

fn job_spec() -> JobSpec {
    JobSpec {
        job: JOB,
        apps: vec![app(0, b"./ring"), app(4, b"\xff not text\n")],
        env: vec![Bytes::from_static(b"A=b=c"), Bytes::from_static(b"EMPTY=")],
        map: TaskMap::from_counts([2, 2, 3]).unwrap(),
        is_movable: true,
        kvsname: "kvs_1".into(),
        universe_size: Some(8),
        pmi: PmiOffer::Two,
        pmi_port: true,
        origin: None,
        io: IoSpec { stdin: Stdin::Task(Rank(0)), output: output_spec(), records: true },
        stop_on_failure: true,
        grace_ms: 2_000,
    }
}

fn output_spec() -> OutputSpec {
    let file = |name: &str| Some(FilePattern::new(name).unwrap());
    let (stdout, stderr) = (file("/out/%0r.out"), file("/out/%0r.err"));
    OutputSpec { stdout, stderr, local: true, tee: true, merged: false }
}

fn app(first_rank: u32, program: &'static [u8]) -> App {
    App {
        first_rank: Rank(first_rank),
        argv: vec![Bytes::from_static(program), Bytes::from_static(b"-v")],
        env: vec![Bytes::from_static(b"OWN=1")],
        dir: Bytes::from_static(b"/home/user"),
    }
}

fn start_failure() -> StartFailure {
    StartFailure {
        agents: IdSet::range(17, 19),
        cause: StartCause::Shell(ShellFailureKind::Refused, ExitStatus::Exited(255)),
        words: "ssh: connect to host n017 port 22: Connection refused".into(),
        elapsed_ms: 1_200,
        attempts: 3,
        by: AgentId(2),
    }
}

fn job_fault() -> JobFault {
    JobFault::Program { agent: AgentId(3), app: 1, errno: 2, words: "ring in /usr/bin:/bin".into() }
}

fn job_warning() -> JobWarning {
    JobWarning::RefusedCall { agent: AgentId(3), words: "it says nothing".into() }
}

fn output(stream: Stream) -> Output {
    let data = Bytes::from_static(b"a line\n");
    Output { job: JOB, rank: Rank(6), stream, offset: 1 << 33, lead: Bytes::new(), data }
}

fn input() -> Message {
    Message::Input { job: JOB, offset: 5, data: Bytes::from_static(b"typed\n") }
}

fn statuses() -> StatusRuns {
    let mut statuses = StatusRuns::new();
    for rank in 0..6 {
        statuses.insert(Rank(rank), ExitStatus::Exited(0));
    }
    statuses.insert(Rank(6), ExitStatus::Signaled { signal: Signal(11), core: true });
    statuses
}

fn agent_loss() -> AgentLoss {
    AgentLoss {
        agent: AgentId(4),
        agents: IdSet::range(4, 5),
        again: IdSet::range(6, 9),
        cause: LossCause::Shell(ExitStatus::Exited(255)),
        words: "Connection to n04 closed by remote host.".into(),
    }
}

fn marks() -> Vec<Mark> {
    let (agent, by) = (AgentId(4), AgentId(2));
    vec![
        Mark { agent, by, kind: MarkKind::Started, at_us: 250 },
        Mark { agent, by: agent, kind: MarkKind::TasksEnded, at_us: 1 << 33 },
    ]
}

fn task_record() -> TaskRecord {
    TaskRecord {
        rank: Rank(6),
        pid: 4712,
        status: ExitStatus::Signaled { signal: Signal(11), core: true },
        wall_us: 1_028_000,
        usage: Usage {
            user_us: 900_000,
            system_us: 30_000,
            rss_max_kib: 40_960,
            minor_faults: 1_200,
            major_faults: 3,
            voluntary_switches: 17,
            involuntary_switches: 5,
        },
        last_words: Bytes::from_static(b"ring: no neighbour\n"),
    }
}

fn stats() -> Stats {
    Stats {
        agents: 6,
        messages: [1, 5, 2, 3, 4],
        bytes: [100, 50, 200, 300, 1 << 40],
        exchanged: Exchanged { messages: 2, bytes: 270 },
        links_max: 3,
        retries: 1,
        shell_links: 2,
        deliveries: 1,
        join_us_max: 1_028_000,
        reads: Reads { own: 40, way: 30, head: 20, missing: 1 },
        unfinished: IdSet::range(4, 5),
    }
}

fn pair_name() -> Box<PairName> {
    Box::new(PairName { space: b"kvs_0.3.0".to_vec(), key: b"card-7".to_vec() })
}
