//! What machines cost shows in the times of a session.

use std::time::Duration;

use model::Time;
use sim::{Calibration, Cpu, Distribution, HostCosts, Launch, Report, Session, SlowHosts};

#[test]
fn a_session_without_costs_of_its_own_takes_the_time_of_s2s_constants() {
    let report = flat(20).calibration(Calibration::default()).run();
    let expected = 20 * Duration::from_millis(7) + Duration::from_millis(257);
    assert_eq!(report.welcomed_at, Some(Time::ZERO + expected + 3 * Duration::from_micros(100)));
}

#[test]
fn a_host_that_is_named_as_slow_is_late_and_no_other() {
    let slow = |names: &str| {
        let names = names.to_owned();
        let host = HostCosts { names, factor: 10.0, launch: None };
        flat(20).calibrate(|machines| machines.hosts = vec![host]).run()
    };
    let usual = flat(20).run();
    assert_eq!(late(&slow("n3"), &usual), Duration::from_millis(900 - 16 * 5));
    assert_eq!(late(&slow("n0"), &usual), Duration::from_millis(900 - 19 * 5));
    assert_eq!(late(&slow("n19"), &usual), Duration::from_millis(900));
    assert_eq!(late(&slow("n20"), &usual), Duration::ZERO);
}

#[test]
fn a_fraction_of_hosts_is_slow_and_the_seed_says_which() {
    let run = |fraction, seed| {
        let slow = SlowHosts { fraction, factor: 10.0 };
        flat(50).seed(seed).calibrate(|machines| machines.slow = Some(slow)).run()
    };
    let usual = flat(50).run();
    assert_eq!(late(&run(0.0, 1), &usual), Duration::ZERO);
    assert!(late(&run(1.0, 1), &usual) > Duration::from_millis(800));
    assert_ne!(run(0.1, 1).welcomed_at, run(0.1, 2).welcomed_at);
}

#[test]
fn latencies_vary_as_their_distribution_says() {
    let latency_ms = Distribution::LogNormal { median: 100.0, sigma: 0.5 };
    let gap_ms = Distribution::constant(5.0);
    let run = |seed| {
        flat(50)
            .seed(seed)
            .calibrate(|machines| machines.launch = Launch::LatencyAndGap { latency_ms, gap_ms })
            .run()
    };
    assert_ne!(run(1).welcomed_at, run(2).welcomed_at);
    assert_eq!(run(1).hash, run(1).hash);
}

#[test]
fn a_processor_does_one_thing_at_a_time() {
    let handshakes = |cores, is_shared| {
        let cpu = Cpu { cores, is_shared, handshake_us: 50_000.0, ..Cpu::free() };
        flat(8).calibrate(|machines| machines.cpu = cpu).run()
    };
    let usual = flat(8).run();
    // The last call waits for seven handshakes of its parent, in between five milliseconds of gap.
    let own = Duration::from_millis(50);
    let queue = 7 * Duration::from_millis(45);
    assert_eq!(late(&handshakes(1, false), &usual), queue + 2 * own);
    assert_eq!(late(&handshakes(4, false), &usual), queue + 2 * own, "an agent has one thread");
    assert!(late(&handshakes(1, true), &usual) > queue + 4 * own, "one processor for all hosts");
}

#[test]
fn messages_take_their_time_and_none_is_lost_or_overtaken() {
    for is_shared in [false, true] {
        let cpu = Cpu { cores: 2, is_shared, message_us: 300.0, ..Cpu::free() };
        let script = sim::Script::mpi().output(100_000);
        let session = Session::of(30).tree("kary:3").tasks(2).script(script);
        let report = session.calibrate(|machines| machines.cpu = cpu).run();
        assert_eq!((report.code, report.output_bytes), (Some(0), 60 * 100_000));
    }
}

#[test]
fn calls_that_a_full_listening_socket_drops_come_again_in_waves() {
    let cpu = Cpu { handshake_us: 80_000.0, ..Cpu::free() };
    let run = |backlog| {
        let session = flat(30).calibrate(|machines| {
            machines.launch = Launch::constant(Duration::from_millis(100), Duration::ZERO);
            machines.cpu = cpu;
            machines.accept.backlog = backlog;
        });
        session.run()
    };
    let roomy = run(4_096);
    assert_eq!(roomy.syns_dropped, 0);
    assert!(roomy.welcomed_at < Some(Time::ZERO + Duration::from_secs(4)));
    let tight = run(10);
    assert!(tight.syns_dropped > 20, "{}", tight.syns_dropped);
    let waves = tight.welcomed_at.unwrap().as_nanos() / 500_000_000;
    assert!((7..9).contains(&waves), "eleven at once, eleven after a second, eight after three");
}

fn flat(n: u32) -> Session {
    Session::of(n).tree("flat")
}

fn late(report: &Report, usual: &Report) -> Duration {
    let welcomed_at = |report: &Report| report.welcomed_at.expect("agents join");
    welcomed_at(report).since(welcomed_at(usual))
}
