//! Hosts for who is not root: names and loopback addresses of this machine, and an sshd of the
//! user's own behind them.
//!
//! All of 127.0.0.0/8 is this machine on Linux, so each host has an address to itself. They share
//! all else: network, process numbers, files, host name. What needs a host to die, or its cable to
//! be cut, needs a [`Testbed`](crate::Testbed).
//!
//! The sshds belong to a *keeper*, a process of the program `testbed` that reads from a pipe which
//! only its owner holds. However the owner ends, the pipe closes; the keeper, which the kernel
//! gives every orphan below it, ends all of them, removes the files and ends itself. If the keeper
//! is killed, the sshds end with it, and its directory of files is left.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, Signal, WaitOptions};
use tempfile::TempDir;

use crate::ssh::{self, Sshd};
use crate::{TestbedError, clock, command, processes};

/// The first argument of the program `testbed` that makes it a keeper; the second is the number of hosts.
pub const KEEPER: &str = "keep-loopback";

/// Where programs that run beside the hosts find how to reach them, for `ssh -F`.
pub const SSH_CONFIG: &str = "TESTBED_SSH_CONFIG";

/// As many as fit the last two numbers of an address and one machine.
const HOSTS_MAX: usize = 1022;

/// Addresses on which one OpenSSH server listens (`MAX_LISTEN_SOCKS`).
const ADDRESSES_MAX: usize = 16;

const SSHD: &str = "/usr/sbin/sshd";

/// Where the sshds say what goes wrong, in the directory of the hosts' files.
const LOG: &str = "sshd.log";

/// How long the sshds may take to listen.
const SSHD_LIMIT: Duration = Duration::from_secs(30);

/// Hosts `n0`, `n1` and so on on this machine. Dropping it, or the end of its process, takes all of
/// it down.
#[derive(Debug)]
pub struct Loopback {
    ssh_config: PathBuf,
    keeper: Child,
    /// Held open for as long as the hosts are to live.
    lifeline: Option<ChildStdin>,
}

impl Loopback {
    /// Makes `hosts` hosts, kept by the program `testbed` at this path, and returns when each sshd
    /// listens.
    pub fn up(testbed: &Path, hosts: usize) -> Result<Loopback, TestbedError> {
        let mut keeper = command::start(
            Command::new(testbed)
                .args([KEEPER, &hosts.to_string()])
                // A terminal's ^C is for the program that runs beside the hosts.
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )?;
        let lifeline = keeper.stdin.take();
        let mut said = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            // A keeper that says nothing is told of below.
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        let mut bed = Loopback { ssh_config: PathBuf::new(), keeper, lifeline };
        let Some(path) = said.trim().strip_prefix("ready ") else {
            let what = "making hosts of loopback addresses".to_owned();
            return Err(TestbedError::Tool { what, said: said.trim().to_owned() });
        };
        bed.ssh_config = path.into();
        Ok(bed)
    }

    /// A command that will run `program` beside the hosts, knows [`SSH_CONFIG`], and is killed when
    /// this thread ends.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program]);
        command.env(SSH_CONFIG, &self.ssh_config);
        command
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        drop(self.keeper.wait());
    }
}

/// What a keeper does: makes `hosts` hosts, says `ready` and where [`SSH_CONFIG`] is, and takes all
/// of it down when its standard input ends.
pub fn keep(hosts: usize) -> Result<(), TestbedError> {
    let system = |doing: &str, source| TestbedError::System { doing: doing.to_owned(), source };
    if hosts == 0 || hosts > HOSTS_MAX {
        return Err(TestbedError::HostCount { asked: hosts, max: HOSTS_MAX });
    }
    if !fs::exists(SSHD).unwrap_or(false) {
        return Err(TestbedError::NoSshd(SSHD));
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|errno| system("become a sub-reaper", errno.into()))?;
    let dir = tempfile::Builder::new().prefix("convoke-testbed-").tempdir();
    let dir = dir.map_err(|source| system("make a directory for the hosts' files", source))?;
    // Dropped before the directory.
    let _below = Descendants;
    let ssh_config = start_hosts(&dir, hosts)?;
    writeln!(io::stdout(), "ready {}", ssh_config.display())
        .and_then(|()| io::copy(&mut io::stdin(), &mut io::sink()))
        .map(drop)
        .map_err(|source| system("wait for the owner", source))
}

