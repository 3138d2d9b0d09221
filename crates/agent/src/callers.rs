//! The port that tasks connect to where they do not inherit their PMI connection.
//!
//! It is open from the job's preparation until its tasks have ended, to programs of this machine alone. Whose each
//! connection is, the engine decides; until then it waits here.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use engine::{CallerId, Input, PmiPort};
use model::Time;
use os::net::{self, ListenError, Listener};
use os::{Ready, TcpUsers};

use crate::door::Door;
use crate::reactor::{Chunk, Reactor};
use crate::source::Source;
use crate::task_pmi::TaskPmi;

/// The listener, and who has connected and is no task's yet.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    door: Option<Door>,
    callers: BTreeMap<CallerId, TaskPmi>,
    next_id: u64,
}

impl Callers {
    /// Listens, on the loopback address only.
    pub(crate) fn open(&mut self, reactor: &Reactor) -> Result<PmiPort, ListenError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::on(address)?;
        let door = Door::open(reactor, listener, Source::PmiPort)
            .map_err(|source| ListenError { address, source })?;
        let port = self.door.insert(door).port();
        Ok(PmiPort { port, uid: rustix::process::getuid().as_raw() })
    }

    /// Listens no longer, and closes what is no task's.
    pub(crate) fn close(&mut self) {
        (self.door, self.callers) = (None, BTreeMap::new());
    }

    /// Takes connections that wait.
    pub(crate) fn on_listener(&mut self, now: Time, reactor: &mut Reactor) {
        let Some(door) = &mut self.door else { return };
        let accepted = door.accept(now, reactor);
        if accepted.is_empty() {
            return;
        }
        let users = TcpUsers::read().ok();
        for fd in accepted {
            let uid = users.as_ref().and_then(|users| users.of_peer(&fd).ok().flatten());
            // What cannot even be set up is closed, which its program is told of.
            let _ = self.add(reactor, fd, uid);
        }
    }

    /// Handles the connection of somebody who is no task yet.
    pub(crate) fn on_ready(&mut self, reactor: &mut Reactor, caller: CallerId, ready: Ready) {
        let Some(pmi) = self.callers.get_mut(&caller) else { return };
        match pmi.on_readable(reactor, ready) {
            Ok(Chunk::Data(data)) => reactor.report(Input::CallerData(caller, data)),
            Ok(Chunk::WouldBlock) => {}
            Ok(Chunk::Eof) | Err(_) => {
                self.callers.remove(&caller);
                reactor.report(Input::CallerGone(caller));
            }
        }
    }

    /// Gives a connection away, or closes it where nobody takes it.
    pub(crate) fn take(&mut self, caller: CallerId) -> Option<TaskPmi> {
        self.callers.remove(&caller)
    }

    /// When to call [`Callers::on_time`].
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.door.as_ref().and_then(Door::poll_timeout)
    }

    /// Handles the passing of time.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &Reactor) {
        if let Some(door) = &mut self.door {
            door.on_time(now, reactor);
        }
    }

    fn add(&mut self, reactor: &mut Reactor, fd: OwnedFd, uid: Option<u32>) -> io::Result<()> {
        net::send_at_once(&fd)?;
        self.next_id += 1;
        let caller = CallerId(self.next_id);
        let pmi = TaskPmi::new(&reactor.poller, fd, Source::PmiCaller(caller))?;
        self.callers.insert(caller, pmi);
        reactor.report(Input::Caller { caller, uid });
        Ok(())
    }
}
