//! What goes wrong, and when.

use std::time::Duration;

use model::{AgentId, Rank, Signal};
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
    /// The agent (0: the head) is killed. Its keeper kills its tasks and its helpers.
    Crash(AgentId),
    /// The agent's keeper is killed; the agent hears of it.
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
    /// The link between the agent and its spawn parent is gone, but only this end of it hears so.
    HalfOpen(AgentId, Side),
    /// Nothing passes between the agent and its spawn parent for so long; then what was sent arrives,
    /// unless a kernel has given the link up meanwhile.
    Partition(AgentId, Duration),
    /// Everything between the agent and its spawn parent takes so much longer from here on.
    SlowLink(AgentId, Duration),
    /// The agent's spawn parent gets a second connection in the agent's name, which says nothing or
    /// says hello again.
    Duplicate(AgentId, Twin),
    /// The agent's process does not run for so long.
    Pause(AgentId, Duration),
    /// From here on, every message costs the agent's process so much time.
    Slow(AgentId, Duration),
    /// The task does not run for so long.
    PauseTask(Rank, Duration),
    /// The user sends a signal to the front end.
    UserSignal(Signal),
    /// Nobody reads this output of the front end any more.
    CloseOutput(Stream),
}

/// One end of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The spawn parent's.
    Parent,
    /// The spawn child's.
    Child,
}

/// A second connection in an agent's name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Twin {
    /// It proves itself and then says nothing.
    Silent,
    /// It proves itself and says hello, once the agent itself has been welcomed.
    Hello,
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
