//! What an agent costs in memory, engine and simulation together, as the kernel counts it.

use std::process::Command;

/// The bound that `docs/simulator.md` states.
const BYTES_PER_AGENT_MAX: u64 = 8_000;

#[test]
fn an_agent_costs_no_more_memory_than_is_said() {
    for tree in ["kary:16", "greedy"] {
        // Of two sizes the difference, so that the program itself does not count.
        let (few, many) = (2_000, 12_000);
        let bytes = peak_bytes(many, tree) - peak_bytes(few, tree);
        let per_agent = bytes / (many - few);
        assert!(per_agent < BYTES_PER_AGENT_MAX, "{tree}: {per_agent} bytes per agent");
    }
}

/// What `simulate` says about its memory.
fn peak_bytes(agents: u64, tree: &str) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test of a program of ours")]
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["--agents", &agents.to_string(), "--tree", tree])
        .output()
        .expect("simulate runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let memory = said.lines().find_map(|line| line.strip_prefix("memory at most "));
    let bytes = memory.and_then(|memory| memory.split(' ').next()?.parse().ok());
    bytes.unwrap_or_else(|| panic!("no memory in {said:?}"))
}
