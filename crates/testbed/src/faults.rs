//! What can be done to a host. Everything here is undone by [`Testbed::heal`], death excepted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::delay::DelayLine;
use crate::{HEAD, Sshd, Testbed, TestbedError, clock, command, network, ssh};

/// How long processes that were killed may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A host that has room for a call answers it sooner.
const CALL_LIMIT: Duration = Duration::from_millis(500);

/// More calls than wait in a queue for which room was asked for none.
const CALLS_MAX: usize = 8;

/// What has been done to hosts, by index, as far as it has to be kept.
#[derive(Debug, Default)]
pub(crate) struct Hurt {
    mute: BTreeMap<usize, Mute>,
    delayed: BTreeMap<usize, DelayLine>,
    black_holes: BTreeSet<usize>,
    /// Whose processes are gone, so that their numbers may be somebody else's by now.
    dead: BTreeSet<usize>,
}

/// What listens in an sshd's place.
#[derive(Debug)]
struct Mute {
    _listener: TcpListener,
    /// Those who fill its queue.
    _callers: Vec<TcpStream>,
}

impl Testbed {
    /// Pulls the host's cable: frames to and from it are lost, and connection attempts fail once
    /// its hardware address cannot be found.
    pub fn cut(&self, host: &str) -> Result<(), TestbedError> {
        self.switch_ip(&format!("link set {} down\n", network::port(self.index(host)?)))
    }

    /// Like [`Testbed::cut`], but connection attempts get no answer at all, for as long as they
    /// care to wait.
    pub fn black_hole(&self, host: &str) -> Result<(), TestbedError> {
        let index = self.index(host)?;
        let (address, hardware) = (network::address(index), network::hardware_address(index));
        self.on_all_others(
            index,
            &format!("neighbor replace {address} lladdr {hardware} dev eth0 nud permanent\n"),
        )?;
        self.hurt().black_holes.insert(index);
        self.cut(host)
    }

    /// Delays every frame that the host sends by `delay`, so that a round trip between two
    /// delayed hosts takes twice that. Zero takes the delay away.
    pub fn delay(&self, host: &str, delay: Duration) -> Result<(), TestbedError> {
        let index = self.index(host)?;
        let line = self.hurt().delayed.remove(&index);
        if let Some(line) = line {
            drop(line);
            self.switch_ip(&DelayLine::removal_batch(index))?;
        }
        if delay.is_zero() {
            return Ok(());
        }
        self.switch_ip(&DelayLine::insertion_batch(index))?;
        let sockets = in_network_namespace(self.switch_pid(), || DelayLine::open(index))?;
        let line = DelayLine::start(sockets, delay)?;
        self.hurt().delayed.insert(index, line);
        Ok(())
    }

    /// Delays the frames of all hosts and of the head.
    pub fn delay_all(&self, delay: Duration) -> Result<(), TestbedError> {
        self.names().iter().try_for_each(|host| self.delay(host, delay))
    }

    /// Ends the host's sshd, so that connections to it are refused. Open ones live on.
    pub fn stop_sshd(&self, host: &str) -> Result<(), TestbedError> {
        let file = self.run_dir().join(format!("sshd/{host}.pid"));
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let pid: u32 = text.trim().parse().map_err(|_| TestbedError::Tool {
            what: format!("finding the sshd of {host}"),
            said: text.clone(),
        })?;
        self.signal(host, pid, "KILL")?;
        // Only an sshd that ends by itself removes its file.
        remove(&file)?;
        let proc = PathBuf::from(format!("/proc/{}/root/proc/{pid}", self.pid(host)?));
        wait_for(&format!("the sshd of {host} ends"), || !proc.exists())
    }

    /// Starts, or starts again, the host's sshd with these manners.
    pub fn start_sshd(&self, host: &str, manner: Sshd) -> Result<(), TestbedError> {
        let index = self.index(host)?;
        drop(self.hurt().mute.remove(&index));
        self.stop_sshd(host)?;
        command::check("starting sshd", &mut self.sshd_command(host, manner)?)?;
        self.wait_for_sshd(host)
    }

    /// Puts a listener in sshd's place that accepts connections and never says a word.
    pub fn mute_sshd(&self, host: &str) -> Result<(), TestbedError> {
        let mute = Mute { _listener: self.listen_as_sshd(host)?, _callers: Vec::new() };
        self.hurt().mute.insert(self.index(host)?, mute);
        Ok(())
    }

    /// Puts a listener in sshd's place that accepts nothing and whose queue is full, as an sshd's is
    /// that hangs: calls get no answer at all, though the host is there.
    pub fn clog_sshd(&self, host: &str) -> Result<(), TestbedError> {
        let doing = || format!("fill the queue of port 22 of {host}");
        let listener = self.listen_as_sshd(host)?;
        rustix::net::listen(&listener, 0)
            .map_err(|e| TestbedError::System { doing: doing(), source: e.into() })?;
        let address = (self.address(host)?, 22).into();
        let callers = in_network_namespace(self.pid(HEAD)?, || {
            let call = |_| TcpStream::connect_timeout(&address, CALL_LIMIT);
            let calls = (0..CALLS_MAX).map(call);
            Ok(calls.map_while(Result::ok).collect::<Vec<_>>())
        })?;
        if callers.len() == CALLS_MAX {
            return Err(TestbedError::System {
                doing: doing(),
                source: io::ErrorKind::Other.into(),
            });
        }
        self.hurt().mute.insert(self.index(host)?, Mute { _listener: listener, _callers: callers });
        Ok(())
    }

