//! A program and a server that does what a script says: wrong answers, none, late ones, and its end at any point.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

use client::{Endpoint, Error, Outcome, Pmi1, Pmi2, Request};

const INIT_2: &str = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
const FULL: &str = "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=4;\
                    appnum=-1;debugged=FALSE;pmiverbose=FALSE;";
const INIT_1: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=0\n";
const MAXES: &str = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";

mod snapshots;

mod pmi2 {
    use super::*;

    #[test]
    fn answers_in_another_order_reach_who_asked() {
        with_pmi2(
            |server| {
                let fence = server.read_frame();
                assert!(fence.starts_with("cmd=kvs-fence;thrid="), "{fence}");
                let attribute = server.read_frame();
                server.answer(&attribute, "info-getnodeattr", "rc=0;found=TRUE;value=late;");
                let id = server.read_frame();
                server.answer(&id, "job-getid", "rc=0;jobid=kvs;;1;");
                server.answer(&fence, "kvs-fence", "rc=0;");
            },
            |pmi| {
                let fence = pmi.begin_fence().unwrap();
                assert_eq!(pmi.node_attribute(b"a", true).unwrap().unwrap(), b"late");
                assert_eq!(pmi.job_id().unwrap(), b"kvs;1");
                pmi.wait(fence).unwrap();
                assert!(matches!(pmi.wait(fence), Err(Error::NotUnderWay)));
            },
        );
    }

    #[test]
    fn a_thread_that_waits_leaves_the_others_what_is_theirs() {
        with_pmi2(
            |server| {
                let asked = [(); 8].map(|()| server.read_frame());
                for frame in asked.iter().rev() {
                    let value = field(frame, "key");
                    let answer = format!("rc=0;found=TRUE;value=of-{value};");
                    server.answer(frame, "info-getnodeattr", &answer);
                }
            },
            |pmi| {
                thread::scope(|scope| {
                    for i in 0..8 {
                        scope.spawn(move || {
                            let key = format!("k{i}");
                            let value = pmi.node_attribute(key.as_bytes(), true).unwrap().unwrap();
                            assert_eq!(value, format!("of-{key}").as_bytes());
                        });
                    }
                });
            },
        );
    }

    #[test]
    fn between_a_fence_and_its_wait_the_space_of_keys_is_refused() {
        with_pmi2(
            |server| {
                let fence = server.read_frame();
                server.answer(&fence, "kvs-fence", "rc=0;");
                let put = server.read_frame();
                server.answer(&put, "kvs-put", "rc=0;");
            },
            |pmi| {
                let fence = pmi.begin_fence().unwrap();
                assert_eq!(pmi.fence_under_way(), Some(fence));
                let refused = |error| matches!(error, Error::FenceUnderWay { .. });
                assert!(refused(pmi.put(b"k", b"v").unwrap_err()));
                assert!(refused(pmi.get(None, None, b"k").unwrap_err()));
                assert!(refused(pmi.fence().unwrap_err()));
                assert!(refused(pmi.begin_fence().unwrap_err()));
                let other = Request::with_number(fence.number() + 1);
                assert!(matches!(pmi.wait(other), Err(Error::NotUnderWay)));
                pmi.wait(fence).unwrap();
                pmi.put(b"k", b"v").unwrap();
            },
        );
    }

    #[test]
    fn an_allgather_comes_in_several_messages_between_other_answers() {
        with_pmi2(
            |server| {
                let gather = server.read_frame();
                assert!(gather.ends_with(";value=mine;max-length=9;"), "{gather}");
                let answer = "rc=0;first=0;count=2;more=TRUE;values=1:a2:;;;;";
                server.answer(&gather, "allgather", answer);
                let id = server.read_frame();
                server.answer(&id, "job-getid", "rc=0;jobid=1;");
                server.answer(&gather, "allgather", "rc=0;first=2;count=1;more=FALSE;values=0:;");
            },
            |pmi| {
                let begun = pmi.begin_allgather(b"mine", 9).unwrap();
                assert_eq!(pmi.job_id().unwrap(), b"1");
                let second = pmi.begin_allgather(b"mine", 9);
                assert!(matches!(second, Err(Error::UnderWay { .. })), "{second:?}");
                let values = [&b"a"[..], b";;", b""].map(<[u8]>::to_vec).to_vec();
                assert_eq!(pmi.wait(begun).unwrap(), Outcome::Gathered(values));
            },
        );
    }

