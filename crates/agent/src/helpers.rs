//! The bootstrap commands that this process runs, one for each start.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use bootstrap::deliver::Program;
use bootstrap::{AgentProgram, Bootstrapper, CommandError, Fallback, StartError, own_program};
use engine::{Input, Start, StartId};
use model::{IdSet, Time};
use os::machine::DescriptorLimit;
use os::net::ListenError;
use os::{ExitStatus, Pid, Ready, machine};
use rustix::io::Errno;
use wire::{BootError, BootPayload};

use crate::convert;
use crate::error_chain::error_chain;
use crate::helper::{Helper, ShellStreams};
use crate::identity::{Identity, own_build};
use crate::links::Links;
use crate::reactor::Reactor;
use crate::source::HelperPart;
use crate::start_plan::{LinkChoice, PlanError, StartPlan};

/// Descriptors of ours for one child: its shell's streams, its shell's complaints, and its link.
const DESCRIPTORS_PER_CHILD: u64 = 3;

/// Descriptors that we have without children and tasks, what we were started with included, and those
/// that are open while a child or a task is started.
const DESCRIPTORS_OWN: u64 = 16;

/// How many children so many descriptors allow: half of those that are left for children and tasks.
/// The other half is for tasks, and for second connections of children that try several addresses.
pub(crate) fn children_max(limit: &DescriptorLimit) -> u32 {
    let left = limit.now.saturating_sub(DESCRIPTORS_OWN);
    u32::try_from(left / 2 / DESCRIPTORS_PER_CHILD).unwrap_or(u32::MAX).max(1)
}

/// All helpers that run.
#[derive(Debug)]
pub(crate) struct Helpers {
    running: BTreeMap<StartId, Helper>,
    by_pid: BTreeMap<Pid, StartId>,
    /// What every start of a session has in common; read once.
    plan: Option<Plan>,
    /// Read when the first host asks for it.
    program: Option<Rc<Program>>,
    /// For the words when they have run out.
    descriptors: DescriptorLimit,
}

#[derive(Clone, Debug)]
struct Plan {
    bootstrapper: Bootstrapper,
    program: AgentProgram,
    /// What runs on this host without a shell.
    local: AgentProgram,
    link: LinkChoice,
    hostname: String,
}

