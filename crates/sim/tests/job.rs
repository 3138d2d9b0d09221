//! A job runs: fences, output, input, and the exit status.

use std::time::Duration;

use model::{AgentId, Order, Rank, Signal};
use sim::{Fault, Script, Session, Step, When};
use wire::{JobFault, Stream};

const TREES: [&str; 5] = ["flat", "chain", "kary:2", "binomial", "greedy"];

#[test]
fn tasks_that_connect_to_a_port_exchange_their_cards_whoever_else_connects() {
    for tree in TREES {
        for n in 1..=20 {
            for tasks in [1, 3, 12] {
                let session = Session::of(n).tree(tree).tasks(tasks).script(Script::mpi());
                let report = session.with_pmi_port().run();
                assert_eq!(report.code, Some(0), "{tree} {n}x{tasks}");
                assert_eq!(report.sent("Enter"), u64::from(2 * n));
                if tree == "flat" {
                    // A stranger for each task, and the user is told of eight on each node.
                    assert_eq!(report.sent("Warning"), u64::from(n * tasks.min(8)));
                }
            }
        }
    }
}

#[test]
fn an_mpi_job_exchanges_its_cards_across_agents() {
    for tree in TREES {
        for (n, tasks) in [(1, 1), (1, 8), (2, 1), (7, 3), (30, 2)] {
            let report = Session::of(n).tree(tree).tasks(tasks).script(Script::mpi()).run();
            assert_eq!(report.code, Some(0), "{tree} {n}x{tasks}");
            assert_eq!(report.outcome.statuses.len(), u64::from(n * tasks));
            // Two fences: one message up and one down each edge.
            assert_eq!(report.sent("Enter"), u64::from(2 * n));
            assert_eq!(report.sent("Release"), u64::from(2 * n));
        }
    }
}

#[test]
fn tasks_stand_in_a_ring_for_one_message_an_edge_either_way() {
    for tree in TREES {
        for (n, tasks) in [(1, 1), (1, 8), (2, 1), (7, 3), (30, 2)] {
            let script = Script::new().then(Step::PmiInit).then(Step::Ring).then(Step::Ring);
            let script = script.then(Step::PmiFinalize);
            let report = Session::of(n).tree(tree).tasks(tasks).script(script).run();
            assert_eq!(report.code, Some(0), "{tree} {n}x{tasks}");
            let sent = (report.sent("RingEnter"), report.sent("RingPlace"));
            assert_eq!(sent, (u64::from(2 * n), u64::from(2 * n)), "{tree} {n}x{tasks}");
        }
    }
}

#[test]
fn what_a_task_publishes_others_look_up_whatever_they_speak_and_wherever_they_are() {
    for tree in TREES {
        for (n, tasks) in [(1, 3), (2, 1), (7, 3), (30, 2)] {
            let script = Script::names();
            let session = Session::of(n).tree(tree).tasks(tasks).script(script).pmi2_every(2);
            let report = session.run();
            assert_eq!(report.code, Some(0), "{tree} {n}x{tasks}");
            // A request and its answer cross each edge between a task and the head.
            assert_eq!(report.sent("NameRequest"), report.sent("NameReply"));
        }
    }
}

#[test]
fn tasks_of_pmi_2_and_of_both_dialects_exchange_their_cards_at_the_same_cost() {
    for (n, tasks) in [(1, 8), (2, 1), (7, 3), (30, 2)] {
        for every in 1..=3 {
            let session = Session::of(n).tasks(tasks).script(Script::mpi()).pmi2_every(every);
            let report = session.run();
            assert_eq!(report.code, Some(0), "{n}x{tasks}, every {every}");
            assert_eq!(
                (report.sent("Enter"), report.sent("Release")),
                (u64::from(2 * n), u64::from(2 * n))
            );
        }
    }
}

