//! Messages with arbitrary contents, for properties.

use core::time::Duration;

use bytes::Bytes;
use model::{
    AgentId, ExitStatus, FilePattern, IdSet, JobId, NameReply, NameRequest, PairName, PmiOffer,
    Rank, RankGroup, RingStretch, Route, Signal, SpawnProgram, SpawnReply, SpawnRequest,
    SpawnedTasks, StatusRuns, TaskMap, Tree, Usage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::{
    AgentLoss, App, Collective, Contact, Exchanged, Forward, Hello, IoSpec, JobFault, JobSpec,
    JobWarning, Launch, LossCause, Mark, MarkKind, Message, Milestone, Origin, Output, OutputSpec,
    Part, Payload, Reads, Routes, SessionSpec, ShellFailureKind, StartCause, StartFailure, Stats,
    Stdin, Stream, TaskRecord, Welcome, Work,
};

/// Any message, all variants alike.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![start_message(), job_message(), stream_message(), end_message()]
}

/// Any output or input.
pub(crate) fn data_message() -> impl Strategy<Value = Message> {
    prop_oneof![output().prop_map(Message::Output), input()]
}

fn start_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        any::<(u32, u32)>().prop_map(|(attempt, pid)| Message::Hello(Hello { attempt, pid })),
        welcome().prop_map(|welcome| Message::Welcome(Box::new(welcome))),
        job_spec().prop_map(|spec| Message::Job(Box::new(spec))),
        id_set().prop_map(Message::Joined),
        vec(start_failure(), 0..4).prop_map(Message::StartFailed),
        Just(Message::JoinDeadline),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let of = prop_oneof![Just(Collective::Fence), Just(Collective::Allgather)];
    (of, number(), any::<bool>(), payload()).prop_map(|(of, number, is_last, payload)| Part {
        of,
        number,
        is_last,
        payload,
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    (blob(), 1..100_usize, any::<bool>()).prop_map(|(bytes, times, packs)| {
        let mut payload = Payload::from(Bytes::from(bytes.repeat(times)));
        if packs {
            payload.pack();
        }
        payload
    })
}

fn job_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        launch().prop_map(|launch| Message::Launch(Box::new(launch))),
        (job(), job_fault()).prop_map(|(job, fault)| Message::JobFault(job, Box::new(fault))),
        (job(), any::<u32>(), blob()).prop_map(|(job, fence, payload)| Message::Enter {
            job,
            fence,
            payload
        }),
        (job(), any::<u32>(), blob()).prop_map(|(job, fence, payload)| Message::Release {
            job,
            fence,
            payload
        }),
        (job(), number(), any::<bool>())
            .prop_map(|(job, fence, is_stale)| Message::Held(job, fence, is_stale)),
        (job(), pair_name()).prop_map(|(job, name)| Message::Fetch(job, Box::new(name))),
        (job(), pair_name(), option::of(blob())).prop_map(|(job, name, value)| Message::Fetched(
            job,
            Box::new(name),
            value
        )),
        (job(), group(), blob()).prop_map(|(job, group, payload)| Message::GroupEnter {
            job,
            group,
            payload
        }),
        (job(), group(), blob()).prop_map(|(job, group, payload)| Message::GroupRelease {
            job,
            group,
            payload
        }),
        (job(), group()).prop_map(|(job, group)| Message::GroupAwaited(job, group)),
        (job(), number(), ring_stretch())
            .prop_map(|(job, ring, stretch)| { Message::RingEnter(job, ring, Box::new(stretch)) }),
        (job(), number(), ring_stretch()).prop_map(|(job, ring, stretch)| {
            Message::RingPlace(job, ring, Box::new(stretch.close()))
        }),
        (job(), number(), blob())
            .prop_map(|(job, number, values)| Message::AllgatherEnter(job, number, values)),
        (job(), number(), blob())
            .prop_map(|(job, number, values)| Message::AllgatherRelease(job, number, values)),
        (job(), part()).prop_map(|(job, part)| Message::EnterPart(job, part)),
        (job(), part()).prop_map(|(job, part)| Message::ReleasePart(job, part)),
        (job(), rank(), name_request()).prop_map(|(job, rank, request)| {
            Message::NameRequest(job, rank, Box::new(request))
        }),
        (job(), rank(), name_reply()).prop_map(|(job, rank, reply)| Message::NameReply(
            job,
            rank,
            Box::new(reply)
        )),
        (job(), rank(), spawn_request()).prop_map(|(job, rank, request)| {
            Message::SpawnRequest(job, rank, Box::new(request))
        }),
        (job(), rank(), spawn_reply())
            .prop_map(|(job, rank, reply)| { Message::SpawnReply(job, rank, Box::new(reply)) }),
        job_spec().prop_map(|spec| Message::Spawn(Box::new(spec))),
        (job(), prop_oneof![Just(Milestone::Prepared), Just(Milestone::Created)])
            .prop_map(|(job, milestone)| Message::Reached(job, milestone)),
        (job(), rank(), words()).prop_map(|(job, rank, words)| {
            Message::Warning(job, JobWarning::SpawnRefused { rank, words })
        }),
        (job(), agent(), words()).prop_map(|(job, agent, words)| {
            Message::Warning(job, JobWarning::RefusedCall { agent, words })
        }),
        (job(), agent(), number(), words()).prop_map(|(job, agent, app, library)| {
            Message::Warning(job, JobWarning::OpenMpi { agent, app, library })
        }),
        (job(), signal()).prop_map(|(job, signal)| Message::Signal(job, signal)),
        (job(), number()).prop_map(|(job, grace_ms)| Message::Stop { job, grace_ms }),
    ]
}

