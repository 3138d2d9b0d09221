//! The two directions of a connection: one socket for both, or a descriptor for each.

use std::io;
use std::os::fd::OwnedFd;

use engine::LinkId;
use os::{Interest, Poller};

use crate::reactor::Watched;
use crate::source::Source;

/// What a link is read from and written to.
#[derive(Debug)]
pub(crate) struct Duplex {
    input: Watched,
    /// What is written to where that is another descriptor: an agent's standard output.
    output: Option<Watched>,
}

impl Duplex {
    /// A socket, for the link `id`.
    pub(crate) fn socket(fd: OwnedFd, id: LinkId) -> Duplex {
        Duplex { input: Watched::new(fd, Source::Link(id)), output: None }
    }

    /// The ends of two streams, for the link `id`.
    pub(crate) fn streams(input: OwnedFd, output: OwnedFd, id: LinkId) -> Duplex {
        let [input, output] = [input, output].map(|fd| Watched::new(fd, Source::Link(id)));
        Duplex { input, output: Some(output) }
    }

    /// What to read.
    pub(crate) fn input(&self) -> &Watched {
        &self.input
    }

    /// What to write to.
    pub(crate) fn output(&self) -> &Watched {
        self.output.as_ref().unwrap_or(&self.input)
    }

    /// Waits for `interest`. Where nothing is to be written, a second descriptor is not waited for at
    /// all: that its reader is gone would be reported for ever, and the input's end says so, too.
    pub(crate) fn wait_for(&mut self, poller: &Poller, interest: Interest) -> io::Result<()> {
        let Some(output) = &mut self.output else {
            return self.input.wait_for(poller, Some(interest));
        };
        output.wait_for(poller, interest.write.then_some(Interest::WRITE))?;
        self.input.wait_for(poller, Some(Interest { write: false, ..interest }))
    }
}
