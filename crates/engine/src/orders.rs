//! What the head's government may use to have its way.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use model::{AgentId, Time};
use proto::Event;
use wire::Message;

use crate::Effect;
use crate::jobs::Jobs;

/// Where the government writes what it decides, and what it may look at.
pub(crate) struct Orders<'a> {
    pub(crate) now: Time,
    /// Orders for all members, the head's own included.
    pub(crate) down: Vec<Message>,
    pub(crate) effects: &'a mut VecDeque<Effect>,
    pub(crate) events: &'a mut VecDeque<Event>,
    /// What the head knows of jobs as a member.
    pub(crate) jobs: &'a mut Jobs,
    /// Hosts that are to get an agent now.
    pub(crate) late: Vec<(AgentId, String)>,
    /// Set when the head must end at once, and why.
    pub(crate) abandon: Option<String>,
}