#[test]
fn every_task_belongs_to_the_program_that_its_rank_is_in() {
    let script = Script::new().then(Step::PmiInit).then(Step::CheckProgram);
    let script = script.then(Step::Fence).then(Step::PmiFinalize);
    for tree in TREES {
        for first_ranks in [&[][..], &[Rank(1)], &[Rank(3), Rank(4), Rank(14)]] {
            let session = Session::of(5).tree(tree).tasks(3).script(script.clone());
            let report = session.programs_from(first_ranks).run();
            assert_eq!(report.code, Some(0), "{tree} {first_ranks:?}");
        }
    }
}

/// However irregular the map of the tasks is, cards reach all, and every line its reader.
#[test]
fn ranks_that_are_dealt_to_uneven_nodes_in_turn_exchange_their_cards() {
    for tree in TREES {
        for counts in [&[3, 1, 2][..], &[1, 4, 2, 3, 1], &[2; 9], &[1, 2, 3, 4, 5, 6, 7]] {
            let session = Session::of(counts.len() as u32).tree(tree).tasks_on(counts);
            let report = session.ranked(Order::Nodes).script(Script::mpi().output(100)).run();
            assert_eq!(report.code, Some(0), "{tree} {counts:?}");
            let tasks = counts.iter().copied().map(u64::from).sum::<u64>();
            assert_eq!(report.outcome.statuses.len(), tasks, "{tree} {counts:?}");
        }
    }
}

#[test]
fn tasks_that_are_late_hold_the_fence_back() {
    let late = Script::new().wait(Duration::from_secs(40)).then(Step::PmiInit).then(Step::PutCard);
    let late = late.then(Step::Fence).then(Step::CheckCard(1)).then(Step::PmiFinalize);
    let script = Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence);
    let script = script.then(Step::CheckCard(5)).then(Step::PmiFinalize);
    let report = Session::of(9).tree("kary:2").script(script).task(Rank(5), late).run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn nodes_without_tasks_carry_the_fence_all_the_same() {
    let report =
        Session::of(9).tree("chain").tasks_on(&[0, 0, 2, 0, 1]).script(Script::mpi()).run();
    assert_eq!(report.code, Some(0), "{:?}", report.outcome);
    assert_eq!(report.outcome.statuses.len(), 3);
}

#[test]
fn all_output_arrives_in_order_and_whole() {
    for tree in TREES {
        let script = Script::new()
            .output(100_000)
            .then(Step::Output(Stream::Stderr, 3_000))
            .wait(Duration::from_millis(3))
            .output(77)
            .exit(0);
        let report = Session::of(12).tree(tree).tasks(2).script(script).run();
        assert_eq!(report.output_bytes, 24 * 103_077);
        assert_eq!(report.code, Some(0));
    }
}

/// Nobody waits for the end of a stream that is not there, and what a task said last is of both.
#[test]
fn merged_outputs_arrive_as_one_stream_in_order_and_whole() {
    for tree in TREES {
        let script = Script::new().output(100_000).then(Step::Output(Stream::Stderr, 3_000));
        let fails = Script::new().then(Step::Output(Stream::Stderr, 77)).exit(1);
        let session = Session::of(12).tree(tree).tasks(2).script(script.output(77)).merged();
        let report = session.on_failure_continue().records().task(Rank(3), fails).run();
        assert_eq!(report.output_bytes, 23 * 103_077 + 77);
        assert_eq!(report.code, Some(1));
        let mut records = report.outcome.records.iter();
        let failed = records.find(|record| record.rank == Rank(3)).unwrap();
        assert_eq!(failed.last_words.len(), 77);
    }
}

#[test]
fn a_slow_reader_keeps_no_more_on_its_way_than_the_windows_allow() {
    let script = Script::new().output(4_000_000);
    let report = Session::of(6)
        .tree("chain")
        .script(script)
        .costs(|costs| costs.reader = Some(20_000_000))
        .run();
    assert_eq!(report.output_bytes, 24_000_000);
    let window = 1 << 20;
    assert!(report.uncredited_max <= window + 65_536, "{} on a link", report.uncredited_max);
    assert!(report.unwritten_max <= (1 << 20) + 65_536, "{} at the head", report.unwritten_max);
    assert!(report.code == Some(0));
}

