//! What clients of PMI do wrong, by real processes on one host and on three, over either interface: the right party is
//! told, the status is the documented one, nobody hangs, and nothing is left.
//!
//! Six tasks run a `misbehave` each. Rank 3, on n0 or on n1, is the one that does wrong; ranks 0, 2 and 4 mostly wait in a
//! fence meanwhile, and 1 and 5 enter none.

use std::time::Duration;

use testkit::from_environment;

use crate::World;
use crate::matrix::INTERFACES;
use crate::support::convoke::{Convoke, Ended};
use crate::support::stand::on_hosts;
use crate::support::watch::peak_rss_kib;

/// Six tasks, and where rank 3 is.
const PLACES: [(&str, &str); 2] = [("n0:6", "n0"), ("n[0-2]:2", "n1")];

/// Longer than any of this takes on a busy machine; nothing here ends by a timer of more than two seconds.
const BOUND: Duration = Duration::from_secs(30);

/// Half of the tasks are in a fence, and two never will be.
const HALF: &str = "on:0,2,4 pmi-init pmi-barrier hang on:1,5 pmi-init hang on:3";

/// All but one are in a fence, and end well behind it.
const OTHERS: &str = "on:0,1,2,4,5 pmi-init pmi-barrier pmi-finalize say:well on:3";

/// How many keys are put into one fence.
const KEYS: &str = "CONVOKE_KEYS";

/// So many where nobody asks for more.
const KEYS_FEW: u64 = 100_000;

#[test]
fn a_task_that_ends_while_half_of_the_others_are_in_a_fence_ends_the_job_with_its_status() {
    for (deed, status, told) in [
        ("signal:11", 139, "was killed by signal 11 (SIGSEGV)"),
        ("signal:9", 137, "was killed by signal 9 (SIGKILL)"),
        ("exit:0", 250, "exited with status 0 before it had finalized PMI"),
        ("exit:3", 3, "exited with status 3"),
        ("pmi-abort:7 hang", 7, "aborted with code 7"),
    ] {
        everywhere(|run| {
            run.steps(&format!("{HALF} pmi-init {deed}")).end(status).tells_of_rank_3(told);
        });
    }
}

#[test]
fn a_client_that_leaves_or_enters_a_fence_twice_ends_the_job_and_is_named() {
    const CLOSED: &str = "closed its PMI connection before it had finalized PMI";
    const TWICE: &str =
        "broke the PMI protocol: entered a PMI barrier that it is waiting in already";
    for (deed, told) in [
        ("pmi-close hang", CLOSED),
        ("pmi-send:cmd=barrier_in\\n pmi-close hang", CLOSED),
        ("pmi-send:cmd=barrier_in\\ncmd=barrier_in\\n hang", TWICE),
        ("pmi-frame:cmd=kvs-fence; pmi-frame:cmd=kvs-fence; hang", TWICE),
        (
            "pmi-send:cmd=put pmi-close hang",
            "broke the PMI protocol: connection ended inside the PMI message `cmd=put`",
        ),
    ] {
        everywhere(|run| {
            run.steps(&format!("{HALF} pmi-init {deed}")).end(250).tells_of_rank_3(told);
        });
    }
}

#[test]
fn garbage_on_the_connection_ends_the_job_and_is_shown() {
    for (deed, told) in [
        ("pmi-send:GET\\n", "not a PMI command: `GET`"),
        ("pmi-send:\u{1}\u{2}\u{7f}\\n", "not a PMI command: `\\x01\\x02\\x7f`"),
        ("pmi-send:cmd=dance\\n", "unknown PMI command: `cmd=dance`"),
        ("pmi-send:cmd=barrier_in", "connection ended inside the PMI message `cmd=barrier_in`"),
        ("pmi-send:cmd=init\\n", "PMI command without the field `pmi_version`: `cmd=init`"),
        ("pmi-send:999999cmd=kvs-fence;", "connection ended inside the PMI message `999999cmd="),
        ("pmi-frame:fence", "not a PMI command: `fence`"),
        ("pmi-noise:1:2000000", ""),
        ("pmi-noise:2:2000000", ""),
        ("pmi-noise:3:2000000", ""),
        ("pmi-value:large:1024", "PMI message of more than 1048576 bytes"),
    ] {
        everywhere(|run| {
            let told = format!("broke the PMI protocol: {told}");
            // What ends within a message is found wrong with its end.
            let steps = format!("{HALF} pmi-init {deed} pmi-close hang");
            run.steps(&steps).end(250).tells_of_rank_3(&told);
        });
    }
}