    #[test]
    fn an_allgather_that_lacks_values_is_no_answer() {
        with_pmi2(
            |server| {
                let gather = server.read_frame();
                let answer = "rc=0;first=1;count=1;more=FALSE;values=1:a;";
                server.answer(&gather, "allgather", answer);
            },
            |pmi| {
                let error = pmi.allgather(b"mine", 9).unwrap_err();
                assert!(matches!(error, Error::Unexpected { .. }), "{error}");
            },
        );
    }

    #[test]
    fn a_server_that_does_not_repeat_the_thread_is_understood() {
        with_pmi2(
            |server| {
                server.read_frame();
                server.frame("cmd=kvs-get-response;rc=0;found=FALSE;");
            },
            |pmi| assert_eq!(pmi.get(None, None, b"k").unwrap(), None),
        );
    }

    #[test]
    fn a_refusal_has_its_code_and_words_and_the_next_call_works() {
        with_pmi2(
            |server| {
                let spawn = server.read_frame();
                server.answer(&spawn, "name-lookup", "rc=-1;errmsg=service_not_found;");
                let id = server.read_frame();
                server.answer(&id, "job-getid", "rc=0;jobid=1;");
            },
            |pmi| {
                let error = pmi.look_up(b"ocean").unwrap_err();
                let words = "the PMI server refuses `name-lookup` with code -1: service_not_found";
                assert_eq!(error.to_string(), words);
                assert_eq!(pmi.job_id().unwrap(), b"1");
            },
        );
    }

    #[test]
    fn garbage_a_wrong_answer_and_one_to_nobody_break_the_connection() {
        for answer in [
            "GET / HTTP/1.1\n",
            "30    cmd=kvs-put-response;rc=0;    ",
            "33    cmd=job-getid-response;thrid=99;  ",
            "11    no-fields;;",
        ] {
            with_pmi2(
                |server| {
                    server.read_frame();
                    server.stream.write_all(answer.as_bytes()).unwrap();
                },
                |pmi| {
                    let error = pmi.job_id().unwrap_err();
                    assert!(matches!(error, Error::Unexpected { .. }), "{answer}: {error}");
                    assert!(pmi.job_id().is_err());
                },
            );
        }
    }

    #[test]
    fn a_server_that_goes_away_anywhere_is_an_error() {
        let whole = [INIT_2, &framed(FULL), &framed("cmd=kvs-fence-response;rc=0;")].concat();
        for end in 0..whole.len() {
            let (stream, other) = UnixStream::pair().unwrap();
            let sent = whole[..end].to_owned();
            let server = thread::spawn(move || {
                (&stream).write_all(sent.as_bytes()).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                (&stream).read_to_end(&mut Vec::new()).unwrap();
            });
            let fenced = open(&other).and_then(|pmi| pmi.fence());
            assert!(matches!(fenced, Err(Error::Closed { .. })), "{end}: {fenced:?}");
            drop(other);
            server.join().unwrap();
        }
    }

    #[test]
    fn whatever_is_asked_of_a_server_that_is_gone_is_an_error() {
        with_pmi2(
            |_| {},
            |pmi| {
                let mut errors = (0..3).map(|_| pmi.put(b"k", b"v").unwrap_err());
                let is_told = |error| {
                    matches!(
                        error,
                        Error::Closed { .. } | Error::Send { .. } | Error::Receive { .. }
                    )
                };
                assert!(errors.all(is_told));
            },
        );
    }

    #[test]
    fn what_a_frame_cannot_hold_is_refused_before_it_is_sent() {
        with_pmi2(
            |_| {},
            |pmi| {
                let error = pmi.put(b"k", &vec![b';'; 600_000]).unwrap_err();
                assert!(matches!(error, Error::TooLong { bytes, .. } if bytes > 1_200_000));
            },
        );
    }

    /// Runs a program against a server that has initialised it.
    pub(super) fn with_pmi2(server: impl FnOnce(&mut Server) + Send, program: impl FnOnce(&Pmi2)) {
        with_pmi2_told("", server, program);
    }

    /// The same where the server says this, too, when it initialises the program.
    pub(super) fn with_pmi2_told(
        told: &str,
        server: impl FnOnce(&mut Server) + Send,
        program: impl FnOnce(&Pmi2),
    ) {
        let (stream, other) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut peer = Server { stream };
                assert_eq!(peer.read_line(), "cmd=init pmi_version=2 pmi_subversion=0");
                peer.stream.write_all(INIT_2.as_bytes()).unwrap();
                let init = "cmd=fullinit;pmirank=1;threaded=TRUE;quiet=TRUE;snapshot=1;";
                assert_eq!(peer.read_frame(), init);
                peer.frame(&format!("{FULL}{told}"));
                server(&mut peer);
            });
            let pmi = open(&other).unwrap();
            assert_eq!((pmi.place().rank, pmi.place().size, pmi.place().appnum), (1, 4, None));
            drop(other);
            program(&pmi);
        });
    }

    fn open(stream: &UnixStream) -> Result<Pmi2, Error> {
        Pmi2::open(&endpoint(stream))
    }
}

