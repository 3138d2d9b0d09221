//! A testbed: some hosts and the head, from which the user's commands run.
//!
//! Every host has its own network, process numbers, host name and shared memory; the file system is
//! the machine's own, as on a cluster with a shared one, except for `/run`. Bring-up costs about
//! five processes a host besides its sshd.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::Mutex;
use std::time::Duration;

use crate::faults::Hurt;
use crate::world::World;
use crate::{Sshd, TestbedError, clock, command, network, ssh};

/// The name of the host from which commands run, which is none of the numbered ones.
pub const HEAD: &str = "head";

/// Where a testbed keeps its files, as its hosts see it.
pub const RUN_DIR: &str = "/run/testbed";

/// How long the sshds may take to listen.
const SSHD_LIMIT: Duration = Duration::from_secs(30);

/// What hosts to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many, not counting the head.
    pub hosts: usize,
    /// What comes before the number in a host's name.
    pub prefix: String,
    /// Whether the hosts get an sshd at all.
    pub sshd: bool,
}

/// Hosts on this machine. Dropping it, or the end of its process, takes all of it down.
#[derive(Debug)]
pub struct Testbed {
    names: Vec<String>,
    pub(crate) hurt: Mutex<Hurt>,
    world: World,
}

impl Options {
    /// `hosts` hosts `n0`, `n1` and so on, whose sshds never refuse a connection.
    pub fn new(hosts: usize) -> Options {
        Options { hosts, prefix: "n".to_owned(), sshd: true }
    }
}

impl Testbed {
    /// Makes `hosts` hosts with the usual options.
    pub fn up(hosts: usize) -> Result<Testbed, TestbedError> {
        Testbed::with_options(&Options::new(hosts))
    }

    /// Makes the hosts that `options` ask for, and returns when each sshd listens.
    pub fn with_options(options: &Options) -> Result<Testbed, TestbedError> {
        if !rustix::process::geteuid().is_root() {
            return Err(TestbedError::NotRoot);
        }
        if options.hosts == 0 || options.hosts > network::HOSTS_MAX {
            let max = network::HOSTS_MAX;
            return Err(TestbedError::HostCount { asked: options.hosts, max });
        }
        let numbered = (0..options.hosts).map(|i| format!("{}{i}", options.prefix));
        let names: Vec<String> = [HEAD.to_owned()].into_iter().chain(numbered).collect();
        let world = World::create(&names)?;
        let testbed = Testbed { names, hurt: Mutex::default(), world };
        ssh::write_files(&testbed.run_dir())?;
        testbed.connect_hosts()?;
        if options.sshd {
            testbed.start_all_sshds()?;
        }
        Ok(testbed)
    }

    /// The hosts' names, without the head's.
    pub fn hosts(&self) -> &[String] {
        &self.names[1..]
    }

    /// The host list for `--hosts`: every host, without the head.
    pub fn host_list(&self) -> String {
        self.hosts().join(",")
    }

    /// The host's IPv4 address.
    pub fn address(&self, host: &str) -> Result<std::net::Ipv4Addr, TestbedError> {
        Ok(network::address(self.index(host)?))
    }

    /// A command that will run on `host`, in the current directory. The process that it starts is
    /// a helper outside, which ends as the program ends; a signal to it does not reach the program
    /// (see [`Testbed::signal`]).
    pub fn command(&self, host: &str, program: &str) -> Result<Command, TestbedError> {
        Ok(command_in(self.pid(host)?, program))
    }

    /// Runs a shell script in the root directory of `host`, which may lack ours, and returns what it wrote.
    pub fn run(&self, host: &str, script: &str) -> Result<Output, TestbedError> {
        let mut shell = enter(self.pid(host)?);
        command::capture(shell.args(["--wdns=/", "--", "/bin/sh", "-c", script]))
    }

    /// Starts `program` on `host` with the streams that `command` was given.
    pub fn start(&self, command: &mut Command) -> Result<Child, TestbedError> {
        command::start(command)
    }

    /// The testbed's directory as this process sees it ([`RUN_DIR`] on the hosts).
    pub fn run_dir(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{RUN_DIR}", self.world.switch_pid))
    }

