//! The head's life: keeper, loop, report.

use std::io;

use engine::{Engine, HeadConfig, Outcome};
use model::Time;
use os::keeper::{AgentGroup, KeeperError, KeeperOptions, fork_keeper};
use os::{Clock, machine};

use crate::driver::{Driver, End, HeadSide, Parts, Side};
use crate::front_end::FrontEnd;
use crate::helpers::children_max;
use crate::identity::Identity;
use crate::output_files::OutputFiles;
use crate::reactor::Reactor;
use crate::signals::Signals;
use crate::user_input::UserInput;
use crate::user_output::UserOutput;

/// Why a session could not begin.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The keeper could not be made.
    #[error("start a session")]
    Keeper(#[source] KeeperError),
    /// A descriptor or a limit could not be had.
    #[error("set up a session")]
    Setup(#[source] io::Error),
}

/// How a session ended.
#[derive(Debug)]
pub struct HeadReport {
    /// The exit status.
    pub code: u8,
    /// What the engine saw.
    pub outcome: Outcome,
    /// Set when the session ended from within this process, not by the engine's decision: why.
    pub abandoned: Option<String>,
}

/// Runs a session from its first agent to its last, and returns how it ended. `files` are those that the
/// head is to write.
///
/// Forks: the process that the user started becomes the keeper, and this returns in its child.
/// Call it before there are threads.
///
/// # Errors
/// When no session could begin; nothing was started then.
pub fn run_head(
    mut config: HeadConfig,
    files: Option<OutputFiles>,
    front_end: &mut dyn FrontEnd,
) -> Result<HeadReport, HeadError> {
    let options = KeeperOptions { name: c"convoke-keeper", group: AgentGroup::Shared };
    let kept = fork_keeper(options).map_err(HeadError::Keeper)?;
    let descriptors = machine::raise_descriptor_limit().map_err(HeadError::Setup)?;
    config.children_max = config.children_max.min(children_max(&descriptors));
    let clock = Clock::new();
    let now = Time::from_nanos(clock.now());
    let parts = Parts {
        clock,
        engine: Engine::head(now, config),
        reactor: Reactor::new().map_err(HeadError::Setup)?,
        identity: Identity::new_session().map_err(HeadError::Setup)?,
        descriptors,
        signals: Signals::of_head(kept.keeper).map_err(HeadError::Setup)?,
        keeper_gone: kept.keeper_gone,
        files,
        side: Side::Head(Box::new(HeadSide {
            input: UserInput::new(),
            output: UserOutput::new(),
            front_end,
        })),
    };
    let mut driver = Driver::new(parts).map_err(HeadError::Setup)?;
    let (code, abandoned) = match driver.run() {
        End::Exit(code) => (code, None),
        End::Abandon { code, words } => (code, Some(words)),
    };
    Ok(HeadReport { code, outcome: driver.outcome().clone(), abandoned })
}
