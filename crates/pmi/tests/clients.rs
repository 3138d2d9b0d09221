//! Real client processes against one server for each of several nodes, with a few lines in the place of the
//! agent and the tree.
//!
//! `PMI_NODES=1 PMI_PPN=1024 cargo test -p pmi --test clients -- --nocapture` prints the times of a larger job;
//! `PMI_PROGRAM=./ring` runs a program of an MPI library in the place of the pure client.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![expect(clippy::disallowed_methods, reason = "a test may start its clients with std")]
#![expect(clippy::print_stdout, reason = "a test prints its times for whoever asks")]

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::slice;

use bytes::{Bytes, BytesMut};
use model::Rank;
use pmi::{ClientState, Effect, JobInfo, LocalTask, Server, TaskEnv, Transport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};

/// One test, since descriptors that are open for one child leak into those of tests in other threads.
#[test]
fn clients_on_all_nodes_read_each_others_cards() {
    let nodes = from_env("PMI_NODES", 2);
    let ppn = from_env("PMI_PPN", 8);
    let mode = std::env::var("PMI_MODE").unwrap_or_else(|_| "all".to_owned());
    let program = std::env::var("PMI_PROGRAM").map(PathBuf::from);
    let is_our_client = program.is_err();
    let program = program.unwrap_or_else(|_| testkit::fixture("pmi-client"));
    let mut job = Job::launch(nodes, ppn, &program, &[&mode, "--max"]);
    job.run();
    let output = job.output_of_rank_0();
    println!("{nodes}x{ppn} {mode}\n{output}");
    if is_our_client {
        assert!(output.starts_with("rank0 init_us="), "{output}");
        assert!(output.contains("\nmax init_us="), "{output}");
    }
}

fn from_env(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

struct Job {
    ppn: u32,
    servers: Vec<Server>,
    clients: Vec<Client>,
    /// Pairs of the nodes that have entered the barrier.
    entered: Vec<Bytes>,
}

struct Client {
    process: Child,
    /// Gone when the client has closed its end.
    stream: Option<UnixStream>,
}

impl Job {
    fn launch(nodes: u32, ppn: u32, program: &Path, args: &[&str]) -> Job {
        let size = nodes * ppn;
        let server = |node: u32| {
            let ranks = node * ppn..(node + 1) * ppn;
            let tasks = ranks.map(|rank| LocalTask { rank: Rank(rank), appnum: 0 }).collect();
            let kvsname = format!("kvs_test_{}", std::process::id());
            let process_mapping = Some(format!("(vector,(0,{nodes},{ppn}))"));
            Server::new(JobInfo { process_mapping, ..JobInfo::new(kvsname, size, tasks) })
        };
        let clients = (0..size).map(|rank| Client::start(program, args, rank, size, ppn)).collect();
        Job { ppn, servers: (0..nodes).map(server).collect(), clients, entered: Vec::new() }
    }

    /// Serves until every client has closed its connection.
    fn run(&mut self) {
        let mut buffer = vec![0; 4096];
        while self.clients.iter().any(|client| client.stream.is_some()) {
            for rank in self.ready() {
                self.read(rank, &mut buffer);
            }
        }
        assert!(self.entered.is_empty());
    }

    fn ready(&self) -> Vec<usize> {
        let open = || {
            let clients = self.clients.iter().enumerate();
            clients.filter_map(|(rank, client)| Some((rank, client.stream.as_ref()?)))
        };
        let mut fds: Vec<_> = open().map(|(_, s)| PollFd::new(s, PollFlags::IN)).collect();
        poll(&mut fds, None).unwrap();
        let ready = open().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((rank, _), _)| rank).collect()
    }

    fn read(&mut self, index: usize, buffer: &mut [u8]) {
        let bytes = self.clients[index].stream.as_mut().unwrap().read(buffer).unwrap();
        let rank = Rank(u32::try_from(index).unwrap());
        let server = usize::try_from(rank.0 / self.ppn).unwrap();
        if bytes == 0 {
            self.clients[index].stream = None;
            assert_eq!(self.servers[server].state(rank), ClientState::Finalized);
            self.servers[server].on_closed(rank);
        } else {
            self.servers[server].on_bytes(rank, &buffer[..bytes]);
        }
        self.perform(server);
    }

    fn perform(&mut self, server: usize) {
        while let Some(effect) = self.servers[server].poll_effect() {
            match effect {
                Effect::Reply { rank, bytes } => self.reply(rank, &bytes),
                Effect::Exchange { pairs } => self.enter(pairs),
                Effect::Leave => {}
                Effect::ExchangeGroup { .. }
                | Effect::ReplyWithSnapshot { .. }
                | Effect::KeepSnapshot(_)
                | Effect::ReplyInMemory { .. }
                | Effect::Ring(_)
                | Effect::Allgather(_)
                | Effect::Ask { .. }
                | Effect::Fetch(_)
                | Effect::Spawn { .. }
                | Effect::Abort { .. }
                | Effect::Violation { .. }
                | Effect::ClosedActive { .. } => {
                    panic!("{effect:?}")
                }
            }
        }
    }

    fn reply(&mut self, rank: Rank, bytes: &[u8]) {
        let client = &mut self.clients[usize::try_from(rank.0).unwrap()];
        client.stream.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The tree: when all nodes are in, everybody gets everything.
    fn enter(&mut self, pairs: Bytes) {
        self.entered.push(pairs);
        if self.entered.len() < self.servers.len() {
            return;
        }
        let mut all = BytesMut::new();
        self.entered.drain(..).for_each(|pairs| all.extend_from_slice(&pairs));
        let all = all.freeze();
        for server in 0..self.servers.len() {
            self.servers[server].on_exchange_complete(slice::from_ref(&all)).unwrap();
            self.perform(server);
        }
    }

    fn output_of_rank_0(&mut self) -> String {
        let mut output = String::new();
        self.clients[0].process.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        for client in &mut self.clients {
            assert!(client.process.wait().unwrap().success());
        }
        output
    }
}

impl Client {
    fn start(program: &Path, args: &[&str], rank: u32, size: u32, ppn: u32) -> Client {
        let (ours, theirs) = UnixStream::pair().unwrap();
        fcntl_setfd(&theirs, FdFlags::empty()).unwrap();
        let env = TaskEnv {
            transport: Transport::Descriptor(theirs.as_raw_fd()),
            rank: Rank(rank),
            size,
            local_rank: rank % ppn,
            local_size: ppn,
            is_spawned: false,
            host_name: None,
        };
        let process = Command::new(program)
            .args(args)
            .envs(env.variables())
            .stdin(Stdio::null())
            .stdout(if rank == 0 { Stdio::piped() } else { Stdio::null() })
            .spawn()
            .unwrap();
        Client { process, stream: Some(ours) }
    }
}
