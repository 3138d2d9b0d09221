//! `convoke plan` and `convoke sim`, as a user runs them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sim::{Calibration, Distribution, Launch};
use support::convoke::{Convoke, Running};
use support::watch::peak_kib_of;
use testbed::{HEAD, Testbed};

#[test]
fn a_plan_compares_trees_windows_batches_and_bulk_starts_and_recommends_a_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("curve.svg");
    let output = convoke(&["plan", "--nodes", "256", "--svg", &svg.display().to_string()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for word in
        ["flat", "unlimited", "strict batches of", "one command starts", "an MPI job of 256 tasks"]
    {
        assert!(text.contains(word), "no {word}: {text}");
    }
    let recommended = text.lines().find(|line| line.contains("convoke run")).unwrap();
    assert!(!recommended.contains("flat") && recommended.contains("--window"), "{recommended}");
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 8);
}

#[test]
fn the_memory_that_is_planned_is_what_a_session_takes() {
    let text = String::from_utf8(convoke(&["plan", "--nodes", "4"]).stdout).unwrap();
    let flat = text.lines().find(|line| line.starts_with("flat")).unwrap();
    let planned: Vec<f64> = flat.split(" MB").filter_map(last_number).collect();

    let run = Convoke::new("planned-memory").words("--launcher local --hosts n[1-4] --tree flat");
    let mut running = run.args(["sh", "-c", "echo up; sleep 1000"]).start();
    running.wait_for_output("`up` of each task", |text| text == "up\n".repeat(4).as_bytes());
    let head = peaks(&running, "convoke run").iter().sum::<f64>();
    // An agent and its keeper have the same command line.
    let agents = peaks(&running, "convoke __agent");
    assert_eq!(agents.len(), 2 * 4, "four agents, and a keeper each");
    let taken = [head, agents.iter().sum::<f64>() / 4.0];
    let pid = i32::try_from(running.pid()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    running.finish().with_status(130);

    assert_eq!(planned.len(), 2, "{flat}");
    for (planned, taken) in planned.iter().zip(taken) {
        assert!((planned / taken - 1.0).abs() < 0.3, "{planned} MB planned, {taken} MB taken");
    }
}

#[test]
fn a_plan_for_a_million_nodes_is_computed_says_so_and_is_no_sooner_than_what_is_simulated() {
    let mut costs = Calibration::default();
    costs.launch = Launch::LatencyAndGap {
        latency_ms: Distribution::LogNormal { median: 257.0, sigma: 1.0 },
        gap_ms: Distribution::constant(7.0),
    };
    let costs = file_of(&costs);
    let path = costs.path().to_str().unwrap();
    let output = convoke(&["plan", "--nodes", "1000000", "--calibration", path]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" s, computed):\n"), "{text}");
    assert!(text.contains("costs vary: "), "{text}");
    let is_computed = |line: &str| line.ends_with("  computed");
    let trees: Vec<&str> = text.lines().skip(1).take_while(|line| is_computed(line)).collect();
    assert_eq!(trees.len(), 11, "{text}");

    let curve: Vec<&str> = text.lines().filter(|line| line.contains(" nodes  ")).collect();
    let time = |line: &str| last_number(line.split(" s ").next()?);
    let times: Vec<f64> = curve.iter().filter_map(|line| time(line)).collect();
    assert!(curve[1].contains("16384 nodes") && !curve[1].contains("computed"), "{text}");
    assert!(curve[2..].iter().all(|line| line.ends_with(" computed")), "{text}");
    assert!(times.len() == 8 && times[1..].is_sorted(), "{text}");
}

#[test]
fn a_simulated_session_says_what_it_takes_and_the_same_again() {
    let arguments = ["sim", "--nodes", "64", "--tree", "flat", "--window", "64"];
    let output = convoke(&arguments);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.starts_with("all have joined after 0.7"), "{text}");
    assert_eq!(output.stdout, convoke(&arguments).stdout);
}

