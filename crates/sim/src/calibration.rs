//! What things take on the machines that are simulated, as it is measured, written to a file, and
//! read by the simulator and by planners.
//!
//! No cost is counted twice. L and G ([`Launch`]) cover all that a remote shell takes; the costs of
//! [`Cpu`] come on top of them, so who measures L and G from start to welcome leaves those of
//! [`Cpu`] at 0. The file is TOML. Its tables stand in such an order that no beginning of a file is
//! a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::HostList;
use serde::{Deserialize, Serialize};

use crate::calibration_error::CalibrationError;
use crate::distribution::Distribution;
use crate::launch::Launch;
use crate::machines::node_number;

/// What things take on some machines.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    version: u32,
    /// Where it comes from, in words.
    pub origin: String,
    /// Hosts that are slow, nobody knows which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowHosts>,
    /// Hosts that differ from the others and are known by name. The first entry that names a host
    /// counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostCosts>,
    /// Bringing up an agent.
    pub launch: Launch,
    /// The processors of every host.
    pub cpu: Cpu,
    /// The network.
    pub link: LinkCosts,
    /// The sockets on which parents listen.
    pub accept: Accept,
}

/// Hosts that are slow, drawn at random.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SlowHosts {
    /// How many of all hosts, from 0 to 1.
    pub fraction: f64,
    /// How many times longer L, its own starts and all of `cpu` take there; links are the network's.
    pub factor: f64,
}

/// Hosts that differ from the others.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostCosts {
    /// Which hosts, as in `--hosts`. Simulated ones are called `n0`, `n1` and so on; the head's has
    /// no name.
    pub names: String,
    /// How many times longer L, their own starts and all of `cpu` take there; links are the network's.
    pub factor: f64,
    /// What it takes to bring up an agent there, and for that agent to start others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

/// A host's processors. Each does one thing at a time.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// How many there are on a host.
    pub cores: u32,
    /// All hosts share the processors of one: a testbed.
    pub is_shared: bool,
    /// An agent's work for its boot line and its welcome.
    pub parse_us: f64,
    /// Creating one process, on the host of who creates it: a helper or a task.
    pub spawn_us: f64,
    /// Executing one program: an agent or a task.
    pub exec_us: f64,
    /// A handshake, at either end.
    pub handshake_us: f64,
    /// Sending or receiving one message.
    pub message_us: f64,
}

/// The network between two hosts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinkCosts {
    /// One way, without load. Drawn once for each link.
    pub latency_us: Distribution,
    /// What a link carries; without it, anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// What a host sends over all its links together; without it, as much as these carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_bandwidth_bytes_per_s: Option<u64>,
}

/// A listening socket. Connections that arrive while its queue is full are dropped, and their
/// senders try again.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// When a dropped connection is tried again, counted from its first try; after the last, it has
    /// failed.
    pub retransmits_s: Vec<f64>,
}

impl Default for Calibration {
    /// S2's constants: L = 257 ms and G = 7 ms, everything else free but a link's 100 µs.
    fn default() -> Calibration {
        Calibration::constant(Duration::from_millis(257), Duration::from_millis(7))
    }
}

impl Calibration {
    /// The version of the files that this build reads and writes.
    pub const VERSION: u32 = 1;

    /// A latency and a gap that are always the same, and everything else free but a link's 100 µs.
    pub fn constant(latency: Duration, gap: Duration) -> Calibration {
        Calibration {
            version: Calibration::VERSION,
            origin: format!("L = {latency:?}, G = {gap:?}"),
            slow: None,
            hosts: Vec::new(),
            launch: Launch::constant(latency, gap),
            cpu: Cpu::free(),
            link: LinkCosts {
                latency_us: Distribution::constant(100.0),
                bandwidth_bytes_per_s: None,
                host_bandwidth_bytes_per_s: None,
            },
            accept: Accept::default(),
        }
    }

    /// The modelled shell of the benchmarks: L = 1,028 ms and G = 28 ms, which is four times S2's
    /// constants.
    pub fn modelled_shell() -> Calibration {
        Calibration::constant(Duration::from_millis(1_028), Duration::from_millis(28))
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Calibration, CalibrationError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CalibrationError::Read { path: path.into(), source })?;
        Calibration::from_toml(path, &text)
    }

    /// Reads the text of the file `path`.
    pub fn from_toml(path: &Path, text: &str) -> Result<Calibration, CalibrationError> {
        let malformed = |source| CalibrationError::Malformed { path: path.into(), source };
        let Versioned { version: found } = toml::from_str(text).map_err(malformed)?;
        if found != Calibration::VERSION {
            let expected = Calibration::VERSION;
            return Err(CalibrationError::Version { path: path.into(), found, expected });
        }
        let calibration: Calibration = toml::from_str(text).map_err(malformed)?;
        calibration.check(path)?;
        Ok(calibration)
    }

    /// The text of a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every calibration has a text")
    }

    /// Whether all of it can be. What was read from a file was checked.
    pub fn validate(&self) -> Result<(), CalibrationError> {
        self.check(Path::new(""))
    }

    /// Whether another seed may give other times.
    pub fn varies(&self) -> bool {
        let mut launches = self.hosts.iter().filter_map(|host| host.launch.as_ref());
        let has_unknown = |slow: SlowHosts| 0.0 < slow.fraction && slow.fraction < 1.0;
        self.launch.varies()
            || launches.any(Launch::varies)
            || self.link.latency_us.varies()
            || self.slow.is_some_and(has_unknown)
    }

    /// Whether no start of `n` agents can take much longer than another.
    pub(crate) fn is_even(&self, n: u32) -> bool {
        let is_idle = self.cpu == Cpu::free() || self.accept.backlog >= n && !self.cpu.is_shared;
        let is_uniform = self.slow.is_none() && self.hosts.is_empty();
        is_idle && is_uniform && !self.launch.varies()
    }

    /// How many times longer than usual everything takes on the slowest host.
    pub(crate) fn factor_max(&self) -> f64 {
        let of_hosts = self.hosts.iter().map(|entry| entry.factor);
        of_hosts.chain(self.slow.map(|slow| slow.factor)).fold(1.0, f64::max)
    }

    fn check(&self, path: &Path) -> Result<(), CalibrationError> {
        match self.impossible() {
            Some((field, why)) => {
                Err(CalibrationError::Impossible { path: PathBuf::from(path), field, why })
            }
            None => Ok(()),
        }
    }

    /// The first parameter that can't be, and why.
    fn impossible(&self) -> Option<(String, String)> {
        let slow = self.slow.and_then(|slow| slow.impossible("slow"));
        slow.or_else(|| self.hosts.iter().find_map(HostCosts::impossible))
            .or_else(|| impossible_launch("launch", &self.launch))
            .or_else(|| self.cpu.impossible())
            .or_else(|| self.link.impossible())
            .or_else(|| self.accept.impossible())
    }
}