#[test]
fn output_of_a_task_that_is_killed_arrives_to_its_last_byte() {
    let script = Script::new().output(200_000).then(Step::Die(Signal::SEGV));
    let report = Session::of(3).task(Rank(1), script).script(Script::new().then(Step::Hang)).run();
    assert_eq!(report.output_bytes, 200_000);
    assert_eq!(report.code, Some(128 + 11));
}

#[test]
fn standard_input_reaches_task_0_whatever_its_size() {
    let script = Script::new().then(Step::ReadStdin);
    for (n, bytes) in [(1, 1), (5, 100), (5, 3_000_000)] {
        let report = Session::of(n).tree("chain").script(script.clone()).input(bytes).run();
        assert_eq!(report.input_bytes, bytes);
        assert_eq!(report.code, Some(0));
    }
}

#[test]
fn what_happens_at_the_very_moment_of_a_time_limit_comes_after_it() {
    for ms in [150, 1_742, 5_000] {
        let limit = Duration::from_millis(ms);
        let session = Session::of(3).script(Script::new().wait(10 * limit)).timeout(limit);
        let closed = Fault::CloseOutput(Stream::Stdout);
        let report = session.fault(When::At(limit), closed).grace(Duration::ZERO).run();
        let statuses = [engine::exit_code::TIMED_OUT, engine::exit_code::OUTPUT_CLOSED];
        assert!(report.code.is_some_and(|code| statuses.contains(&code)), "{:?}", report.code);
    }
}

#[test]
fn standard_input_reaches_any_task_of_a_node_whichever_is_created_when() {
    for tasks in [1, 16, 17, 40] {
        for reader in [0, 15, 16, 39].into_iter().filter(|&reader| reader < tasks) {
            for bytes in [1, 1_000, 500_000] {
                let session =
                    Session::of(2).tasks(tasks).script(Script::new().then(Step::ReadStdin));
                for rank in [reader, tasks + reader] {
                    let report = session.clone().reader(Rank(rank)).input(bytes).run();
                    assert_eq!(report.input_bytes, bytes, "rank {rank} of {tasks} on each node");
                }
            }
        }
    }
}

