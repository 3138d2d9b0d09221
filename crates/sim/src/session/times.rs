//! How long things may take in a session before they are violations.

use std::time::Duration;

use engine::HOST_SILENT_MAX;
use model::{AgentId, Signal};

use super::{LATE_MAX, Session};
use crate::calibration::Calibration;
use crate::fault::Fault;
use crate::launch::from_us;
use crate::link::transfer_time;
use crate::shell::{HUNG_MAX, WELCOME_TIMEOUT_MIN};

impl Session {
    /// Within which time an agent with nobody above it is gone: longer where only silence tells.
    pub(crate) fn orphan_time(&self) -> Duration {
        let stops = self.stops();
        // Before its welcome an agent has no other limit.
        let silence_max = self.silence_max().max(self.welcome_timeout());
        let link_timeout = match self.over_shells.is_empty() {
            true => self.link_timeout().max(self.welcome_timeout()),
            false => silence_max,
        };
        let silence = |fault: &Fault| match *fault {
            Fault::Cut(_) if stops => link_timeout.max(HOST_SILENT_MAX),
            Fault::Cut(_) => link_timeout,
            // Where one way is open, a kernel counts from the first thing that it sends.
            Fault::HalfLost(..) => 2 * link_timeout,
            Fault::CutFor(_, time) | Fault::Partition(_, time) => {
                time.min(HOST_SILENT_MAX) + link_timeout.max(HOST_SILENT_MAX)
            }
            Fault::Hush(_) | Fault::HalfOpen(..) => silence_max,
            Fault::Pause(_, time) => silence_max + time,
            Fault::Hang(_) => silence_max + HUNG_MAX,
            Fault::Twin(..) => 2 * HUNG_MAX,
            Fault::Slow(_, time) | Fault::SlowLink(_, time) => 1_000 * time,
            Fault::Crash(_)
            | Fault::KillKeeper(_)
            | Fault::KillShell(_)
            | Fault::CutRoute(_)
            | Fault::BreakRoute(_)
            | Fault::KillTask(_)
            | Fault::HangShell(_)
            | Fault::HangTask(..)
            | Fault::UserSignal(_)
            | Fault::CloseOutput(_) => Duration::ZERO,
        };
        let silence = self.faults.iter().map(|(_, fault)| silence(fault)).max();
        // The end of the head goes down the tree, an agent after the other at the worst.
        let is_late = !self.keeps_time();
        let levels = self.reaction_max().saturating_mul(self.n).min(LATE_MAX);
        let late = if is_late { silence_max + levels } else { Duration::ZERO };
        self.orphan_time_max + silence.unwrap_or_default() + late
    }

    /// Whether the user stops the front end at some time.
    pub(crate) fn stops(&self) -> bool {
        let is_stop = |fault: &Fault| *fault == Fault::UserSignal(Signal::TSTP);
        self.faults.iter().any(|(_, fault)| is_stop(fault))
    }

    /// Whether this agent's link to its parent runs over its shell.
    pub(crate) fn is_over_shell(&self, agent: AgentId) -> bool {
        self.over_shells.contains(agent.0)
    }

    /// After which time the kernel closes a link on which nothing passes.
    pub(crate) fn link_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.spec.link_timeout_ms))
    }

    /// How long an agent waits for its parent's welcome.
    pub(crate) fn welcome_timeout(&self) -> Duration {
        self.start_timeout().max(WELCOME_TIMEOUT_MIN)
    }

    fn start_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.spec.start_timeout_ms))
    }

    /// How long a peer may be silent before it is lost: three periods of a parent with as many
    /// children as there can be.
    fn silence_max(&self) -> Duration {
        let shortest = Duration::from_millis(u64::from(self.spec.heartbeat_ms));
        4 * shortest.max(Duration::from_secs(2 + u64::from(self.n)))
    }

    /// Whether nothing is to keep an agent from joining, and no start can come near to the time after
    /// which it is given up.
    pub(crate) fn starts_work(&self) -> bool {
        let is_even = self.join_timeout.is_none() && self.calibration.is_even(self.n);
        let is_timely = self.start_max().saturating_mul(2) < self.start_timeout();
        self.shells.is_empty()
            && self.sshd.is_none()
            && self.barriers.is_empty()
            && is_even
            && is_timely
            && self.keeps_time()
    }

    /// How long a start takes at most after the one before it, where none can take much longer than
    /// another: its parent does what messages of all agents take, and their list passes.
    fn start_max(&self) -> Duration {
        let launch = &self.calibration.launch;
        let gap = self.gaps.values().copied().fold(launch.gap(), Duration::max);
        // A start waits for others' programs, too.
        let program_bytes = self.program_bytes.saturating_mul(self.lacking.len());
        let programs = transfer_time(program_bytes, self.upload);
        let parts = [launch.latency(), gap, self.reaction_max(), programs];
        parts.into_iter().fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Whether processes and links are so fast that nobody misses a time at which others expect
    /// something of it. Otherwise everybody may be taken for lost, in reality too.
    pub(crate) fn keeps_time(&self) -> bool {
        // Three of them without a word are a loss.
        self.reaction_max() < 2 * Duration::from_millis(u64::from(self.spec.heartbeat_ms))
    }

    /// How long it takes at most until a process has answered another, if all agents want something of
    /// it at once.
    fn reaction_max(&self) -> Duration {
        const BYTES_PER_AGENT: u64 = 100;
        const MESSAGES: f64 = 10.0; // that an agent sends or gets, beside those for its subtree
        let Calibration { cpu, link, .. } = &self.calibration;
        let n = f64::from(self.n);
        let process_us = cpu.spawn_us + cpu.exec_us + cpu.parse_us;
        let busiest_us = process_us + n * (cpu.handshake_us + 4.0 * cpu.message_us);
        let each_us = process_us + 2.0 * cpu.handshake_us + MESSAGES * cpu.message_us;
        let all_us = if cpu.is_shared { n * each_us } else { 0.0 };
        let work_us = busiest_us.max(all_us) * self.calibration.factor_max();
        let ways_us = 3.0 * link.latency_us.quantile(1.0 - 1e-12);
        let list_bytes = u64::from(self.n) * BYTES_PER_AGENT;
        let list = transfer_time(list_bytes, link.bandwidth_bytes_per_s);
        from_us(work_us + ways_us).saturating_add(list)
    }
}
