//! Values of a gigabyte (`programs/volume.c`): an error to the task that puts one, whatever it speaks, and no memory of its
//! agent.

use std::path::{Path, PathBuf};

use crate::support::convoke::Ended;
use crate::support::stand::{client_libraries, compiled, on_hosts};

/// What an agent may hold of a message that has not come whole, and what it takes to hold that while it grows.
const GROWN_KB_MAX: i64 = 4 << 10;

#[test]
fn a_gigabyte_in_one_message_ends_the_job_and_says_how_long_a_message_may_be() {
    for how in ["line", "frame"] {
        let ended = on_hosts("gigabyte", "a:2", "").arg(program(2)).arg(how).run();
        let ended = ended.with_status(250);
        let words = "task 0 on a broke the PMI protocol: ";
        assert!(ended.stderr.contains(words), "{how}: {}", ended.stderr);
        assert!(ended.stderr.contains("1048576 bytes"), "{how}: {}", ended.stderr);
        has_not_grown(&ended, 1);
    }
}

#[test]
fn a_gigabyte_put_through_our_libraries_is_an_error_and_the_program_goes_on() {
    for dialect in [1, 2] {
        let lib = format!("LD_LIBRARY_PATH={}", client_libraries().join("lib").display());
        let run = on_hosts("gigabyte-put", "a:1,b:1", "").args(["--env", &lib]);
        let ended = run.args(["--env", "PMI_DEBUG=1"]).arg(program(dialect)).run().with_status(0);
        let words = ended.stderr.matches(" more than ").count();
        assert_eq!(words, 2, "{}", ended.stderr);
        has_not_grown(&ended, 2);
    }
}

fn program(dialect: u32) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("volume-{dialect}"));
    let (pmi, library) = (format!("-DPMI={dialect}"), ["-lpmi", "-lpmi2"][dialect as usize - 1]);
    compiled("volume", Path::new("gcc"), &[&pmi, library], program)
}

#[track_caller]
fn has_not_grown(ended: &Ended, tellers: usize) {
    let text = ended.text();
    // The kernel counts roughly, so that it may be less than nothing.
    let grown = text.lines().filter_map(|line| {
        line.strip_prefix("the agent has grown by ")?.strip_suffix(" kB")?.parse::<i64>().ok()
    });
    let grown: Vec<i64> = grown.collect();
    assert_eq!(grown.len(), tellers, "{text}");
    assert!(grown.iter().all(|kb| *kb <= GROWN_KB_MAX), "{text}");
}