/// Writes the files, starts the sshds, and returns the clients' configuration.
fn start_hosts(dir: &TempDir, hosts: usize) -> Result<PathBuf, TestbedError> {
    let path = dir.path();
    let shown = path.to_string_lossy();
    let port = free_port()?;
    ssh::write_keys(path)?;
    // The directory is nobody else's, but what it lies in may be.
    let server = format!("StrictModes no\n{}", ssh::server_config(&shown));
    ssh::write(&path.join("sshd_config"), &server)?;
    let ssh_config = path.join("ssh_config");
    ssh::write(&ssh_config, &client_config(&shown, hosts, port))?;
    if rustix::process::geteuid().is_root() {
        // Which only an sshd of root looks for, and which may be missing until one was started.
        drop(fs::create_dir("/run/sshd"));
    }
    let indexes: Vec<usize> = (0..hosts).collect();
    let sshds = indexes.chunks(ADDRESSES_MAX).map(|chunk| start_sshd(path, chunk, port));
    for (sshd, pid_file) in sshds.collect::<Result<Vec<_>, _>>()? {
        wait_for(sshd, &pid_file)?;
    }
    Ok(ssh_config)
}

/// Starts the sshd of the hosts with these indexes, which ends with the keeper if that is killed.
/// Returns it, and the file that it writes when it listens.
fn start_sshd(dir: &Path, indexes: &[usize], port: u16) -> Result<(Child, PathBuf), TestbedError> {
    let pid_file = dir.join(format!("sshd-{}.pid", indexes[0]));
    let mut sshd = Command::new("setpriv");
    sshd.args(["--pdeathsig", "KILL", "--", SSHD, "-D", "-f"]).arg(dir.join("sshd_config"));
    sshd.arg("-E").arg(dir.join(LOG));
    sshd.args(["-o", Sshd::Willing.max_startups()]);
    sshd.args(["-o", &format!("PidFile={}", pid_file.display())]);
    for &index in indexes {
        sshd.args(["-o", &format!("ListenAddress={}:{port}", address(index))]);
    }
    Ok((command::start(sshd.stdin(Stdio::null()).stdout(Stdio::null()))?, pid_file))
}

fn wait_for(mut sshd: Child, pid_file: &Path) -> Result<(), TestbedError> {
    let mut ended = false;
    let mut is_up = false;
    clock::wait_until(SSHD_LIMIT, || {
        is_up = fs::read_to_string(pid_file).is_ok_and(|text| text.ends_with('\n'));
        ended = sshd.try_wait().is_ok_and(|status| status.is_some());
        is_up || ended
    });
    if is_up && !ended {
        return Ok(());
    }
    let said = fs::read_to_string(pid_file.with_file_name(LOG)).unwrap_or_default();
    Err(TestbedError::Tool { what: "starting sshd".to_owned(), said: said.trim().to_owned() })
}

/// A port that is free on the first host; another user's hosts have the same addresses.
fn free_port() -> Result<u16, TestbedError> {
    let bound = TcpListener::bind((address(0), 0)).and_then(|listener| listener.local_addr());
    let failed = |source| TestbedError::System { doing: "find a free port".to_owned(), source };
    bound.map(|address| address.port()).map_err(failed)
}

fn client_config(dir: &str, hosts: usize, port: u16) -> String {
    let host = |(index, name)| format!("Host {name}\n    HostName {}\n", address(index));
    let hosts: String = names(hosts).into_iter().enumerate().map(host).collect();
    format!("{hosts}Host *\n    Port {port}\n{}", ssh::client_options(dir))
}

fn names(hosts: usize) -> Vec<String> {
    (0..hosts).map(|index| format!("n{index}")).collect()
}

fn address(index: usize) -> Ipv4Addr {
    let number = index + 1;
    Ipv4Addr::new(127, 77, (number >> 8) as u8, (number & 0xff) as u8)
}

/// All processes below this one. Dropping it ends them.
struct Descendants;

impl Drop for Descendants {
    /// Whoever loses a parent to this comes to us, so what is below our children is next.
    fn drop(&mut self) {
        loop {
            for child in children().unwrap_or_default() {
                let _ = rustix::process::kill_process(child, Signal::KILL); // gone is fine
            }
            if rustix::process::wait(WaitOptions::empty()).is_err() {
                return;
            }
        }
    }
}

fn children() -> Result<Vec<Pid>, TestbedError> {
    let own = std::process::id();
    let all = processes::read_all(Path::new("/proc"))?;
    let below = all.into_iter().filter(|process| process.parent == own);
    Ok(below.filter_map(|process| Pid::from_raw(process.pid.try_into().ok()?)).collect())
}
