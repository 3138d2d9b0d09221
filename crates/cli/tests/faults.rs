//! What happens when something dies: real processes on hosts with a real sshd, each fault of
//! `docs/faults.md`, and kills at random.
//!
//! The table that `the_fault_table_is_as_the_documentation_says` writes is the one in
//! `docs/faults.md`. `cargo xtask test faults` runs all random kills, `cargo test` some.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod common;
#[path = "common/kills.rs"]
mod kills;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use common::{End, GONE_WITHIN, Hosts, Member, Role, describe, now, seconds};
use kills::{Kills, ROLES};
use testbed::{HEAD, Sshd, clock};
use testkit::from_environment;

/// The host that is hurt, and the rank that runs there.
const HURT: &str = "n5";

/// Says that it runs, and exits with 3 when told to.
const OBEDIENT: &str = "trap 'exit 3' USR2; echo ready; sleep 1000 & wait";

/// Kills all processes of a host but this one. The file is that of the sshd that dies as well.
const KILL_ALL: &str = "kill -9 -1; rm /run/testbed/sshd/$(hostname).pid";

/// Says that it runs, after leaving things behind that are hard to end: by rank a daemon, a deaf
/// child, a stopped child, and a task that is stopped itself.
const WILD: &str = "\
case $((PMI_RANK % 4)) in
0) $MISBEHAVE daemon;;
1) trap '' TERM INT HUP; $MISBEHAVE ignore:15 hang & ;;
2) setsid $MISBEHAVE stop & ;;
3) echo ready; exec $MISBEHAVE stop hang;;
esac
echo ready
sleep 1000";

/// How soon after a fault of a job that runs the command has ended and nothing is left, unless the
/// network has to find out or tasks refuse to end.
const SOON: Duration = Duration::from_secs(2);

/// How soon after a cut all is over.
const CUT_WITHIN: Duration = Duration::from_secs(10);

/// The grace time of tasks that refuse to end.
const GRACE: (&str, Duration) = ("500ms", Duration::from_millis(500));

/// How many random kills there are to be.
const KILLS: &str = "CONVOKE_RANDOM_KILLS";

/// Enough to notice what is often wrong.
const KILLS_FEW: u64 = 30;

/// Round trips that a job may take more than its ssh: to join, to be launched, to be ended and to
/// leave, and for a tree that has two levels.
const ROUND_TRIPS_MAX: f64 = 20.0;

/// A fault, and what must come of it.
struct Fault {
    name: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    /// Whether it is done to a job that runs, or before the command starts.
    is_running: bool,
    /// Whether the command's standard input is a terminal.
    is_at_terminal: bool,
    hurt: fn(&Hosts),
    mend: fn(&Hosts),
    status: i32,
    /// What the message contains: the node and the cause.
    says: &'static [&'static str],
    /// From the fault, or from the start if the fault was there before: the command has ended, and
    /// nothing is left.
    within: Duration,
}

/// A job that runs is hurt, and what was done ends by itself.
const RUNNING: Fault = Fault {
    name: "",
    options: &[],
    script: OBEDIENT,
    is_running: true,
    is_at_terminal: false,
    hurt: |_| {},
    mend: |_| {},
    status: 0,
    says: &[],
    within: SOON,
};

/// A host is hurt before the command starts, and healed afterwards.
const LAUNCHING: Fault = Fault {
    is_running: false,
    mend: |hosts| hosts.bed.heal(HURT).unwrap(),
    status: 252,
    within: Duration::from_secs(20),
    ..RUNNING
};

