//! What the server shares with programs in memory.

use bytes::Bytes;
use pmi::{Kvs, Snapshot};

use super::pmi1::with_pmi1;
use super::pmi2::with_pmi2;
use super::*;

/// Keys from 0.
fn snapshot(keys: u32) -> Bytes {
    let mut space = Kvs::default();
    (0..keys).for_each(|key| space.put(key.to_string().as_bytes(), &[b'v'; 5]));
    Snapshot::make(&space).unwrap()
}

/// Lets a client out of a fence or barrier, and has these bytes mapped.
fn answer(server: &Server, answer: &str, bytes: &[u8]) {
    let file = os::memory::sealed(bytes).unwrap();
    let sent = os::stream::write_with(&server.stream, answer.as_bytes(), file).unwrap();
    assert_eq!(sent, os::stream::WriteOutcome::Data(answer.len()));
}

fn barrier_out(length: usize) -> String {
    format!("cmd=barrier_out tag=0 snapshot={length}\n")
}

fn fence(server: &mut Server, bytes: &[u8]) {
    let asked = server.read_frame();
    let thread = field(&asked, "thrid");
    let length = bytes.len();
    let body = format!("cmd=kvs-fence-response;thrid={thread};rc=0;snapshot={length};");
    answer(server, &framed(&body), bytes);
}

#[test]
fn what_is_there_is_read_without_a_message_and_the_rest_is_asked_for_in_pmi_1() {
    with_pmi1(
        |server| {
            assert_eq!(server.read_line(), "cmd=get_my_kvsname");
            server.line("cmd=my_kvsname kvsname=kvs rc=0");
            server.read_line();
            let bytes = snapshot(100);
            answer(server, &barrier_out(bytes.len()), &bytes);
            for name in ["kvs", "other"] {
                let get = server.read_line();
                assert!(get.starts_with(&format!("cmd=get kvsname={name} ")), "{get}");
                server.line("cmd=get_result rc=0 value=asked");
            }
        },
        |pmi| {
            assert_eq!(pmi.name().unwrap(), b"kvs");
            pmi.barrier().unwrap();
            for key in 0..100 {
                assert_eq!(pmi.get(b"kvs", key.to_string().as_bytes()).unwrap(), b"vvvvv");
            }
            assert_eq!(pmi.get(b"kvs", b"100").unwrap(), b"asked");
            assert_eq!(pmi.get(b"other", b"0").unwrap(), b"asked");
        },
    );
}

#[test]
fn what_is_there_is_read_without_a_message_and_the_rest_is_asked_for_in_pmi_2() {
    with_pmi2(
        |server| {
            fence(server, &snapshot(100));
            for _ in 0..2 {
                let get = server.read_frame();
                server.answer(&get, "kvs-get", "rc=0;found=TRUE;value=asked;");
            }
        },
        |pmi| {
            pmi.fence().unwrap();
            for key in 0..100 {
                let value = pmi.get(None, Some(7), key.to_string().as_bytes()).unwrap();
                assert_eq!(value.unwrap(), b"vvvvv");
            }
            assert_eq!(pmi.get(None, None, b"100").unwrap().unwrap(), b"asked");
            assert_eq!(pmi.get(Some(b"other"), None, b"0").unwrap().unwrap(), b"asked");
        },
    );
}

#[test]
fn a_key_that_is_put_again_is_asked_for_until_the_next_fence() {
    with_pmi2(
        |server| {
            fence(server, &snapshot(2));
            let put = server.read_frame();
            server.answer(&put, "kvs-put", "rc=0;");
            let get = server.read_frame();
            server.answer(&get, "kvs-get", "rc=0;found=TRUE;value=new;");
            fence(server, &snapshot(2));
        },
        |pmi| {
            pmi.fence().unwrap();
            pmi.put(b"1", b"new").unwrap();
            assert_eq!(pmi.get(None, None, b"1").unwrap().unwrap(), b"new");
            let fence = pmi.begin_fence().unwrap();
            pmi.wait(fence).unwrap();
            assert_eq!(pmi.get(None, None, b"1").unwrap().unwrap(), b"vvvvv");
        },
    );
}

#[test]
fn where_no_descriptor_comes_all_is_asked_for() {
    with_pmi1(
        |server| {
            server.read_line();
            server.line("cmd=my_kvsname kvsname=kvs rc=0");
            server.read_line();
            server.line(barrier_out(53).trim_end());
            server.read_line();
            server.line("cmd=get_result rc=0 value=asked");
        },
        |pmi| {
            pmi.name().unwrap();
            pmi.barrier().unwrap();
            assert_eq!(pmi.get(b"kvs", b"0").unwrap(), b"asked");
        },
    );
}

