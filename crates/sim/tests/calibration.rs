//! A calibration is written and read as it is, and what is wrong with a file is said.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use sim::{Calibration, CalibrationError, Distribution, HostCosts, Launch, SlowHosts};

#[test]
fn a_calibration_comes_back_from_its_file_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calibration.toml");
    for calibration in [Calibration::default(), Calibration::modelled_shell(), everything()] {
        std::fs::write(&path, calibration.to_toml()).unwrap();
        assert_eq!(Calibration::load(&path).unwrap(), calibration);
        calibration.validate().unwrap();
    }
}

#[test]
fn the_constants_are_those_of_the_papers_and_of_the_benchmarks() {
    let ms = Duration::from_millis;
    let costs = |calibration: Calibration| (calibration.launch.latency(), calibration.launch.gap());
    assert_eq!(costs(Calibration::default()), (ms(257), ms(7)));
    assert_eq!(costs(Calibration::modelled_shell()), (ms(1_028), ms(28)));
}

#[test]
fn costs_vary_where_another_seed_gives_others() {
    type Change = fn(&mut Calibration);
    let spread = |sigma| Distribution::LogNormal { median: 1.0, sigma };
    assert!(!Calibration::default().varies() && !spread(0.0).varies() && spread(0.1).varies());
    let changes: [(Change, bool); 5] = [
        (|c| c.slow = everything().slow, true),
        (|c| c.link.latency_us = Distribution::LogNormal { median: 1.0, sigma: 0.1 }, true),
        (|c| c.hosts = everything().hosts, true),
        (|c| c.accept.backlog = 1, false),
        (|c| c.cpu.exec_us = 1.0, false),
    ];
    for (index, (change, varies)) in changes.into_iter().enumerate() {
        let mut calibration = Calibration::default();
        change(&mut calibration);
        assert_eq!(calibration.varies(), varies, "change {index}");
    }
    for (fraction, varies) in [(0.0, false), (0.5, true), (1.0, false)] {
        let mut calibration = Calibration::default();
        calibration.slow = Some(SlowHosts { fraction, factor: 2.0 });
        assert_eq!(calibration.varies(), varies, "{fraction} of all hosts");
    }
}

#[test]
fn no_beginning_of_a_file_is_a_file() {
    for text in [Calibration::default().to_toml(), everything().to_toml()] {
        for len in 0..text.trim_end().len() {
            let Some(beginning) = text.get(..len) else { continue };
            let error = read(beginning).unwrap_err();
            assert!(matches!(error, CalibrationError::Malformed { .. }), "{len}: {error}");
            assert!(error.source().is_some() && error.hint().contains("calibrate again"));
        }
    }
}

#[test]
fn a_file_of_another_version_is_refused_with_both_versions() {
    let text = Calibration::default().to_toml().replace("version = 1", "version = 2\nnew = true");
    let error = read(&text).unwrap_err();
    let words = "calibration `x.toml` has version 2, and this build reads version 1";
    assert_eq!(error.to_string(), words);
    assert_eq!(error.hint(), "calibrate again with this build");
}

#[test]
fn an_impossible_parameter_is_named_with_what_is_wrong_with_it() {
    type Change = fn(&mut Calibration);
    let changes: [(Change, &str); 13] = [
        (|c| c.cpu.cores = 0, "`cpu.cores` is impossible: 0 is not between 1 and 65536"),
        (|c| c.cpu.message_us = -1.0, "`cpu.message_us` is impossible: value = -1"),
        (|c| c.accept.backlog = 0, "`accept.backlog` is impossible"),
        (|c| c.accept.retransmits_s = vec![3.0, 1.0], "`accept.retransmits_s` is impossible"),
        (|c| c.link.bandwidth_bytes_per_s = Some(0), "`link.bandwidth_bytes_per_s` is impossible"),
        (
            |c| c.link.host_bandwidth_bytes_per_s = Some(0),
            "`link.host_bandwidth_bytes_per_s` is impossible",
        ),
        (|c| c.slow.as_mut().unwrap().fraction = 1.5, "`slow.fraction` is impossible: 1.5"),
        (|c| c.hosts[0].factor = 0.0, "`hosts.factor` is impossible: 0"),
        (|c| c.hosts[0].names = "n[1-".into(), "`hosts.names` is impossible"),
        (|c| c.hosts[0].names = "n3,login".into(), "n0, n1 and so on, and none is `login`"),
        (|c| c.hosts[0].names = "n[00-03]".into(), "and none is `n00`; name the host"),
        (|c| c.hosts[0].names = "n".into(), "`hosts.names` is impossible: simulated hosts are"),
        (
            |c| c.launch = Launch::constant(Duration::MAX, Duration::ZERO),
            "`launch.latency_ms` is impossible: value = 1844674407370955",
        ),
    ];
    for (change, words) in changes {
        let mut calibration = everything();
        change(&mut calibration);
        let error = read(&calibration.to_toml()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(calibration.validate().is_err());
    }
}

#[test]
fn a_misspelt_parameter_is_not_overlooked() {
    let text = Calibration::default().to_toml().replace("message_us", "mesage_us");
    let error = read(&text).unwrap_err();
    let source = error.source().unwrap().to_string();
    assert!(source.contains("mesage_us") && source.contains("line"), "{source}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Calibration::load(Path::new("/nowhere/x.toml")).unwrap_err();
    assert_eq!(error.to_string(), "read calibration `/nowhere/x.toml`");
}

fn read(text: &str) -> Result<Calibration, CalibrationError> {
    Calibration::from_toml(Path::new("x.toml"), text)
}

/// A calibration with everything in it that there can be.
fn everything() -> Calibration {
    let mut calibration = Calibration::default();
    calibration.slow = Some(SlowHosts { fraction: 0.01, factor: 20.0 });
    let part = Distribution::LogNormal { median: 20.0, sigma: 0.5 };
    let launch = Launch::Terms {
        t_init_ms: part,
        t_ssh_ms: Distribution::constant(5.0),
        t_client_ms: part,
        t_send_ms: part,
        t_nw_ms: Distribution::HeavyTail { min: 1.0, scale: 2.0, shape: 1.5 },
        t_recv_ms: Distribution::constant(0.25),
    };
    let names = "n[1-3],n7".to_owned();
    calibration.hosts = vec![HostCosts { names, factor: 1.5, launch: Some(launch) }];
    calibration.link.bandwidth_bytes_per_s = Some(1_000_000_000);
    calibration.link.host_bandwidth_bytes_per_s = Some(1_250_000_000);
    calibration
}
