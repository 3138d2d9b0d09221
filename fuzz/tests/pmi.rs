//! Whatever a client sends, however it is cut, the PMI server neither panics nor answers differently.

use std::slice;

use bolero::check;
use bytes::Bytes;
use model::Rank;
use pmi::{Call, ClientError, Effect, Introduction, JobInfo, LocalTask, Pairs, Server};

/// Well under a second of CI; explore with `cargo bolero test`.
const ITERATIONS: usize = 20_000;

/// The input is a line of cuts (the length of each read) and then what the client sends, so that corpus files can
/// be read and written by hand.
#[test]
fn the_cuts_between_reads_do_not_change_the_replies() {
    check!().with_iterations(ITERATIONS).for_each(|input: &[u8]| {
        let line_end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let (cuts, bytes) = input.split_at(line_end);
        assert_eq!(transcript(bytes, &[]), transcript(bytes, cuts));
    });
}

/// Random bytes seldom make a command, so these are made of pieces of commands.
#[test]
fn the_cuts_between_reads_do_not_change_the_replies_to_commands() {
    check!().with_iterations(ITERATIONS).with_type::<(Vec<u8>, Vec<u8>)>().for_each(
        |(cuts, choices)| {
            let bytes: String = choices.iter().map(piece).collect();
            assert_eq!(transcript(bytes.as_bytes(), &[]), transcript(bytes.as_bytes(), cuts));
        },
    );
}

/// Whoever connects to `PMI_PORT` may say anything.
#[test]
fn the_cuts_between_reads_do_not_change_whose_call_it_is() {
    check!().with_iterations(ITERATIONS).with_type::<(Vec<u8>, Vec<u8>, u16)>().for_each(
        |(cuts, choices, fill)| {
            let said: String = choices.iter().map(piece).collect();
            let fill = "x".repeat(usize::from(fill % 300));
            let greeting = "cmd=init pmi_version=2 pmi_subversion=0\n";
            for bytes in [
                format!("cmd=initack pmiid=7 {fill}\n{said}"),
                format!("{greeting}21    cmd=fullinit;srcid=7;{said}"),
                format!("{greeting}{said}{fill}"),
                format!("{said}{fill}\n"),
            ] {
                assert_eq!(caller(bytes.as_bytes(), &[]), caller(bytes.as_bytes(), cuts));
            }
        },
    );
}

/// What is answered before the rank is known, and who that is with all that is sent behind that.
type Called = (Vec<u8>, Result<Option<Introduction>, ClientError>);

fn caller(bytes: &[u8], cuts: &[u8]) -> Called {
    let mut answer = Vec::new();
    let called = introduction(bytes, cuts, &mut answer);
    (answer, called)
}

fn introduction(
    bytes: &[u8],
    cuts: &[u8],
    answer: &mut Vec<u8>,
) -> Result<Option<Introduction>, ClientError> {
    let mut call = Call::default();
    let mut rest = bytes;
    let mut cuts = cuts.iter();
    while !rest.is_empty() {
        let cut = cuts.next().map_or(rest.len(), |cut| usize::from(*cut).min(rest.len()));
        let (read, after) = rest.split_at(cut);
        if let Some(introduction) = call.feed(read, answer)? {
            let bytes = [introduction.bytes, after.to_vec()].concat();
            return Ok(Some(Introduction { bytes, ..introduction }));
        }
        rest = after;
    }
    Ok(None)
}

#[test]
fn garbled_pairs_are_an_error_and_not_a_panic() {
    check!().with_iterations(ITERATIONS).with_type::<Vec<u8>>().for_each(|bytes: &Vec<u8>| {
        let pairs = Bytes::copy_from_slice(bytes);
        let garbled = Pairs::new(pairs.clone()).any(|pair| pair.is_err());
        for is_held in [false, true] {
            let mut server = server();
            server.on_bytes(Rank(0), b"cmd=barrier_in\n");
            let ended = if is_held {
                server.on_exchange_held(slice::from_ref(&pairs), false)
            } else {
                server.on_exchange_complete(slice::from_ref(&pairs))
            };
            assert_eq!(ended.is_err(), garbled);
        }
    });
}

/// Two nodes of two tasks put at random, with barriers in between. Whoever wins a key that several have put,
/// everybody must agree.
#[test]
fn after_a_barrier_every_task_reads_the_same() {
    check!().with_iterations(ITERATIONS / 10).with_type::<Vec<Vec<(u8, u8, u8)>>>().for_each(
        |rounds| {
            let mut servers = [server_of([0, 1]), server_of([2, 3])];
            for puts in rounds {
                puts.iter().for_each(|put| perform_put(&mut servers, *put));
                barrier(&mut servers);
                assert_eq!(table(&mut servers[0], Rank(0)), table(&mut servers[1], Rank(3)));
            }
        },
    );
}