#[test]
fn a_task_that_does_not_read_its_input_does_not_keep_the_job() {
    let report = Session::of(3).script(Script::new().exit(0)).input(3_000_000).run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn the_first_failure_decides_and_ends_the_others() {
    let script = Script::new().then(Step::Hang);
    let failing = Script::new().wait(Duration::from_secs(1)).exit(3);
    let later = Script::new().wait(Duration::from_secs(2)).exit(4);
    let report = Session::of(7)
        .tree("kary:2")
        .script(script)
        .task(Rank(4), failing)
        .task(Rank(6), later)
        .ends_within(Duration::from_secs(4))
        .run();
    assert_eq!(report.code, Some(3));
    let Some(JobFault::Task { rank, .. }) = report.outcome.faults.first() else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(*rank, Rank(4));
}

#[test]
fn tasks_that_ignore_sigterm_are_killed_after_the_grace() {
    let script = Script::new().then(Step::IgnoreTerm).then(Step::Hang);
    let report = Session::of(7)
        .script(script)
        .task(Rank(4), Script::new().wait(Duration::from_secs(1)).exit(9))
        .grace(Duration::from_secs(5))
        .ends_within(Duration::from_secs(8))
        .run();
    assert_eq!(report.code, Some(9));
    assert!(report.ended_at.unwrap().as_nanos() > 6_000_000_000, "the grace was given");
}

#[test]
fn a_failure_leaves_the_others_alone_if_the_user_wants_it_so() {
    let script = Script::new().wait(Duration::from_secs(5)).output(64);
    let report = Session::of(7)
        .script(script)
        .task(Rank(4), Script::new().exit(9))
        .on_failure_continue()
        .run();
    assert_eq!(report.code, Some(9));
    assert_eq!(report.output_bytes, 6 * 64);
}

#[test]
fn abort_gives_its_code() {
    for (code, status) in [(7, 7), (256 + 5, 5), (-1, 255)] {
        let script = Script::new().then(Step::PmiInit).then(Step::Abort(code));
        let report = Session::of(5)
            .tree("chain")
            .script(Script::mpi().then(Step::Hang))
            .task(Rank(3), script)
            .ends_within(Duration::from_secs(5))
            .run();
        assert_eq!(report.code, Some(status));
        assert!(matches!(report.outcome.faults[0], JobFault::Abort { rank: Rank(3), .. }));
    }
}

#[test]
fn the_time_limit_ends_the_job() {
    let report = Session::of(5)
        .script(Script::new().then(Step::Hang))
        .timeout(Duration::from_secs(10))
        .ends_within(Duration::from_secs(12))
        .run();
    assert_eq!(report.code, Some(124));
    assert!(report.outcome.timed_out);
}

#[test]
fn a_signal_of_the_user_reaches_every_task() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let report = Session::of(7)
            .script(Script::new().then(Step::Hang))
            .fault(When::At(Duration::from_secs(2)), Fault::UserSignal(signal))
            .ends_within(Duration::from_secs(4))
            .run();
        assert_eq!(report.code, Some(128 + signal.0), "{signal}");
        assert_eq!(report.outcome.statuses.len(), 7);
    }
}

#[test]
fn a_second_interrupt_kills_what_ignores_the_first() {
    let report = Session::of(7)
        .script(Script::new().then(Step::IgnoreTerm).then(Step::Hang))
        .grace(Duration::from_secs(100))
        .fault(When::At(Duration::from_secs(2)), Fault::UserSignal(Signal::INT))
        .fault(When::At(Duration::from_secs(3)), Fault::UserSignal(Signal::INT))
        .ends_within(Duration::from_secs(6))
        .run();
    assert_eq!(report.code, Some(128 + 2));
}

#[test]
fn nobody_reading_our_output_ends_the_job() {
    let script = Script::new().output(5_000_000).then(Step::Hang);
    let report = Session::of(4)
        .script(script)
        .fault(When::At(Duration::from_millis(400)), Fault::CloseOutput(Stream::Stdout))
        .ends_within(Duration::from_secs(5))
        .run();
    assert_eq!(report.code, Some(engine::exit_code::OUTPUT_CLOSED));
}

#[test]
fn what_a_task_left_behind_does_not_outlive_the_job() {
    let script = Script::new().then(Step::LeaveStray).output(10).exit(0);
    let report = Session::of(4).script(script).ends_within(Duration::from_secs(2)).run();
    assert_eq!(report.code, Some(0));
    assert_eq!(report.output_bytes, 40);
}

#[test]
fn a_task_that_leaves_between_init_and_finalize_fails_the_job() {
    let quitter = Script::new().then(Step::PmiInit).exit(0);
    let report = Session::of(4).script(Script::mpi()).task(Rank(2), quitter).run();
    assert_ne!(report.code, Some(0));
    assert!(matches!(report.outcome.faults[0], JobFault::Unfinalized { rank: Rank(2), .. }));
}

#[test]
fn a_task_that_breaks_pmi_and_leaves_has_one_fault() {
    let breaker =
        Script::new().then(Step::PmiInit).then(Step::Pmi("cmd=nonsense".into(), None)).exit(0);
    let report = Session::of(4).script(Script::mpi()).task(Rank(2), breaker).run();
    assert_eq!(report.code, Some(engine::exit_code::PMI_BROKEN));
    let faults = &report.outcome.faults;
    assert!(matches!(faults[..], [JobFault::Pmi { rank: Rank(2), .. }]), "{faults:?}");
}

