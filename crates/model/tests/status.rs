//! How tasks end, one and many.

use std::collections::BTreeMap;

use model::{ExitStatus, Rank, Signal, StatusRun, StatusRuns};
use proptest::prelude::*;

#[test]
fn signals_have_their_names() {
    let name = |number| Signal(number).to_string();
    assert_eq!(
        (name(15), name(11), name(31)),
        ("SIGTERM".into(), "SIGSEGV".into(), "SIGSYS".into())
    );
    assert_eq!((name(34), name(37)), ("SIGRTMIN".into(), "SIGRTMIN+3".into()));
    assert_eq!(
        (name(0), name(32), name(65)),
        ("signal 0".into(), "signal 32".into(), "signal 65".into())
    );
    assert_eq!(Signal::TSTP.to_string(), "SIGTSTP");
}

#[test]
fn signals_are_read_by_name_or_number() {
    for text in ["TERM", "SIGTERM", "sigterm", "15"] {
        assert_eq!(text.parse(), Ok(Signal::TERM));
    }
    for text in ["", "SIG", "TERMINATE", "0", "65"] {
        assert!(text.parse::<Signal>().is_err(), "{text}");
    }
}

#[test]
fn a_status_has_the_code_that_a_shell_gives() {
    let killed = ExitStatus::Signaled { signal: Signal::KILL, core: false };
    let crashed = ExitStatus::Signaled { signal: Signal::SEGV, core: true };
    let failed = ExitStatus::Exited(3);
    assert_eq!((killed.code(), crashed.code(), failed.code()), (137, 139, 3));
    assert_eq!(killed.to_string(), "killed by SIGKILL");
    assert_eq!(crashed.to_string(), "killed by SIGSEGV (core dumped)");
    assert_eq!(failed.to_string(), "exited with status 3");
    assert!(ExitStatus::SUCCESS.is_success() && !crashed.is_success());
}

#[test]
fn a_job_that_succeeds_is_one_run() {
    let runs: StatusRuns = (0..1_000).rev().map(|rank| (Rank(rank), ExitStatus::SUCCESS)).collect();
    let run = StatusRun { first: Rank(0), last: Rank(999), status: ExitStatus::SUCCESS };
    assert_eq!(runs.runs(), [run]);
}

proptest! {
    #[test]
    fn statuses_are_those_that_were_noted_first(noted in statuses()) {
        let runs: StatusRuns = noted.iter().copied().collect();
        assert_same(&runs, &first_noted(&noted));
    }

    #[test]
    fn merged_statuses_are_those_of_both(a in statuses(), b in statuses()) {
        let mut merged: StatusRuns = a.iter().copied().collect();
        merged.merge(&b.iter().copied().collect());
        assert_same(&merged, &first_noted(&[a, b].concat()));
    }

    #[test]
    fn statuses_read_back(noted in statuses()) {
        let runs: StatusRuns = noted.into_iter().collect();
        let bytes = postcard::to_allocvec(&runs).unwrap();
        prop_assert_eq!(postcard::from_bytes::<StatusRuns>(&bytes).unwrap(), runs);
    }

    #[test]
    fn statuses_from_a_peer_are_put_in_order(raw in prop::collection::vec((0_u32..40, 0_u32..40, 0_u8..3), 0..9)) {
        let run = |&(first, last, code): &(u32, u32, u8)| StatusRun { first: Rank(first), last: Rank(last), status: ExitStatus::Exited(code) };
        let runs = StatusRuns::from(raw.iter().map(run).collect::<Vec<_>>());
        let rebuilt: StatusRuns = runs.iter().collect();
        prop_assert_eq!(&rebuilt, &runs);
        let covered = |rank: u32| raw.iter().any(|&(first, last, _)| (first..=last).contains(&rank));
        prop_assert!((0..40).all(|rank| covered(rank) == runs.get(Rank(rank)).is_some()));
    }
}

fn statuses() -> impl Strategy<Value = Vec<(Rank, ExitStatus)>> {
    let rank = prop_oneof![0_u32..30, Just(u32::MAX)];
    prop::collection::vec((rank, 0_u8..2), 0..40).prop_map(|pairs| {
        pairs.into_iter().map(|(rank, code)| (Rank(rank), ExitStatus::Exited(code))).collect()
    })
}

fn first_noted(noted: &[(Rank, ExitStatus)]) -> BTreeMap<Rank, ExitStatus> {
    noted.iter().rev().copied().collect()
}

fn assert_same(runs: &StatusRuns, model: &BTreeMap<Rank, ExitStatus>) {
    assert!(runs.iter().eq(model.iter().map(|(&rank, &status)| (rank, status))));
    assert_eq!(runs.len(), model.len() as u64);
    let joined = |pair: &[StatusRun]| {
        pair[0].status == pair[1].status && pair[0].last.0 + 1 == pair[1].first.0
    };
    assert!(!runs.runs().windows(2).any(joined));
}

#[test]
fn real_time_signals_are_read_as_they_are_written_and_from_either_end() {
    for number in 34..=64 {
        let signal = Signal(number);
        assert_eq!(signal.to_string().parse(), Ok(signal));
        assert_eq!(format!("rtmax-{}", 64 - number).parse(), Ok(signal));
        assert!(signal.is_for_programs());
    }
    for text in ["RTMIN+31", "RTMAX-31", "RTMIN-1", "RTMAX+1", "RTMIN+", "RTMIN3", "RT", "65"] {
        assert!(text.parse::<Signal>().is_err(), "{text}");
    }
}

#[test]
fn what_is_about_the_process_itself_is_not_for_programs() {
    let others =
        [Signal::INT, Signal::TERM, Signal::KILL, Signal::STOP, Signal::CONT, Signal::SEGV];
    assert!(others.iter().all(|signal| !signal.is_for_programs()));
    assert!(!Signal(32).is_for_programs(), "the C library's own");
    assert!(Signal::USR1.is_for_programs() && Signal(28).is_for_programs());
}
