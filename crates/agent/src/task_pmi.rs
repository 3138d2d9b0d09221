//! The connection with a task's PMI client.
//!
//! A request is looked at, and taken from the socket only once it is answered. When bytes are taken
//! from a Unix socket, the kernel wakes whoever sleeps at its other end, since there may be room now;
//! and who sleeps there is a client that waits for its answer. It would wake for nothing, which takes
//! it and us longer than all the rest of a request does.
//!
//! So what is ready may have been looked at before, and the poller reports news only.
//!
//! A client that leaves its answers lying is not read until it has taken them, so that it costs no more memory than
//! the answers to one look. A poller that waits for room no more reports anew what there is to read.

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
    /// Nothing is left in the socket.
    takes_at_once: bool,
}

impl TaskPmi {
    /// Takes our end, which must not block.
    pub(crate) fn new(poller: &Poller, fd: OwnedFd, source: Source) -> io::Result<TaskPmi> {
        let news = Interest { news: true, ..Interest::READ };
        let socket = Outgoing::new(poller, fd, source, news)?;
        Ok(TaskPmi { socket, seen: 0, takes_at_once: false })
    }

    /// The same of a connection over TCP. That keeps the whole of a segment of which anything is left, and may have its
    /// sender wait for the room.
    pub(crate) fn over_tcp(poller: &Poller, fd: OwnedFd, source: Source) -> io::Result<TaskPmi> {
        Ok(TaskPmi { takes_at_once: true, ..TaskPmi::new(poller, fd, source)? })
    }

    /// The same connection as another source. What was looked at stays so.
    pub(crate) fn belonging_to(self, poller: &Poller, source: Source) -> io::Result<TaskPmi> {
        let TaskPmi { socket, seen, takes_at_once } = self;
        let socket = TaskPmi::new(poller, socket.into_fd(poller)?, source)?.socket;
        Ok(TaskPmi { socket, seen, takes_at_once })
    }

    /// Reads what is there when the poller says so, at most [`PEEK_BYTES`].
    pub(crate) fn on_readable(&mut self, reactor: &mut Reactor, ready: Ready) -> io::Result<Chunk> {
        if !self.socket.is_empty() && !ready.ended {
            return Ok(Chunk::WouldBlock);
        }
        let chunk = self.read(reactor)?;
        if let Chunk::Data(data) = &chunk
            && (ready.ended || data.len() == PEEK_BYTES)
        {
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
        if self.takes_at_once {
            self.take_seen()?;
        }
        Ok(chunk)
    }

    /// Queues an answer and writes what the socket takes.
    pub(crate) fn write(&mut self, poller: &Poller, answer: Bytes) -> io::Result<()> {
        self.socket.push(answer);
        self.flush(poller)
    }

    /// The same with a descriptor. Returns whether the socket takes that at once, which that of a client that leaves its
    /// answers there does not, nor one over TCP: then nothing is written.
    pub(crate) fn write_with(
        &mut self,
        poller: &Poller,
        mut answer: Bytes,
        descriptor: &OwnedFd,
    ) -> io::Result<bool> {
        if self.socket.is_empty()
            && let Ok(WriteOutcome::Data(sent)) =
                stream::write_with(self.socket.watched(), &answer, descriptor)
        {
            answer.advance(sent);
            return self.write(poller, answer).map(|()| true);
        }
        Ok(false)
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

    use os::stream::ReadOutcome;

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

        /// What is read until the poller reports no more; `None` is the end. One that has not taken its answers resets.
        fn read_all(&mut self) -> Vec<Option<Vec<u8>>> {
            let mut read = Vec::new();
            for _ in 0..100 {
                let mut ready = Vec::new();
                self.reactor.poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
                let Some(ready) = ready.first() else { return read };
                let chunk = self.pmi.on_readable(&mut self.reactor, *ready);
                match chunk.unwrap_or(Chunk::Eof) {
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
    fn a_descriptor_goes_with_the_answer_or_neither_does() {
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
            let sent = bench.pmi.write_with(&bench.reactor.poller, answer.clone(), &file).unwrap();
            assert_eq!(sent, is_free);
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
    fn a_client_that_takes_no_answers_is_read_once_it_has_taken_them() {
        let mut bench = Bench::new();
        let answer = Bytes::from(vec![b'x'; 4 << 20]);
        bench.send(b"first");
        assert_eq!(bench.read_all(), [data("first")]);
        bench.pmi.write(&bench.reactor.poller, answer.clone()).unwrap();
        bench.send(b"second");
        assert_eq!(bench.read_all(), []);
        let (mut taken, mut buffer) = (0, vec![0; 1 << 16]);
        while taken < answer.len() {
            let client = bench.client.as_ref().unwrap();
            match stream::read(client, &mut buffer).unwrap() {
                ReadOutcome::Data(bytes) => taken += bytes,
                ReadOutcome::WouldBlock => bench.pmi.flush(&bench.reactor.poller).unwrap(),
                ReadOutcome::Eof => panic!("the server is gone"),
            }
        }
        assert_eq!(bench.read_all(), [data("second")]);
    }

    #[test]
    fn the_last_words_of_a_client_that_takes_no_answers_are_read_with_its_end() {
        let mut bench = Bench::new();
        bench.pmi.write(&bench.reactor.poller, Bytes::from(vec![b'x'; 4 << 20])).unwrap();
        bench.send(b"abort");
        bench.client = None;
        assert_eq!(bench.read_all(), [data("abort"), None]);
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

    /// A receiver that leaves a part of a segment may have the window closed for ever.
    #[test]
    fn over_tcp_nothing_is_left_so_that_a_long_message_comes_whole() {
        const BYTES: usize = 64 << 20;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let writer = std::thread::spawn(move || {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            std::io::Write::write_all(&mut client, &vec![b'x'; BYTES]).unwrap();
        });
        let ours = OwnedFd::from(listener.accept().unwrap().0);
        stream::set_nonblocking(&ours).unwrap();
        let mut reactor = Reactor::new().unwrap();
        let source = Source::Task(JobId(0), Rank(0), TaskPart::Pmi);
        let mut pmi = TaskPmi::over_tcp(&reactor.poller, ours, source).unwrap();
        let mut read = 0;
        while read < BYTES {
            let mut ready = Vec::new();
            reactor.poller.wait(Some(Duration::from_secs(20)), &mut ready).unwrap();
            let ready = ready.first().expect("more comes");
            if let Chunk::Data(data) = pmi.on_readable(&mut reactor, *ready).unwrap() {
                read += data.len();
            }
        }
        writer.join().unwrap();
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