/// What every version of the file has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

type Impossible = Option<(String, String)>;

impl SlowHosts {
    fn impossible(self, table: &str) -> Impossible {
        if !(0.0..=1.0).contains(&self.fraction) {
            let why = format!("{} is not between 0 and 1", self.fraction);
            return Some((format!("{table}.fraction"), why));
        }
        impossible_factor(&format!("{table}.factor"), self.factor)
    }
}

impl HostCosts {
    fn impossible(&self) -> Impossible {
        let hosts = match self.names.parse::<HostList>() {
            Ok(hosts) => hosts.into_nodes(),
            Err(error) => return Some(("hosts.names".into(), error.to_string())),
        };
        if let Some(stranger) = hosts.iter().find(|host| node_number(&host.name).is_none()) {
            let why = format!(
                "simulated hosts are called n0, n1 and so on, and none is `{}`; name the host in \
                 whose place it is, or leave it out",
                stranger.name
            );
            return Some(("hosts.names".into(), why));
        }
        let launch = self.launch.as_ref();
        impossible_factor("hosts.factor", self.factor)
            .or_else(|| launch.and_then(|launch| impossible_launch("hosts.launch", launch)))
    }
}

impl Cpu {
    /// One core that does everything in no time.
    pub const fn free() -> Cpu {
        Cpu {
            cores: 1,
            is_shared: false,
            parse_us: 0.0,
            spawn_us: 0.0,
            exec_us: 0.0,
            handshake_us: 0.0,
            message_us: 0.0,
        }
    }

    fn impossible(&self) -> Impossible {
        const CORES_MAX: u32 = 65_536;
        if !(1..=CORES_MAX).contains(&self.cores) {
            let why = format!("{} is not between 1 and {CORES_MAX}", self.cores);
            return Some(("cpu.cores".into(), why));
        }
        let times = [
            ("parse_us", self.parse_us),
            ("spawn_us", self.spawn_us),
            ("exec_us", self.exec_us),
            ("handshake_us", self.handshake_us),
            ("message_us", self.message_us),
        ];
        times.into_iter().find_map(|(name, value)| {
            let why = Distribution::constant(value).impossible();
            why.map(|why| (format!("cpu.{name}"), why))
        })
    }
}

impl LinkCosts {
    fn impossible(&self) -> Impossible {
        for (name, bandwidth) in [
            ("link.bandwidth_bytes_per_s", self.bandwidth_bytes_per_s),
            ("link.host_bandwidth_bytes_per_s", self.host_bandwidth_bytes_per_s),
        ] {
            if bandwidth == Some(0) {
                return Some((name.into(), "0 carries nothing".into()));
            }
        }
        self.latency_us.impossible().map(|why| ("link.latency_us".into(), why))
    }
}

impl Default for Accept {
    /// As Linux has it: 4,096 may wait, and a dropped SYN is sent again after 1 s, 3 s and 7 s.
    fn default() -> Accept {
        Accept { backlog: 4_096, retransmits_s: vec![1.0, 3.0, 7.0] }
    }
}

impl Accept {
    fn impossible(&self) -> Impossible {
        if self.backlog == 0 {
            return Some(("accept.backlog".into(), "0 lets nobody in".into()));
        }
        let times = &self.retransmits_s;
        let is_ordered = times.is_sorted_by(|earlier, later| earlier < later);
        if !is_ordered || times.iter().any(|time| !(0.0..=86_400.0).contains(time)) {
            let why = format!("{times:?} are not growing numbers of seconds of one day");
            return Some(("accept.retransmits_s".into(), why));
        }
        None
    }
}

fn impossible_factor(field: &str, factor: f64) -> Impossible {
    let is_possible = (0.001..=1_000.0).contains(&factor);
    (!is_possible).then(|| (field.into(), format!("{factor} is not between 0.001 and 1,000")))
}

fn impossible_launch(table: &str, launch: &Launch) -> Impossible {
    launch.parameters().into_iter().find_map(|(name, distribution)| {
        distribution.impossible().map(|why| (format!("{table}.{name}"), why))
    })
}