fn group() -> impl Strategy<Value = Box<RankGroup>> {
    (id_set(), any::<i32>()).prop_map(|(ranks, tag)| Box::new(RankGroup { ranks, tag }))
}

fn stream_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        data_message(),
        any::<u32>().prop_map(Message::OutputCredit),
        job().prop_map(Message::InputEnd),
        (job(), number()).prop_map(|(job, credit)| Message::InputCredit(job, credit)),
        job().prop_map(Message::InputClosed),
    ]
}

fn end_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (job(), statuses(), any::<bool>()).prop_map(|(job, statuses, by_order)| Message::Done {
            job,
            statuses,
            by_order
        }),
        agent_loss().prop_map(Message::Lost),
        Just(Message::Shutdown),
        stats().prop_map(|stats| Message::Bye(Box::new(stats))),
        any::<u32>().prop_map(|next_ms| Message::Ping { next_ms }),
        any::<bool>().prop_map(Message::Suspend),
        any::<u32>().prop_map(Message::MoreWork),
        (id_set(), words())
            .prop_map(|(below, names)| Message::Work(Box::new(Work { below, names }))),
        vec(mark(), 0..5).prop_map(Message::Marks),
        (job(), vec(task_record(), 0..5)).prop_map(|(job, all)| Message::Records(job, all)),
        routed(),
    ]
}

fn mark() -> impl Strategy<Value = Mark> {
    let kind = prop_oneof![Just(MarkKind::Started), Just(MarkKind::Left), Just(MarkKind::GivenUp)];
    (any::<(u32, u32)>(), kind, any::<u64>()).prop_map(|((agent, by), kind, at_us)| Mark {
        agent: AgentId(agent),
        by: AgentId(by),
        kind,
        at_us,
    })
}

fn task_record() -> impl Strategy<Value = TaskRecord> {
    (rank(), number(), status(), any::<u64>(), any::<[u64; 7]>(), blob()).prop_map(
        |(rank, pid, status, wall_us, numbers, last_words)| {
            let [user_us, system_us, rss_max_kib, minor_faults, major_faults, voluntary, other] =
                numbers;
            let usage = Usage {
                user_us,
                system_us,
                rss_max_kib,
                minor_faults,
                major_faults,
                voluntary_switches: voluntary,
                involuntary_switches: other,
            };
            TaskRecord { rank, pid, status, wall_us, usage, last_words }
        },
    )
}

fn output() -> impl Strategy<Value = Output> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    (job(), rank(), stream, any::<u64>(), blob()).prop_map(|(job, rank, stream, offset, data)| {
        Output { job, rank, stream, offset, lead: Bytes::new(), data }
    })
}

fn input() -> impl Strategy<Value = Message> {
    (job(), any::<u64>(), blob()).prop_map(|(job, offset, data)| Message::Input {
        job,
        offset,
        data,
    })
}

fn welcome() -> impl Strategy<Value = Welcome> {
    (tree(), id_set(), words(), words(), session_spec()).prop_map(
        |(tree, below, names, own_name, session)| Welcome { tree, below, names, own_name, session },
    )
}

