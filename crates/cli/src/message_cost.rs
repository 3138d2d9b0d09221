//! What a handshake and a message cost on this host, at either end.
//!
//! Both ends are played by one thread, so each time is halved. A message goes through the kernel as it does between
//! agents: encoded, sealed, written to a socket, read, opened and decoded. Medians, as in
//! [`spawn_cost`](crate::spawn_cost).

use std::error::Error;
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::IdSet;
use os::Clock;
use os::stream::{self, ReadOutcome};
use wire::{Established, Message, Outbox, rehearsed};

use crate::calibrate::median;

const HANDSHAKES: usize = 50;
const MESSAGES: usize = 500;

/// More than the message takes on the wire.
const READ_BYTES: usize = 4096;

/// Microseconds at one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MessageCost {
    pub(crate) handshake_us: f64,
    pub(crate) message_us: f64,
}

impl MessageCost {
    /// Measures it. Absent where no socket can be had.
    pub(crate) fn measured() -> Option<MessageCost> {
        let clock = Clock::new();
        let handshakes = (0..HANDSHAKES).map(|_| {
            let begun = clock.now();
            black_box(rehearsed());
            half_us(clock.now() - begun)
        });
        let handshakes: Vec<f64> = handshakes.collect();
        let mut link = Link::new().ok()?;
        let messages = (0..MESSAGES).map(|_| {
            let begun = clock.now();
            link.pass(&Message::Joined(IdSet::range(1, 2))).ok()?;
            Some(half_us(clock.now() - begun))
        });
        let messages: Option<Vec<f64>> = messages.collect();
        Some(MessageCost { handshake_us: median(handshakes)?, message_us: median(messages?)? })
    }
}

/// Both ends of a link.
struct Link {
    child: (Established, OwnedFd),
    parent: (Established, OwnedFd),
    outbox: Outbox,
    sealed: Vec<u8>,
    read: Vec<u8>,
}

impl Link {
    fn new() -> Result<Link, Box<dyn Error>> {
        let (child, parent) = rehearsed();
        let (childs, parents) = stream::socket_pair()?;
        Ok(Link {
            child: (child, childs),
            parent: (parent, parents),
            outbox: Outbox::new(),
            sealed: Vec::new(),
            read: vec![0; READ_BYTES],
        })
    }

    /// Has the child send a message, and the parent receive it.
    fn pass(&mut self, message: &Message) -> Result<(), Box<dyn Error>> {
        let (child, parent) = (&mut self.child, &mut self.parent);
        self.sealed.clear();
        self.outbox.push(message)?;
        self.outbox.fill(&mut child.0.channel, &mut self.sealed, usize::MAX)?;
        stream::write(&child.1, &self.sealed)?;
        let ReadOutcome::Data(bytes) = stream::read(&parent.1, &mut self.read)? else {
            return Err("a message is lost".into());
        };
        parent.0.inbox.push(&mut parent.0.channel, &self.read[..bytes])?;
        match parent.0.inbox.next_message()? {
            Some(_) => Ok(()),
            None => Err("a message is cut".into()),
        }
    }
}

fn half_us(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e6 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_costs_more_than_a_message_and_less_than_a_second() {
        let MessageCost { handshake_us, message_us } = MessageCost::measured().unwrap();
        assert!(0.0 < message_us && message_us < handshake_us && handshake_us < 1e6);
    }
}
