//! Addresses and links: a veth pair per host, the far ends on one bridge in the switch.
//!
//! The testbed has its addresses to itself (see `world`), so they are fixed. IPv6 addresses are
//! there as well, since an agent offers all addresses of its node.

use std::net::Ipv4Addr;
use std::process::Command;

/// Ports of a Linux bridge (`BR_MAX_PORTS`), less the head's.
pub(crate) const HOSTS_MAX: usize = 1022;

/// The address of the host with this index, 0 being the head.
pub(crate) fn address(index: usize) -> Ipv4Addr {
    let number = index + 1;
    Ipv4Addr::new(10, 77, (number >> 8) as u8, (number & 0xff) as u8)
}

/// The hardware address of the host with this index.
pub(crate) fn hardware_address(index: usize) -> String {
    format!("02:77:00:00:{:02x}:{:02x}", index >> 8, index & 0xff)
}

/// The switch's end of the host's link.
pub(crate) fn port(index: usize) -> String {
    format!("port{index}")
}

/// `ip -batch` text for the switch: the bridge, and a link to each host's namespace.
pub(crate) fn switch_batch(host_pids: &[u32]) -> String {
    let mut text =
        String::from("link add bridge type bridge\nlink set bridge addrgenmode none up\n");
    for (index, pid) in host_pids.iter().enumerate() {
        let (port, hardware) = (port(index), hardware_address(index));
        text += &format!(
            "link add {port} type veth peer name eth0 address {hardware} netns {pid}\n\
             link set {port} addrgenmode none master bridge up\n"
        );
    }
    text
}

/// `ip -batch` text for one host.
pub(crate) fn host_batch(index: usize) -> String {
    let address = address(index);
    format!(
        "link set lo up\naddress add {address}/16 dev eth0\n\
         address add {}/64 dev eth0 nodad\nlink set eth0 up\n",
        address_v6(index)
    )
}

/// The IPv6 address of the host with this index.
fn address_v6(index: usize) -> String {
    format!("fd77::{:x}", index + 1)
}

/// All addresses of the testbed.
pub(crate) fn prefix(is_v6: bool) -> &'static str {
    if is_v6 { "fd77::/64" } else { "10.77.0.0/16" }
}

/// The hosts file that all hosts share.
pub(crate) fn hosts_file<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for (index, name) in names.enumerate() {
        text += &format!("{} {name}\n", address(index));
    }
    text
}

/// The same with the hosts' IPv6 addresses.
pub(crate) fn hosts_file_v6<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("::1 localhost\n");
    for (index, name) in names.enumerate() {
        text += &format!("{} {name}\n", address_v6(index));
    }
    text
}

/// A command that runs in the network namespace of process `pid`, and in no other namespace of it.
pub(crate) fn in_network_of(pid: u32, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).args(["--", program]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_address_of_its_own_in_the_testbeds_network() {
        assert_eq!(address(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address(254), Ipv4Addr::new(10, 77, 0, 255));
        assert_eq!(address(255), Ipv4Addr::new(10, 77, 1, 0));
        let all: std::collections::BTreeSet<_> = (0..=HOSTS_MAX).map(address).collect();
        assert_eq!(all.len(), HOSTS_MAX + 1);
    }

    #[test]
    fn the_hosts_file_names_the_head_first() {
        let text = hosts_file(["head", "n0"].into_iter());
        assert!(text.ends_with("10.77.0.1 head\n10.77.0.2 n0\n"), "{text}");
    }
}
