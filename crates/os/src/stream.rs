//! Pipes, socket pairs, what a process was given by number, and reading and writing that tell "nothing yet" from "the end".
#![expect(
    unsafe_code,
    reason = "no safe call fills a buffer further, or takes a descriptor by its number"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use bytes::BytesMut;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
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

/// A copy, close-on-exec, of a descriptor that this process knows by its number, such as that in `PMI_FD`. The number
/// stays as it is, for whatever else in this process uses it.
///
/// # Errors
/// When no descriptor has this number, or descriptors have run out.
pub fn copy_of(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl(2) takes any number here, and touches no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
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
    let read =
        |room: &mut [MaybeUninit<u8>]| rustix::io::read(&fd, room).map(|(data, _)| data.len());
    fill(buffer, bytes_max, read).or_else(|errno| not_read(&fd, errno))
}

/// Reads once as [`read_onto()`], and leaves in the socket what it has read.
///
/// # Errors
/// As [`read()`].
pub fn peek_onto(
    fd: impl AsFd,
    buffer: &mut BytesMut,
    bytes_max: usize,
) -> io::Result<ReadOutcome> {
    let peek = |room: &mut [MaybeUninit<u8>]| {
        rustix::net::recv(&fd, room, RecvFlags::PEEK).map(|((data, _), _)| data.len())
    };
    fill(buffer, bytes_max, peek).or_else(|errno| not_read(&fd, errno))
}

/// Takes so many bytes from the socket that were left there.
///
/// # Errors
/// When there are not as many.
pub fn discard(fd: impl AsFd, mut bytes: usize) -> io::Result<()> {
    let mut scratch = [MaybeUninit::uninit(); 4096];
    while bytes > 0 {
        let room = bytes.min(scratch.len());
        let n = rustix::io::retry_on_intr(|| {
            let read = rustix::net::recv(&fd, &mut scratch[..room], RecvFlags::empty());
            read.map(|((data, _), _)| data.len())
        })?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes -= n;
    }
    Ok(())
}

/// Writes once to a Unix socket that does not block, and sends a descriptor with the first byte.
///
/// # Errors
/// When the kernel takes no descriptor, or as [`write()`].
pub fn write_with(fd: impl AsFd, bytes: &[u8], descriptor: impl AsFd) -> io::Result<WriteOutcome> {
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let slices = [IoSlice::new(bytes)];
    written(rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&fd, &slices, &mut control, SendFlags::NOSIGNAL)
    }))
}

/// Reads once from a socket, with the last descriptor that came with these bytes, if one did.
///
/// # Errors
/// Anything but an interruption.
pub fn read_with(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut slices = [IoSliceMut::new(buffer)];
        rustix::net::recvmsg(&fd, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptor = descriptors.last();
        }
    }
    Ok((received.bytes, descriptor))
}

/// Has `read` fill at most `bytes_max` bytes behind what `buffer` holds.
fn fill(
    buffer: &mut BytesMut,
    bytes_max: usize,
    mut read: impl FnMut(&mut [MaybeUninit<u8>]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<ReadOutcome> {
    if !buffer.try_reclaim(bytes_max) {
        if buffer.is_empty() {
            // To grow would copy what it held before.
            *buffer = BytesMut::with_capacity(bytes_max);
        } else {
            buffer.reserve(bytes_max);
        }
    }
    let room = &mut buffer.spare_capacity_mut()[..bytes_max];
    let n = rustix::io::retry_on_intr(|| read(room))?;
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
    use std::os::fd::AsRawFd;

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
    fn a_descriptor_is_copied_by_its_number_and_stays() {
        let (ours, other) = socket_pair().unwrap();
        let copy = copy_of(ours.as_raw_fd()).unwrap();
        assert_ne!(copy.as_raw_fd(), ours.as_raw_fd());
        drop(ours);
        assert_eq!(write(&copy, b"x").unwrap(), WriteOutcome::Data(1));
        drop((copy, other));
        assert_eq!(copy_of(1_000_000).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_descriptor_comes_with_the_bytes_that_it_was_sent_with() {
        let (ours, other) = socket_pair().unwrap();
        let pipe = pipe().unwrap();
        assert_eq!(write(&ours, b"before").unwrap(), WriteOutcome::Data(6));
        let sent = write_with(&ours, b"with", &pipe.write).unwrap();
        assert_eq!(sent, WriteOutcome::Data(4));
        assert_eq!(write(&ours, b"behind").unwrap(), WriteOutcome::Data(6));
        let mut all = Vec::new();
        let mut found = Vec::new();
        while all.len() < 16 {
            let mut buffer = [0; 64];
            let (bytes, descriptor) = read_with(&other, &mut buffer).unwrap();
            all.extend_from_slice(&buffer[..bytes]);
            found.extend(descriptor.map(|descriptor| (all.len(), descriptor)));
        }
        assert_eq!(all, b"beforewithbehind");
        let [(end, descriptor)] = &found[..] else { panic!("{found:?}") };
        assert!(*end >= 10, "it came with the first {end} bytes");
        assert_eq!(write(descriptor, b"x").unwrap(), WriteOutcome::Data(1));
        drop((pipe.write, found));
        let mut buffer = [0; 8];
        assert_eq!(read(&pipe.read, &mut buffer).unwrap(), ReadOutcome::Data(1));
        assert_eq!(read(&pipe.read, &mut buffer).unwrap(), ReadOutcome::Eof);
    }

    #[test]
    fn what_is_peeked_stays_until_it_is_discarded() {
        let (ours, other) = socket_pair().unwrap();
        set_nonblocking(&ours).unwrap();
        let mut buffer = BytesMut::new();
        assert_eq!(peek_onto(&ours, &mut buffer, 8).unwrap(), ReadOutcome::WouldBlock);
        for text in [b"abc", b"def"] {
            assert_eq!(write(&other, text).unwrap(), WriteOutcome::Data(3));
        }
        for _ in 0..2 {
            buffer.clear();
            let outcome = peek_onto(&ours, &mut buffer, 8).unwrap();
            let ReadOutcome::Data(n) = outcome else { panic!("{outcome:?}") };
            assert_eq!(&buffer[..], &b"abcdef"[..n]);
        }
        discard(&ours, 4).unwrap();
        drop(other);
        buffer.clear();
        assert_eq!(peek_onto(&ours, &mut buffer, 8).unwrap(), ReadOutcome::Data(2));
        assert_eq!(&buffer[..], b"ef");
        assert!(discard(&ours, 3).is_err());
        assert_eq!(peek_onto(&ours, &mut buffer, 8).unwrap(), ReadOutcome::Eof);
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
