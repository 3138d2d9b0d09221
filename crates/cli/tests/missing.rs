//! Jobs that run though nodes are missing: real agents, some of whom do not come up.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;
use support::stand::on_hosts;

const REFUSED: &str = "ssh: connect to host n2 port 22: Connection refused";

/// `convoke run` on four hosts of two slots, of which one can't be reached: by the head, so that nobody
/// else has tried.
fn run(test: &str, options: &str) -> support::convoke::Ended {
    let shell = format!("--fail n2:255:{}", REFUSED.replace(' ', "_"));
    let run = on_hosts(test, "n1:2,n2:2,n3:2,n4:2", &shell);
    run.words("--tree flat")
        .words(options)
        .arg("sh")
        .args(["-c", "echo $PMI_RANK of $PMI_SIZE on $(uname -n)"])
        .run()
}

#[test]
fn with_continue_the_job_runs_on_the_others_and_the_missing_node_is_named() {
    let ended = run("continue", "--on-missing continue --retries 0");
    let lines = ended.sorted_lines();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("of 6") && !line.contains("n2")), "{lines:?}");
    assert_snapshot!(ended.with_status(0).words());
}

#[test]
fn the_record_has_the_nodes_that_are_missing_among_its_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record");
    let options =
        format!("--on-missing continue --retries 0 --exclude n9 --json {}", file.display());
    run("record-missing", &options).with_status(0);
    let record: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let warnings: Vec<&str> =
        record["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let [excluded, ran, missing] = warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(excluded, "`--exclude`: not among the hosts: n9");
    assert_eq!(ran, "6 tasks ran on 3 of 4 nodes: n[1,3-4]");
    assert!(missing.starts_with("could not start an agent on 1 of 4 nodes: n2\n"), "{missing}");
    assert!(missing.contains("Connection_refused"), "{missing}");
}

#[test]
fn with_continue_a_job_with_too_many_tasks_for_the_others_does_not_run() {
    let ended = run("short", "--on-missing continue --retries 0 -n 8");
    assert_snapshot!(ended.with_status(252).words());
}

#[test]
fn with_fewer_nodes_than_the_job_needs_it_does_not_run() {
    let ended = run("min", "--on-missing continue --min-nodes 4 --retries 0");
    assert_snapshot!(ended.with_status(252).words());
}

#[test]
fn a_spare_takes_the_place_of_a_node_that_can_not_be_reached() {
    let ended = run("spare", "--spares 1 --retries 0");
    let lines = ended.sorted_lines();
    assert_eq!(lines[4..], ["4 of 6 on n4", "5 of 6 on n4"]);
    assert!(lines.iter().all(|line| !line.contains("n2")), "{lines:?}");
    ended.with_status(0);
}

#[test]
fn a_spare_that_is_not_needed_has_no_task() {
    let run = on_hosts("idle", "a,b,c", "").words("--spares 1 --show-map true");
    assert_eq!(
        run.run().with_status(0).text(),
        "a: 1 tasks, ranks 0\nb: 1 tasks, ranks 1\nc: a spare\n"
    );
    let run = on_hosts("idle-run", "a,b,c", "").words("--spares 1 uname -n");
    assert_eq!(run.run().with_status(0).sorted_lines(), ["a", "b"]);
}
