//! An agent's life: keeper, boot channel, loop.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use bootstrap::{boot, bulk};
use engine::{AgentConfig, Engine};
use model::{AgentId, Time};
use os::keeper::{AgentGroup, KeeperError, KeeperOptions, Kept, fork_keeper};
use os::{Clock, Interest, machine, process};
use wire::{BootError, BootPayload, BuildHash};

use crate::driver::{Driver, End, Parts, Side};
use crate::error_chain::error_chain;
use crate::exit;
use crate::helpers::children_max;
use crate::identity::{Identity, own_build};
use crate::parent::{Approach, use_shell_address};
use crate::reactor::{Chunk, Reactor, Watched};
use crate::signals::Signals;
use crate::source::Source;

/// How long a boot channel may keep an agent waiting: a login shell's scripts run meanwhile, or
/// the other side is gone and its end does not come through.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);

/// After which silence to say so: the parent gives a start up sooner than we end, and tells our words.
const BOOT_WAIT: Duration = Duration::from_secs(5);

/// Why an agent did not come to life.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("become an agent")]
    Keeper(#[source] KeeperError),
    #[error("set up the agent")]
    Setup(#[source] io::Error),
    #[error("read the boot channel")]
    Read(#[source] io::Error),
    #[error("nothing came on the boot channel for {} seconds", BOOT_TIMEOUT.as_secs())]
    Silent,
    #[error("read the boot line")]
    Line(#[source] boot::BootError),
    #[error("understand the boot line")]
    Payload(#[source] BootError),
    #[error("`{0}` is not the number of an agent of this start")]
    Index(String),
}

/// Becomes an agent, runs until its session is over, and returns the exit status.
///
/// Call it before anything else: the keeper is forked here.
///
/// Told to be of another build than it is, it makes way for that one, see [`bootstrap::deliver`].
pub fn run_agent() -> u8 {
    let build = own_build();
    if std::env::args_os().nth(2).is_some_and(|told| told != *build.to_string()) {
        complain(&format!("make way for another build: {}", bootstrap::deliver::step_aside()));
        return exit::NO_BOOT;
    }
    match try_run(build) {
        Ok(End::Exit(code)) => code,
        Ok(End::Abandon { code, words }) => {
            complain(&words);
            code
        }
        Err(error) => {
            complain(&error_chain(&error));
            exit::NO_BOOT
        }
    }
}

fn try_run(build: BuildHash) -> Result<End, AgentError> {
    let options = KeeperOptions { name: c"convoke-keeper", group: AgentGroup::Own };
    let kept = fork_keeper(options).map_err(AgentError::Keeper)?;
    let clock = Clock::new();
    let mut reactor = Reactor::new().map_err(AgentError::Setup)?;
    let (payload, agent, boot) = read_boot(&clock, &mut reactor, build)?;
    drive(clock, reactor, kept, payload, agent, boot)
}

fn drive(
    clock: Clock,
    reactor: Reactor,
    kept: Kept,
    payload: BootPayload,
    agent: AgentId,
    boot: Option<Watched>,
) -> Result<End, AgentError> {
    let descriptors = machine::raise_descriptor_limit().map_err(AgentError::Setup)?;
    let BootPayload { build, session, secret, parent, attempt, addresses, .. } = payload;
    let welcome_timeout = Duration::from_millis(payload.welcome_timeout_ms.into());
    let config = AgentConfig {
        agent,
        parent,
        attempt,
        pid: process::own_pid().unsigned_abs(),
        seed: random_seed().map_err(AgentError::Setup)?,
        children_max: children_max(&descriptors),
        reports_started: false,
        welcome_timeout,
    };
    let now = Time::from_nanos(clock.now());
    let parts = Parts {
        clock,
        engine: Engine::agent(now, config),
        reactor,
        identity: Identity { build, own: agent, session, secret },
        descriptors,
        signals: Signals::of_agent(kept.keeper).map_err(AgentError::Setup)?,
        keeper_gone: kept.keeper_gone,
        files: None,
        side: Side::Agent,
    };
    let mut driver = Driver::new(parts).map_err(AgentError::Setup)?;
    let connection = std::env::var("SSH_CONNECTION").ok();
    let addresses = use_shell_address(addresses, connection.as_deref());
    let has_shell = payload.shell_link && boot.is_some();
    let approach = Approach::new(now, (parent, attempt), addresses, has_shell, welcome_timeout);
    driver.approach(approach, boot);
    Ok(driver.run())
}

/// Who we are, from the environment when a bulk bootstrapper put it there, else from standard
/// input, which then stays watched: its end is the shell's.
fn read_boot(
    clock: &Clock,
    reactor: &mut Reactor,
    build: BuildHash,
) -> Result<(BootPayload, AgentId, Option<Watched>), AgentError> {
    if let Some(line) = std::env::var_os(bulk::BOOT_VARIABLE) {
        let boot = boot::from_text(line.as_encoded_bytes()).map_err(AgentError::Line)?;
        let index = std::env::var(bulk::INDEX_VARIABLE).unwrap_or_default();
        let (payload, agent) = identify(&boot.payload, build, &index)?;
        return Ok((payload, agent, None));
    }
    let fd = io::stdin().as_fd().try_clone_to_owned().map_err(AgentError::Setup)?;
    let mut channel = Watched::new(fd, Source::Boot);
    let bytes = read_line(clock, reactor, &mut channel)?;
    let (payload, agent) = identify(&bytes, build, "0")?;
    Ok((payload, agent, Some(channel)))
}

fn identify(
    payload: &[u8],
    build: BuildHash,
    index: &str,
) -> Result<(BootPayload, AgentId), AgentError> {
    let payload = BootPayload::decode(payload, build).map_err(AgentError::Payload)?;
    let agent = index.parse().ok().and_then(|index| payload.agent(index));
    let agent = agent.ok_or_else(|| AgentError::Index(index.to_owned()))?;
    Ok((payload, agent))
}

fn read_line(
    clock: &Clock,
    reactor: &mut Reactor,
    channel: &mut Watched,
) -> Result<Vec<u8>, AgentError> {
    let mut reader = boot::BootReader::new();
    let begun = Time::from_nanos(clock.now());
    let (deadline, mut complain_at) = (begun + BOOT_TIMEOUT, Some(begun + BOOT_WAIT));
    let mut ready = Vec::new();
    // A regular file or `/dev/null` cannot be waited for, and need not be.
    let waits = channel.wait_for(&reactor.poller, Some(Interest::READ)).is_ok();
    loop {
        let now = Time::from_nanos(clock.now());
        if now >= deadline {
            return Err(AgentError::Silent);
        }
        if waits {
            if complain_at.take_if(|at| *at <= now).is_some() {
                complain("no boot line yet: does a start-up file here read standard input?");
            }
            let timeout = Some(complain_at.unwrap_or(deadline).since(now));
            reactor.poller.wait(timeout, &mut ready).map_err(AgentError::Setup)?;
            if ready.is_empty() {
                continue;
            }
        }
        match reactor.read(&*channel).map_err(AgentError::Read)? {
            Chunk::Data(bytes) => {
                if let Some(boot) = reader.push(&bytes).map_err(AgentError::Line)? {
                    return Ok(boot.payload);
                }
            }
            Chunk::WouldBlock => {}
            Chunk::Eof => return Err(AgentError::Line(reader.end())),
        }
    }
}

/// Says it to whoever started us; a reader that is gone does not matter.
fn complain(words: &str) {
    if !words.is_empty() {
        let _ = writeln!(io::stderr(), "convoke agent: {words}");
    }
}

fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    machine::random_bytes(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