#[test]
fn in_sets_a_simulated_session_takes_as_many_latencies_as_there_are_sets() {
    for (batch, sets) in [("8", 2), ("4", 4), ("1", 16)] {
        let output = convoke(&["sim", "--nodes", "16", "--tree", "flat", "--batch", batch]);
        let text = String::from_utf8(output.stdout).unwrap();
        // Each takes L = 257 ms and two ways over the link; 16 gaps of 7 ms, and two ways more.
        let seconds = f64::from(sets) * 0.2572 + 16.0 * 0.007 + 0.0002;
        let expected = format!("all have joined after {seconds:.2} s");
        assert!(text.starts_with(&expected), "{expected}: {text}");
    }
}

#[test]
fn a_simulated_agent_is_not_told_when_its_host_is_free_as_no_real_one_is() {
    let text =
        String::from_utf8(convoke(&["sim", "--nodes", "50", "--window", "2"]).stdout).unwrap();
    let session = sim::Session::of(50).tree("adaptive").calibration(sim::Calibration::default());
    let session = session.spec(|spec| spec.window = 2);
    let messages = |session: &sim::Session| session.run().messages.values().sum::<u64>();
    let (untold, told) = (messages(&session), messages(&session.clone().told()));
    assert_ne!(untold, told);
    assert!(text.contains(&format!("{untold} messages")), "{text}, not {untold}");
}

#[test]
fn a_slow_host_is_named_on_the_way_that_the_join_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (dir.path().join("c.toml"), dir.path().join("t.html"));
    let mut slow = sim::Calibration::default();
    slow.hosts = vec![sim::HostCosts { names: "n17".into(), factor: 20.0, launch: None }];
    std::fs::write(&file, slow.to_toml()).unwrap();
    let (file, page) = (file.display().to_string(), page.display().to_string());
    let output = convoke(&["sim", "--nodes", "32", "--calibration", &file, "--timeline", &page]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("n17"), "{text}");
    assert!(Path::new(&page).exists());
}

#[test]
fn bad_input_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    let whole = sim::Calibration::default().to_toml();
    let cases = [
        (whole.replace("version = 1", "version = 7"), "calibrate again with this build"),
        (whole[..whole.len() / 2].to_owned(), "cut off"),
        (whole.replace("cores = 1", "cores = 0"), "correct the value"),
    ];
    for (text, hint) in cases {
        std::fs::write(&path, text).unwrap();
        let file = path.display().to_string();
        let output = convoke(&["plan", "--nodes", "4", "--calibration", &file]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(hint), "{words}");
    }
    let unwritable = convoke(&["sim", "--nodes", "4", "--timeline", "/no/such/t.html"]);
    assert_eq!(unwritable.status.code(), Some(2));
    let counts = [
        ("--nodes 0", "0 is not in 1..=1048576"),
        ("--nodes 1048577", "1048577 is not in 1..=1048576"),
        ("--nodes 4 --tasks-per-node 0", "0 is not in 1.."),
        ("--nodes 4 --tasks-per-node 1000000000", "give fewer --nodes or --tasks-per-node"),
        ("--nodes 4 --tasks-per-node 1073741824", "4294967296 tasks, more than the 2147483647"),
    ];
    for (options, hint) in counts {
        for command in ["plan", "sim"] {
            let output = convoke(&format!("{command} {options}").split(' ').collect::<Vec<_>>());
            let words = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{command} {options}: {words}");
            assert!(words.contains(hint), "{command} {options}: {words}");
        }
    }
}

#[test]
fn what_is_measured_on_hosts_is_a_calibration_to_plan_with() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml").display().to_string();
    let shell = "env HOST={host} sh -c {cmd}";
    let measured = ["calibrate", "--hosts", "a,b,c,d,e", "--shell", shell, "-o", &file];
    let output = convoke(&measured);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("5 starts: latency "), "{text}");
    let calibration = sim::Calibration::load(Path::new(&file)).unwrap();
    let assumed = "assumed: that no hosts share cores, parsing (0: it is within the latency), when a \
                   lost call is tried again";
    assert!(calibration.origin.ends_with(assumed), "{}", calibration.origin);
    assert!(calibration.link.bandwidth_bytes_per_s > Some(1_000_000), "{calibration:?}");
    assert!(calibration.cpu.handshake_us > calibration.cpu.message_us, "{calibration:?}");
    assert!(convoke(&["plan", "--nodes", "64", "--calibration", &file]).status.success());
}

