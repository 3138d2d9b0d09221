//! Who has joined, on its way to the head: bundled, so that a large tree does not drown it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use model::{IdSet, JobId, PmiOffer, Time};
use proto::Event;
use wire::{JobFault, JobSpec, JobWarning, MarkKind, Message, Milestone};

use crate::PmiPort;
use crate::engine::Engine;

/// What this member has still to hear and to tell about who has joined.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    /// Members of this subtree that have neither joined nor failed.
    pub(crate) missing: IdSet,
    /// Those that have joined and that the parent does not know of.
    pub(crate) untold: IdSet,
    /// When they must be told.
    pub(crate) tell_at: Option<Time>,
    last_told: Option<Time>,
    /// The time to join is over: nobody is started any more.
    pub(crate) is_over: bool,
}

/// Those who join close together are told of in one message.
const JOINED_BUNDLE: Duration = Duration::from_millis(20);

impl Engine {
    /// Adds to what the parent must hear of; says it at once unless something was said just now.
    pub(crate) fn on_joined(&mut self, ids: &IdSet) {
        self.joining.missing = self.joining.missing.difference(ids);
        self.joining.untold = self.joining.untold.union(ids);
        let soonest = self.joining.last_told.map_or(self.now, |told| told + JOINED_BUNDLE);
        if self.joining.missing.is_empty() || soonest <= self.now {
            self.tell_joined();
        } else {
            self.joining.tell_at = Some(soonest);
        }
    }

    /// Handles that members are started again that may have joined before.
    pub(crate) fn joining_again(&mut self, ids: &IdSet) {
        self.joining.missing = self.joining.missing.union(ids);
        self.joining.untold = self.joining.untold.difference(ids);
    }

    /// Handles that members will not join, so that those who did are not held back for them.
    pub(crate) fn not_joining(&mut self, ids: &IdSet) {
        self.joining.missing = self.joining.missing.difference(ids);
        if self.joining.missing.is_empty() {
            self.tell_joined();
        }
    }

    pub(crate) fn tell_joined(&mut self) {
        self.joining.tell_at = None;
        if !self.joining.untold.is_empty() {
            self.tell_contacts();
            self.joining.last_told = Some(self.now);
            let joined = core::mem::take(&mut self.joining.untold);
            if !self.is_head() {
                self.events.push_back(Event::AgentsJoined(joined.clone()));
            }
            self.up(Message::Joined(joined));
        }
    }

    pub(crate) fn on_prepared(
        &mut self,
        job: JobId,
        fault: Option<JobFault>,
        pmi_port: Option<PmiPort>,
    ) {
        let Some(own) = self.jobs.get_mut(job) else { return };
        let is_needed = own.spec.pmi_port && fault.is_none() && !own.apps().is_empty();
        assert!(pmi_port.is_some() || !is_needed, "the tasks have nothing to connect to");
        own.open_port(pmi_port);
        let is_fit = fault.is_none();
        if let Some(fault) = fault {
            self.fault(job, fault);
        }
        if job == JobId::FIRST {
            self.on_self_joined();
        } else if is_fit {
            self.on_milestone(job, Milestone::Prepared);
        }
    }

    /// Tells of programs whose tasks would not find each other, once for each: by the node of its first task.
    pub(crate) fn warn_of_open_mpi(&mut self, job: JobId, apps: Vec<(u32, String)>) {
        let (own, agent) = (self.jobs.get(job), self.id);
        let Some(spec) = own.map(|own| own.spec.clone()).filter(may_meet) else {
            return;
        };
        for (app, library) in apps {
            let first = spec.app(app).and_then(|app| spec.map.node_of(app.first_rank));
            if first == agent.node() {
                self.warn(job, JobWarning::OpenMpi { agent, app, library });
            }
        }
    }

    /// Handles that this member can launch the job.
    pub(crate) fn on_self_joined(&mut self) {
        if let Some(routing) = self.routing.as_mut().filter(|it| !it.contacts.has_own()) {
            routing.is_ready = true;
            return;
        }
        self.mark(self.id, MarkKind::Joined);
        self.on_joined(&IdSet::range(self.id.0, self.id.0));
    }
}

/// Whether a job has tasks that would look for each other.
fn may_meet(spec: &Arc<JobSpec>) -> bool {
    spec.map.len() > 1 && spec.pmi != PmiOffer::None
}