#[test]
fn what_is_refused_is_answered_and_the_job_goes_on() {
    let long = format!("pmi-ask:cmd=put~kvsname=SPACE~key={}~value=v", "k".repeat(64));
    for (deed, answer) in [
        ("pmi-put:PMI_mine:1", "cmd=put_result rc=-1 msg=key_is_reserved"),
        ("pmi-put::1", "cmd=put_result rc=-1 msg=key_is_empty"),
        ("pmi-put:key:1024", "cmd=put_result rc=-1 msg=value_too_long"),
        (long.as_str(), "cmd=put_result rc=-1 msg=key_too_long"),
        ("pmi-ask:cmd=put~kvsname=other~key=k~value=v", "cmd=put_result rc=-1 msg=kvs_not_found"),
        (
            "pmi-ask:cmd=get~kvsname=SPACE~key=missing",
            "cmd=get_result rc=1 msg=key_missing_not_found value=unknown",
        ),
        (
            "pmi-ask:cmd=init~pmi_version=3~pmi_subversion=0",
            "cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=1",
        ),
    ] {
        everywhere(|run| {
            let steps = format!("{OTHERS} pmi-init {deed} pmi-barrier pmi-finalize");
            run.steps(&steps).end(0).ended.says(&[&["well"; 5][..], &[answer]].concat());
        });
    }
}

/// The last put of a task counts. Of two tasks', it is one of both values, and the same for all.
#[test]
fn a_key_that_is_put_twice_has_one_value_for_everybody() {
    everywhere(|run| {
        let steps = "pmi-init on:1 pmi-put:same:1 pmi-put:same:2 on:4 pmi-put:same:3 on: \
                     pmi-barrier pmi-ask:cmd=get~kvsname=SPACE~key=same pmi-finalize";
        let ended = run.steps(steps).end(0).ended;
        let lines = ended.sorted_lines();
        let value = |line: &String| line.strip_prefix("cmd=get_result rc=0 value=").map(str::len);
        let read: Vec<usize> = lines.iter().filter_map(value).collect();
        let value = read.first().copied().unwrap_or_default();
        assert!(read == [value; 6] && (value == 2 || value == 3), "{ended:?}");
        assert_eq!(lines.iter().filter(|line| *line == "cmd=put_result rc=0").count(), 3);
    });
}

/// With the limits of our own library, a task may put more than the others have room for.
#[test]
fn a_value_that_is_longer_than_a_client_can_read_is_not_found_by_it_and_by_others_is() {
    everywhere(|run| {
        let steps = "pmi-init on:3,5 pmi-ask:cmd=get_maxes~snapshot=1 on:3 pmi-put:long:2000 on: \
                     pmi-barrier pmi-ask:cmd=get~kvsname=SPACE~key=long pmi-finalize";
        let ended = run.steps(steps).end(0).ended;
        let refused = "cmd=get_result rc=1 msg=value_does_not_fit value=unknown";
        let value = format!("cmd=get_result rc=0 value={}", "x".repeat(2_000));
        let count = |line: &str| ended.sorted_lines().iter().filter(|it| *it == line).count();
        assert_eq!((count(refused), count(&value)), (4, 2), "{}", ended.stderr);
    });
}

