//! Costs that users may give, however large: what they make late or lost is no broken rule.

use std::time::Duration;

use sim::{Calibration, Cpu, Distribution, Launch, Random, Session, SlowHosts};

const TREES: [&str; 6] = ["adaptive", "kary:4", "kary:32", "binomial", "flat", "chain"];

#[test]
fn no_costs_make_a_session_break_a_rule() {
    for factor in [1.0, 10.0, 100.0] {
        for seed in 0..40 {
            let session = costly(seed, factor);
            if let Err(failure) = session.try_run() {
                panic!("costs times {factor}, seed {seed}: {:?}", failure.violations);
            }
        }
    }
}

/// A session without faults on machines that are from usual to far too slow.
fn costly(seed: u64, factor: f64) -> Session {
    let random = &mut Random::new(seed, 0);
    let n = 1 + random.below(120) as u32;
    let tree = random.pick(&TREES);
    let mut up_to = |max: f64| random.below((max * factor) as u64 + 1) as f64;
    let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    let (latency, gap) = (ms(up_to(2_000.0)), ms(up_to(50.0)));
    let link_us = 1.0 + up_to(100_000.0);
    let mut calibration = Calibration::constant(latency, gap);
    calibration.cpu = Cpu {
        cores: 1 + up_to(3.0) as u32,
        is_shared: false,
        parse_us: up_to(5_000.0),
        spawn_us: up_to(20_000.0),
        exec_us: up_to(50_000.0),
        handshake_us: up_to(5_000.0),
        message_us: up_to(500.0),
    };
    calibration.cpu.is_shared = random.once_in(4);
    if random.once_in(2) {
        calibration.link.latency_us = Distribution::LogNormal { median: link_us, sigma: 1.0 };
    }
    if random.once_in(3) {
        calibration.launch = Launch::LatencyAndGap {
            latency_ms: Distribution::LogNormal {
                median: 1.0 + latency.as_secs_f64() * 1e3,
                sigma: 1.0,
            },
            gap_ms: Distribution::constant(gap.as_secs_f64() * 1e3),
        };
    }
    calibration.slow = random.once_in(3).then_some(SlowHosts { fraction: 0.1, factor: 5.0 });
    calibration.accept.backlog = *random.pick(&[1, 16, 4_096]);
    let year = Duration::from_secs(365 * 86_400);
    Session::of(n).tree(tree).calibration(calibration).seed(seed).ends_within(year)
}
