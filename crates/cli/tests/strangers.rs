//! What strangers do to a job's ports and links, and a member that is none: they are turned away and
//! the job goes on, or the link is closed and its node named. Nothing hangs, and nothing is left.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{AgentId, IdSet, JobId};
use support::convoke::Running;
use support::stand::on_hosts;
use support::tap::{Impostor, Tap, Way};
use support::watch::listening_ports;
use wire::{BuildHash, Ephemeral, Handshake, Launch, Message, Preamble, Secret, SessionId};

mod ports {
    use super::*;

    #[test]
    fn random_bytes_at_every_port_do_not_disturb_the_job() {
        disturbed("random", |port, _| {
            for seed in 0..50 {
                let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let _ = stranger.write_all(&noise(seed)); // may have been hung up on
            }
        });
    }

    #[test]
    fn half_a_handshake_and_then_silence_do_not_disturb_the_job() {
        disturbed("half", |port, held| {
            let first = first_message();
            for cut in [1, 8, first.len() / 2, first.len() - 1] {
                let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
                stranger.write_all(&first[..cut]).unwrap();
                held.push(stranger);
            }
        });
    }

    #[test]
    fn a_wrong_secret_is_turned_away() {
        disturbed("secret", |port, _| {
            let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stranger.write_all(&first_message()).unwrap();
            let mut answer = Vec::new();
            let _ = stranger.read_to_end(&mut answer);
            assert!(answer.len() < 64, "a stranger is told no more than a verdict");
        });
    }

    #[test]
    fn a_thousand_idle_connections_do_not_disturb_the_job() {
        allow_descriptors(4000);
        let mut held = Vec::new();
        let running = start_chain("idle");
        for port in listening_ports(running.marker()) {
            held.extend((0..1000).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()));
        }
        assert!(held.len() >= 1000, "somebody listens");
        end_well(running);
        drop(held);
    }

    /// Runs a job on a chain of agents, has `hurt` connect to each listening port, and checks that
    /// the job goes on to its good end, while what `hurt` puts aside stays connected.
    fn disturbed(test: &str, hurt: impl Fn(u16, &mut Vec<TcpStream>)) {
        let running = start_chain(test);
        let ports = listening_ports(running.marker());
        assert!(ports.len() >= 2, "the head and inner agents listen: {ports:?}");
        let mut held = Vec::new();
        ports.into_iter().for_each(|port| hurt(port, &mut held));
        end_well(running);
    }

    /// A job in which each task has said that it is up, and the first waits for a line.
    fn start_chain(test: &str) -> Running {
        let run = on_hosts(test, "a,b,c", "").words("-n 3 --tree chain");
        let script = "echo up; test $PMI_RANK -gt 0 || read line; echo down";
        let mut running = run.args(["sh", "-c", script]).start();
        let is_up = |text: &[u8]| String::from_utf8_lossy(text).matches("up\n").count() == 3;
        running.wait_for_output("`up` of each task", is_up);
        running
    }

    fn end_well(mut running: Running) {
        running.write(b"go on\n");
        let ended = running.finish().with_status(0);
        assert_eq!(ended.text().matches("down\n").count(), 3);
        assert_eq!(ended.stderr, "");
    }

    /// What a child that knows neither session nor secret sends first.
    fn first_message() -> Vec<u8> {
        let preamble = Preamble {
            build: BuildHash([7; 8]),
            session: SessionId([7; 16]),
            from: AgentId(1),
            to: AgentId(0),
            attempt: 0,
        };
        let secret = Secret::new([7; 32]);
        let mut child = Handshake::initiator(&secret, preamble, Ephemeral::new([7; 32]));
        child.poll_send().unwrap()
    }

    /// A few hundred bytes that differ by `seed`.
    fn noise(seed: u64) -> Vec<u8> {
        let step = |state: &mut u64| {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            Some(state.to_le_bytes()[7])
        };
        std::iter::repeat(()).scan(seed, |state, ()| step(state)).take(300).collect()
    }

    fn allow_descriptors(count: u64) {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum.map_or(Some(count), |max| Some(max.min(count)));
        setrlimit(Resource::Nofile, limit).unwrap();
    }
}

/// The links of a job, in the hands of a stranger without the session's secret.
mod links {
    use super::*;

    #[test]
    fn a_handshake_that_was_recorded_is_turned_away_when_it_comes_again() {
        let recorded: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let record = Arc::clone(&recorded);
        let tap = Tap::new(move |agent, way, bytes| {
            if (agent, way) == (AgentId(1), Way::Up) {
                record.lock().unwrap().push(bytes.clone());
            }
            bytes
        });
        let mut running = start(&tap, "replay");
        let mut stranger = TcpStream::connect(tap.parent_of(AgentId(1))).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (first, rest) = recorded.lock().unwrap().split_first().map(owned).unwrap();
        stranger.write_all(&first).unwrap();
        assert_ne!(stranger.read(&mut [0; 4096]).unwrap(), 0, "a parent answers first words");
        stranger.write_all(&rest.concat()).unwrap();
        let mut answer = Vec::new();
        // Hung up on in whichever way.
        let end = stranger.read_to_end(&mut answer).map_err(|error| error.kind());
        assert_ne!(end, Err(ErrorKind::WouldBlock), "it is still listened to");
        assert_eq!(answer, b"");
        running.write(b"go on\n");
        let ended = running.finish().with_status(0);
        assert_eq!((ended.text().matches("down\n").count(), ended.stderr.as_str()), (2, ""));
    }