fn session_spec() -> impl Strategy<Value = SessionSpec> {
    let numbers = any::<[u32; 6]>();
    let routes = (option::of(route()), any::<u8>());
    let others = (option::of(number()), any::<bool>(), routes, any::<bool>());
    (vec(any::<u8>(), 0..20), numbers, others).prop_map(|(bootstrap, numbers, others)| {
        let (batch, marks, (route, redundancy), pushes_contacts) = others;
        let [bulk_max, window, retries_max, start_timeout_ms, heartbeat_ms, link_timeout_ms] =
            numbers;
        SessionSpec {
            bootstrap,
            bulk_max,
            window,
            batch,
            retries_max,
            start_timeout_ms,
            heartbeat_ms,
            link_timeout_ms,
            marks,
            route,
            redundancy,
            pushes_contacts,
        }
    })
}

fn launch() -> impl Strategy<Value = Launch> {
    let map = option::of(vec(0_u32..5, 0..5));
    (job(), id_set(), map).prop_map(|(job, members, counts)| {
        let map = counts.map(|counts| TaskMap::from_counts(counts).unwrap());
        Launch { job, members, map }
    })
}

fn app() -> impl Strategy<Value = App> {
    (rank(), vec(blob(), 0..5), vec(blob(), 0..5), blob())
        .prop_map(|(first_rank, argv, env, dir)| App { first_rank, argv, env, dir })
}