/// The faults of a job that runs, and of one that is launched.
const FAULTS: &[Fault] = &[
    Fault {
        name: "kill -9 a task",
        hurt: |hosts| kill(hosts, HURT, Role::Task),
        status: 137,
        says: &["task 5 on n5 was killed by signal 9 (SIGKILL)"],
        ..RUNNING
    },
    Fault {
        name: "a task exits 3",
        hurt: |hosts| hosts.signal(&hosts.member(HURT, Role::Task), "USR2"),
        status: 3,
        says: &["task 5 on n5 exited with status 3"],
        ..RUNNING
    },
    Fault {
        name: "kill -9 an agent",
        hurt: |hosts| kill(hosts, HURT, Role::Agent),
        status: 251,
        says: &["error: lost node n5: its agent was killed by signal 9 (SIGKILL)"],
        ..RUNNING
    },
    Fault {
        name: "kill -9 a keeper",
        hurt: |hosts| kill(hosts, HURT, Role::Keeper),
        status: 251,
        says: &["error: lost node n5: ", "its keeper was killed"],
        ..RUNNING
    },
    Fault {
        name: "kill -9 the front end",
        hurt: |hosts| kill(hosts, HEAD, Role::FrontEnd),
        status: 137,
        ..RUNNING
    },
    Fault {
        name: "kill -9 the front end's keeper",
        hurt: |hosts| kill(hosts, HEAD, Role::FrontEndKeeper),
        status: 137,
        ..RUNNING
    },
    Fault {
        name: "kill -9 a node's ssh",
        hurt: |hosts| hosts.signal(&shell_to_hurt(hosts), "KILL"),
        status: 251,
        says: &["error: lost node n5: its remote shell was killed by signal 9 (SIGKILL)"],
        ..RUNNING
    },
    Fault {
        name: "all processes of a node die",
        hurt: |hosts| drop(hosts.bed.run(HURT, KILL_ALL).unwrap()),
        mend: |hosts| hosts.bed.heal(HURT).unwrap(),
        status: 251,
        says: &["error: lost node n5: "],
        ..RUNNING
    },
    Fault {
        name: "SIGTERM to the front end",
        hurt: |hosts| signal_front_end(hosts, "TERM"),
        status: 143,
        ..RUNNING
    },
    Fault {
        name: "SIGINT to the front end",
        hurt: |hosts| signal_front_end(hosts, "INT"),
        status: 130,
        ..RUNNING
    },
    Fault {
        name: "`^C` at a terminal",
        is_at_terminal: true,
        hurt: |hosts| hosts.type_in("\u{3}"),
        status: 130,
        ..RUNNING
    },
    Fault {
        name: "SIGINT twice, deaf tasks",
        options: &["--grace", "50s"],
        script: "trap '' INT TERM; echo ready; sleep 1000",
        hurt: |hosts| {
            signal_front_end(hosts, "INT");
            signal_front_end(hosts, "INT");
        },
        status: 130,
        ..RUNNING
    },
    Fault {
        name: "a task is stopped, another fails",
        hurt: |hosts| {
            hosts.signal(&hosts.member("n6", Role::Task), "STOP");
            hosts.signal(&hosts.member(HURT, Role::Task), "USR2");
        },
        status: 3,
        says: &["task 5 on n5 exited with status 3"],
        ..RUNNING
    },
    Fault {
        name: "link cut while running",
        hurt: |hosts| hosts.bed.cut(HURT).unwrap(),
        mend: |hosts| hosts.bed.heal(HURT).unwrap(),
        status: 251,
        says: &["error: lost node n5: the network to it is cut, or it is down"],
        within: CUT_WITHIN,
        ..RUNNING
    },
    Fault {
        name: "node unreachable at launch",
        hurt: cut_unknown,
        says: &["on 1 of 16 nodes: n5", "No route to host"],
        ..LAUNCHING
    },
    Fault {
        name: "port refused at launch",
        hurt: |hosts| hosts.bed.stop_sshd(HURT).unwrap(),
        says: &["on 1 of 16 nodes: n5", "Connection refused"],
        ..LAUNCHING
    },
    Fault {
        name: "shell that never answers, `--join-timeout 5s`",
        options: &["--join-timeout", "5s"],
        hurt: |hosts| hosts.bed.mute_sshd(HURT).unwrap(),
        says: &["on 1 of 16 nodes: n5"],
        ..LAUNCHING
    },
    Fault {
        name: "ssh asks for a password",
        hurt: |hosts| hosts.bed.start_sshd(HURT, Sshd::AsksPassword).unwrap(),
        says: &["on 1 of 16 nodes: n5", "Permission denied"],
        ..LAUNCHING
    },
    Fault {
        name: "wrong host key",
        hurt: |hosts| hosts.bed.start_sshd(HURT, Sshd::WrongHostKey).unwrap(),
        says: &["on 1 of 16 nodes: n5", "Host key verification failed"],
        ..LAUNCHING
    },
    Fault {
        name: "power failure of a node",
        hurt: |hosts| hosts.bed.power_off(HURT).unwrap(),
        status: 251,
        says: &["error: lost node n5: the network to it is cut, or it is down"],
        within: CUT_WITHIN,
        ..RUNNING
    },
];

