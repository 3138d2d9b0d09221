//! Programs that connect to `PMI_PORT`: whose are they?
//!
//! A program says first which task's it is (`pmi::Call`), and its connection is the task's from then on.
//! Everybody on the node can connect, so whoever is not of the tasks' user, or is not a task's only program, is turned
//! away with a word to the user, and the job goes on.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use model::{JobId, PmiOffer, Rank, Time};
use wire::{JobWarning, Message};

use super::{Job, Sweep};
use crate::engine::Engine;
use crate::{CallerId, Effect, PmiPort};

/// How long who has connected may take to say its rank.
const CALL_MAX: Duration = Duration::from_secs(10);

/// How many may be about to say theirs: all tasks of a large node begin at once.
const WAITING_MAX: usize = 1024;

/// How many of those that were turned away one member tells the user of.
const WARNINGS_MAX: u32 = 8;

/// The user who may do everything anyway, and whose programs `sudo` makes of tasks.
const ROOT: u32 = 0;

/// The port, and who has connected and has not said its rank.
#[derive(Debug)]
pub(super) struct Callers {
    port: PmiPort,
    /// In order of time, as their numbers are.
    waiting: BTreeMap<CallerId, Waiting>,
    warnings: u32,
}

#[derive(Debug)]
struct Waiting {
    until: Time,
    call: pmi::Call,
}

impl Callers {
    /// Nobody has connected there yet.
    fn at(port: PmiPort) -> Callers {
        Callers { port, waiting: BTreeMap::new(), warnings: 0 }
    }

    /// When the first has taken too long.
    fn due_at(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|(_, waiting)| waiting.until)
    }

    /// Why a process of this user may not even say its rank.
    fn objection(&self, uid: Option<u32>) -> Option<String> {
        let own = self.port.uid;
        match uid {
            None => Some("nothing tells whose process it is".to_string()),
            Some(uid) if uid != own && uid != ROOT => {
                Some(format!("it is a process of user {uid}, and the tasks are of user {own}"))
            }
            Some(_) if self.waiting.len() >= WAITING_MAX => {
                Some(format!("{WAITING_MAX} others have connected and not said their ranks"))
            }
            Some(_) => None,
        }
    }
}

impl Job {
    /// Takes note of where its tasks here connect to, if they are to.
    pub(crate) fn open_port(&mut self, port: Option<PmiPort>) {
        self.callers = port.map(|port| Box::new(Callers::at(port)));
    }

    /// How a task finds its connection.
    pub(super) fn transport(&self) -> pmi::Transport {
        match &self.callers {
            _ if self.spec.pmi == PmiOffer::None => pmi::Transport::None,
            Some(callers) => pmi::Transport::Port(callers.port.port),
            None => pmi::Transport::Descriptor(crate::PMI_FD),
        }
    }

    /// When the first caller has taken too long.
    pub(super) fn call_due_at(&self) -> Option<Time> {
        self.callers.as_ref().and_then(|callers| callers.due_at())
    }

    /// Why a connection cannot be that of the task of this rank.
    fn objection(&self, rank: Rank) -> Option<&'static str> {
        let Some(task) = self.tasks.get(&rank) else { return Some("does not run on this node") };
        if task.is_connected {
            return Some("is connected");
        }
        if task.ended.is_some() {
            return Some("has ended");
        }
        if !task.spawned {
            return Some("has not begun");
        }
        let has_broken_off = task.broke_pmi || self.pmi.state(rank) == pmi::ClientState::Active;
        has_broken_off.then_some("has closed its connection before it had finalized PMI")
    }
}

impl Engine {
    pub(crate) fn on_caller(&mut self, id: JobId, caller: CallerId, uid: Option<u32>) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(callers) = job.callers.as_mut().filter(|_| job.sweep == Sweep::NotAsked) else {
            return self.effects.push_back(Effect::DropCaller(caller));
        };
        match callers.objection(uid) {
            Some(words) => self.refuse(id, caller, words),
            None => {
                let waiting = Waiting { until: now + CALL_MAX, call: pmi::Call::default() };
                callers.waiting.insert(caller, waiting);
            }
        }
    }

    pub(crate) fn on_caller_data(&mut self, id: JobId, caller: CallerId, data: &[u8]) {
        let Some(waiting) = self.callers(id).and_then(|it| it.waiting.get_mut(&caller)) else {
            return;
        };
        let mut answer = Vec::new();
        let said = waiting.call.feed(data, &mut answer);
        if !answer.is_empty() {
            self.effects.push_back(Effect::AnswerCaller { caller, data: answer.into() });
        }
        match said {
            Ok(None) => {}
            Ok(Some(introduction)) => self.on_call(id, caller, &introduction),
            Err(error) => self.refuse(id, caller, error.to_string()),
        }
    }

    /// Who hangs up without a word is nobody's concern.
    pub(crate) fn on_caller_gone(&mut self, id: JobId, caller: CallerId) {
        self.forget_caller(id, caller);
    }

    fn on_call(&mut self, id: JobId, caller: CallerId, call: &pmi::Introduction) {
        let rank = call.rank;
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(objection) = job.objection(rank) {
            return self.refuse(
                id,
                caller,
                format!("it says that it is task {rank}, which {objection}"),
            );
        }
        if let Some(task) = job.tasks.get_mut(&rank) {
            task.is_connected = true;
        }
        self.forget_caller(id, caller);
        self.effects.push_back(Effect::AdmitCaller { caller, job: id, rank });
        if let Some(job) = self.jobs.get_mut(id) {
            job.pmi.on_call(call);
        }
        self.drain_pmi(id);
    }

    /// Turns away who has said nothing for too long.
    pub(super) fn check_callers(&mut self, id: JobId) {
        let now = self.now;
        while let Some(callers) = self.callers(id)
            && let Some((&caller, waiting)) = callers.waiting.first_key_value()
            && waiting.until <= now
        {
            let seconds = CALL_MAX.as_secs();
            self.refuse(id, caller, format!("it has not said its rank within {seconds} s"));
        }
    }

    fn refuse(&mut self, id: JobId, caller: CallerId, words: String) {
        self.effects.push_back(Effect::DropCaller(caller));
        self.forget_caller(id, caller);
        let agent = self.id;
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(callers) = job.callers.as_mut().filter(|it| it.warnings < WARNINGS_MAX) {
            callers.warnings += 1;
            self.warn(id, JobWarning::RefusedCall { agent, words });
        }
    }

    fn forget_caller(&mut self, id: JobId, caller: CallerId) {
        if let Some(callers) = self.callers(id) {
            callers.waiting.remove(&caller);
        }
    }

    fn callers(&mut self, id: JobId) -> Option<&mut Callers> {
        self.jobs.get_mut(id)?.callers.as_deref_mut()
    }

    /// Tells the user of something, on its way up or of this node.
    pub(crate) fn warn(&mut self, job: JobId, warning: JobWarning) {
        self.up_job(Message::Warning(job, warning));
    }
}