mod pmi1 {
    use super::*;

    #[test]
    fn the_end_of_a_barrier_may_come_before_other_answers() {
        with_pmi1(
            |server| {
                assert_eq!(server.read_line(), "cmd=barrier_in");
                assert_eq!(server.read_line(), "cmd=get kvsname=kvs key=k");
                server.line("cmd=barrier_out tag=0");
                server.line("cmd=get_result rc=0 value=v");
            },
            |pmi| {
                pmi.begin_barrier().unwrap();
                assert!(matches!(pmi.begin_barrier(), Err(Error::FenceUnderWay { .. })));
                assert_eq!(pmi.get(b"kvs", b"k").unwrap(), b"v");
                pmi.wait_barrier().unwrap();
                assert!(matches!(pmi.wait_barrier(), Err(Error::NotUnderWay)));
            },
        );
    }

    #[test]
    fn what_a_line_cannot_carry_is_refused_before_it_is_sent() {
        with_pmi1(
            |_| {},
            |pmi| {
                let error = pmi.put(b"kvs", b"k", b"two words").unwrap_err();
                let words = "`put` cannot carry `two words`: it has a blank or a line end";
                assert_eq!(error.to_string(), words);
            },
        );
    }

    #[test]
    fn a_wrong_answer_breaks_the_connection_and_a_refusal_does_not() {
        with_pmi1(
            |server| {
                server.read_line();
                server.line("cmd=get_result rc=1 msg=key_k_not_found");
                server.read_line();
                server.line("cmd=put_result rc=0");
            },
            |pmi| {
                let refused = pmi.get(b"kvs", b"k").unwrap_err();
                assert!(matches!(refused, Error::Refused { code: 1, .. }));
                let wrong = pmi.get(b"kvs", b"k").unwrap_err();
                assert!(matches!(wrong, Error::Unexpected { .. }));
                assert!(matches!(pmi.get(b"kvs", b"k"), Err(Error::Broken)));
            },
        );
    }

    #[test]
    fn a_port_is_told_the_rank_and_tells_the_size() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let mut server = Server { stream: listener.accept().unwrap().0 };
            assert_eq!(server.read_line(), "cmd=initack pmiid=2");
            let lines = "cmd=initack rc=0\ncmd=set size=3\ncmd=set rank=2\ncmd=set debug=0\n";
            server.stream.write_all(lines.as_bytes()).unwrap();
            assert_eq!(server.read_line(), "cmd=init pmi_version=1 pmi_subversion=1");
            server.stream.write_all([INIT_1, MAXES].concat().as_bytes()).unwrap();
            assert_eq!(server.read_line(), "cmd=get_maxes quiet=1");
        });
        let pmi = Pmi1::open(&Endpoint::Port { address, id: 2 }).unwrap();
        assert_eq!((pmi.rank(), pmi.size(), pmi.maxes().value), (2, 3, 1024));
        server.join().unwrap();
    }

    #[test]
    fn a_server_that_goes_away_anywhere_is_an_error() {
        let whole = [INIT_1, MAXES, "cmd=barrier_out tag=0\n"].concat();
        for end in 0..whole.len() {
            let (stream, other) = UnixStream::pair().unwrap();
            (&stream).write_all(&whole.as_bytes()[..end]).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let met = Pmi1::open(&endpoint(&other)).and_then(|pmi| pmi.barrier());
            assert!(matches!(met, Err(Error::Closed { .. })), "{end}: {met:?}");
        }
    }

    pub(super) fn with_pmi1(server: impl FnOnce(&mut Server) + Send, program: impl FnOnce(&Pmi1)) {
        with_pmi1_told("", server, program);
    }

    /// The same where the server says this, too, when it tells its limits.
    pub(super) fn with_pmi1_told(
        told: &str,
        server: impl FnOnce(&mut Server) + Send,
        program: impl FnOnce(&Pmi1),
    ) {
        let (stream, other) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut peer = Server { stream };
                assert_eq!(peer.read_line(), "cmd=init pmi_version=1 pmi_subversion=1");
                peer.stream.write_all(INIT_1.as_bytes()).unwrap();
                assert_eq!(peer.read_line(), "cmd=get_maxes quiet=1 snapshot=1");
                peer.line(&format!("{}{told}", MAXES.trim_end()));
                server(&mut peer);
            });
            let pmi = Pmi1::open(&endpoint(&other)).unwrap();
            drop(other);
            program(&pmi);
        });
    }
}

