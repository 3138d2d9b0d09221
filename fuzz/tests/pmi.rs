//! Whatever a client sends, however it is cut, the PMI server neither panics nor answers differently.

use bolero::check;
use bytes::Bytes;
use model::Rank;
use pmi::{Effect, JobInfo, LocalTask, Pairs, Server};

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

#[test]
fn garbled_pairs_are_an_error_and_not_a_panic() {
    check!().with_iterations(ITERATIONS).with_type::<Vec<u8>>().for_each(|bytes: &Vec<u8>| {
        let mut server = server();
        server.on_bytes(Rank(0), b"cmd=barrier_in\n");
        let pairs = Bytes::copy_from_slice(bytes);
        let garbled = Pairs::new(pairs.clone()).any(|pair| pair.is_err());
        assert_eq!(server.on_exchange_complete(pairs).is_err(), garbled);
    });
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

fn server() -> Server {
    let task = LocalTask { rank: Rank(0), appnum: 0 };
    Server::new(JobInfo::new("kvs_1".to_owned(), 2, vec![task]))
}
