//! What goes wrong, and when.

use std::time::Duration;

use model::{AgentId, IdSet, Rank, Signal};
use wire::{ShellFailureKind, Stream};

/// The moment of a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum When {
    /// After this many steps of the session.
    Step(u64),
    /// This long after the session's begin.
    At(Duration),
}

/// Something that goes wrong, or that the user does. One that finds nothing to hurt does nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The agent (0: the head) is killed. The kernel kills its tasks, its keeper what they left behind.
    Crash(AgentId),
    /// The agent's keeper is killed, and does nothing more; the agent hears of it.
    KillKeeper(AgentId),
    /// The shell that started the agent is killed: both its ends hear of it.
    KillShell(AgentId),
    /// The task is killed.
    KillTask(Rank),
    /// Nothing passes between the agent and its spawn parent any more. Each hears of it when its
    /// kernel gives the link up.
    Cut(AgentId),
    /// Nothing passes between the agent and its spawn parent any more, and neither ever hears of it.
    Hush(AgentId),
    /// Nothing passes between the agent and its spawn parent for so long. Then all that was sent
    /// meanwhile arrives, unless a kernel has given the link up.
    CutFor(AgentId, Duration),
    /// Nothing passes between these agents and all others for so long, as with [`Fault::CutFor`].
    /// Whoever is started across the cut has to wait for its end.
    Partition(IdSet, Duration),
    /// Nothing that goes this way between the agent and its spawn parent arrives any more, though
    /// the other way is open.
    HalfLost(AgentId, Way),
    /// The link between the agent and its spawn parent is gone, and only the end that this way leads
    /// to hears so.
    HalfOpen(AgentId, Way),
    /// Nothing passes any more over the first of those links that the agent has opened to its routing
    /// parent and as redundant ones, until each end hears of it from its kernel.
    CutRoute(AgentId),
    /// The first of those links is gone, and both ends hear of it.
    BreakRoute(AgentId),
    /// Everything between the agent and its spawn parent takes so much longer from here on.
    SlowLink(AgentId, Duration),
    /// A second process of the agent connects to its spawn parent.
    Twin(AgentId, TwinOf),
    /// The agent's process does not run for so long.
    Pause(AgentId, Duration),
    /// The agent's process does not run any more.
    Hang(AgentId),
    /// Each message takes the agent so much longer from here on.
    Slow(AgentId, Duration),
    /// The newest shell that starts the agent gets no further.
    HangShell(AgentId),
    /// The task does not run for so long: no signal but SIGKILL reaches it meanwhile.
    HangTask(Rank, Duration),
    /// The user sends a signal to the front end.
    UserSignal(Signal),
    /// Nobody reads this output of the front end any more.
    CloseOutput(Stream),
}

/// A direction on a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// To the spawn parent.
    Up,
    /// From the spawn parent.
    Down,
}

/// Which start of its agent a second process says that it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TwinOf {
    /// The newest.
    Newest,
    /// The one before, or the newest where there was only one.
    Earlier,
    /// It does not say, nor anything else, once it has proved itself.
    Mute,
}

impl Fault {
    /// Whom it hurts: agents that may be lost by it, or fail to start.
    pub(crate) fn hurts(&self) -> IdSet {
        match self {
            Fault::Crash(agent)
            | Fault::KillKeeper(agent)
            | Fault::KillShell(agent)
            | Fault::Cut(agent)
            | Fault::Hush(agent)
            | Fault::CutFor(agent, _)
            | Fault::HalfLost(agent, _)
            | Fault::HalfOpen(agent, _)
            | Fault::SlowLink(agent, _)
            | Fault::Twin(agent, _)
            | Fault::Pause(agent, _)
            | Fault::Hang(agent)
            | Fault::Slow(agent, _)
            | Fault::HangShell(agent) => IdSet::range(agent.0, agent.0),
            Fault::Partition(agents, _) => agents.clone(),
            Fault::CutRoute(_)
            | Fault::BreakRoute(_)
            | Fault::KillTask(_)
            | Fault::HangTask(..)
            | Fault::UserSignal(_)
            | Fault::CloseOutput(_) => IdSet::new(),
        }
    }
}

/// How one run of a remote shell goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ShellPlan {
    /// It starts the agent.
    Works,
    /// It starts the agent, so much later than others.
    Slow(Duration),
    /// It ends with status 255 and words of this kind, and starts nothing.
    Fails(ShellFailureKind),
    /// It could not be run here: the error number.
    NotRun(i32),
    /// It says nothing, and starts nothing.
    Hangs,
    /// It starts the agent and is killed before the agent has connected.
    EndsEarly,
    /// It starts an agent that does not connect.
    Mute,
}