const PIECES: &[&str] = &[
    "\n",
    "\n",
    " ",
    "cmd=",
    "mcmd=spawn\n",
    "endcmd\n",
    "nprocs=1\n",
    "spawnssofar=1\ntotspawns=2\n",
    "spawnssofar=2\ntotspawns=2\n",
    "cmd=init pmi_version=1 pmi_subversion=1\n",
    "cmd=init pmi_version=",
    "cmd=get_maxes\n",
    "cmd=get_appnum\n",
    "cmd=get_my_kvsname\n",
    "cmd=get_universe_size\n",
    "cmd=put kvsname=kvs_1 key=",
    "cmd=get kvsname=kvs_1 key=",
    "cmd=getbyidx kvsname=kvs_1 idx=",
    "cmd=create_kvs\n",
    "cmd=destroy_kvs kvsname=kvs_1.0.0\n",
    "cmd=put kvsname=kvs_1.0.0 key=a value=b\n",
    "cmd=barrier_in\n",
    "cmd=finalize\n",
    "cmd=abort exitcode=7",
    "cmd=publish_name service=s port=p\n",
    "cmd=lookup_name service=s\n",
    "cmd=initack pmiid=0\n",
    "23    cmd=fullinit;pmirank=0;",
    "14    cmd=kvs-fence;",
    "13    cmd=finalize;",
    "24    cmd=job-getid;thrid=0x1;",
    "29    cmd=kvs-put;key=a;value=x;;y;",
    "39    cmd=kvs-get;jobid=kvs_1;srcid=-1;key=a;",
    "37    cmd=info-getnodeattr;key=a;wait=TRUE;",
    "34    cmd=info-putnodeattr;key=a;value=;",
    "21    cmd=abort;exitcode=7;",
    "31    cmd=",
    ";",
    "cmd=init pmi_version=2 pmi_subversion=0\n",
    " value=",
    "key",
    "PMI_",
    "=",
    "1",
    "\0",
    "\\",
];

fn piece(choice: &u8) -> &'static str {
    PIECES[usize::from(*choice) % PIECES.len()]
}

/// All effects of a session of one client that sends `bytes`, each cut giving the length of one read, and
/// then closes its connection. Replies are joined, since reads decide how many lines are in one.
fn transcript(bytes: &[u8], cuts: &[u8]) -> Vec<Effect> {
    let mut server = server();
    let mut effects = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter();
    while !rest.is_empty() {
        let cut = cuts.next().map_or(rest.len(), |cut| usize::from(*cut).min(rest.len()));
        let (read, after) = rest.split_at(cut);
        server.on_bytes(Rank(0), read);
        drain(&mut server, &mut effects);
        rest = after;
    }
    server.on_closed(Rank(0));
    drain(&mut server, &mut effects);
    effects
}

fn drain(server: &mut Server, effects: &mut Vec<Effect>) {
    while let Some(effect) = server.poll_effect() {
        match (effects.last_mut(), effect) {
            (Some(Effect::Reply { bytes, .. }), Effect::Reply { bytes: more, .. }) => {
                *bytes = [&bytes[..], &more].concat().into();
            }
            (_, effect) => effects.push(effect),
        }
    }
}

fn perform_put(servers: &mut [Server; 2], (rank, key, value): (u8, u8, u8)) {
    let rank = u32::from(rank % 4);
    let line = format!("cmd=put kvsname=kvs_1 key=k{} value={value}\n", key % KEYS);
    let server = &mut servers[if rank < 2 { 0 } else { 1 }];
    server.on_bytes(Rank(rank), line.as_bytes());
    drain(server, &mut Vec::new());
}

fn barrier(servers: &mut [Server; 2]) {
    let ranks = [[0, 1], [2, 3]];
    let mut all = Vec::new();
    for (server, ranks) in servers.iter_mut().zip(ranks) {
        ranks.iter().for_each(|rank| server.on_bytes(Rank(*rank), b"cmd=barrier_in\n"));
        let Some(Effect::Exchange { pairs }) = server.poll_effect() else {
            panic!("no exchange when everybody is in");
        };
        all.extend_from_slice(&pairs);
    }
    let all = Bytes::from(all);
    for server in servers {
        server.on_exchange_complete(slice::from_ref(&all)).expect("pairs are concatenated");
        drain(server, &mut Vec::new());
    }
}

const KEYS: u8 = 6;

/// What `rank` gets for every key.
fn table(server: &mut Server, rank: Rank) -> Vec<Bytes> {
    let mut get = |key| {
        let line = format!("cmd=get kvsname=kvs_1 key=k{key}\n");
        server.on_bytes(rank, line.as_bytes());
        match server.poll_effect() {
            Some(Effect::Reply { bytes, .. }) => bytes,
            other => panic!("a get was answered by {other:?}"),
        }
    };
    (0..KEYS).map(&mut get).collect()
}

fn server() -> Server {
    server_of([0])
}

fn server_of<const N: usize>(ranks: [u32; N]) -> Server {
    let task = |rank| LocalTask { rank: Rank(rank), appnum: 0 };
    Server::new(JobInfo::new("kvs_1".to_owned(), 4, ranks.map(task).to_vec()))
}
