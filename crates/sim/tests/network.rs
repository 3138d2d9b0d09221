//! Networks: SYNs that a full accept queue drops, and links that carry so much and no more.

use std::time::Duration;

use model::{AgentId, IdSet, Rank, Time};
use proto::Event;
use sim::{Cpu, Fault, Launch, Report, Script, Session, Step, When};

/// When a SYN is sent again (S0-50), in milliseconds.
const TRIES_MS: [u64; 4] = [0, 1_000, 3_000, 7_000];

const LINK: Duration = Duration::from_millis(1);

/// When started agents call: they exist after 100 ms, and their calls take a link's time.
const CALLED: Duration = Duration::from_millis(101);

#[test]
fn a_dropped_syn_comes_again_after_1_3_and_7_seconds_while_a_parent_that_hangs_accepts_nobody() {
    for hung_ms in (50..9_000).step_by(100) {
        let until = CALLED + ms(hung_ms);
        let (from, pause) = (ms(50), until - ms(50));
        let session = calls_at_once(2, 1, 0.0);
        let session = session.fault(When::At(from), Fault::Pause(AgentId::HEAD, pause));
        let report = session.run();
        expect_tries(&report, 2, hung_ms, |entered| entered + 2 * LINK);
    }
}

#[test]
fn a_dropped_syn_comes_again_after_1_3_and_7_seconds_while_a_parent_shakes_hands() {
    for handshake_ms in (50..9_000).step_by(100) {
        // One is greeted, one is in the queue until its turn comes, and one finds no room.
        let session = calls_at_once(3, 1, handshake_ms as f64 * 1e3);
        let handshake = ms(handshake_ms);
        expect_tries(&session.run(), 3, handshake_ms, |entered| {
            let turn = entered.max(Time::ZERO + CALLED + 2 * handshake);
            turn + 2 * handshake + 2 * LINK
        });
    }
}

#[test]
fn an_accept_queue_takes_so_many_and_no_more() {
    for backlog in [1, 2, 7, 30] {
        for n in [1, 2, 8, 40] {
            let session = calls_at_once(n, backlog, 0.0);
            let pause = Fault::Pause(AgentId::HEAD, ms(600));
            let report = session.fault(When::At(ms(50)), pause).run();
            let dropped = u64::from(n.saturating_sub(backlog));
            assert_eq!((report.code, report.syns_dropped), (Some(0), dropped), "{n}, {backlog}");
        }
    }
}

#[test]
fn what_a_task_writes_takes_the_time_that_its_bytes_take_on_the_link() {
    let time = |bytes, bandwidth| {
        let session = Session::of(1).script(Script::new().output(bytes));
        let session = session.calibrate(|machines| machines.link.bandwidth_bytes_per_s = bandwidth);
        let report = session.run();
        assert_eq!((report.code, report.output_bytes), (Some(0), bytes));
        report.ended_at.unwrap().since(Time::ZERO)
    };
    for bytes in [1, 1_000, 50_000, 1_000_000, 5_000_000] {
        for bandwidth in [100_000, 1_000_000, 1_000_000_000] {
            let late = time(bytes, Some(bandwidth)) - time(bytes, None);
            let own = Duration::from_secs_f64(bytes as f64 / bandwidth as f64);
            // The messages of the session's beginning and end are on the link too.
            let others = Duration::from_secs_f64(1_500.0 / bandwidth as f64) + ms(1);
            // Tasks and drivers take a moment of their own where links have no bound.
            let (least, most) =
                (own.mul_f64(0.99).saturating_sub(ms(5)), own.mul_f64(1.02) + others);
            assert!(late >= least, "{bytes} at {bandwidth}: {late:?}");
            assert!(late <= most, "{bytes} at {bandwidth}: {late:?}");
        }
    }
}

#[test]
fn control_overtakes_the_data_that_waits_for_a_link() {
    const BYTES: u64 = 300_000; // what a pipe and the link's credit take at once
    let fails = ms(1_000);
    for bandwidth in [20_000, 50_000, 200_000] {
        let session = Session::of(1).tasks(2).task(Rank(1), Script::new().wait(fails).exit(3));
        let session = session.script(Script::new().output(BYTES).then(Step::Hang));
        let session = session.calibrate(|machines| {
            machines.link.bandwidth_bytes_per_s = Some(bandwidth);
        });
        let report = session.run();
        let launched = report.time_of(|event| matches!(event, Event::Launched(_))).unwrap();
        let told = report.time_of(|event| matches!(event, Event::JobFault(..))).unwrap();
        // One piece of data at most is on the wire, and cannot be overtaken.
        assert!(told.since(launched) < fails + ms(50), "{bandwidth}: {:?}", told.since(launched));
        assert_eq!((report.code, report.output_bytes), (Some(3), BYTES));
        let written = report.ended_at.unwrap().since(launched);
        let own = Duration::from_secs_f64(BYTES as f64 / bandwidth as f64);
        assert!(written >= own.min(ms(3_000)), "{bandwidth}: {written:?}");
    }
}

/// A head whose children all call at once, with an accept queue and handshakes that take so long.
fn calls_at_once(n: u32, backlog: u32, handshake_us: f64) -> Session {
    let session = Session::of(n).tree("flat");
    let session = session.spec(|spec| spec.start_timeout_ms = 100_000);
    session.calibrate(|machines| {
        machines.launch = Launch::constant(ms(100), Duration::ZERO);
        machines.cpu = Cpu { handshake_us, ..Cpu::free() };
        machines.accept.backlog = backlog;
    })
}

/// The last agent finds a queue that is full for so long: it tries as often as it has to, and gives up
/// after the last time.
fn expect_tries(report: &Report, last: u32, full_ms: u64, welcomed: impl Fn(Time) -> Time) {
    let dropped = TRIES_MS.iter().filter(|&&at| at < full_ms).count();
    let starts = report.starts[&AgentId(last)];
    match TRIES_MS.get(dropped) {
        Some(&at) => {
            let expected = Some(welcomed(Time::ZERO + CALLED + ms(at)));
            assert_eq!((report.welcomed_at, starts), (expected, 1), "{full_ms} ms");
            assert_eq!((report.syns_dropped, report.code), (dropped as u64, Some(0)));
        }
        None => {
            assert_eq!(report.syns_dropped, TRIES_MS.len() as u64, "{full_ms} ms");
            let failed = report.outcome.start_failures.iter().map(|failure| &failure.agents);
            assert!(failed.eq([&IdSet::range(last, last)]), "{full_ms} ms: {:?}", report.outcome);
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