    fn listen_as_sshd(&self, host: &str) -> Result<TcpListener, TestbedError> {
        drop(self.hurt().mute.remove(&self.index(host)?));
        self.stop_sshd(host)?;
        in_network_namespace(self.pid(host)?, || {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, 22)).map_err(|source| TestbedError::System {
                doing: format!("listen on port 22 of {host}"),
                source,
            })
        })
    }

    /// Takes one of the startups that the host's sshd admits, with a connection from the head that
    /// never says who it is. It is let go when what is returned is dropped.
    pub fn occupy_sshd(&self, host: &str) -> Result<TcpStream, TestbedError> {
        let address = self.address(host)?;
        in_network_namespace(self.pid(HEAD)?, || {
            let system =
                |source| TestbedError::System { doing: format!("call the sshd of {host}"), source };
            let mut call = TcpStream::connect((address, 22)).map_err(system)?;
            let mut begin = [0; 4];
            // What it says to those that it refuses begins otherwise.
            call.read_exact(&mut begin).map_err(system)?;
            if &begin == b"SSH-" {
                Ok(call)
            } else {
                Err(system(io::ErrorKind::ResourceBusy.into()))
            }
        })
    }

    /// How many connections the host's sshd has refused because of too many startups. Only
    /// [`Sshd::OneStartup`] writes them down.
    pub fn refused_startups(&self, host: &str) -> Result<usize, TestbedError> {
        let log = ssh::read(&self.run_dir().join(format!("log/{host}.log")))?;
        Ok(log.lines().filter(|line| line.contains("past MaxStartups")).count())
    }

    /// Ends all processes of the host at once, as a crash does whose kernel still closes its
    /// connections. The host does not come back.
    pub fn kill_host(&self, host: &str) -> Result<(), TestbedError> {
        let pid = self.pid(host)?;
        let first = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(first) = first {
            rustix::process::kill_process(first, rustix::process::Signal::KILL).map_err(|e| {
                TestbedError::System { doing: format!("kill host {host}"), source: e.into() }
            })?;
        }
        self.hurt().dead.insert(self.index(host)?);
        let gone = || !Path::new(&format!("/proc/{pid}/ns/net")).exists();
        wait_for(&format!("the processes of {host} end"), gone)
    }

    /// Cuts the host off and then ends it, as a power failure does: nobody is told.
    pub fn power_off(&self, host: &str) -> Result<(), TestbedError> {
        self.cut(host)?;
        self.kill_host(host)
    }

    /// Undoes everything that was done to the host's link and sshd. A dead host stays dead.
    pub fn heal(&self, host: &str) -> Result<(), TestbedError> {
        let index = self.index(host)?;
        self.delay(host, Duration::ZERO)?;
        if self.hurt().black_holes.remove(&index) {
            let address = network::address(index);
            self.on_all_others(index, &format!("neighbor del {address} dev eth0\n"))?;
        }
        self.switch_ip(&format!("link set {} up\n", network::port(index)))?;
        self.start_sshd(host, Sshd::Willing)
    }

    /// Whether the host was killed.
    pub(crate) fn is_dead(&self, host: &str) -> Result<bool, TestbedError> {
        let index = self.index(host)?;
        Ok(self.hurt().dead.contains(&index))
    }

    fn hurt(&self) -> std::sync::MutexGuard<'_, Hurt> {
        self.hurt.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn switch_ip(&self, batch: &str) -> Result<(), TestbedError> {
        let mut ip = network::in_network_of(self.switch_pid(), "ip");
        command::check_with_input("changing the switch", ip.args(["-batch", "-"]), batch).map(drop)
    }

    /// Runs `ip` with `batch` on every living host but one.
    fn on_all_others(&self, index: usize, batch: &str) -> Result<(), TestbedError> {
        for (other, name) in self.names().iter().enumerate() {
            if other == index || self.is_dead(name)? {
                continue;
            }
            let mut ip = network::in_network_of(self.pid(name)?, "ip");
            command::check_with_input("changing a host", ip.args(["-batch", "-"]), batch)?;
        }
        Ok(())
    }
}

/// Runs `work` on a thread that has entered the network namespace of process `pid`. Sockets that
/// it opens stay there.
fn in_network_namespace<T: Send>(
    pid: u32,
    work: impl FnOnce() -> Result<T, TestbedError> + Send,
) -> Result<T, TestbedError> {
    let system = |source| TestbedError::System { doing: "enter a network".to_owned(), source };
    let namespace = fs::File::open(format!("/proc/{pid}/ns/net")).map_err(system)?;
    let enter = move || {
        use std::os::fd::AsFd;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| system(e.into()))?;
        work()
    };
    std::thread::scope(|scope| match scope.spawn(enter).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Waits for the end of processes that were killed.
fn wait_for(what: &str, gone: impl FnMut() -> bool) -> Result<(), TestbedError> {
    if clock::wait_until(KILL_LIMIT, gone) {
        return Ok(());
    }
    Err(TestbedError::Late { what: what.to_owned(), limit_ms: KILL_LIMIT.as_millis() })
}

fn remove(file: &Path) -> Result<(), TestbedError> {
    fs::remove_file(file).map_err(|source| TestbedError::File {
        doing: "remove",
        path: file.to_owned(),
        source,
    })
}
