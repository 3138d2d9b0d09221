//! What an agent and a task cost in memory, engine and simulation together, as the kernel counts it.

use std::process::Command;

use sim::{BYTES_PER_AGENT, BYTES_PER_TASK, Calibration};

/// What every agent needs to find one card, beside the card itself, with what a hash table keeps free.
const BYTES_PER_CARD_MAX: u64 = 25;

#[test]
fn an_agent_costs_no_more_memory_than_is_said() {
    for tree in ["adaptive", "binomial", "kary:16", "greedy", "flat"] {
        // Of two sizes the difference, so that the program itself does not count.
        let (few, many) = (12_000, 22_000);
        let bytes = peak_bytes(many, 1, tree) - peak_bytes(few, 1, tree);
        let per_agent = bytes / (many - few);
        assert!(per_agent < BYTES_PER_AGENT, "{tree}: {per_agent} bytes per agent");
    }
}

#[test]
fn a_task_costs_no_more_memory_than_is_said() {
    for (few, many) in [(1, 11), (20, 60)] {
        const AGENTS: u64 = 11_000;
        let bytes = peak_bytes(AGENTS, many, "adaptive") - peak_bytes(AGENTS, few, "adaptive");
        let per_task = bytes / (AGENTS * (many - few));
        assert!(per_task < BYTES_PER_TASK, "{per_task} bytes per task");
    }
}

#[test]
fn a_card_costs_each_agent_no_more_memory_than_is_said() {
    // Twice as many agents, each with twice as many cards: what goes with the square is the cards'.
    let (few, many) = (2_000_u64, 4_000_u64);
    let (at_few, at_many) = (peak_bytes(few, 1, "kary:16"), peak_bytes(many, 1, "kary:16"));
    let of_cards = at_many.saturating_sub(at_few * (many / few));
    let per_card = of_cards / (many * many - few * few * (many / few));
    assert!(per_card < BYTES_PER_CARD_MAX, "{per_card} bytes per card and agent");
}

/// Also where hosts have as many cores as a calibration may give them: those that never work cost nothing.
#[test]
fn hosts_with_many_cores_cost_no_more_memory_than_is_said() {
    let mut calibration = Calibration::default();
    calibration.cpu.cores = 65_536;
    calibration.cpu.exec_us = 500.0;
    calibration.cpu.message_us = 5.0;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), calibration.to_toml()).unwrap();
    let file = file.path().to_str().unwrap();
    let of = |agents: u64| {
        peak_bytes_of(&[
            "--agents",
            &agents.to_string(),
            "--calibration",
            file,
            "--tree",
            "kary:16",
        ])
    };
    let (few, many) = (12_000, 22_000);
    let per_agent = (of(many) - of(few)) / (many - few);
    assert!(per_agent < BYTES_PER_AGENT, "{per_agent} bytes per agent");
}

/// Of the sizes that are promised: 2 GB for 100,000 agents, 20 GB for a million.
#[test]
fn what_an_agent_costs_keeps_large_sessions_within_their_bounds() {
    for (agents, bytes_max) in [(100_000, 2_000_000_000), (1_000_000, 20_000_000_000)] {
        assert!(sim::bytes_needed(agents, agents) < bytes_max);
    }
}

fn peak_bytes(agents: u64, tasks: u64, tree: &str) -> u64 {
    let (agents, tasks) = (agents.to_string(), tasks.to_string());
    peak_bytes_of(&["--agents", &agents, "--tasks", &tasks, "--tree", tree])
}

/// What `simulate` says about its memory.
fn peak_bytes_of(args: &[&str]) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test of a program of ours")]
    let output =
        Command::new(env!("CARGO_BIN_EXE_simulate")).args(args).output().expect("simulate runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let memory = said.lines().find_map(|line| line.strip_prefix("memory at most "));
    let bytes = memory.and_then(|memory| memory.split(' ').next()?.parse().ok());
    bytes.unwrap_or_else(|| panic!("no memory in {said:?}"))
}
