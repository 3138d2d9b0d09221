//! Numbers that make a test larger or smaller.

/// The number that `cargo xtask test FILE` may give by this variable, or this one.
///
/// # Panics
///
/// When the variable is no number.
pub fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("`{name}` is `{text}`, which is no number"))
    })
}
