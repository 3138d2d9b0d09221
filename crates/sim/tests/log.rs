//! The same seed is the same log, byte for byte, and a log can be replayed.

use std::path::Path;
use std::process::Command;

use sim::{Calibration, LogError, LogFile, LogHeader, LogWriter, Session};

/// The hashes of the logs of the first seeds. They change with what the engine does, and must not
/// change with the machine: a difference that no change of ours explains is a bug.
const GOLDEN: &str = "tests/golden/log-hashes.txt";

#[test]
fn the_same_seed_is_the_same_log_byte_for_byte_on_every_machine() {
    let mut hashes = String::new();
    for seed in 0..12 {
        let log = log_of(seed);
        assert_eq!(log, log_of(seed), "seed {seed}");
        let end = log.lines().next_back().unwrap();
        hashes += &format!("{seed} {end}\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &hashes).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(golden, hashes, "after a change of what engines do, run with UPDATE_GOLDEN=1");
}

#[test]
fn a_log_comes_back_as_it_was_written() {
    let log = LogFile::read(log_of(3).as_bytes()).unwrap();
    assert_eq!(log.header, header(3));
    assert!(log.lines.len() > 100);
}

#[test]
fn a_log_that_was_cut_off_or_changed_or_is_of_another_version_is_refused_as_that() {
    let text = log_of(1);
    let read = |text: &str| LogFile::read(text.as_bytes()).unwrap_err();
    let half = &text[..text.len() / 2];
    assert!(matches!(read(half), LogError::Truncated { lines } if lines == half.lines().count()));
    let first = text.lines().next().unwrap();
    assert!(matches!(read(first), LogError::Truncated { lines: 1 }));
    assert!(matches!(read(""), LogError::NoLog));
    assert!(matches!(read("hello\n"), LogError::NoLog));
    let changed = text.replacen("wants", "wishes", 1);
    assert!(matches!(read(&changed), LogError::Damaged));
    let other = read(&text.replacen("version=2", "version=9", 1));
    assert_eq!(other.to_string(), "the log has version 9, and this build replays version 2");
}

#[test]
fn no_beginning_of_a_log_is_a_log_and_each_is_told_as_one_that_was_cut_off() {
    let mut text = Vec::new();
    let calibration = Some(Calibration::default().to_toml());
    let mut writer = LogWriter::new(&mut text, &LogHeader { calibration, ..header(1) });
    writer.line("0 0 ns something");
    writer.finish().unwrap();
    let whole = text.len() - "\n".len();
    assert!(LogFile::read(&text[..whole]).is_ok());
    for length in 1..whole {
        let error = LogFile::read(&text[..length]).unwrap_err();
        assert!(matches!(error, LogError::Truncated { .. }), "{length} bytes: {error}");
    }
}

#[test]
fn what_stands_behind_the_end_of_a_log_is_refused() {
    let text = log_of(1);
    let end = text.lines().count();
    for more in ["\n", "0 0 ns something more\n", text.lines().next_back().unwrap(), &text] {
        let error = LogFile::read(format!("{text}{more}").as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the log ends in line {end}, and more stands behind that")
        );
    }
}

#[test]
fn a_replay_shows_what_there_is_after_so_many_steps() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let log = log.to_str().unwrap();
    let (status, _) = simulate(&["--agents", "5", "--tree", "chain", "--log", log]);
    assert_eq!(status, 0);
    let (status, begin) = simulate(&["replay", log, "--until", "0"]);
    assert!(status == 0 && begin.starts_with("after step 0 at 0 ns: 1 of 1 processes"), "{begin}");
    let (status, middle) = simulate(&["replay", log, "--until", "40"]);
    assert!(status == 0 && middle.starts_with("after step 40 at "), "{middle}");
    assert!(middle.contains("agent 1: links ["), "{middle}");
    let (status, end) = simulate(&["replay", log, "--until", "1000000"]);
    assert!(status == 0 && end.contains(": 0 of 6 processes run"), "{end}");
}

#[test]
fn a_log_of_another_run_is_noticed_with_the_line_that_differs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut text = Vec::new();
    let mut writer = LogWriter::new(&mut text, &header(1));
    writer.line("0 0 ns something else");
    writer.finish().unwrap();
    std::fs::write(&path, text).unwrap();
    let (status, words) = simulate(&["replay", path.to_str().unwrap(), "--until", "5"]);
    assert_eq!(status, 1);
    assert!(words.contains("error: this is another run: the log says\n  0 0 ns something else"));
    std::fs::write(&path, "convoke-simulation-log version=2 commit=x --seed 1\n").unwrap();
    let (status, words) = simulate(&["replay", path.to_str().unwrap(), "--until", "5"]);
    assert_eq!(status, 2);
    assert!(words.contains("the log was cut off in or after line 1:"), "{words}");
}

