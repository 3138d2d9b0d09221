//! A Slurm cluster on this machine: a controller, and a slurmd for each of its nodes `n0`, `n1` and so on.
//!
//! All of it is this testbed's own: configuration, ports, the munged that tells them that they are of one
//! user. It needs root, as slurmd does, and no Slurm that runs beside it is touched.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::{TestbedError, clock, command};

/// How long all nodes may take to register.
const UP_LIMIT: Duration = Duration::from_secs(60);

/// How long jobs may take to be over, and a daemon to end once it was asked to.
const DOWN_LIMIT: Duration = Duration::from_secs(10);

/// Bytes in a key of munge.
const KEY_BYTES: usize = 1024;

/// The cluster. Dropping it ends its daemons, the nodes' first.
#[derive(Debug)]
pub struct Slurm {
    dir: TempDir,
    nodes: usize,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Makes a cluster of `nodes` nodes with so many processors each, as they are told, and returns when all
    /// are idle.
    pub fn up(nodes: usize, processors: usize) -> Result<Slurm, TestbedError> {
        let dir = tempfile::tempdir().map_err(system("make a directory for Slurm"))?;
        let mut slurm = Slurm { dir, nodes, daemons: Vec::new() };
        slurm.start_munged()?;
        let text = configuration(slurm.dir.path(), nodes, processors)?;
        fs::write(slurm.configuration(), text).map_err(system("write slurm.conf"))?;
        slurm.start("slurmctld", &["-D"])?;
        for node in 0..nodes {
            slurm.start("slurmd", &["-D", "-N", &format!("n{node}")])?;
        }
        if clock::wait_until(UP_LIMIT, || slurm.is_idle()) {
            return Ok(slurm);
        }
        let what = format!("{nodes} nodes of Slurm, of which {} are, are idle", slurm.idle()?);
        Err(TestbedError::Late { what, limit_ms: UP_LIMIT.as_millis() })
    }

    /// One of Slurm's commands, which asks this cluster.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.dir.path().join("slurm.conf")
    }

    fn start(&mut self, daemon: &str, words: &[&str]) -> Result<(), TestbedError> {
        let mut command = self.command(daemon);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command::start(&mut command)?);
        Ok(())
    }

    fn start_munged(&mut self) -> Result<(), TestbedError> {
        let dir = self.dir.path().to_owned();
        // Others may look for the socket, or munged warns and ends.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))
            .map_err(system("open the directory of munged"))?;
        let key = dir.join("munge.key");
        fs::write(&key, random(KEY_BYTES)?).map_err(system("write a key for munged"))?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400))
            .map_err(system("protect the key of munged"))?;
        let socket = socket(&dir);
        let file = |option: &str, name: &str| format!("--{option}={}", dir.join(name).display());
        let words = [
            "--foreground".to_owned(),
            // The directory of temporary files is everybody's.
            "--force".to_owned(),
            format!("--socket={socket}"),
            file("key-file", "munge.key"),
            file("pid-file", "munged.pid"),
            file("log-file", "munged.log"),
            file("seed-file", "munged.seed"),
        ];
        self.start("munged", &words.each_ref().map(String::as_str))?;
        if clock::wait_until(UP_LIMIT, || Path::new(&socket).exists()) {
            return Ok(());
        }
        let said = fs::read_to_string(dir.join("munged.log")).unwrap_or_default();
        Err(TestbedError::Tool { what: "starting munged".to_owned(), said })
    }

    fn is_idle(&self) -> bool {
        self.idle().is_ok_and(|idle| idle == self.nodes)
    }

    /// How many nodes wait for jobs.
    fn idle(&self) -> Result<usize, TestbedError> {
        let mut ask = self.command("sinfo");
        let said =
            command::check("asking for nodes", ask.args(["-h", "-t", "idle", "-o", "%D %T"]))?;
        let counts = said.lines().filter(|line| line.ends_with(" idle"));
        Ok(counts.filter_map(|line| line.split(' ').next()?.parse::<usize>().ok()).sum())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // `srun` ends before its job is over on the nodes, and nobody ends what serves it there but they.
        clock::wait_until(DOWN_LIMIT, || self.is_idle());
        for daemon in self.daemons.iter_mut().rev() {
            let _ = rustix::process::kill_process(Pid::from_child(daemon), Signal::TERM);
        }
        for daemon in self.daemons.iter_mut().rev() {
            if !clock::wait_until(DOWN_LIMIT, || !matches!(daemon.try_wait(), Ok(None))) {
                // Both fail only if it has just ended.
                drop(daemon.kill());
                drop(daemon.wait());
            }
        }
    }
}

/// What slurm.conf(5) says of one machine that plays all nodes.
fn configuration(dir: &Path, nodes: usize, processors: usize) -> Result<String, TestbedError> {
    let ports = free_ports(nodes + 1)?;
    let [controller, rest @ ..] = &ports[..] else { return Ok(String::new()) };
    let place = dir.display();
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut text = format!(
        "ClusterName=testbed
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
",
        socket(dir)
    );
    for (node, port) in rest.iter().enumerate() {
        text += &format!(
            "NodeName=n{node} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs={processors}\n"
        );
    }
    text += "PartitionName=all Nodes=ALL Default=YES State=UP\n";
    Ok(text)
}

fn socket(dir: &Path) -> String {
    dir.join("munge.socket").display().to_string()
}

/// Ports of the loopback address on which nobody listens, all different.
fn free_ports(count: usize) -> Result<Vec<u16>, TestbedError> {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners: Result<Vec<_>, _> = (0..count).map(listen).collect();
    let ports: std::io::Result<Vec<u16>> =
        listeners.and_then(|all| all.iter().map(|one| Ok(one.local_addr()?.port())).collect());
    ports.map_err(system("look for free ports"))
}

fn random(bytes: usize) -> Result<Vec<u8>, TestbedError> {
    let mut random = vec![0; bytes];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| system("make a key")(error.into()))?;
    Ok(random)
}

fn system(doing: &str) -> impl FnOnce(std::io::Error) -> TestbedError + use<'_> {
    move |source| TestbedError::System { doing: doing.to_owned(), source }
}