/// Why a helper does not run.
#[derive(Debug, thiserror::Error)]
enum HelperError {
    #[error("read how agents are started")]
    Plan(#[source] PlanError),
    #[error("open a port for agents")]
    Listen(#[source] ListenError),
    #[error("tell an agent who it is")]
    Payload(#[source] BootError),
    #[error(transparent)]
    Command(CommandError),
    #[error(transparent)]
    Start(StartError),
    #[error("wait for what the remote shell says")]
    Watch(#[source] io::Error),
}

impl Helpers {
    /// None yet.
    pub(crate) fn new(descriptors: DescriptorLimit) -> Helpers {
        Helpers {
            running: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            plan: None,
            program: None,
            descriptors,
        }
    }

    /// Runs the bootstrapper for a start, or says why not.
    pub(crate) fn start(&mut self, reactor: &mut Reactor, links: &mut Links, start: &Start) {
        match self.run(reactor, links, start) {
            Ok(helper) => {
                self.by_pid.insert(helper.pid(), start.start);
                self.running.insert(start.start, helper);
            }
            Err(error) => reactor.report(Input::ShellNotRun {
                start: start.start,
                errno: error.errno(),
                words: self.words(&error),
            }),
        }
    }

    /// Sends the running program down a helper that waits for it.
    pub(crate) fn send_program(&mut self, now: Time, reactor: &Reactor, start: StartId) {
        let Some(helper) = self.running.get_mut(&start) else { return };
        let program = match self.program.take() {
            Some(program) => Ok(program),
            None => Program::own(&own_build().to_string()).map(Rc::new),
        };
        match program {
            Ok(program) => helper.send_program(now, reactor, self.program.insert(program)),
            Err(error) => helper.hang_up(&format!("convoke: read the own program: {error}")),
        }
    }

    /// Ends a helper and all that it started.
    pub(crate) fn kill(&mut self, now: Time, start: StartId) {
        if let Some(helper) = self.running.get_mut(&start) {
            helper.end(now);
        }
    }

    /// The process numbers of those that run.
    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.by_pid.keys().copied()
    }

    /// Handles a helper's descriptor that is ready. Returns its streams if they are to be a link.
    pub(crate) fn on_ready(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        start: StartId,
        part: HelperPart,
        ready: Ready,
    ) -> Option<ShellStreams> {
        self.running.get_mut(&start)?.on_ready(now, reactor, part, ready)
    }

    /// Handles the end of a process that may be a helper.
    pub(crate) fn on_reaped(&mut self, reactor: &mut Reactor, pid: Pid, status: ExitStatus) {
        let Some(start) = self.by_pid.remove(&pid) else { return };
        if let Some(helper) = self.running.remove(&start) {
            helper.on_reaped(reactor, status);
        }
    }

    /// When to call [`Helpers::on_time`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.running.values().filter_map(Helper::poll_timeout).min()
    }

    /// Kills those that had their time to end.
    pub(crate) fn on_time(&mut self, now: Time) {
        for helper in self.running.values_mut() {
            helper.on_time(now);
        }
    }

    fn words(&self, error: &HelperError) -> String {
        let words = error_chain(error);
        if error.errno() != Errno::MFILE.raw_os_error() {
            return words;
        }
        let limit = self.descriptors.now;
        format!("{words}: {limit} descriptors are allowed here (`ulimit -n`)")
    }

    fn run(
        &mut self,
        reactor: &Reactor,
        links: &mut Links,
        start: &Start,
    ) -> Result<Helper, HelperError> {
        let plan = self.plan(links.identity(), start)?;
        let payload = payload(links, reactor, start, plan.link).map_err(HelperError::Listen)?;
        let payload = payload.encode().map_err(HelperError::Payload)?;
        let hosts: Vec<&str> = start.agents.iter().map(|(_, name)| name.as_str()).collect();
        let first = hosts.first().copied().unwrap_or_default();
        let bootstrapper = plan.bootstrapper.for_host(first, &plan.hostname).clone();
        let program = if bootstrapper == Bootstrapper::Local { &plan.local } else { &plan.program };
        let command =
            bootstrapper.command(&hosts, program, &payload).map_err(HelperError::Command)?;
        let helper =
            bootstrap::start(&command, self.descriptors.lowered()).map_err(HelperError::Start)?;
        Helper::new(reactor, start.start, bootstrapper, helper, command.after_delivery)
            .map_err(HelperError::Watch)
    }

    fn plan(&mut self, own: &Identity, start: &Start) -> Result<&Plan, HelperError> {
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => Plan::read(&start.session.bootstrap, own).map_err(HelperError::Plan)?,
        };
        Ok(self.plan.insert(plan))
    }
}

impl Plan {
    fn read(bytes: &[u8], own: &Identity) -> Result<Plan, PlanError> {
        let plan = StartPlan::decode(bytes)?;
        let bootstrapper = plan.bootstrapper()?;
        let StartPlan { program: path, deliver, link, .. } = plan;
        // Where the program may be another than the user says, this one is at hand.
        let here = own_program().ok().filter(|_| deliver).unwrap_or_else(|| path.clone());
        let local = AgentProgram { path: here, fallback: None };
        let (build, machine) = (own.build.to_string(), machine::architecture());
        let program =
            AgentProgram { path, fallback: deliver.then_some(Fallback { build, machine }) };
        Ok(Plan { bootstrapper, program, local, link, hostname: machine::hostname() })
    }
}

impl HelperError {
    fn errno(&self) -> i32 {
        match self {
            HelperError::Plan(_) | HelperError::Payload(_) | HelperError::Command(_) => {
                Errno::INVAL.raw_os_error()
            }
            HelperError::Listen(error) => error.source.raw_os_error().unwrap_or_default(),
            HelperError::Start(error) => convert::start_errno(error),
            HelperError::Watch(error) => error.raw_os_error().unwrap_or_default(),
        }
    }
}

fn payload(
    links: &mut Links,
    reactor: &Reactor,
    start: &Start,
    link: LinkChoice,
) -> Result<BootPayload, ListenError> {
    let addresses = match link {
        LinkChoice::Auto | LinkChoice::Tcp => links.addresses(reactor)?,
        LinkChoice::Shell => Vec::new(),
    };
    let identity = links.identity();
    Ok(BootPayload {
        build: identity.build,
        session: identity.session,
        secret: identity.secret.clone(),
        agents: start.agents.iter().map(|(agent, _)| agent.0).collect::<IdSet>(),
        parent: identity.own,
        attempt: start.attempt,
        addresses,
        shell_link: link != LinkChoice::Tcp,
        welcome_timeout_ms: start.session.start_timeout_ms,
    })
}