fn job_spec() -> impl Strategy<Value = JobSpec> {
    let texts = (vec(app(), 0..3), vec(blob(), 0..5), words(), option::of(origin()));
    let options = (option::of(number()), io_spec(), any::<[bool; 3]>(), number(), pmi_offer());
    (job(), texts, vec(0_u32..5, 0..5), options).prop_map(|(job, texts, counts, options)| {
        let (apps, env, kvsname, origin) = texts;
        let (universe_size, io, [is_movable, pmi_port, stop_on_failure], grace_ms, pmi) = options;
        let map = TaskMap::from_counts(counts).unwrap();
        JobSpec {
            job,
            apps,
            env,
            map,
            is_movable,
            kvsname,
            origin,
            universe_size,
            pmi,
            pmi_port,
            io,
            stop_on_failure,
            grace_ms,
        }
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    (words(), vec(name_value(), 0..3)).prop_map(|(kvsname, preput)| Origin { kvsname, preput })
}

fn name_value() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    (vec(any::<u8>(), 0..9), vec(any::<u8>(), 0..9))
}

fn spawn_request() -> impl Strategy<Value = SpawnRequest> {
    let argv = vec(vec(any::<u8>(), 0..9), 0..4);
    let program = (any::<u32>(), argv, vec(name_value(), 0..3))
        .prop_map(|(tasks, argv, info)| SpawnProgram { tasks, argv, info });
    (vec(program, 0..3), vec(name_value(), 0..3))
        .prop_map(|(programs, preput)| SpawnRequest { programs, preput })
}

fn spawn_reply() -> impl Strategy<Value = SpawnReply> {
    prop_oneof![
        (words(), vec(spawned_tasks(), 0..4))
            .prop_map(|(kvsname, programs)| SpawnReply::Started { kvsname, programs }),
        words().prop_map(SpawnReply::Refused),
    ]
}

fn spawned_tasks() -> impl Strategy<Value = SpawnedTasks> {
    (number(), number()).prop_map(|(asked, created)| SpawnedTasks { asked, created })
}

fn ring_stretch() -> impl Strategy<Value = RingStretch> {
    let text = || vec(any::<u8>(), 0..9);
    let parts = (number(), text(), text());
    parts.prop_map(|(count, left, right)| RingStretch { count, left, right })
}

fn name_request() -> impl Strategy<Value = NameRequest> {
    let text = || vec(any::<u8>(), 0..9);
    prop_oneof![
        (text(), text()).prop_map(|(service, port)| NameRequest::Publish { service, port }),
        text().prop_map(NameRequest::Lookup),
        text().prop_map(NameRequest::Unpublish),
        (text(), text()).prop_map(|(job, key)| NameRequest::Value { job, key }),
        text().prop_map(NameRequest::Job),
    ]
}

fn name_reply() -> impl Strategy<Value = NameReply> {
    let found = vec(any::<u8>(), 0..9).prop_map(NameReply::Found);
    prop_oneof![
        Just(NameReply::Done),
        Just(NameReply::NotFound),
        Just(NameReply::Taken),
        Just(NameReply::TooLong),
        found,
    ]
}

fn pmi_offer() -> impl Strategy<Value = PmiOffer> {
    use PmiOffer::{Auto, None, One, Two};
    prop::sample::select(vec![Auto, One, Two, None])
}

fn io_spec() -> impl Strategy<Value = IoSpec> {
    (stdin(), output_spec(), any::<bool>()).prop_map(|(stdin, output, records)| IoSpec {
        stdin,
        output,
        records,
    })
}

fn stdin() -> impl Strategy<Value = Stdin> {
    prop_oneof![Just(Stdin::Nobody), rank().prop_map(Stdin::Task), Just(Stdin::All)]
}

fn output_spec() -> impl Strategy<Value = OutputSpec> {
    let file = || {
        option::of(
            "/[a-z]{0,9}(%[0-9]{0,2}[rn]|%h)?".prop_map(|text| FilePattern::new(text).unwrap()),
        )
    };
    (file(), file(), any::<[bool; 3]>()).prop_map(|(stdout, stderr, [local, tee, merged])| {
        OutputSpec { stdout, stderr, local, tee, merged }
    })
}

fn start_failure() -> impl Strategy<Value = StartFailure> {
    (id_set(), start_cause(), words(), number(), number(), agent()).prop_map(
        |(agents, cause, words, elapsed_ms, attempts, by)| StartFailure {
            agents,
            cause,
            words,
            elapsed_ms,
            attempts,
            by,
        },
    )
}

fn start_cause() -> impl Strategy<Value = StartCause> {
    prop_oneof![
        (shell_failure(), status()).prop_map(|(kind, status)| StartCause::Shell(kind, status)),
        any::<i32>().prop_map(StartCause::NoShell),
        Just(StartCause::Silent),
        Just(StartCause::Deadline),
    ]
}

fn shell_failure() -> impl Strategy<Value = ShellFailureKind> {
    prop_oneof![
        Just(ShellFailureKind::Busy),
        Just(ShellFailureKind::HostKey),
        Just(ShellFailureKind::Other),
        any::<u8>().prop_map(|signal| ShellFailureKind::AgentKilled(Signal(signal))),
    ]
}

fn job_fault() -> impl Strategy<Value = JobFault> {
    prop_oneof![
        (agent(), number(), errno(), words())
            .prop_map(|(agent, app, errno, words)| JobFault::Program { agent, app, errno, words }),
        (agent(), errno(), words()).prop_map(|(agent, errno, words)| JobFault::Directory {
            agent,
            errno,
            words
        }),
        (rank(), errno(), words()).prop_map(|(rank, errno, words)| JobFault::Spawn {
            rank,
            errno,
            words
        }),
        (rank(), status()).prop_map(|(rank, status)| JobFault::Task { rank, status }),
        (rank(), option::of(status()))
            .prop_map(|(rank, status)| JobFault::Unfinalized { rank, status }),
        (rank(), errno(), words()).prop_map(|(rank, code, message)| JobFault::Abort {
            rank,
            code,
            message
        }),
        (rank(), words()).prop_map(|(rank, words)| JobFault::Pmi { rank, words }),
    ]
}

fn agent_loss() -> impl Strategy<Value = AgentLoss> {
    let cause = prop_oneof![
        Just(LossCause::LinkClosed),
        any::<u32>().prop_map(LossCause::Silent),
        status().prop_map(LossCause::Shell),
        Just(LossCause::Misbehaved),
        any::<u32>().prop_map(LossCause::LinkCut),
        any::<u8>().prop_map(|signal| LossCause::Killed(Signal(signal))),
    ];
    (agent(), id_set(), id_set(), cause, words()).prop_map(
        |(agent, agents, again, cause, words)| AgentLoss { agent, agents, again, cause, words },
    )
}

fn pair_name() -> impl Strategy<Value = PairName> {
    let text = || vec(any::<u8>(), 0..9);
    (text(), text()).prop_map(|(space, key)| PairName { space, key })
}

fn stats() -> impl Strategy<Value = Stats> {
    let counts = (any::<[u32; 5]>(), any::<[u64; 5]>(), any::<[u64; 5]>(), any::<u64>());
    (counts, any::<[u64; 6]>(), id_set()).prop_map(
        |(
            ([agents, links_max, retries, shell_links, deliveries], messages, bytes, join_us_max),
            [own, way, head, missing, exchange_messages, exchange_bytes],
            unfinished,
        )| Stats {
            exchanged: Exchanged { messages: exchange_messages, bytes: exchange_bytes },
            reads: Reads { own, way, head, missing },
            agents,
            messages,
            bytes,
            links_max,
            retries,
            shell_links,
            deliveries,
            join_us_max,
            unfinished,
        },
    )
}

fn statuses() -> impl Strategy<Value = StatusRuns> {
    vec((0_u32..20, status()), 0..10).prop_map(|entries| {
        let mut statuses = StatusRuns::new();
        for (rank, status) in entries {
            statuses.insert(Rank(rank), status);
        }
        statuses
    })
}

/// Messages of sessions that route.
fn routed() -> impl Strategy<Value = Message> {
    let contacts = || vec((number().prop_map(AgentId), contact()), 0..5);
    let ends = any::<(u32, u32)>().prop_map(|(from, to)| (AgentId(from), AgentId(to)));
    prop_oneof![
        contacts().prop_map(Message::Contacts),
        number().prop_map(|id| Message::Resolve(AgentId(id))),
        (id_set(), contacts())
            .prop_map(|(members, contacts)| Message::Route(Box::new(Routes { members, contacts }))),
        any::<[u32; 2]>().prop_map(Message::Attach),
        any::<[u32; 2]>().prop_map(Message::Received),
        Just(Message::Routed),
        (ends, option::of(number()), output()).prop_map(|((from, to), via, output)| {
            let forward = Forward::new(from, to, via.map(AgentId), &Message::Output(output));
            Message::Forward(forward.expect("a piece of output fits into a frame"))
        }),
        id_set().prop_map(Message::Gone),
    ]
}

fn contact() -> impl Strategy<Value = Contact> {
    let address = any::<(std::net::IpAddr, u16)>().prop_map(std::net::SocketAddr::from);
    vec(address, 0..40).prop_map(Contact::from)
}

fn tree() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Tree::Flat),
        any::<u16>().prop_map(Tree::Kary),
        any::<(u32, u32)>().prop_map(|(latency, gap)| Tree::Greedy {
            latency: Duration::from_micros(latency.into()),
            gap: Duration::from_nanos(gap.into()),
        }),
        any::<(u32, u32)>().prop_map(|(latency, gap)| Tree::Adaptive {
            latency: Duration::from_micros(latency.into()),
            gap: Duration::from_nanos(gap.into()),
        }),
        route().prop_map(Tree::Routed),
        any::<(u16, u8, u16)>().prop_map(|(cores, depth_max, connections_max)| Tree::Scela {
            cores,
            depth_max,
            connections_max,
        }),
    ]
}

