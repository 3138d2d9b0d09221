//! The hosts of a session: what things take on each of them, and how long its processors are busy.
//!
//! What is drawn at random depends on the seed, the node and the purpose alone, so that a fault
//! somewhere changes no latency elsewhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use model::{AgentId, HostList, Time};
use wire::Class;

use crate::calibration::{Calibration, Cpu};
use crate::launch::{Launch, from_us};
use crate::link::{Wire, transfer_time};
use crate::random::{Purpose, Random};

/// The hosts of a session.
pub(crate) struct Machines<'a> {
    calibration: &'a Calibration,
    seed: u64,
    /// Hosts that the calibration names: the index of their entry.
    named: BTreeMap<u32, usize>,
    /// When each core that has worked is free, host by host, the first on top. Empty while nothing takes a
    /// processor's time.
    free_at: Vec<BinaryHeap<Reverse<Time>>>,
    /// What carries the messages of each host, where that has a bound.
    wires: BTreeMap<AgentId, Wire>,
}

impl<'a> Machines<'a> {
    /// The hosts `n0`, `n1` and so on, and the head's, which has no name.
    pub(crate) fn new(calibration: &'a Calibration, seed: u64) -> Machines<'a> {
        let mut named = BTreeMap::new();
        for (index, entry) in calibration.hosts.iter().enumerate() {
            // Other names were refused when the calibration was validated.
            for node in entry.names.parse::<HostList>().unwrap_or_default().into_nodes() {
                if let Some(number) = node_number(&node.name) {
                    named.entry(number).or_insert(index);
                }
            }
        }
        Machines { calibration, seed, named, free_at: Vec::new(), wires: BTreeMap::new() }
    }

    /// From the start of an agent, its gap past, until it exists.
    pub(crate) fn latency(&self, started: AgentId, attempt: u32) -> Duration {
        let latency = self.launch(started).sample_latency(&mut self.random(
            started,
            Purpose::Latency,
            attempt,
        ));
        latency.mul_f64(self.factor(started))
    }

    /// How long the start of an agent keeps the starting host from the next.
    pub(crate) fn gap(&self, starter: AgentId, started: AgentId, attempt: u32) -> Duration {
        let random = &mut self.random(started, Purpose::Gap, attempt);
        self.launch(starter).sample_gap(random).mul_f64(self.factor(starter))
    }

    /// One way between an agent and its parent.
    pub(crate) fn link_latency(&self, child: AgentId) -> Duration {
        let random = &mut self.random(child, Purpose::Link, 0);
        from_us(self.calibration.link.latency_us.sample(random))
    }

    /// What each process costs a processor.
    pub(crate) fn cpu(&self) -> &Cpu {
        &self.calibration.cpu
    }

    /// Takes the first free core of the agent's host for `work_us`, from `begin` on. Returns when
    /// the work is done.
    pub(crate) fn work(&mut self, agent: AgentId, begin: Time, work_us: f64) -> Time {
        if work_us <= 0.0 {
            return begin;
        }
        let work = from_us(work_us).mul_f64(self.factor(agent));
        let (cores, used) = self.cores(agent);
        let is_one_unused = used.len() < cores;
        let free_at = if is_one_unused { None } else { used.pop() };
        let done = free_at.map_or(begin, |Reverse(free_at)| begin.max(free_at)) + work;
        used.push(Reverse(done));
        done
    }

    /// When the agent's host has sent a message that it gets now.
    pub(crate) fn send(&mut self, agent: AgentId, now: Time, class: Class, bytes: u64) -> Time {
        let bandwidth = self.calibration.link.host_bandwidth_bytes_per_s;
        if bandwidth.is_none() {
            return now;
        }
        let wire = self.wires.entry(agent).or_default();
        wire.send(now, now, class, transfer_time(bytes, bandwidth))
    }

    /// How many cores the agent's host has, and when each that has worked is free.
    fn cores(&mut self, agent: AgentId) -> (usize, &mut BinaryHeap<Reverse<Time>>) {
        let Cpu { cores, is_shared, .. } = self.calibration.cpu;
        let host = if is_shared { 0 } else { usize::try_from(agent.0).unwrap_or(0) };
        if self.free_at.len() <= host {
            self.free_at.resize(host + 1, BinaryHeap::new());
        }
        (usize::try_from(cores).unwrap_or(1), &mut self.free_at[host])
    }

    fn launch(&self, agent: AgentId) -> &Launch {
        let entry =
            self.entry(agent).and_then(|index| self.calibration.hosts[index].launch.as_ref());
        entry.unwrap_or(&self.calibration.launch)
    }

    /// How many times longer L, its own starts and all of `cpu` take on the agent's host.
    fn factor(&self, agent: AgentId) -> f64 {
        if let Some(index) = self.entry(agent) {
            return self.calibration.hosts[index].factor;
        }
        match self.calibration.slow {
            Some(slow) if self.random(agent, Purpose::Slow, 0).fraction() < slow.fraction => {
                slow.factor
            }
            Some(_) | None => 1.0,
        }
    }

    fn entry(&self, agent: AgentId) -> Option<usize> {
        let node = agent.0.checked_sub(1)?;
        self.named.get(&node).copied()
    }

    pub(crate) fn random(&self, agent: AgentId, purpose: Purpose, index: u32) -> Random {
        Random::keyed(self.seed, agent.0, purpose, index)
    }
}

/// Which node a simulated host's name is of: `n3` is that of node 3, and of agent 4.
pub(crate) fn node_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix('n')?.parse().ok()?;
    (format!("n{number}") == name).then_some(number)
}
