//! Whose process is at the other end of a TCP connection on this machine: `/proc/net/tcp` and `tcp6`, see proc(5).
//!
//! The kernel tells it of Unix sockets alone. The table is read as text, which costs microseconds for each connection of
//! the machine: read it once for several.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use crate::net;

/// The state in which a socket has an owner: the kernel counts one that its process has closed to root.
const ESTABLISHED: &str = "01";

/// The connections of this network namespace and the users whose they are.
#[derive(Debug)]
pub struct TcpUsers {
    table: String,
}

impl TcpUsers {
    /// Reads the table as it is.
    ///
    /// # Errors
    /// Where `/proc` is not there.
    pub fn read() -> io::Result<TcpUsers> {
        let mut table = fs::read_to_string("/proc/net/tcp")?;
        table += &fs::read_to_string("/proc/net/tcp6").unwrap_or_default(); // a kernel without IPv6
        Ok(TcpUsers { table })
    }

    /// The number of the user whose process is connected to our end `fd`. `None` where the peer is not of this network
    /// namespace, or has closed its end.
    ///
    /// # Errors
    /// When `fd` is no connected TCP socket.
    pub fn of_peer(&self, fd: impl AsFd) -> io::Result<Option<u32>> {
        let (ours, peers) = (net::local_address(&fd)?, net::peer_address(&fd)?);
        Ok([false, true].into_iter().find_map(|in_v6| {
            let ends = [as_in_table(peers, in_v6), as_in_table(ours, in_v6)];
            self.table.lines().find_map(|line| user_in(line, &ends))
        }))
    }
}

/// The user in a line of the table, if it is of the connected socket with these ends.
fn user_in(line: &str, ends: &[String; 2]) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let is_it = fields.next()? == ends[0] && fields.next()? == ends[1];
    if !is_it || fields.next()? != ESTABLISHED {
        return None;
    }
    fields.nth(3)?.parse().ok()
}

/// The kernel's hexadecimal form: words of four bytes as the machine has them, and the port. A program that uses a socket
/// of IPv6 for an address of IPv4 is found under the mapped one.
fn as_in_table(address: SocketAddr, in_v6: bool) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) if in_v6 => ip.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.as_chunks().0.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

    use super::*;

    fn users_of(server: &TcpStream) -> Option<u32> {
        TcpUsers::read().unwrap().of_peer(server).unwrap()
    }

    #[test]
    fn who_is_connected_is_known_and_who_has_closed_is_not_taken_for_root() {
        let own = rustix::process::geteuid().as_raw();
        for (at, to) in [("127.0.0.1:0", None), ("[::1]:0", None), ("127.0.0.1:0", Some("::ffff:"))]
        {
            let Ok(listener) = TcpListener::bind(at) else { continue }; // no IPv6 here
            let address = listener.local_addr().unwrap();
            let mapped =
                |_| SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), address.port()));
            let client = TcpStream::connect(to.map_or(address, mapped)).unwrap();
            let (server, _) = listener.accept().unwrap();
            assert_eq!(users_of(&server), Some(own), "{at}");
            client.shutdown(Shutdown::Both).unwrap();
            drop(client);
            assert_eq!(users_of(&server), None, "{at}");
        }
    }
}
