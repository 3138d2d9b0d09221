//! The two directions of a connection: one socket for both, or a descriptor for each.

use std::io;
use std::os::fd::OwnedFd;

use engine::LinkId;
use os::{Interest, Poller};

use crate::pipe_room::PipeRoom;
use crate::reactor::Watched;
use crate::source::Source;

/// What a link is read from and written to.
#[derive(Debug)]
pub(crate) struct Duplex {
    input: Watched,
    /// What is written to where that is another descriptor: an agent's standard output.
    output: Option<(Watched, PipeRoom)>,
}

impl Duplex {
    /// A socket, for the link `id`.
    pub(crate) fn socket(fd: OwnedFd, id: LinkId) -> Duplex {
        Duplex { input: Watched::new(fd, Source::Link(id)), output: None }
    }

    /// The ends of two streams, for the link `id`.
    pub(crate) fn streams(input: OwnedFd, output: OwnedFd, id: LinkId) -> Duplex {
        let [input, output] = [input, output].map(|fd| Watched::new(fd, Source::Link(id)));
        Duplex { input, output: Some((output, PipeRoom::default())) }
    }

    /// What to read.
    pub(crate) fn input(&self) -> &Watched {
        &self.input
    }

    /// What to write to.
    pub(crate) fn output(&self) -> &Watched {
        self.output.as_ref().map_or(&self.input, |(output, _)| output)
    }

    /// Waits for `interest`. Where nothing is to be written, a second descriptor is not waited for at
    /// all: that its reader is gone would be reported for ever, and the input's end says so, too.
    pub(crate) fn wait_for(&mut self, poller: &Poller, interest: Interest) -> io::Result<()> {
        let Some((output, room)) = &mut self.output else {
            return self.input.wait_for(poller, Some(interest));
        };
        if interest.write {
            room.on_full(&*output);
        }
        output.wait_for(poller, interest.write.then_some(Interest::WRITE))?;
        self.input.wait_for(poller, Some(Interest { write: false, ..interest }))
    }
}

#[cfg(test)]
mod tests {
    use os::stream::{self, Pipe, WriteOutcome};

    use super::*;
    use crate::pipe_room::LARGE_PIPE_BYTES;

    #[test]
    fn a_pipe_that_is_full_gets_more_room_once() {
        let poller = Poller::new().unwrap();
        let Pipe { read, write } = stream::pipe().unwrap();
        let (input, _theirs) = stream::socket_pair().unwrap();
        let output = write.try_clone().unwrap();
        stream::set_nonblocking(&write).unwrap();
        let mut duplex = Duplex::streams(input, output, LinkId(1));
        let both = Interest { read: true, write: true, news: false };
        duplex.wait_for(&poller, Interest::READ).unwrap();
        let usual = room(&write);
        assert!(usual < LARGE_PIPE_BYTES, "an idle link costs nothing");
        duplex.wait_for(&poller, both).unwrap();
        assert_eq!(usual + room(&write), LARGE_PIPE_BYTES);
        duplex.wait_for(&poller, both).unwrap();
        assert_eq!(room(&write), 0);
        drop(read);
    }

    /// Fills it.
    fn room(pipe: &OwnedFd) -> usize {
        let mut room = 0;
        while let WriteOutcome::Data(n) = stream::write(pipe, &[0; 4096]).unwrap() {
            room += n;
        }
        room
    }
}