/// An agent in the middle is stopped, as one that is swapped out or stuck would be.
const HANGING: Fault = Fault {
    name: "an agent hangs (SIGSTOP), `--tree chain`",
    options: &["--tree", "chain"],
    hurt: |hosts| hosts.signal(&hosts.member("n1", Role::Agent), "STOP"),
    status: 251,
    says: &["error: lost node n1: "],
    within: Duration::from_secs(15),
    ..RUNNING
};

#[test]
fn the_fault_table_is_as_the_documentation_says() {
    let hosts = Hosts::up(16);
    let mut table = Table::new();
    FAULTS.iter().for_each(|fault| table.add(fault, &hosts));
    table.check();
}

/// On a chain, whose heartbeats are the quickest.
#[test]
fn an_agent_that_hangs_is_named_and_nothing_is_left() {
    let hosts = Hosts::up(3);
    let mut table = Table::new();
    table.add(&HANGING, &hosts);
    table.check();
}

#[test]
fn tasks_that_refuse_to_end_do_not_outlive_what_is_hurt() {
    let hosts = Hosts::up(8);
    let mut table = Table::new();
    for fault in FAULTS.iter().filter(|fault| fault.is_running).take(10) {
        // The task that exits by itself is none of these.
        if fault.status != 3 {
            let says = if fault.status == 137 { &[] } else { fault.says };
            let options = &["--grace", GRACE.0];
            let within = fault.within + GRACE.1;
            table.add(&Fault { script: WILD, options, says, within, ..*fault }, &hosts);
        }
    }
    table.check();
}

#[test]
fn kills_at_random_never_hang_nor_lie_nor_leave_anything() {
    let hosts = Hosts::up(8);
    let (seed, count) = (from_environment("CONVOKE_SEED", 1), from_environment(KILLS, KILLS_FEW));
    let count = usize::try_from(count).unwrap();
    let mut kills = Kills::new(seed);
    // Some jobs have ended before anybody can be killed.
    let jobs = (0..3 * count).take_while(|&index| {
        kills.kill_once(&hosts, index);
        kills.count() < count
    });
    let jobs = jobs.count() + 1;
    say(&format!("{} kills in {jobs} jobs, seed {seed}: {}", kills.count(), kills.summary()));
    assert!(kills.wrong.is_empty(), "seed {seed}\n{}", kills.wrong.join("\n"));
    assert_eq!(kills.count(), count, "processes killed in {jobs} jobs");
    for role in ROLES {
        assert!(kills.count_of(role) > 0, "no {role:?} was killed");
    }
}

#[test]
fn two_jobs_at_once_on_the_same_hosts_do_not_disturb_each_other() {
    let hosts = Hosts::up(4);
    let script =
        |job| format!("{job}=1; trap 'echo told; exit 0' USR1; echo ready; sleep 99 & wait");
    let (first, second) = (script("FIRST"), script("SECOND"));
    let mut long = hosts.run(&["--ppn", "2", "sh", "-c", &first]);
    let mut short = hosts.run(&["--ppn", "2", "sh", "-c", &second]);
    long.wait_for_lines(8, "ready");
    short.wait_for_lines(8, "ready");
    let task = task_of(&hosts, "n2", "SECOND=1");
    hosts.signal(&task, "KILL");
    let end = short.end();
    assert_eq!(end.status, 137, "{end:?}");
    assert!(end.stderr.contains(" on n2 was killed by signal 9 (SIGKILL)"), "{end:?}");
    let others: Vec<Member> =
        hosts.members().into_iter().filter(|m| m.process.command.contains("SECOND=1")).collect();
    assert_eq!(others.iter().map(describe).collect::<Vec<_>>(), Vec::<String>::new());
    signal_front_end(&hosts, "USR1");
    let end = long.end();
    assert_eq!((end.status, end.stderr.as_str()), (0, ""), "{end:?}");
    assert_eq!(end.stdout.iter().filter(|line| *line == "told").count(), 8);
    assert_nothing_is_left(&hosts);
}