#[test]
fn a_task_that_is_stopped_for_a_while_holds_the_fence_back_and_nothing_else() {
    everywhere(|run| {
        let ended = run.steps(&format!("{OTHERS} pmi-init nap:2 pmi-barrier pmi-finalize")).end(0);
        assert!(ended.ended.took > Duration::from_secs(2), "{:?}", ended.ended.took);
        ended.ended.says(&["well"; 5]);
    });
}

#[test]
fn a_task_that_never_speaks_pmi_keeps_nobody_waiting_once_it_has_ended() {
    everywhere(|run| {
        run.steps(&format!("{OTHERS} exit:0")).end(0).ended.says(&["well"; 5]);
        run.steps(&format!("{HALF} exit:3")).end(3).tells_of_rank_3("exited with status 3");
    });
}

#[test]
fn a_job_that_goes_on_without_a_task_lets_the_others_out_of_its_fence() {
    everywhere(|run| {
        let run = run.option("--on-failure continue");
        let ended = run.steps(&format!("{OTHERS} pmi-init signal:11")).end(139);
        ended.ended.says(&["well"; 5]);
        ended.tells_of_rank_3("was killed by signal 11 (SIGSEGV)");
    });
}

/// A task is the same one whether or not it has said `init`.
#[test]
fn a_client_that_speaks_before_init_is_answered_and_counts_as_active_from_then_on() {
    everywhere(|run| {
        let early = "pmi-ask:cmd=get_universe_size";
        let steps = format!("{OTHERS} {early} pmi-init pmi-barrier pmi-finalize");
        let ended = run.steps(&steps).end(0).ended;
        assert_eq!(ended.text().matches("cmd=universe_size size=").count(), 1, "{ended:?}");
        let told = "exited with status 0 before it had finalized PMI";
        run.steps(&format!("{HALF} {early} exit:0")).end(250).tells_of_rank_3(told);
    });
}

#[test]
fn a_dialect_that_is_not_offered_ends_the_job_with_the_option_that_helps() {
    for (offer, deed, dialect) in [("1", "pmi-frame:cmd=kvs-fence;", "PMI-2"), ("2", "", "PMI-1")] {
        everywhere(|run| {
            let others = if offer == "1" { HALF } else { "on:0,1,2,4,5 hang on:3" };
            let steps = format!("{others} pmi-send:cmd=get_maxes\\n {deed} hang");
            let run = run.option(&format!("--pmi {offer}"));
            run.steps(&steps).end(250).tells_of_rank_3(&format!(
                "broke the PMI protocol: {dialect} is what `--pmi` leaves out: use `--pmi auto`"
            ));
        });
    }
    let world = World::up(3);
    for (hosts, host) in PLACES {
        let run = Run { world: &world, hosts, host, options: "--pmi none".to_owned() };
        let ended = run.steps("pmi-init").end(99).ended;
        assert!(ended.stderr.contains("PMI_FD is not set to a number"), "{}", ended.stderr);
    }
}

#[test]
fn a_stranger_on_the_port_is_turned_away_and_told_of_and_the_job_goes_on() {
    let world = World::up(3);
    for (deed, told) in [
        ("GET\\n\\n", "it does not say its rank"),
        ("cmd=initack~pmiid=77\\n", "it says that it is task 77, which does not run on this node"),
    ] {
        for (hosts, host) in PLACES {
            let run = Run { world: &world, hosts, host, options: "--pmi-port".to_owned() };
            let own = "pmi-init pmi-barrier pmi-finalize say:well";
            let ended = run.steps(&format!("{OTHERS} pmi-stranger:{deed} {own}")).end(0);
            ended.ended.says(&["well"; 6]);
            let line = ended.ended.stderr.lines().find(|line| line.contains(told));
            assert!(line.is_some_and(|line| line.contains(host)), "{}", ended.ended.stderr);
        }
    }
}

