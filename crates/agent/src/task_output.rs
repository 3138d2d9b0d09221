//! A task's standard output or error: read when something is there, or at a steady pace.
//!
//! A task that writes line by line, or page by page, would wake us for every write, and each wake-up
//! costs both of us microseconds. So a stream on which two small reads came soon after each other is
//! no longer waited for but looked at every [`PACE`], until a read finds nothing, or much. What a user
//! sees comes by no more than that later, and only while there is a flood of it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use model::Time;
use os::{Interest, Poller};

use crate::reactor::{Chunk, Reactor, Watched};
use crate::source::Source;

/// How often a paced stream is read: a new pipe then carries 64 MB/s.
pub(crate) const PACE: Duration = Duration::from_millis(1);

/// A read of less is small: it has left a good part of a new pipe empty.
const SMALL_BYTES: usize = 48 * 1024;

/// Bytes in one read of a pipe as it was made: most of what it holds.
const READ_BYTES: usize = proto::READ_BYTES_BEST;

/// The same where a task writes much, and what its pipe is then to hold.
const LARGE_READ_BYTES: usize = 2 * READ_BYTES;
const LARGE_PIPE_BYTES: usize = LARGE_READ_BYTES.next_power_of_two();

/// Our end of the pipe.
#[derive(Debug)]
pub(crate) struct TaskOutput {
    pipe: Watched,
    last_read: Time,
    is_paced: bool,
    read_bytes: usize,
}

impl TaskOutput {
    /// A pipe that is not waited for yet.
    pub(crate) fn new(pipe: OwnedFd, source: Source) -> TaskOutput {
        let pipe = Watched::new(pipe, source);
        TaskOutput { pipe, last_read: Time::ZERO, is_paced: false, read_bytes: READ_BYTES }
    }

    /// Waits for something to read, or leaves it in the kernel.
    pub(crate) fn wait(&mut self, poller: &Poller, on: bool) -> io::Result<()> {
        self.is_paced = false;
        self.pipe.wait_for(poller, on.then_some(Interest::READ))
    }

    /// Whether it is to be read every [`PACE`].
    pub(crate) fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Reads once, and finds out whether to wait for more or to look again later.
    pub(crate) fn read(&mut self, now: Time, reactor: &mut Reactor) -> io::Result<Chunk> {
        let chunk = reactor.read_at_most(&self.pipe, self.read_bytes)?;
        let Chunk::Data(data) = &chunk else {
            if self.is_paced {
                self.wait(&reactor.poller, true)?;
            }
            return Ok(chunk);
        };
        if data.len() == READ_BYTES && self.read_bytes == READ_BYTES {
            // A task that fills its pipe writes faster than we come by. Where the user's share of
            // pipe memory is used up, it stays as it is.
            if os::stream::set_pipe_bytes(&self.pipe, LARGE_PIPE_BYTES).is_ok() {
                self.read_bytes = LARGE_READ_BYTES;
            }
        }
        self.find_pace(now, data.len(), &reactor.poller)?;
        Ok(chunk)
    }

    fn find_pace(&mut self, now: Time, bytes: usize, poller: &Poller) -> io::Result<()> {
        let is_soon = now < self.last_read + PACE;
        self.last_read = now;
        if bytes >= SMALL_BYTES {
            return self.wait(poller, true);
        }
        if is_soon && !self.is_paced {
            self.is_paced = true;
            self.pipe.wait_for(poller, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::TaskPart;
    use model::{JobId, Rank};
    use os::stream;
    use wire::Stream;

    const START: Time = Time::from_nanos(1_000_000_000);

    struct Bench {
        output: TaskOutput,
        task: OwnedFd,
        reactor: Reactor,
    }

    impl Bench {
        fn new() -> Bench {
            let pipe = stream::pipe().unwrap();
            stream::set_nonblocking(&pipe.read).unwrap();
            let source = Source::Task(JobId(0), Rank(0), TaskPart::Output(Stream::Stdout));
            let reactor = Reactor::new().unwrap();
            let mut output = TaskOutput::new(pipe.read, source);
            output.wait(&reactor.poller, true).unwrap();
            Bench { output, task: pipe.write, reactor }
        }

        /// The task writes so many bytes, and we read them at a time.
        fn pass(&mut self, bytes: usize, after: Duration) {
            stream::write(&self.task, &vec![b'x'; bytes]).unwrap();
            let chunk = self.output.read(START + after, &mut self.reactor).unwrap();
            assert!(matches!(chunk, Chunk::Data(data) if data.len() == bytes));
        }
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn a_stream_is_paced_after_two_small_reads_in_a_row() {
        let mut bench = Bench::new();
        bench.pass(100, us(0));
        assert!(!bench.output.is_paced());
        bench.pass(100, us(999));
        assert!(bench.output.is_paced());
    }

    #[test]
    fn a_stream_that_is_read_now_and_then_is_waited_for() {
        let mut bench = Bench::new();
        for read in 0..50 {
            bench.pass(100, PACE * read);
        }
        assert!(!bench.output.is_paced());
    }

    #[test]
    fn a_paced_stream_stays_so_until_it_has_nothing_or_much() {
        for much in [0, SMALL_BYTES] {
            let mut bench = Bench::new();
            bench.pass(16 * 1024, us(0)); // from here on, more is read at once
            (1..10).for_each(|tick| bench.pass(100, us(900 * tick)));
            assert!(bench.output.is_paced());
            match much {
                0 => {
                    let nothing = bench.output.read(START + PACE * 10, &mut bench.reactor).unwrap();
                    assert_eq!(nothing, Chunk::WouldBlock);
                }
                much => bench.pass(much, PACE * 10),
            }
            assert!(!bench.output.is_paced());
        }
    }

    #[test]
    fn a_task_that_fills_its_pipe_gets_a_larger_one_and_is_read_two_pieces_at_a_time() {
        let mut bench = Bench::new();
        stream::set_nonblocking(&bench.task).unwrap();
        let mut largest = 0;
        for _ in 0..4 {
            stream::write(&bench.task, &[b'x'; LARGE_PIPE_BYTES]).unwrap();
            while let Chunk::Data(data) = bench.output.read(START, &mut bench.reactor).unwrap() {
                largest = largest.max(data.len());
            }
        }
        assert_eq!(largest, 2 * proto::READ_BYTES_BEST);
    }

    #[test]
    fn a_paced_stream_wakes_nobody_and_one_that_is_waited_for_does() {
        let mut bench = Bench::new();
        let mut ready = Vec::new();
        (0..2).for_each(|read| bench.pass(100, us(read)));
        stream::write(&bench.task, b"more").unwrap();
        bench.reactor.poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert!(ready.is_empty());
        bench.output.wait(&bench.reactor.poller, true).unwrap();
        bench.reactor.poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert_eq!(ready.len(), 1);
    }
}
