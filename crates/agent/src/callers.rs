//! The ports, one for each job, that tasks connect to where they do not inherit their PMI connection.
//!
//! Each is open from its job's preparation until the tasks here have ended, to programs of this machine alone. Whose each
//! connection is, the engine decides; until then it waits here.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use bytes::Bytes;
use engine::{CallerId, Input, PmiPort};
use model::{JobId, Time};
use os::net::{self, ListenError, Listener};
use os::{Ready, TcpUsers};

use crate::door::Door;
use crate::reactor::{Chunk, Reactor};
use crate::source::Source;
use crate::task_pmi::TaskPmi;

/// The listeners, and who has connected and is no task's yet.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    doors: BTreeMap<JobId, Door>,
    callers: BTreeMap<CallerId, (JobId, TaskPmi)>,
    next_id: u64,
}

impl Callers {
    /// Listens for a job's tasks, on the loopback address only.
    pub(crate) fn open(&mut self, reactor: &Reactor, job: JobId) -> Result<PmiPort, ListenError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::on(address)?;
        let door = Door::open(reactor, listener, Source::PmiPort(job))
            .map_err(|source| ListenError { address, source })?;
        let port = door.port();
        self.doors.insert(job, door);
        Ok(PmiPort { port, uid: rustix::process::getuid().as_raw() })
    }

    /// Listens no longer for a job's tasks, and closes what is no task's.
    pub(crate) fn close(&mut self, job: JobId) {
        self.doors.remove(&job);
        self.callers.retain(|_, (theirs, _)| *theirs != job);
    }

    /// Takes connections that wait.
    pub(crate) fn on_listener(&mut self, now: Time, reactor: &mut Reactor, job: JobId) {
        let Some(door) = self.doors.get_mut(&job) else { return };
        let accepted = door.accept(now, reactor);
        if accepted.is_empty() {
            return;
        }
        let users = TcpUsers::read().ok();
        for fd in accepted {
            let uid = users.as_ref().and_then(|users| users.of_peer(&fd).ok().flatten());
            // What cannot even be set up is closed, which its program is told of.
            let _ = self.add(reactor, job, fd, uid);
        }
    }

    /// Handles the connection of somebody who is no task yet.
    pub(crate) fn on_ready(&mut self, reactor: &mut Reactor, caller: CallerId, ready: Ready) {
        let Some((job, pmi)) = self.callers.get_mut(&caller) else { return };
        let job = *job;
        match pmi.on_readable(reactor, ready) {
            Ok(Chunk::Data(data)) => reactor.report(Input::CallerData(job, caller, data)),
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => {
                self.callers.remove(&caller);
                reactor.report(Input::CallerGone(job, caller));
            }
        }
    }

    /// Writes to somebody who is no task yet. That he may be gone, the next read finds.
    pub(crate) fn answer(&mut self, reactor: &Reactor, caller: CallerId, data: Bytes) {
        if let Some((_, pmi)) = self.callers.get_mut(&caller) {
            let _ = pmi.write(&reactor.poller, data);
        }
    }

    /// Gives a connection away, or closes it where nobody takes it.
    pub(crate) fn take(&mut self, caller: CallerId) -> Option<TaskPmi> {
        self.callers.remove(&caller).map(|(_, pmi)| pmi)
    }

    /// When to call [`Callers::on_time`].
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.doors.values().filter_map(Door::poll_timeout).min()
    }

    /// Handles the passing of time.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &Reactor) {
        self.doors.values_mut().for_each(|door| door.on_time(now, reactor));
    }

    fn add(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        fd: OwnedFd,
        uid: Option<u32>,
    ) -> io::Result<()> {
        net::send_at_once(&fd)?;
        self.next_id += 1;
        let caller = CallerId(self.next_id);
        let pmi = TaskPmi::over_tcp(&reactor.poller, fd, Source::PmiCaller(caller))?;
        self.callers.insert(caller, (job, pmi));
        reactor.report(Input::Caller { job, caller, uid });
        Ok(())
    }
}
