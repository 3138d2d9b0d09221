//! What a simulation holds in memory: bounds, which `tests/scale.rs` measures.

/// An agent, its engine and what the simulation knows of it included.
pub const BYTES_PER_AGENT: u64 = 8_400;

/// A task that exchanges no card.
pub const BYTES_PER_TASK: u64 = 1_000;

/// Bytes that a session of so many agents and tasks takes at most while no cards are exchanged.
pub fn bytes_needed(agents: u64, tasks: u64) -> u64 {
    let of_agents = agents.saturating_mul(BYTES_PER_AGENT);
    of_agents.saturating_add(tasks.saturating_mul(BYTES_PER_TASK))
}
