//! Tasks that connect to `PMI_PORT`, each behind a stranger who says something else.

use bytes::Bytes;
use engine::{CallerId, Input, PmiPort};
use model::JobId;

use super::World;
use crate::process::ProcessId;
use crate::session::Session;
use crate::task::PREFIX_BYTES;
use crate::task_id::TaskId;

/// Who runs the tasks, and connects.
const UID: u32 = 1000;

impl Session {
    /// Has tasks connect to a port of their agent instead of inheriting their PMI connection.
    #[must_use]
    pub fn with_pmi_port(mut self) -> Session {
        self.pmi_port = true;
        self
    }
}

impl World<'_> {
    /// The port of an agent, if its tasks need one.
    pub(super) fn pmi_port(&self) -> Option<PmiPort> {
        self.session.pmi_port.then_some(PmiPort { port: 4000, uid: UID })
    }

    /// Takes what a task sends; the first time, it connects.
    pub(super) fn on_pmi(&mut self, id: ProcessId, of: TaskId, data: Bytes) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if !self.session.pmi_port || std::mem::replace(&mut task.pmi.is_connected, true) {
            return self.tell_soon(id, Input::TaskPmi { job: of.job, rank: of.rank, data });
        }
        let greets = data.get(PREFIX_BYTES..).is_some_and(|body| body.starts_with(b"cmd=fullinit"));
        if greets {
            task.pmi.unsent = data.clone();
        }
        self.connect_as(id, of.job, stranger_before(of), b"cmd=initack\n");
        if greets {
            let greeting = b"cmd=init pmi_version=2 pmi_subversion=0\n";
            return self.connect_as(id, of.job, caller_of(of), greeting);
        }
        let call = format!("cmd=initack pmiid={}\n", of.rank);
        self.connect_as(id, of.job, caller_of(of), &[call.as_bytes(), &data].concat());
    }

    /// An engine answers a greeting.
    pub(super) fn on_greeted(&mut self, id: ProcessId, caller: CallerId) {
        let tasks = &mut self.processes[id.0].tasks;
        let of_caller = tasks.iter_mut().find(|(of, _)| caller_of(**of) == caller);
        let Some((of, task)) = of_caller.filter(|(_, task)| !task.pmi.is_over) else { return };
        let (job, data) = (of.job, std::mem::take(&mut task.pmi.unsent));
        self.tell_soon(id, Input::CallerData(job, caller, data));
    }

    fn connect_as(&mut self, id: ProcessId, job: JobId, caller: CallerId, words: &[u8]) {
        self.tell_soon(id, Input::Caller { job, caller, uid: Some(UID) });
        self.tell_soon(id, Input::CallerData(job, caller, Bytes::copy_from_slice(words)));
    }

    /// An engine takes a connection for a task's.
    pub(super) fn admit(&mut self, caller: CallerId, of: TaskId) {
        if caller != caller_of(of) {
            self.checker.violate(format!("{caller:?} was taken for task {of}"));
        }
    }

    /// An engine turns somebody away.
    pub(super) fn turn_away(&mut self, caller: CallerId) {
        if caller.0.is_multiple_of(2) {
            self.checker.violate(format!("{caller:?}, a task, was turned away"));
        }
    }
}

fn stranger_before(of: TaskId) -> CallerId {
    CallerId(2 * of.number() + 1)
}

pub(super) fn caller_of(of: TaskId) -> CallerId {
    CallerId(2 * of.number() + 2)
}
