//! The few system calls that have no safe wrapper. The testbed is never shipped.
#![expect(unsafe_code, reason = "a private host name and packet sockets need raw system calls")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;

/// All protocols, in network byte order (`packet(7)`).
const ETH_P_ALL: u16 = 0x0003_u16.to_be();

/// Gives the calling process a host name of its own. Needs root.
pub fn take_private_hostname(name: &str) -> io::Result<()> {
    // SAFETY: only the UTS namespace is unshared; descriptors and memory stay shared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUTS) }?;
    fs::write("/proc/sys/kernel/hostname", name)
}

/// Opens a socket that sends and receives whole frames on `interface`, each behind the header
/// that says how it is segmented and checksummed (`PACKET_VNET_HDR`), without blocking.
pub(crate) fn packet_socket(interface: &str) -> io::Result<OwnedFd> {
    // Protocol 0 receives nothing until the socket is bound to its interface.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None::<Protocol>)?;
    let index = rustix::net::netdevice::name_to_index(socket.as_fd(), interface)?;
    set_packet_option(&socket, libc::PACKET_VNET_HDR)?;
    set_packet_option(&socket, libc::PACKET_IGNORE_OUTGOING)?;
    bind_to_interface(&socket, index)?;
    Ok(socket)
}

fn set_packet_option(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value is a live `int` whose size is passed with it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    succeeded(result)
}

fn bind_to_interface(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ETH_P_ALL,
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a live `sockaddr_ll` whose size is passed with it.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    succeeded(result)
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