#[test]
fn what_is_measured_over_real_sshds_has_the_latency_of_the_network_and_makes_a_plan() {
    const DELAY: Duration = Duration::from_millis(10);
    let bed = Testbed::up(3).unwrap();
    bed.delay_all(DELAY).unwrap();
    let file = bed.run_dir().join("c.toml");
    let (program, dir) = (env!("CARGO_BIN_EXE_convoke"), testbed::RUN_DIR);
    let script = format!("{program} calibrate --hosts {} -o {dir}/c.toml", bed.host_list());
    let output = bed.run(HEAD, &script).unwrap();
    let calibration = sim::Calibration::load(&file).unwrap_or_else(|_| panic!("{output:?}"));
    let link_us = calibration.link.latency_us.median();
    assert!((10_000.0..13_000.0).contains(&link_us), "{link_us} µs");
    assert!(calibration.origin.contains("link latency (shortest of all)"));
    let file = file.display().to_string();
    let output = convoke(&["plan", "--nodes", "64", "--calibration", &file]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let recommended = text.lines().find(|line| line.contains("convoke run")).unwrap();
    assert!(recommended.contains("--tree") && recommended.contains("--window"), "{text}");
}

#[test]
fn a_host_that_cannot_be_reached_is_named_and_nothing_is_calibrated() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml").display().to_string();
    let output = convoke(&["calibrate", "--hosts", "a", "--shell", "false {host}", "-o", &file]);
    assert_eq!(output.status.code(), Some(252));
    assert!(String::from_utf8(output.stderr).unwrap().contains("a: "));
}

/// The number that a text ends with.
fn last_number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next_back()?.parse().ok()
}

/// The most memory that each process of a run has had whose command line has `text` in it, in MB.
fn peaks(running: &Running, text: &str) -> Vec<f64> {
    let all = running.marker().survivors().into_iter();
    let matching = all.filter(|process| process.command.contains(text));
    matching.filter_map(|process| Some(peak_kib_of(process.pid)? as f64 * 1.024e-3)).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test's own helper")]
fn convoke(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_convoke")).args(arguments).output().expect("convoke runs")
}

#[test]
fn starts_that_take_too_long_are_told_of_and_are_no_success() {
    let costs = launch_costs(31_000.0, 7.0);
    let path = costs.path().to_str().unwrap();
    for command in ["sim", "plan"] {
        let output = convoke(&[command, "--nodes", "8", "--calibration", path]);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{command}: {words}");
        assert!(words.contains("could not start an agent on 8 of 8 nodes"), "{command}: {words}");
        assert!(words.contains("n[0-7]: no answer within 30.00 s"), "{command}: {words}");
        assert!(!words.contains("bug"), "{command}: {words}");
    }
}

#[test]
fn sessions_of_hours_and_gaps_of_minutes_are_simulated() {
    let slow = ["sim", "--nodes", "2500", "--tree", "flat", "--window", "1"];
    let output = convoke(&slow);
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && words.contains("all have joined after 6"), "{words}");

    let costs = launch_costs(100.0, 4e6);
    let path = costs.path().to_str().unwrap();
    let output = convoke(&["plan", "--nodes", "2", "--calibration", path]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_some(), "{words}");
    assert!(!words.contains("panicked"), "{words}");
}

/// A calibration with these costs of a start, in milliseconds.
fn launch_costs(latency_ms: f64, gap_ms: f64) -> tempfile::NamedTempFile {
    let mut costs = Calibration::default();
    costs.launch = Launch::LatencyAndGap {
        latency_ms: Distribution::constant(latency_ms),
        gap_ms: Distribution::constant(gap_ms),
    };
    file_of(&costs)
}

fn file_of(costs: &Calibration) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), costs.to_toml()).unwrap();
    file
}
