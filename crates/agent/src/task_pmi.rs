//! The connection with a task's PMI client.
//!
//! A request is looked at, and taken from the socket only once it is answered. When bytes are taken
//! from a Unix socket, the kernel wakes whoever sleeps at its other end, since there may be room now;
//! and who sleeps there is a client that waits for its answer. It would wake for nothing, which takes
//! it and us longer than all the rest of a request does.
//!
//! So what is ready may have been looked at before, and the poller reports news only.

use std::io;
use std::os::fd::OwnedFd;

use bytes::{Buf, Bytes};
use os::stream::WriteOutcome;
use os::{Interest, Poller, Ready, stream};

use crate::byte_queue::FlushEnd;
use crate::outgoing::Outgoing;
use crate::reactor::{Chunk, PEEK_BYTES, Reactor};
use crate::source::Source;

/// Our end of the connection: a socket pair's, or of TCP.
#[derive(Debug)]
pub(crate) struct TaskPmi {
    socket: Outgoing,
    /// Bytes at the front of the socket that were handed on already.
    seen: usize,
}

impl TaskPmi {
    /// Takes our end, which must not block.
    pub(crate) fn new(poller: &Poller, fd: OwnedFd, source: Source) -> io::Result<TaskPmi> {
        let news = Interest { news: true, ..Interest::READ };
        Ok(TaskPmi { socket: Outgoing::new(poller, fd, source, news)?, seen: 0 })
    }

    /// The same connection as another source. What was looked at stays so.
    pub(crate) fn belonging_to(self, poller: &Poller, source: Source) -> io::Result<TaskPmi> {
        let TaskPmi { socket, seen } = self;
        Ok(TaskPmi { seen, ..TaskPmi::new(poller, socket.into_fd(poller)?, source)? })
    }

    /// Reads what is there when the poller says so, at most [`PEEK_BYTES`].
    pub(crate) fn on_readable(&mut self, reactor: &mut Reactor, ready: Ready) -> io::Result<Chunk> {
        let chunk = self.read(reactor)?;
        if matches!(chunk, Chunk::Data(_)) && (ready.ended || self.seen == PEEK_BYTES) {
            self.socket.watched().report_again(&reactor.poller)?; // more, or the end, is behind it
        }
        Ok(chunk)
    }

    /// Reads once, behind what was read before.
    pub(crate) fn read(&mut self, reactor: &mut Reactor) -> io::Result<Chunk> {
        self.take_seen()?;
        let chunk = reactor.peek(self.socket.watched())?;
        if let Chunk::Data(data) = &chunk {
            self.seen = data.len();
        }
        Ok(chunk)
    }

    /// Queues an answer and writes what the socket takes.
    pub(crate) fn write(&mut self, poller: &Poller, answer: Bytes) -> io::Result<()> {
        self.socket.push(answer);
        self.flush(poller)
    }

    /// The same with a descriptor, which is left out where the socket does not take it at once: that of
    /// a client that leaves its answers there, or of one that has connected over TCP.
    pub(crate) fn write_with(
        &mut self,
        poller: &Poller,
        mut answer: Bytes,
        descriptor: &OwnedFd,
    ) -> io::Result<()> {
        if self.socket.is_empty()
            && let Ok(WriteOutcome::Data(sent)) =
                stream::write_with(self.socket.watched(), &answer, descriptor)
        {
            answer.advance(sent);
        }
        self.write(poller, answer)
    }

    /// Writes what the socket takes.
    pub(crate) fn flush(&mut self, poller: &Poller) -> io::Result<()> {
        match self.socket.flush(poller)?.end {
            FlushEnd::Empty => self.take_seen(),
            // A client that is gone may have left bytes to read: the read finds the end.
            FlushEnd::Full | FlushEnd::Closed => Ok(()),
        }
    }

