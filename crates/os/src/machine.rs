//! What the machine says of itself and gives to us: its name, its addresses, chance, limits.
#![expect(unsafe_code, reason = "getifaddrs gives a linked list of C structs")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use rustix::process::{Resource, Rlimit};
use rustix::rand::GetRandomFlags;

/// This machine's name, as the kernel has it.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What kind of machine it is, as `uname -m` says it.
pub fn architecture() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// How many bytes of memory can be had without swapping (proc(5), `MemAvailable`), if the kernel says.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Fills `bytes` from the kernel's generator; waits for it only early in a boot.
///
/// # Errors
/// None is expected.
pub fn random_bytes(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        let get = || rustix::rand::getrandom(&mut *rest, GetRandomFlags::empty());
        filled += rustix::io::retry_on_intr(get)?;
    }
    Ok(())
}

/// Raises our limit of open descriptors to what the administrator allows; returns both.
///
/// Children inherit the higher limit, which breaks programs that use `select`: give tasks
/// [`DescriptorLimit::before`] as their [`descriptors_max`](crate::SpawnSpec::descriptors_max).
///
/// # Errors
/// None is expected.
pub fn raise_descriptor_limit() -> io::Result<DescriptorLimit> {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised)?;
    let of = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    Ok(DescriptorLimit { before: of(before.current), now: of(before.maximum) })
}

/// How many descriptors we may have open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DescriptorLimit {
    /// What we were started with.
    pub before: u64,
    /// What we have.
    pub now: u64,
}

impl DescriptorLimit {
    /// What the programs that we start are to be allowed, where that is not what we have: those that
    /// use `select` rely on the low limit that they would have had without us.
    pub fn lowered(&self) -> Option<u64> {
        (self.before != self.now).then_some(self.before)
    }
}

/// The addresses at which others may reach us: of interfaces that are up, loopback last.
///
/// Link-local addresses are left out, since they mean something else on every other machine.
///
/// # Errors
/// When descriptors or memory have run out.
pub fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    let mut head: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `head` receives a list that we walk and then free once; nothing else writes to it.
    unsafe {
        if libc::getifaddrs(&mut head) == -1 {
            return Err(io::Error::last_os_error());
        }
        let list = std::iter::successors(head.as_ref(), |entry| entry.ifa_next.as_ref());
        let mut addresses: Vec<IpAddr> = list.filter_map(|entry| usable_address(entry)).collect();
        libc::freeifaddrs(head);
        addresses.sort_by_key(IpAddr::is_loopback);
        Ok(addresses)
    }
}

/// # Safety
/// `entry` must come from getifaddrs.
unsafe fn usable_address(entry: &libc::ifaddrs) -> Option<IpAddr> {
    if entry.ifa_flags & libc::IFF_UP.cast_unsigned() == 0 {
        return None;
    }
    // SAFETY: an address is null or of the type that its family says.
    unsafe {
        let address = entry.ifa_addr.as_ref()?;
        match i32::from(address.sa_family) {
            libc::AF_INET => {
                let v4 = ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in>());
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                (!ip.is_link_local()).then_some(IpAddr::V4(ip))
            }
            libc::AF_INET6 => {
                let v6 = ptr::read_unaligned(entry.ifa_addr.cast::<libc::sockaddr_in6>());
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                (!ip.is_unicast_link_local()).then_some(IpAddr::V6(ip))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_address_and_comes_last() {
        let addresses = interface_addresses().unwrap();
        assert!(addresses.contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(addresses.is_sorted_by_key(IpAddr::is_loopback));
    }

    #[test]
    fn the_kernel_says_how_much_memory_there_is() {
        assert!(available_memory().unwrap() > 1 << 20);
    }

    #[test]
    fn random_bytes_differ_from_call_to_call() {
        let (mut one, mut two) = ([0; 32], [0; 32]);
        random_bytes(&mut one).unwrap();
        random_bytes(&mut two).unwrap();
        assert_ne!(one, two);
    }
}
