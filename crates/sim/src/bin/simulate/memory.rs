//! How much memory this process has needed and how much there is, as the kernel counts it.

/// The most bytes that were resident at once, where the kernel tells.
pub(crate) fn peak_bytes() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// Bytes that can be had without swapping; as many as there can be where the kernel does not say.
pub(crate) fn free_bytes() -> u64 {
    field("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX)
}

/// Refuses what needs more than is free.
pub(crate) fn check(wanted: u64, free: u64) -> Result<(), String> {
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    if wanted <= free {
        return Ok(());
    }
    let (wanted, free) = (gigabytes(wanted), gigabytes(free));
    Err(format!("such a session takes up to {wanted:.1} GB of memory, and {free:.1} GB are free"))
}

fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