#[test]
fn a_job_whose_every_round_trip_takes_long_takes_few_of_them() {
    const DELAY: Duration = Duration::from_millis(100);
    let hosts = Hosts::up(4);
    let (shell, job) = (time_ssh(&hosts), time_job(&hosts));
    hosts.bed.delay_all(DELAY).unwrap();
    let round_trips = |slow: Duration, fast: Duration| {
        slow.saturating_sub(fast).as_secs_f64() / (2.0 * DELAY.as_secs_f64())
    };
    let shell = round_trips(time_ssh(&hosts), shell);
    let job = round_trips(time_job(&hosts), job);
    say(&format!(
        "round trips of 200 ms: {shell:.1} for `ssh n0 true`, {job:.1} for a job of `true`"
    ));
    assert!(job < shell + ROUND_TRIPS_MAX, "{job} round trips, {shell} of them ssh's");
    assert_nothing_is_left(&hosts);
}

#[test]
fn a_failed_task_leaves_the_others_alone_when_the_user_says_so() {
    let hosts = Hosts::up(3);
    let script = "trap 'echo told; exit 0' USR1; echo ready; sleep 99 & wait";
    let mut run = hosts.run(&["--on-failure", "continue", "sh", "-c", script]);
    run.wait_for_lines(3, "ready");
    kill(&hosts, "n1", Role::Task);
    assert!(clock::wait_until(GONE_WITHIN, || tasks(&hosts, "n1").is_empty()));
    signal_front_end(&hosts, "USR1");
    let end = run.end();
    assert_eq!(end.status, 137, "{end:?}");
    assert_eq!(end.stderr, "task 1 on n1 was killed by signal 9 (SIGKILL)\n");
    assert_eq!(end.stdout, ["ready", "ready", "ready", "told", "told"]);
    assert_nothing_is_left(&hosts);
}

#[test]
fn an_agent_that_hangs_is_named_and_ended_by_its_keeper_once_its_shell_is_gone() {
    let hosts = Hosts::up(3);
    let mut run = hosts.run(&["--grace", "300ms", "sh", "-c", OBEDIENT]);
    run.wait_for_lines(3, "ready");
    hosts.signal(&hosts.member("n2", Role::Agent), "STOP");
    hosts.signal(&hosts.member("n1", Role::Task), "USR2");
    let begun = now();
    let end = run.end();
    say(&format!(
        "an agent that hangs keeps the end of its job back for {}",
        seconds(begun.elapsed())
    ));
    assert_eq!(end.status, 3, "{end:?}");
    assert!(end.stderr.contains("lost node n2: its agent or the whole host hangs"), "{end:?}");
    assert_nothing_is_left(&hosts);
}

#[test]
fn the_time_limit_ends_tasks_that_refuse_to_end() {
    let hosts = Hosts::up(4);
    let misbehave = format!("MISBEHAVE={}", misbehave().display());
    let options = ["--timeout", "3s", "--grace", "500ms", "--env", &misbehave, "sh", "-c", WILD];
    let mut run = hosts.run(&options);
    run.wait_for_lines(4, "ready");
    let end = run.end();
    assert_eq!(end.status, 124, "{end:?}");
    assert!(end.stderr.contains("`--timeout`"), "{end:?}");
    assert_nothing_is_left(&hosts);
}

/// What came of each fault, written as it is found.
struct Table {
    wrong: Vec<String>,
}

impl Table {
    fn new() -> Table {
        say("| fault | seconds | nothing left | status | first words | left too long |");
        say("| --- | --- | --- | --- | --- | --- |");
        Table { wrong: Vec::new() }
    }