    fn take_seen(&mut self) -> io::Result<()> {
        stream::discard(self.socket.watched(), std::mem::take(&mut self.seen))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{JobId, Rank};

    use super::*;
    use crate::source::TaskPart;

    struct Bench {
        pmi: TaskPmi,
        client: Option<OwnedFd>,
        reactor: Reactor,
    }

    impl Bench {
        fn new() -> Bench {
            let (ours, client) = stream::socket_pair().unwrap();
            stream::set_nonblocking(&ours).unwrap();
            stream::set_nonblocking(&client).unwrap();
            let reactor = Reactor::new().unwrap();
            let source = Source::Task(JobId(0), Rank(0), TaskPart::Pmi);
            let pmi = TaskPmi::new(&reactor.poller, ours, source).unwrap();
            Bench { pmi, client: Some(client), reactor }
        }

        fn send(&self, bytes: &[u8]) {
            let sent = stream::write(self.client.as_ref().unwrap(), bytes).unwrap();
            assert_eq!(sent, WriteOutcome::Data(bytes.len()));
        }

        /// What is read until the poller reports no more; `None` is the end.
        fn read_all(&mut self) -> Vec<Option<Vec<u8>>> {
            let mut read = Vec::new();
            for _ in 0..100 {
                let mut ready = Vec::new();
                self.reactor.poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
                let Some(ready) = ready.first() else { return read };
                match self.pmi.on_readable(&mut self.reactor, *ready).unwrap() {
                    Chunk::Data(data) => read.push(Some(data.to_vec())),
                    Chunk::WouldBlock => {}
                    Chunk::Eof => {
                        read.push(None);
                        return read;
                    }
                }
            }
            panic!("it is reported again and again");
        }

        fn answer(&mut self) {
            self.pmi.write(&self.reactor.poller, Bytes::from_static(b"answer\n")).unwrap();
        }

        /// Bytes that the kernel still has for us.
        fn untaken(&self) -> u64 {
            rustix::io::ioctl_fionread(self.pmi.socket.watched()).unwrap()
        }
    }

    fn data(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[test]
    fn a_request_is_taken_from_the_socket_when_it_is_answered() {
        let mut bench = Bench::new();
        for _ in 0..3 {
            bench.send(b"request\n");
            assert_eq!(bench.read_all(), [data("request\n")]);
            assert_eq!(bench.read_all(), []);
            assert_eq!(bench.untaken(), 8);
            bench.answer();
            assert_eq!(bench.untaken(), 0);
        }
    }

    #[test]
    fn a_descriptor_goes_with_the_answer_or_not_at_all() {
        let mut bench = Bench::new();
        let file = os::memory::sealed(b"pairs").unwrap();
        let answer = Bytes::from_static(b"answer\n");
        let mut buffer = [0; 64];
        for is_free in [true, false] {
            if !is_free {
                let flood = Bytes::from(vec![b'x'; 4 << 20]);
                bench.pmi.write(&bench.reactor.poller, flood).unwrap();
            }
            bench.send(b"request\n");
            bench.read_all();
            bench.pmi.write_with(&bench.reactor.poller, answer.clone(), &file).unwrap();
            let client = bench.client.as_ref().unwrap();
            let (_, descriptor) = stream::read_with(client, &mut buffer).unwrap();
            assert_eq!(descriptor.is_some(), is_free);
            if let Some(descriptor) = descriptor {
                assert_eq!(os::memory::Sealed::map(descriptor).unwrap()[..], *b"pairs");
                assert_eq!(buffer[..7], *b"answer\n");
                assert_eq!(bench.untaken(), 0);
            }
        }
    }

    #[test]
    fn what_comes_before_the_answer_is_read_at_once() {
        let mut bench = Bench::new();
        bench.send(b"barrier");
        assert_eq!(bench.read_all(), [data("barrier")]);
        bench.send(b"abort");
        assert_eq!(bench.read_all(), [data("abort")]);
        bench.answer();
        bench.send(b"more");
        assert_eq!(bench.read_all(), [data("more")]);
    }

    #[test]
    fn the_end_is_found_behind_what_comes_with_it() {
        for answered in [false, true] {
            let mut bench = Bench::new();
            bench.send(b"last");
            bench.client = None;
            if answered {
                let ready =
                    Ready { token: 0, readable: true, writable: false, hangup: true, ended: true };
                let read = bench.pmi.on_readable(&mut bench.reactor, ready).unwrap();
                assert_eq!(read, Chunk::Data(Bytes::from_static(b"last")));
                bench.answer();
                assert_eq!(bench.read_all(), [None]);
            } else {
                assert_eq!(bench.read_all(), [data("last"), None]);
            }
        }
    }

    #[test]
    fn a_flood_is_read_whole_in_pieces() {
        for bytes in [PEEK_BYTES - 1, PEEK_BYTES, PEEK_BYTES + 1, 10 * PEEK_BYTES] {
            let mut bench = Bench::new();
            bench.send(&vec![b'x'; bytes]);
            let read: Vec<u8> = bench.read_all().into_iter().flatten().flatten().collect();
            assert_eq!(read.len(), bytes);
        }
    }
}
