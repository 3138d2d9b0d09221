//! A listener, and what to do when descriptors run out: leave connections in the kernel for a while.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use model::Time;
use os::Interest;
use os::net::Listener;

use crate::reactor::Reactor;
use crate::source::Source;

/// Connections that are taken in one turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long to leave waiting connections in the kernel when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that others connect to.
#[derive(Debug)]
pub(crate) struct Door {
    listener: Listener,
    source: Source,
    /// Set while the listener is not waited for: until when.
    paused: Option<Time>,
}

impl Door {
    /// Waits for connections, which `source` announces.
    pub(crate) fn open(reactor: &Reactor, listener: Listener, source: Source) -> io::Result<Door> {
        let door = Door { listener, source, paused: None };
        door.watch(reactor)?;
        Ok(door)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Takes connections that wait; those that are left are announced again.
    pub(crate) fn accept(&mut self, now: Time, reactor: &Reactor) -> Vec<OwnedFd> {
        let mut accepted = Vec::new();
        while accepted.len() < ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok(Some((fd, _))) => accepted.push(fd),
                Ok(None) => break,
                Err(_) => {
                    self.pause(now, reactor);
                    break;
                }
            }
        }
        accepted
    }

    /// When to call [`Door::on_time`].
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.paused
    }

    /// Waits for connections again after a pause.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &Reactor) {
        if self.paused.is_some_and(|until| until <= now) {
            // Should this fail, nobody comes any more, and whoever tries is given up when its time is over.
            let _ = self.watch(reactor);
            self.paused = None;
        }
    }

    fn watch(&self, reactor: &Reactor) -> io::Result<()> {
        let added = reactor.poller.add(&self.listener, self.source.token(), Interest::READ);
        added.map_err(crate::reactor::io_error)
    }

    fn pause(&mut self, now: Time, reactor: &Reactor) {
        let _ = reactor.poller.remove(self.listener.as_fd()); // it was added
        self.paused = Some(now + ACCEPT_PAUSE);
    }
}