    #[test]
    fn bytes_that_come_twice_end_their_link_and_the_node_is_named() {
        let words = meddled("twice", Way::Up, |bytes| bytes.repeat(2));
        assert!(words.starts_with("error: lost node b: it broke the protocol\n"), "{words}");
    }

    #[test]
    fn bytes_that_change_on_their_way_up_end_their_link_and_the_node_is_named() {
        let words = meddled("garbled-up", Way::Up, garbled);
        assert!(words.starts_with("error: lost node b: it broke the protocol\n"), "{words}");
    }

    #[test]
    fn bytes_that_change_on_their_way_down_end_their_link_and_the_node_is_named() {
        let words = meddled("garbled-down", Way::Down, garbled);
        assert!(words.starts_with("error: lost node b: "), "{words}");
    }

    #[test]
    fn a_member_whose_frames_are_garbage_is_named() {
        let ended = impostor("babble", |mut impostor| {
            impostor.babble(&[0xff; 300]);
            impostor.listen();
        });
        assert!(ended.starts_with("error: lost node b: it broke the protocol\n"), "{ended}");
    }

    #[test]
    fn a_member_that_gives_orders_to_its_parent_is_named() {
        let ended = impostor("orders", |mut impostor| {
            let launch = Launch { job: JobId(0), members: IdSet::range(1, 1), map: None };
            impostor.say(&Message::Launch(Box::new(launch)));
            impostor.listen();
        });
        assert!(ended.starts_with("error: lost node b: it broke the protocol\n"), "{ended}");
    }

    #[test]
    fn a_handshake_that_is_garbled_ends_the_start_and_the_node_is_named() {
        for (way, cause) in [(Way::Up, "wrong secret"), (Way::Down, "session's secret")] {
            let tap =
                Tap::new(
                    move |agent, at, bytes| {
                        if (agent, at) == (AgentId(2), way) { garbled(bytes) } else { bytes }
                    },
                );
            let run = tap.run(&format!("handshake-{way:?}"), "a,b").words("-n 2 true");
            let words = run.run().with_status(252).words();
            let node = "error: could not start an agent on 1 of 2 nodes: b\n";
            assert!(words.starts_with(node) && words.contains(cause), "{words}");
        }
    }

    #[test]
    fn a_parent_that_does_not_answer_ends_with_the_time_to_join() {
        let tap =
            Tap::new(
                |agent, way, bytes| {
                    if (agent, way) == (AgentId(2), Way::Down) { Vec::new() } else { bytes }
                },
            );
        let run = tap.run("mute", "a,b").words("-n 2 --join-timeout 2s true");
        let words = run.run().with_status(252).words();
        let expected = "error: could not start an agent on 1 of 2 nodes: b\n  \
                        b: not up when the time to join was over\n";
        assert!(words.starts_with(expected), "{words}");
    }

    fn owned((first, rest): (&Vec<u8>, &[Vec<u8>])) -> (Vec<u8>, Vec<Vec<u8>>) {
        (first.clone(), rest.to_vec())
    }

    /// The words of a job of two agents, of which the second is not what it seems.
    fn impostor(test: &str, play: fn(Impostor)) -> String {
        let tap = Tap::with_impostor(AgentId(2), play);
        tap.run(test, "a,b").words("-n 2 true").run().with_status(251).words()
    }

    /// The words of a job of two agents, on whose second link `hurt` works, once all tasks run.
    fn meddled(test: &str, way: Way, hurt: fn(Vec<u8>) -> Vec<u8>) -> String {
        let is_on = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&is_on);
        let tap = Tap::new(move |agent, at, bytes| {
            let is_hurt = (agent, at) == (AgentId(2), way) && switch.load(Ordering::Relaxed);
            if is_hurt { hurt(bytes) } else { bytes }
        });
        let mut running = start(&tap, test);
        is_on.store(true, Ordering::Relaxed);
        running.write(b"go on\n");
        running.finish().with_status(251).words()
    }

    /// A job whose tasks have said that they run, and of which the second waits for a line.
    fn start(tap: &Tap, test: &str) -> Running {
        let run = tap.run(test, "a,b").words("-n 2 --stdin 1");
        let script = "echo up; test $PMI_RANK = 0 || read line; echo down";
        let mut running = run.args(["sh", "-c", script]).start();
        let is_up = |text: &[u8]| String::from_utf8_lossy(text).matches("up\n").count() == 2;
        running.wait_for_output("`up` of each task", is_up);
        running
    }

    fn garbled(mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        bytes
    }
}
