//! `--json`: the record of a job, of its nodes and of its tasks.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::stand::on_hosts;

#[test]
fn every_rank_is_recorded_with_where_it_ran_how_it_ended_and_what_it_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record.json");
    let run = on_hosts("record", "a,b", "").words("-n 4 --ppn 2 --json").arg(&file);
    let script =
        "test $PMI_RANK = 3 || exit 0; echo one >&2; echo two >&2; sleep 0.3; kill -SEGV $$";
    let ended = run.args(["sh", "-c", script]).run().with_status(139);
    let record = read(&file);
    assert_eq!(record["format"], "convoke-run");
    assert_eq!((&record["version"], &record["status"]), (&json!(1), &json!(139)));
    assert_eq!(record["words"], json!(["task 3 on b was killed by signal 11 (SIGSEGV)"]));
    assert!(ended.stderr.starts_with("one\ntwo\n"));
    assert_eq!(
        (&record["apps"][0]["command"][0], &record["apps"][1]),
        (&json!("sh"), &Value::Null)
    );
    assert_eq!(
        record["nodes"][1],
        json!({"node": 1, "host": "b", "state": "ok", "output_incomplete": false})
    );
    let ranks = record["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 4);
    for (rank, record) in ranks.iter().enumerate() {
        assert_eq!(record["rank"], rank);
        assert_eq!(
            (&record["node"], &record["host"]),
            (&json!(rank / 2), &json!(["a", "b"][rank / 2]))
        );
        assert!(record["pid"].as_u64().unwrap() > 1);
        assert!(record["max_rss_kib"].as_u64().unwrap() > 100);
        assert!(record["minor_faults"].as_u64().unwrap() > 0);
    }
    assert_eq!((&ranks[0]["state"], &ranks[0]["exit_code"]), (&json!("exited"), &json!(0)));
    assert_eq!(ranks[0]["last_stderr_lines"], json!([]));
    assert_eq!((&ranks[3]["state"], &ranks[3]["exit_code"]), (&json!("signaled"), &Value::Null));
    assert_eq!(ranks[3]["signal"], json!({"number": 11, "name": "SIGSEGV"}));
    assert_eq!(ranks[3]["last_stderr_lines"], json!(["one", "two"]));
    assert!(ranks[3]["wall_seconds"].as_f64().unwrap() >= 0.3);
}

#[test]
fn each_program_of_a_job_is_recorded_with_its_directory_and_each_rank_with_its_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record");
    let run = on_hosts("record-apps", "a,b", "").words("-n 1 --wdir /tmp --json").arg(&file);
    run.args(["true", ":", "-n", "2", "--wdir", "/", "echo", "a b"]).run().with_status(0);
    let record = read(&file);
    let app = |command: &[&str], directory: &str, first_rank, tasks| json!({"command": command, "directory": directory, "first_rank": first_rank, "tasks": tasks});
    assert_eq!(
        record["apps"],
        json!([app(&["true"], "/tmp", 0, 1), app(&["echo", "a b"], "/", 1, 2)])
    );
    let apps = record["ranks"].as_array().unwrap().iter().map(|rank| &rank["app"]);
    assert_eq!(apps.collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn a_job_that_never_ran_has_a_record_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record");
    let run = on_hosts("record-none", "a,b", "").words("-n 2 --json").arg(&file);
    run.arg("/no/such/program").run().with_status(127);
    let record = read(&file);
    assert_eq!(record["status"], 127);
    assert_eq!(record["ranks"][1]["state"], "unknown");
    assert_eq!(record["ranks"][1].get("pid"), None);
    assert!(record["words"][0].as_str().unwrap().contains("/no/such/program"));
}

#[test]
fn a_record_that_cannot_be_written_is_told_of_before_anything_runs() {
    let run = on_hosts("record-nowhere", "a", "").words("-n 1 --json /dev/null/file echo ran");
    let ended = run.run().with_status(2);
    assert_eq!(ended.text(), "");
    assert_eq!(ended.stderr, "error: create `/dev/null/file`: Not a directory (os error 20)\n");
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
