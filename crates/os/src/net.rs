//! TCP that never blocks: listen on every address, connect, accept, and notice a dead peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// A socket that takes connections on every address of the machine.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    port: u16,
}

/// How soon the kernel should give a silent peer up.
#[derive(Clone, Copy, Debug)]
pub struct LinkTimes {
    /// Silence after which the kernel probes the peer.
    pub keepalive_idle: Duration,
    /// The time between probes.
    pub keepalive_interval: Duration,
    /// How many probes may stay without an answer where `unacknowledged_max` says nothing.
    pub keepalive_probes: u32,
    /// How long sent bytes may stay unacknowledged; zero: as long as the system's retries last.
    pub unacknowledged_max: Duration,
}

/// Why we cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("listen for connections on {address}")]
pub struct ListenError {
    /// The last address that was tried.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Listener {
    /// Listens on `port`, or on a free one when it is 0: on IPv6 and IPv4 in one socket where the
    /// machine has IPv6, else on IPv4.
    ///
    /// # Errors
    /// When neither family works.
    pub fn on_any_address(port: u16) -> Result<Listener, ListenError> {
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        listen(v6).or_else(|_| listen(v4)).map_err(|source| ListenError { address: v4, source })
    }

    /// Listens on one address only.
    ///
    /// # Errors
    /// When it is not ours or the port is taken.
    pub fn on(address: SocketAddr) -> Result<Listener, ListenError> {
        listen(address).map_err(|source| ListenError { address, source })
    }

    /// The port, also when any was asked for.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes a connection that waits, if any; the socket does not block. Call until `None`, within
    /// a budget.
    ///
    /// # Errors
    /// When descriptors have run out; the connection stays in the queue.
    pub fn accept(&self) -> io::Result<Option<(OwnedFd, SocketAddr)>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::acceptfrom_with(&self.fd, flags) {
            Ok((fd, peer)) => {
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                Ok(peer.map(|peer| (fd, canonical(peer))))
            }
            // A peer that hung up while it waited is no news.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Begins to connect. Wait until the socket is writable, then ask [`connect_result`].
///
/// # Errors
/// When it is already certain that the address cannot be reached.
pub fn connect(address: SocketAddr) -> io::Result<OwnedFd> {
    let fd = socket(address)?;
    match rustix::net::connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
        Err(errno) => Err(errno.into()),
    }
}

/// How a connection attempt ended.
///
/// # Errors
/// The reason when it failed: refused, unreachable, timed out.
pub fn connect_result(fd: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(fd)??)
}

/// Sends small messages at once, and lets the kernel notice a peer that went silent.
///
/// # Errors
/// When `fd` is no TCP socket.
pub fn set_link_options(fd: impl AsFd, times: &LinkTimes) -> io::Result<()> {
    let unacknowledged_ms = times.unacknowledged_max.as_millis().try_into().unwrap_or(u32::MAX);
    sockopt::set_tcp_nodelay(&fd, true)?;
    sockopt::set_socket_keepalive(&fd, true)?;
    sockopt::set_tcp_keepidle(&fd, times.keepalive_idle)?;
    sockopt::set_tcp_keepintvl(&fd, times.keepalive_interval)?;
    sockopt::set_tcp_keepcnt(&fd, times.keepalive_probes)?;
    sockopt::set_tcp_user_timeout(&fd, unacknowledged_ms)?;
    Ok(())
}

/// The address of our end.
///
/// # Errors
/// When `fd` is no connected socket.
pub fn local_address(fd: impl AsFd) -> io::Result<SocketAddr> {
    Ok(canonical(SocketAddr::try_from(rustix::net::getsockname(fd)?)?))
}

/// The address of the peer's end.
///
/// # Errors
/// When `fd` is no connected socket.
pub fn peer_address(fd: impl AsFd) -> io::Result<SocketAddr> {
    let peer = rustix::net::getpeername(fd)?.ok_or(io::ErrorKind::NotConnected)?;
    Ok(canonical(SocketAddr::try_from(peer)?))
}

/// Sends small messages at once.
///
/// # Errors
/// When `fd` is no TCP socket.
pub fn send_at_once(fd: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(fd, true)?)
}

/// Sends no more: the peer reads the end after what was sent.
///
/// # Errors
/// When the connection is gone.
pub fn shutdown_write(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, rustix::net::Shutdown::Write)?)
}

/// How many connections may wait to be accepted. The kernel lowers it to its own limit. Hundreds of
/// children may connect at once.
pub const BACKLOG: u16 = 4096;

fn listen(address: SocketAddr) -> io::Result<Listener> {
    let fd = socket(address)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, !address.ip().is_unspecified())?;
    }
    sockopt::set_socket_reuseaddr(&fd, true)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, BACKLOG.into())?;
    let port = local_address(&fd)?.port();
    Ok(Listener { fd, port })
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// An IPv4 address that came through an IPv6 socket, as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address,
    }
}