/// The answers to 40,000 requests are 40 MB. The agent's own memory is a few.
#[test]
fn a_client_that_does_not_take_its_answers_costs_its_agent_no_memory() {
    for hosts in ["a:6", "a:2,b:2,c:2"] {
        for interface in INTERFACES {
            let steps = "pmi-init on:3 pmi-late:40000 say:taken on:0 count-stdin on: pmi-finalize";
            let run = on_hosts("late", hosts, "").words(interface).patience(BOUND);
            let mut running = run.misbehave(steps.split_ascii_whitespace()).start();
            running.wait_for_output("all answers", |text| text.ends_with(b"taken\n"));
            let peak_kib = peak_rss_kib(running.marker(), "__agent");
            assert!((1..20_000).contains(&peak_kib), "{peak_kib} KiB");
            running.close_stdin();
            running.finish().with_status(0);
        }
    }
}

/// A pair here has some 62 bytes with its lengths, of which a million are above the `--push-max` of a job that sets none. What an
/// agent and the front end hold of it is in docs/pmi.md.
#[test]
fn very_many_keys_take_no_more_memory_than_is_said_and_are_found() {
    let keys = from_environment(KEYS, KEYS_FEW);
    let push_max = (keys * 16).to_string();
    for (hosts, tasks) in [("a:4", 4), ("a:2,b:2,c:2", 6)] {
        let number = keys / tasks;
        let steps = format!(
            "pmi-init pmi-puts:{number} pmi-barrier pmi-gets:1000 say:met on:0 count-stdin on: \
             pmi-barrier pmi-finalize"
        );
        let run = on_hosts("keys", hosts, "").args(["--push-max", &push_max]);
        let run = run.patience(Duration::from_secs(240));
        let mut running = run.misbehave(steps.split_ascii_whitespace()).start();
        running.wait_for_output("what all have put", |text| {
            let met = text.split(|byte| *byte == b'\n').filter(|line| *line == b"met").count();
            u64::try_from(met) == Ok(tasks)
        });
        let agent = peak_rss_kib(running.marker(), "__agent") << 10;
        let head = peak_rss_kib(running.marker(), "convoke run") << 10;
        running.close_stdin();
        running.finish().with_status(0);
        for (who, bytes, most) in [("an agent", agent, 400), ("the front end", head, 300)] {
            assert!((1..most * keys).contains(&bytes), "{hosts}: {who} has had {bytes} bytes");
        }
    }
}

/// A run in one of the places, over one of the interfaces.
struct Run<'a> {
    world: &'a World,
    hosts: &'a str,
    /// That of rank 3.
    host: &'a str,
    options: String,
}

/// One whose tasks are known.
struct Stepped<'a> {
    world: &'a World,
    host: &'a str,
    run: Convoke,
}

struct Told<'a> {
    host: &'a str,
    ended: Ended,
}

fn everywhere(test: impl Fn(Run<'_>)) {
    let world = World::up(3);
    for (hosts, host) in PLACES {
        for options in INTERFACES {
            test(Run { world: &world, hosts, host, options: options.to_owned() });
        }
    }
}

impl<'a> Run<'a> {
    fn option(self, option: &str) -> Run<'a> {
        Run { options: format!("{} {option}", self.options), ..self }
    }

    /// With these steps of every task. In a step, `~` is a blank.
    fn steps(&self, steps: &str) -> Stepped<'a> {
        let run = self.world.convoke("bad-input").args(["--hosts", self.hosts]);
        let run = run.words(&self.options).patience(BOUND);
        let steps = steps.split_ascii_whitespace().map(|step| step.replace('~', " "));
        Stepped { world: self.world, host: self.host, run: run.misbehave(steps) }
    }
}

impl<'a> Stepped<'a> {
    #[track_caller]
    fn end(self, status: i32) -> Told<'a> {
        Told { host: self.host, ended: self.world.end(self.run).with_status(status) }
    }
}

impl Told<'_> {
    #[track_caller]
    fn tells_of_rank_3(&self, told: &str) {
        let words = format!("task 3 on {} {told}", self.host);
        assert!(self.ended.stderr.contains(&words), "{words}\n{}", self.ended.stderr);
    }
}
