//! Pipes, socket pairs, and reading and writing that tell "nothing yet" from "the end".
#![expect(unsafe_code, reason = "no safe call reads into the part of a buffer that is not filled")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::BytesMut;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;

/// A pipe's two ends.
#[derive(Debug)]
pub struct Pipe {
    /// Where the bytes come out.
    pub read: OwnedFd,
    /// Where they go in.
    pub write: OwnedFd,
}

/// What a read found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadOutcome {
    /// This many bytes, at least one.
    Data(usize),
    /// The other side closed, and all has been read.
    Eof,
    /// Nothing yet: wait.
    WouldBlock,
}

/// What a write did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteOutcome {
    /// This many bytes went, perhaps fewer than given.
    Data(usize),
    /// No room: wait.
    WouldBlock,
    /// Nobody reads any more.
    Closed,
}

/// A pipe whose ends block; see [`set_nonblocking`] for the end that we keep.
///
/// A task's end must block, since programs do not expect otherwise.
///
/// # Errors
/// When descriptors have run out.
pub fn pipe() -> io::Result<Pipe> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok(Pipe { read, write })
}

/// Two connected sockets that block.
///
/// # Errors
/// When descriptors have run out.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Makes reads and writes return at once. This is the state of the open file, so copies of the
/// descriptor in other processes see it too: not for a terminal or another inherited descriptor.
///
/// # Errors
/// None is expected.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

/// Sets how much a pipe holds; returns what it became.
///
/// # Errors
/// When it is no pipe, or more than the user may have.
pub fn set_pipe_bytes(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_setpipe_size(fd, bytes)?)
}

/// Reads once.
///
/// # Errors
/// Anything but an interruption; a connection that was reset is an error, not an end.
pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
    match rustix::io::retry_on_intr(|| rustix::io::read(&fd, &mut *buffer)) {
        Ok(0) => Ok(ReadOutcome::Eof),
        Ok(n) => Ok(ReadOutcome::Data(n)),
        Err(errno) => not_read(&fd, errno),
    }
}

/// Reads once, at most `bytes_max`, to the end of `buffer`, which grows for it.
///
/// # Errors
/// As [`read()`].
pub fn read_onto(
    fd: impl AsFd,
    buffer: &mut BytesMut,
    bytes_max: usize,
) -> io::Result<ReadOutcome> {
    if !buffer.try_reclaim(bytes_max) {
        if buffer.is_empty() {
            // To grow would copy what it held before.
            *buffer = BytesMut::with_capacity(bytes_max);
        } else {
            buffer.reserve(bytes_max);
        }
    }
    let room = &mut buffer.spare_capacity_mut()[..bytes_max];
    let read = || rustix::io::read(&fd, &mut *room).map(|(data, _)| data.len());
    let n = match rustix::io::retry_on_intr(read) {
        Ok(n) => n,
        Err(errno) => return not_read(&fd, errno),
    };
    // SAFETY: the read has filled so many bytes of the spare capacity.
    unsafe { buffer.set_len(buffer.len() + n) };
    Ok(if n == 0 { ReadOutcome::Eof } else { ReadOutcome::Data(n) })
}

fn not_read(fd: impl AsFd, errno: Errno) -> io::Result<ReadOutcome> {
    match errno {
        Errno::AGAIN => Ok(ReadOutcome::WouldBlock),
        // What a terminal's master says when the last writer has gone.
        Errno::IO if rustix::termios::isatty(fd) => Ok(ReadOutcome::Eof),
        errno => Err(errno.into()),
    }
}

/// Writes once. SIGPIPE must be ignored, as Rust programs have it.
///
/// # Errors
/// Anything but an interruption or a reader that is gone.
pub fn write(fd: impl AsFd, bytes: &[u8]) -> io::Result<WriteOutcome> {
    written(rustix::io::retry_on_intr(|| rustix::io::write(&fd, bytes)))
}

/// Writes several pieces at once, in order.
///
/// # Errors
/// As [`write()`].
pub fn write_vectored(fd: impl AsFd, pieces: &[io::IoSlice<'_>]) -> io::Result<WriteOutcome> {
    written(rustix::io::retry_on_intr(|| rustix::io::writev(&fd, pieces)))
}

fn written(result: rustix::io::Result<usize>) -> io::Result<WriteOutcome> {
    match result {
        Ok(n) => Ok(WriteOutcome::Data(n)),
        Err(Errno::AGAIN) => Ok(WriteOutcome::WouldBlock),
        Err(Errno::PIPE | Errno::CONNRESET) => Ok(WriteOutcome::Closed),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_told_from_a_closed_one() {
        let Pipe { read: out, write: into } = pipe().unwrap();
        set_nonblocking(&out).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(read(&out, &mut buffer).unwrap(), ReadOutcome::WouldBlock);
        assert_eq!(write(&into, b"abc").unwrap(), WriteOutcome::Data(3));
        assert_eq!(read(&out, &mut buffer).unwrap(), ReadOutcome::Data(3));
        drop(into);
        assert_eq!(read(&out, &mut buffer).unwrap(), ReadOutcome::Eof);
    }

    #[test]
    fn what_is_read_goes_behind_what_a_buffer_holds() {
        let Pipe { read: out, write: into } = pipe().unwrap();
        let mut buffer = BytesMut::from(&b"ab"[..]);
        assert_eq!(write(&into, b"cdef").unwrap(), WriteOutcome::Data(4));
        assert_eq!(read_onto(&out, &mut buffer, 3).unwrap(), ReadOutcome::Data(3));
        assert_eq!(&buffer[..], b"abcde");
        drop(into);
        assert_eq!(read_onto(&out, &mut buffer, 3).unwrap(), ReadOutcome::Data(1));
        assert_eq!(read_onto(&out, &mut buffer, 3).unwrap(), ReadOutcome::Eof);
        assert_eq!(&buffer[..], b"abcdef");
    }

    #[test]
    fn a_full_pipe_is_told_from_one_that_nobody_reads() {
        let Pipe { read: out, write: into } = pipe().unwrap();
        set_nonblocking(&into).unwrap();
        let bytes = set_pipe_bytes(&into, 4096).unwrap();
        assert_eq!(write(&into, &vec![0; 2 * bytes]).unwrap(), WriteOutcome::Data(bytes));
        assert_eq!(write(&into, b"x").unwrap(), WriteOutcome::WouldBlock);
        drop(out);
        assert_eq!(write(&into, b"x").unwrap(), WriteOutcome::Closed);
    }
}
