//! Whether a process of ours waits for the answer to a TCP connection that it asked for: pidfd_getfd(2).

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{getpeername, ipproto, sockopt};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use crate::Pid;
use crate::process::pidfd;

/// Whether a process that is not connected to anybody has asked for it. Not where the system lets
/// nobody look: before Linux 5.6, or into another user's process.
pub fn is_unanswered(pid: Pid) -> bool {
    sockets(pid).is_ok_and(|sockets| sockets.iter().any(is_call))
}

/// The TCP sockets of a process, as descriptors of ours.
fn sockets(pid: Pid) -> io::Result<Vec<OwnedFd>> {
    let pidfd = pidfd(pid)?;
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let copies = numbers.filter_map(|fd| pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()).ok());
    Ok(copies.filter(|fd| sockopt::socket_protocol(fd) == Ok(Some(ipproto::TCP))).collect())
}

/// A socket that listens has no peer either.
fn is_call(fd: &OwnedFd) -> bool {
    getpeername(fd) == Err(Errno::NOTCONN) && sockopt::socket_acceptconn(fd) == Ok(false)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Stdio;

    use super::*;
    use crate::net::connect;

    /// Whether a process is that has this socket and no other.
    #[expect(clippy::disallowed_methods, reason = "a test that gives a socket to a process")]
    fn is_unanswered_in_process_with(fd: OwnedFd) -> bool {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").stdin(Stdio::from(fd)).spawn().unwrap();
        let pid = Pid::try_from(child.id()).unwrap();
        let is_it = is_unanswered(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        is_it
    }

    #[test]
    fn a_call_to_a_full_queue_is_unanswered_and_one_that_was_taken_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut calls: Vec<OwnedFd> = (0..3).map(|_| connect(address).unwrap()).collect();
        assert!(is_unanswered_in_process_with(calls.pop().unwrap()));
        assert!(!is_unanswered_in_process_with(calls.swap_remove(0)));
        assert!(!is_unanswered_in_process_with(listener.into()));
        let (unix, _) = crate::stream::socket_pair().unwrap();
        assert!(!is_unanswered_in_process_with(unix));
    }
}