#[test]
fn a_log_holds_its_calibration_so_that_a_replay_needs_no_other_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, log) = (dir.path().join("a calibration"), dir.path().join("log"));
    let mut calibration = Calibration::default();
    calibration.cpu.exec_us = 1_234.0;
    let text = calibration.to_toml();
    std::fs::write(&file, &text).unwrap();
    let [file, log] = [&file, &log].map(|path| path.to_str().unwrap());
    let (status, _) = simulate(&["--agents", "5", "--calibration", file, "--log", log]);
    assert_eq!(status, 0);
    std::fs::remove_file(file).unwrap();
    let (status, words) = simulate(&["replay", log, "--until", "1000000"]);
    assert!(status == 0 && words.contains(": 0 of 6 processes run"), "{words}");
    let read = LogFile::read(std::fs::read(log).unwrap().as_slice()).unwrap();
    assert_eq!(read.header.calibration.as_deref(), Some(text.trim_end()));
    let changed = std::fs::read_to_string(log).unwrap().replacen("1234", "1235", 1);
    assert!(matches!(LogFile::read(changed.as_bytes()), Err(LogError::Damaged)));
}

#[test]
fn a_log_that_goes_on_after_the_end_of_the_session_is_another_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let whole = LogFile::read(log_of(1).as_bytes()).unwrap();
    let last = whole.lines.last().unwrap();
    let step: u64 = last.split(' ').next().unwrap().parse().unwrap();
    let mut text = Vec::new();
    let mut writer = LogWriter::new(&mut text, &header(1));
    let more = format!("{} 1 ns something more", step + 1);
    whole.lines.iter().for_each(|line| writer.line(line));
    writer.line(&more);
    writer.finish().unwrap();
    std::fs::write(&path, text).unwrap();
    let replay =
        |until: u64| simulate(&["replay", path.to_str().unwrap(), "--until", &until.to_string()]);
    assert_eq!(replay(step + 1).0, 0);
    let (status, words) = replay(step + 2);
    assert!(status == 1 && words.contains(&format!("the log goes on with\n  {more}")), "{words}");
}

#[test]
fn arguments_that_cannot_be_meant_are_refused_before_anything_runs() {
    for (args, expected) in [
        (&["--agents", "0"][..], "--agents: there must be at least one"),
        (&["--agents", "2", "--tasks", "0"], "--tasks: there must be at least one"),
        (&["--agents", "-1"], "--agents: `-1` is no number in range"),
        (&["--agents", "4000000000"], "of memory, and"),
        (&["--agents", "9999", "--tasks", "1000000"], "of memory, and"),
        (&["--seed", "1", "--seed", "2"], "--seed is given twice"),
        (&["--log", "--agents", "3"], "--log needs a value"),
        (&["--seed", "7", "--seeds", "18446744073709551615"], "give fewer"),
        (&["--seeds", "5", "--agents", "3"], "with --seeds, sessions are random"),
        (&["--seeds", "5", "--log", "x"], "logs go to --logs"),
        (&["--seed", "5", "--minutes", "1"], "--minutes, --state and --logs are for --seeds"),
        (&["--agents"], "--agents needs a value"),
        (&["--nodes", "3"], "`--nodes` is no option"),
        (&["--calibration", "/no/such"], "read calibration `/no/such`"),
    ] {
        let (status, words) = simulate(args);
        assert!(status == 2 && words.contains(expected), "{args:?}: {words}");
    }
    let (status, words) = simulate(&["--help"]);
    assert!(status == 0 && words.starts_with("usage: simulate"), "{words}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    #[expect(clippy::disallowed_methods, reason = "a test of a program of ours")]
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["--agents", "3"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn a_batch_of_seeds_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("next");
    let state = state.to_str().unwrap();
    let (status, words) = simulate(&["--seeds", "40", "--minutes", "0", "--state", state]);
    assert!(
        status == 0 && words.contains("out of time: 40 left, the next is 0, kept in"),
        "{words}"
    );
    assert!(words.contains(": the same call goes on there"), "{words}");
    let (_, words) = simulate(&["--seeds", "40", "--minutes", "0"]);
    assert!(words.contains("the next is 0: `--seed 0 --seeds 40` goes on there"), "{words}");
    let (status, words) = simulate(&["--seeds", "40", "--state", state]);
    assert!(status == 0 && words.contains("seeds 0 to 40 done, 0 failed"), "{words}");
    let (status, words) = simulate(&["--seeds", "50", "--state", state]);
    assert!(status == 0 && words.contains("seeds 40 to 50 done, 0 failed"), "{words}");
    std::fs::write(state, "soon").unwrap();
    let (status, words) = simulate(&["--seeds", "50", "--state", state]);
    assert!(status == 2 && words.contains("is no state of a batch"), "{words}");
}

fn header(seed: u64) -> LogHeader {
    LogHeader { commit: None, args: vec!["--seed".into(), seed.to_string()], calibration: None }
}

fn log_of(seed: u64) -> String {
    let mut text = Vec::new();
    let mut writer = LogWriter::new(&mut text, &header(seed));
    Session::random(seed).run_logged(&mut |line| writer.line(line)).expect("it works");
    writer.finish().expect("it works");
    String::from_utf8(text).expect("it works")
}

/// The exit status, and all that was said.
fn simulate(args: &[&str]) -> (i32, String) {
    #[expect(clippy::disallowed_methods, reason = "a test of a program of ours")]
    let output =
        Command::new(env!("CARGO_BIN_EXE_simulate")).args(args).output().expect("it works");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().expect("it works"), String::from_utf8(said).expect("it works"))
}