#[test]
fn one_that_is_damaged_is_an_error_and_no_crash() {
    let whole = snapshot(3);
    for (bytes, length) in [(&whole[..9], 9), (&b"nonsense"[..], 8), (&whole[..], 9)] {
        with_pmi1(
            |server| {
                server.read_line();
                answer(server, &barrier_out(length), bytes);
            },
            |pmi| {
                let error = pmi.barrier().unwrap_err();
                assert!(matches!(error, Error::Snapshot(_)), "{error:?}");
            },
        );
    }
    with_pmi2(
        |server| fence(server, &whole[..whole.len() - 1]),
        |pmi| {
            pmi.fence().unwrap();
            let gets = ["0", "1", "2"].map(|key| pmi.get(None, None, key.as_bytes()));
            assert!(gets.iter().any(|got| matches!(got, Err(Error::Snapshot(_)))), "{gets:?}");
        },
    );
}

#[test]
fn a_file_that_others_can_change_is_an_error() {
    with_pmi1(
        |server| {
            server.read_line();
            let file = std::fs::File::open("/proc/self/exe").unwrap();
            let line = barrier_out(1000);
            os::stream::write_with(&server.stream, line.as_bytes(), file).unwrap();
        },
        |pmi| assert!(matches!(pmi.barrier(), Err(Error::Snapshot(_)))),
    );
}

#[test]
fn a_barrier_that_ends_while_something_else_is_asked_brings_its_own() {
    with_pmi1(
        |server| {
            server.read_line();
            server.read_line();
            let bytes = snapshot(1);
            answer(server, &barrier_out(bytes.len()), &bytes);
            server.line("cmd=my_kvsname kvsname=kvs rc=0");
        },
        |pmi| {
            pmi.begin_barrier().unwrap();
            pmi.name().unwrap();
            pmi.wait_barrier().unwrap();
            assert_eq!(pmi.get(b"kvs", b"0").unwrap(), b"vvvvv");
        },
    );
}

/// The answer to an allgather in memory, and before it that to a fence that ends meanwhile.
fn gathered_and_met(server: &mut Server, values: &[u8], length: usize) {
    let gather = server.read_frame();
    fence(server, &snapshot(3));
    let thread = field(&gather, "thrid");
    let body = format!("cmd=allgather-response;thrid={thread};rc=0;snapshot={length};");
    answer(server, &framed(&body), values);
}

const PIECES: [&str; 2] = [
    "cmd=allgather-response;rc=0;first=0;count=3;more=TRUE;values=1:a0:2:;;;;;",
    "cmd=allgather-response;rc=0;first=3;count=1;more=FALSE;values=4:last;",
];

#[test]
fn values_of_all_are_read_in_memory_that_comes_beside_that_of_a_fence() {
    let pieces = PIECES.map(framed).concat();
    with_pmi2(
        |server| {
            gathered_and_met(server, pieces.as_bytes(), pieces.len());
            server.read_frame(); // so that both answers have come before either is waited for
            server.frame("cmd=job-getid-response;rc=0;jobid=1;");
        },
        |pmi| {
            let gather = pmi.begin_allgather(b"", 9).unwrap();
            let met = pmi.begin_fence().unwrap();
            pmi.job_id().unwrap();
            let values = [&b"a"[..], b"", b";;", b"last"].map(<[u8]>::to_vec).to_vec();
            assert_eq!(pmi.wait(gather).unwrap(), Outcome::Gathered(values));
            assert_eq!(pmi.wait(met).unwrap(), Outcome::Met);
            assert_eq!(pmi.get(None, None, b"2").unwrap().unwrap(), b"vvvvv");
        },
    );
}

#[test]
fn values_in_memory_that_is_damaged_or_does_not_come_are_an_error() {
    let whole = PIECES.map(framed).concat();
    let twice = framed(PIECES[1]).repeat(2);
    for (bytes, length) in [
        (&whole[..], whole.len() + 1),
        (&whole[..whole.len() - 1], whole.len() - 1),
        (&whole[..9], 9),
        (&whole[6..], whole.len() - 6),
        (&twice[..], twice.len()),
        ("a line\n", 7),
    ] {
        with_pmi2(
            |server| gathered_and_met(server, bytes.as_bytes(), length),
            |pmi| {
                let gather = pmi.begin_allgather(b"", 9).unwrap();
                let met = pmi.begin_fence().unwrap();
                assert!(pmi.wait(gather).is_err());
                pmi.wait(met).unwrap();
            },
        );
    }
    with_pmi2(
        |server| {
            let gather = server.read_frame();
            server.answer(&gather, "allgather", "rc=0;snapshot=50;");
        },
        |pmi| {
            let error = pmi.allgather(b"", 9).unwrap_err();
            assert!(matches!(error, Error::Shared { request: "allgather" }), "{error:?}");
        },
    );
}