    /// The first process of `host`, as this process numbers it. The namespaces of the host can be
    /// entered through it, while it lives.
    pub fn pid(&self, host: &str) -> Result<u32, TestbedError> {
        if self.is_dead(host)? {
            return Err(TestbedError::DeadHost(host.to_owned()));
        }
        let pid = self.world.host_pids.get(host).copied();
        pid.ok_or_else(|| TestbedError::UnknownHost(host.to_owned()))
    }

    /// The first process of the switch.
    pub(crate) fn switch_pid(&self) -> u32 {
        self.world.switch_pid
    }

    /// The host's place among all, 0 being the head.
    pub(crate) fn index(&self, host: &str) -> Result<usize, TestbedError> {
        let found = self.names.iter().position(|name| name == host);
        found.ok_or_else(|| TestbedError::UnknownHost(host.to_owned()))
    }

    /// All names, the head's first.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The command that starts the host's sshd in the background.
    pub(crate) fn sshd_command(&self, host: &str, manner: Sshd) -> Result<Command, TestbedError> {
        let mut command = enter(self.pid(host)?);
        command
            .args(["--", "/usr/sbin/sshd"])
            .args(["-o", manner.max_startups()])
            .args(manner.options())
            .args(["-f", &format!("{RUN_DIR}/sshd_config")])
            .args(["-o", &format!("PidFile={RUN_DIR}/sshd/{host}.pid")])
            .args(["-E", &format!("{RUN_DIR}/log/{host}.log")]);
        Ok(command)
    }

    /// Waits until the host's sshd has written its number and the end of that line, which it does
    /// once it listens.
    pub(crate) fn wait_for_sshd(&self, host: &str) -> Result<(), TestbedError> {
        let file = self.run_dir().join(format!("sshd/{host}.pid"));
        let is_written = || fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'));
        if clock::wait_until(SSHD_LIMIT, is_written) {
            return Ok(());
        }
        let what = format!("sshd listens on {host}");
        Err(TestbedError::Late { what, limit_ms: SSHD_LIMIT.as_millis() })
    }

    fn connect_hosts(&self) -> Result<(), TestbedError> {
        let hosts = network::hosts_file(self.names.iter().map(String::as_str));
        ssh::write(&self.run_dir().join("hosts"), &hosts)?;
        let pids = self.names.iter().map(|name| self.pid(name)).collect::<Result<Vec<_>, _>>()?;
        let mut ip = network::in_network_of(self.switch_pid(), "ip");
        let batch = network::switch_batch(&pids);
        command::check_with_input("making the links", ip.args(["-batch", "-"]), &batch)?;
        let started = pids.iter().enumerate().map(|(index, &pid)| {
            let mut ip = network::in_network_of(pid, "ip");
            ip.args(["-batch", "-"]);
            command::start_with_input(&mut ip, &network::host_batch(index)).map(|c| (ip, c))
        });
        for (ip, child) in started.collect::<Result<Vec<_>, _>>()? {
            command::finish_checked("setting addresses", &ip, child)?;
        }
        Ok(())
    }

    fn start_all_sshds(&self) -> Result<(), TestbedError> {
        let started = self.names.iter().map(|host| {
            let mut sshd = self.sshd_command(host, Sshd::Willing)?;
            command::start_with_input(&mut sshd, "").map(|child| (sshd, child))
        });
        for (sshd, child) in started.collect::<Result<Vec<_>, _>>()? {
            command::finish_checked("starting sshd", &sshd, child)?;
        }
        self.names.iter().try_for_each(|host| self.wait_for_sshd(host))
    }
}

/// A command that will run `program` on the host whose first process is `pid`.
pub(crate) fn command_in(pid: u32, program: &str) -> Command {
    let mut command = enter(pid);
    if let Ok(dir) = std::env::current_dir() {
        let mut option = OsString::from("--wdns=");
        option.push(dir);
        command.arg(option);
    }
    command.args(["--", program]);
    command
}

fn enter(pid: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string(), "--net", "--uts", "--ipc", "--mount", "--pid"]);
    command
}
