//! Output of real tasks in files: `--output`, patterns, at the head and on the nodes.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::convoke::Convoke;
use support::lines::flooded;
use support::stand::on_hosts;

#[test]
fn a_directory_gets_two_files_a_rank_and_nothing_is_shown() {
    for place in ["", "--output-local"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/out");
        let run =
            on_hosts("directory", "a,b,c", "").words(&format!("-n 12 --ppn 4 {place} --output"));
        let steps = ["flood:300:100:block", "flood-stderr:200:80:block"];
        let ended = run.arg(&out).misbehave(steps).run().with_status(0);
        assert_eq!((ended.text(), ended.stderr), (String::new(), String::new()));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 24);
        for rank in 0..12 {
            for (end, lines) in [("out", 300), ("err", 200)] {
                let text = fs::read(out.join(format!("{rank:02}.{end}"))).unwrap();
                assert_eq!(flooded(&text), BTreeMap::from([(rank, lines)]), "{place} {rank}.{end}");
            }
        }
    }
}

#[test]
fn patterns_name_files_by_rank_host_and_node_and_what_has_none_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let run = on_hosts("pattern", "a,b", "").words("-n 4 --ppn 2 --outfile-pattern");
    let script = "echo $PMI_RANK; echo shown >&2";
    let run = run.arg("%h/%3r-%n").current_dir(dir.path()).args(["sh", "-c", script]);
    let ended = run.run().with_status(0);
    assert_eq!((ended.text(), ended.stderr), (String::new(), "shown\n".repeat(4)));
    for (name, text) in
        [("a/000-0", "0\n"), ("a/001-0", "1\n"), ("b/002-1", "2\n"), ("b/003-1", "3\n")]
    {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), text, "{name}");
    }
}

#[test]
fn tasks_of_one_file_write_whole_lines_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all");
    let run =
        on_hosts("one-file", "a,b", "").words("-n 4 --ppn 2 --merge-stderr --outfile-pattern");
    run.arg(&file).misbehave(["flood:500:100:block"]).run().with_status(0);
    let expected: BTreeMap<u32, u64> = (0..4).map(|rank| (rank, 500)).collect();
    assert_eq!(flooded(&fs::read(&file).unwrap()), expected);
    let run = on_hosts("one-file-err", "a,b", "").words("-n 4 --merge-stderr --outfile-pattern");
    run.arg(&file).misbehave(["flood-stderr:500:100:block"]).run().with_status(0);
    assert_eq!(flooded(&fs::read(&file).unwrap()), expected, "nothing of the run before is left");
}

#[test]
fn standard_error_that_is_merged_keeps_its_place_between_lines_of_output() {
    let run = on_hosts("merged", "a", "").words("-n 1 --merge-stderr");
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let ended = run.args(["sh", "-c", script]).run().with_status(0);
    assert_eq!(ended.text(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(ended.stderr, "");
}

#[test]
fn what_goes_to_files_is_shown_too_with_tee_and_labels_are_only_for_the_screen() {
    for place in ["", "--output-local"] {
        let dir = tempfile::tempdir().unwrap();
        let run = on_hosts("tee", "a,b", "").words(&format!("-n 2 --tee --label {place} --output"));
        let ended = run.arg(dir.path()).args(["sh", "-c", "echo $PMI_RANK"]).run().with_status(0);
        assert_eq!(ended.sorted_lines(), ["[0] 0", "[1] 1"]);
        assert_eq!(fs::read_to_string(dir.path().join("1.out")).unwrap(), "1\n");
    }
}

#[test]
fn files_of_tasks_that_write_nothing_are_empty_even_if_they_were_not() {
    for place in ["", "--output-local"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("0.out"), "of an older run").unwrap();
        let run = on_hosts("older", "a", "").words(&format!("-n 1 {place} --output"));
        run.arg(dir.path()).arg("true").run().with_status(0);
        assert_eq!(fs::read_to_string(dir.path().join("0.out")).unwrap(), "");
    }
}

#[test]
fn a_full_disk_ends_the_job_and_names_the_file() {
    let full = "`/dev/full`: No space left on device\n";
    let run = || on_hosts("full", "a,b", "").words("-n 2 --outfile-pattern /dev/full");
    let ended = run().misbehave(["say:x", "hang"]).run().with_status(249);
    assert_eq!(ended.stderr, format!("error: could not write {full}"));
    let ended = run().arg("--output-local").misbehave(["say:x", "hang"]).run().with_status(249);
    assert!(ended.stderr.starts_with("error: could not write output on "), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(full), "{}", ended.stderr);
}

#[test]
fn standard_output_on_a_full_disk_ends_the_job_and_is_named() {
    let script =
        "exec $CONVOKE run --launcher local --hosts a -n 1 $MISBEHAVE say:x hang > /dev/full";
    let ended = Convoke::script("full-stdout", "sh", script).run().with_status(249);
    assert_eq!(ended.stderr, "error: could not write standard output: No space left on device\n");
}

#[test]
fn a_directory_that_cannot_be_written_is_told_of_before_anything_runs() {
    let run = |options: &str| {
        let run = on_hosts("nowhere", "a,b", "").words("-n 2").words(options);
        run.args(["touch", "ran"]).run()
    };
    let ended = run("--output /dev/null/x").with_status(2);
    assert_eq!(ended.stderr, "error: write `/dev/null/x/0.out`: Not a directory (os error 20)\n");
    let ended = run("--output-local --output /dev/null/x").with_status(249);
    let expected = "error: could not write output on 2 of 2 nodes: a,b\n  \
                    a: `/dev/null/x/0.out`: Not a directory\n  \
                    b: `/dev/null/x/1.out`: Not a directory\n";
    assert_eq!(ended.stderr, expected);
}

#[test]
fn the_record_of_a_job_goes_to_standard_output_where_no_task_writes() {
    let dir = tempfile::tempdir().unwrap();
    let run = on_hosts("record-stdout", "a", "").words("-n 1 --json - --output").arg(dir.path());
    let ended = run.args(["echo", "text"]).run().with_status(0);
    let record: Value = serde_json::from_str(&ended.text()).unwrap();
    assert_eq!(record["ranks"][0]["exit_code"], 0);
    assert_eq!(fs::read_to_string(dir.path().join("0.out")).unwrap(), "text\n");
    let run = on_hosts("record-mixed", "a", "").words("-n 1 --json - echo text");
    let ended = run.run().with_status(2);
    assert!(ended.stderr.starts_with("error: `--json -` is standard output"), "{}", ended.stderr);
}

#[test]
fn a_gigabyte_would_pass_as_a_hundred_megabytes_do() {
    let dir = tempfile::tempdir().unwrap();
    let run = on_hosts("large", "a,b", "").words("-n 2 --stdin none --output").arg(dir.path());
    run.misbehave(["blast:50"]).run().with_status(0);
    for rank in 0..2 {
        assert_eq!(size_of_file(&dir.path().join(format!("{rank}.out"))), 50 << 20);
    }
}

fn size_of_file(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}
