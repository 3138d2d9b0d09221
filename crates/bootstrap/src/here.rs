//! Whether a host is this machine: by its name, never by its address.
//!
//! An address can be shared, forwarded or a namespace's; a name is what the user meant.

use model::HostName;

/// Whether `host` names the machine that calls itself `hostname`.
///
/// A user or a port says that somebody else is meant, or another sshd. A short name equals a long one with the same first part; two long ones must be equal.
pub fn is_here(host: &str, hostname: &str) -> bool {
    let HostName { user: None, host, port: None } = HostName::of(host) else { return false };
    let is_long = |name: &str| name.contains('.');
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let first_part = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let one_is_short = !is_long(host) || !is_long(hostname);
    !host.is_empty()
        && (same(host, "localhost")
            || same(host, hostname)
            || (one_is_short && same(&first_part(host), &first_part(hostname))))
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn a_host_is_here_by_name_only() {
        for (host, hostname) in
            [("n1", "n1"), ("N1", "n1.a.b"), ("n1.a.b", "n1"), ("n1.a", "n1.a"), ("localhost", "x")]
        {
            assert!(is_here(host, hostname), "{host} {hostname}");
        }
        for (host, hostname) in [
            ("n1.a", "n1.b"),
            ("127.0.0.1", "n1"),
            ("::1", "n1"),
            ("n", "n1"),
            ("", ""),
            ("u@n1", "n1"),
            ("n1.a/22", "n1"),
            ("localhost/2222", "n1"),
        ] {
            assert!(!is_here(host, hostname), "{host} {hostname}");
        }
    }
}