mod quiet_puts {
    use super::pmi1::with_pmi1_told;
    use super::pmi2::with_pmi2_told;
    use super::*;

    /// The programs would wait for ever if they waited for an answer.
    #[test]
    fn what_cannot_be_refused_is_not_waited_for_in_pmi_2() {
        with_pmi2_told(
            "quiet=TRUE;",
            |server| {
                assert_eq!(server.read_frame(), "cmd=kvs-put;key=k;quiet=TRUE;value=v;");
                let fence = server.read_frame();
                assert!(fence.starts_with("cmd=kvs-fence;"), "{fence}");
                server.answer(&fence, "kvs-fence", "rc=0;");
                for _ in 0..2 {
                    let put = server.read_frame();
                    assert!(!put.contains("quiet"), "{put}");
                    server.answer(&put, "kvs-put", "rc=4;errmsg=no;");
                }
            },
            |pmi| {
                pmi.put(b"k", b"v").unwrap();
                let fence = pmi.begin_fence().unwrap();
                pmi.wait(fence).unwrap();
                for (key, length) in [("PMI_k", 1), ("k", 5000)] {
                    let refused = pmi.put(key.as_bytes(), &vec![b'v'; length]);
                    assert!(matches!(refused, Err(Error::Refused { code: 4, .. })), "{refused:?}");
                }
            },
        );
    }

    #[test]
    fn what_cannot_be_refused_is_not_waited_for_in_pmi_1() {
        with_pmi1_told(
            " quiet=1",
            |server| {
                server.read_line();
                server.line("cmd=my_kvsname kvsname=kvs rc=0");
                assert_eq!(server.read_line(), "cmd=put quiet=1 kvsname=kvs key=k value=v");
                assert_eq!(server.read_line(), "cmd=barrier_in");
                server.line("cmd=barrier_out tag=0");
                for name in ["kvs", "other"] {
                    let put = server.read_line();
                    assert!(put.starts_with(&format!("cmd=put kvsname={name} ")), "{put}");
                    server.line("cmd=put_result rc=-1 msg=no");
                }
            },
            |pmi| {
                assert_eq!(pmi.name().unwrap(), b"kvs");
                pmi.put(b"kvs", b"k", b"v").unwrap();
                pmi.barrier().unwrap();
                for (name, key) in [("kvs", "PMI_k"), ("other", "k")] {
                    let refused = pmi.put(name.as_bytes(), key.as_bytes(), b"v");
                    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
                }
            },
        );
    }
}

#[test]
fn a_descriptor_that_is_not_open_is_named() {
    let endpoint = Endpoint::Descriptor { number: 9_999, rank: 0, size: 1, job: None };
    let words = "take the PMI connection from descriptor 9999, which `PMI_FD` names";
    assert_eq!(Pmi2::open(&endpoint).unwrap_err().to_string(), words);
}

fn endpoint(stream: &UnixStream) -> Endpoint {
    Endpoint::Descriptor { number: stream.as_raw_fd(), rank: 1, size: 4, job: None }
}

/// The other side, which reads byte by byte so that it takes no more than one message.
struct Server<S = UnixStream> {
    stream: S,
}

impl<S: Read + Write> Server<S> {
    fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while byte != [b'\n'] {
            self.stream.read_exact(&mut byte).unwrap();
            line.extend(byte);
        }
        line.pop();
        String::from_utf8(line).unwrap()
    }

    fn read_frame(&mut self) -> String {
        let mut length = [0; 6];
        self.stream.read_exact(&mut length).unwrap();
        let length = String::from_utf8_lossy(&length).trim().parse().unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    fn line(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn frame(&mut self, body: &str) {
        self.stream.write_all(framed(body).as_bytes()).unwrap();
    }

    /// Answers the thread that a request names.
    fn answer(&mut self, asked: &str, name: &str, fields: &str) {
        let thread = field(asked, "thrid");
        self.frame(&format!("cmd={name}-response;thrid={thread};{fields}"));
    }
}

fn framed(body: &str) -> String {
    format!("{:<6}{body}", body.len())
}

fn field<'a>(body: &'a str, key: &str) -> &'a str {
    let fields = body.split(';').filter_map(|field| field.split_once('='));
    fields.into_iter().find(|(name, _)| *name == key).unwrap().1
}