    /// Does it, and writes a row.
    fn add(&mut self, fault: &Fault, hosts: &Hosts) {
        if !fault.is_running {
            (fault.hurt)(hosts);
        }
        let misbehave = format!("MISBEHAVE={}", misbehave().display());
        let options = [fault.options, &["--env", &misbehave, "sh", "-c", fault.script]].concat();
        let mut begun = now();
        let run = if fault.is_at_terminal { Hosts::run_at_terminal } else { Hosts::run };
        let mut run = run(hosts, &options);
        if fault.is_running {
            run.wait_for_lines(hosts.bed.hosts().len(), "ready");
            begun = now();
            (fault.hurt)(hosts);
        }
        let end = run.end();
        let took = begun.elapsed();
        let (_, left) = hosts.survivors(fault.within.saturating_sub(took));
        self.row(fault, took, begun.elapsed(), &end, &left);
        hosts.clear();
        (fault.mend)(hosts);
    }

    fn row(&mut self, fault: &Fault, took: Duration, gone: Duration, end: &End, left: &[Member]) {
        let (name, words) = (fault.name, end.stderr.trim_end().replace('\n', " / "));
        let (status, count) = (end.status, left.len());
        let (ended, gone) = (seconds(took), seconds(gone));
        say(&format!("| {name} | {ended} | {gone} | {status} | {words} | {count} |"));
        self.wrong.extend(left.iter().map(|member| format!("{name}: left {}", describe(member))));
        let mut expect = |holds: bool, what: String| {
            if !holds {
                self.wrong.push(format!("{name}: {what}"));
            }
        };
        expect(status == fault.status, format!("status {status}, not {}", fault.status));
        expect(took < fault.within, format!("took {took:?}"));
        for says in fault.says {
            expect(end.stderr.contains(says), format!("does not say `{says}`: {}", end.stderr));
        }
    }

    fn check(self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

fn kill(hosts: &Hosts, host: &str, role: Role) {
    hosts.signal(&hosts.member(host, role), "KILL");
}

/// As `kill` does, to the process that the user's shell knows.
fn signal_front_end(hosts: &Hosts, signal: &str) {
    hosts.signal(&hosts.member(HEAD, Role::FrontEndKeeper), signal);
}

/// Cuts the host off whose hardware address nobody remembers, so that it is looked for in vain.
fn cut_unknown(hosts: &Hosts) {
    hosts.bed.cut(HURT).unwrap();
    for host in hosts.bed.hosts().iter().map(String::as_str).chain([HEAD]) {
        hosts.bed.run(host, "ip neighbour flush dev eth0").unwrap();
    }
}

/// The remote shell in which the hurt host's agent runs, wherever it was started.
fn shell_to_hurt(hosts: &Hosts) -> Member {
    let to_hurt = format!(" {HURT} test ");
    let mut members = hosts.members().into_iter();
    members.find(|m| m.role == Role::Shell && m.process.command.contains(&to_hurt)).unwrap()
}

fn misbehave() -> PathBuf {
    testkit::fixture("misbehave")
}

/// A line for whoever reads the run, which is not captured.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
}

fn assert_nothing_is_left(hosts: &Hosts) {
    let (_, left) = hosts.survivors(GONE_WITHIN);
    assert!(left.is_empty(), "left:\n{}", left.iter().map(describe).collect::<Vec<_>>().join("\n"));
}

fn tasks(hosts: &Hosts, host: &str) -> Vec<Member> {
    hosts.members_on(host).into_iter().filter(|member| member.role == Role::Task).collect()
}

fn task_of(hosts: &Hosts, host: &str, text: &str) -> Member {
    let mut tasks = tasks(hosts, host).into_iter();
    tasks.find(|task| task.process.command.contains(text)).unwrap()
}

/// How long an ssh connection takes, whoever makes it.
fn time_ssh(hosts: &Hosts) -> Duration {
    let begun = now();
    assert!(hosts.bed.run(HEAD, "ssh n0 true").unwrap().status.success());
    begun.elapsed()
}

fn time_job(hosts: &Hosts) -> Duration {
    let begun = now();
    let end = hosts.run(&["true"]).end();
    assert_eq!((end.status, end.stderr.as_str()), (0, ""), "{end:?}");
    begun.elapsed()
}