fn route() -> impl Strategy<Value = Route> {
    prop_oneof![Just(Route::Binomial), Just(Route::Direct), any::<u16>().prop_map(Route::Kary)]
}

fn status() -> impl Strategy<Value = ExitStatus> {
    prop_oneof![
        any::<u8>().prop_map(ExitStatus::Exited),
        (signal(), any::<bool>()).prop_map(|(signal, core)| ExitStatus::Signaled { signal, core }),
    ]
}

fn id_set() -> impl Strategy<Value = IdSet> {
    let ids = prop_oneof![0_u32..40, any::<u32>()];
    vec(ids, 0..10).prop_map(|ids| ids.into_iter().collect())
}

fn blob() -> impl Strategy<Value = Bytes> {
    prop_oneof![8 => vec(any::<u8>(), 0..50), 1 => vec(any::<u8>(), 60_000..=65_536)]
        .prop_map(Bytes::from)
}

fn signal() -> impl Strategy<Value = Signal> {
    any::<u8>().prop_map(Signal)
}

fn agent() -> impl Strategy<Value = AgentId> {
    any::<u32>().prop_map(AgentId)
}

fn job() -> impl Strategy<Value = JobId> {
    any::<u32>().prop_map(JobId)
}

fn rank() -> impl Strategy<Value = Rank> {
    any::<u32>().prop_map(Rank)
}

fn number() -> impl Strategy<Value = u32> {
    any::<u32>()
}

fn errno() -> impl Strategy<Value = i32> {
    any::<i32>()
}

fn words() -> impl Strategy<Value = String> {
    any::<String>()
}