#[test]
fn a_task_that_speaks_no_pmi_does_not_let_the_others_wait_for_ever() {
    let silent = Script::new().exit(0);
    let fencing = Script::new().then(Step::PmiInit).then(Step::Fence).then(Step::PmiFinalize);
    let report = Session::of(4)
        .script(fencing)
        .task(Rank(2), silent)
        .ends_within(Duration::from_secs(60))
        .run();
    assert_eq!(report.code, Some(0));
}

#[test]
fn a_program_that_is_missing_on_one_node_is_found_missing_before_anything_runs() {
    for agent in 1..=7 {
        let report = Session::of(7)
            .tree("kary:2")
            .script(Script::new().output(10))
            .no_program_on(AgentId(agent), 2)
            .ends_within(Duration::from_secs(5))
            .run();
        assert_eq!(report.code, Some(engine::exit_code::NOT_FOUND));
        assert_eq!(report.output_bytes, 0, "no task ran");
        let named = matches!(report.outcome.faults[0], JobFault::Program { agent: named, .. }
            if named == AgentId(agent));
        assert!(named, "{:?}", report.outcome);
    }
}

#[test]
fn a_task_that_can_not_be_created_ends_the_job_and_is_named() {
    let report = Session::of(7)
        .tree("kary:2")
        .tasks(3)
        .script(Script::mpi().then(Step::Hang))
        .no_spawn_of(Rank(10), 11)
        .ends_within(Duration::from_secs(5))
        .run();
    assert_eq!(report.code, Some(engine::exit_code::CANNOT_RUN));
    assert!(matches!(report.outcome.faults[0], JobFault::Spawn { rank: Rank(10), .. }));
}

#[test]
fn each_message_counts_in_the_phase_that_it_belongs_to() {
    for tree in TREES {
        let n = 20;
        let fails = Script::new().wait(Duration::from_millis(50)).exit(3);
        let report = Session::of(n).tree(tree).task(Rank(4), fails).run();
        let [join, _route, launch, run, end] = report.outcome.stats.messages;
        let sum = |kinds: &[&str]| kinds.iter().map(|kind| report.sent(kind)).sum::<u64>();
        let joining = ["Hello", "Welcome", "OutputCredit", "Job", "Ping", "Joined"];
        assert_eq!(join, sum(&joining), "{tree}");
        assert_eq!(launch, sum(&["Launch"]), "{tree}");
        assert_eq!(launch, u64::from(n), "{tree}");
        assert!(end >= sum(&["Stop", "Shutdown", "Bye"]), "{tree}");
        assert_eq!(run + end, sum(&["JobFault", "Done", "Stop", "Shutdown", "Bye"]), "{tree}");
    }
}

#[test]
fn what_tasks_exchange_is_counted_apart() {
    for tree in TREES {
        for n in (1..=16).chain([31, 64, 100]) {
            let report = Session::of(n).tree(tree).tasks(2).script(Script::mpi()).run();
            let stats = report.outcome.stats;
            let sent = ["Enter", "Release"].map(|kind| report.messages[kind]).iter().sum::<u64>();
            assert_eq!(stats.exchanged.messages, sent, "{tree} {n}");
            assert_eq!(sent, u64::from(4 * n), "{tree} {n}");
            let all: u64 = stats.bytes.iter().sum();
            assert!((1..all).contains(&stats.exchanged.bytes), "{tree} {n}");
        }
    }
}

#[test]
fn an_idle_job_costs_little() {
    let hour = Duration::from_secs(3_600);
    let report =
        Session::of(15).tree("kary:2").script(Script::new().wait(hour)).ends_within(2 * hour).run();
    let pings = report.sent("Ping");
    assert!(pings < 2 * 15 * 3_600, "{pings} heartbeats in an hour");
}
