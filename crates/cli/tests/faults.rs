//! What happens when something dies: real processes on hosts with a real sshd, each fault of
//! `docs/faults.md`, and kills at random.
//!
//! The table that `the_fault_table_is_as_the_documentation_says` writes is the one in
//! `docs/faults.md`. `cargo xtask test faults` runs all random kills, `cargo test` some.

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use common::{End, GONE_WITHIN, Hosts, Member, Role, describe, now, seconds};
use testbed::{HEAD, Sshd};

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

/// A fault, and what must come of it.
struct Fault {
    name: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    /// Whether it is done to a job that runs, or before the command starts.
    is_running: bool,
    hurt: fn(&Hosts),
    mend: fn(&Hosts),
    status: i32,
    /// What the message contains: the node and the cause.
    says: &'static [&'static str],
    within: Duration,
}

/// A job that runs is hurt, and what was done ends by itself.
const RUNNING: Fault = Fault {
    name: "",
    options: &[],
    script: OBEDIENT,
    is_running: true,
    hurt: |_| {},
    mend: |_| {},
    status: 0,
    says: &[],
    within: Duration::from_secs(20),
};

/// A host is hurt before the command starts, and healed afterwards.
const LAUNCHING: Fault = Fault {
    is_running: false,
    mend: |hosts| hosts.bed.heal(HURT).unwrap(),
    status: 252,
    ..RUNNING
};

/// The faults of a job that runs. The link's is the only time that is promised.
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
        says: &["error: lost node n5: "],
        ..RUNNING
    },
    Fault {
        name: "kill -9 a keeper",
        hurt: |hosts| kill(hosts, HURT, Role::Keeper),
        status: 251,
        says: &["error: lost node n5: "],
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
        says: &["error: lost node n5: "],
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
        name: "link cut while running",
        hurt: |hosts| hosts.bed.cut(HURT).unwrap(),
        mend: |hosts| hosts.bed.heal(HURT).unwrap(),
        status: 251,
        says: &["error: lost node n5: ", "timed out"],
        within: Duration::from_secs(12),
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
        says: &["error: lost node n5: ", "timed out"],
        within: Duration::from_secs(12),
        ..RUNNING
    },
];

#[test]
fn the_fault_table_is_as_the_documentation_says() {
    let hosts = Hosts::up(16);
    let mut table = Table::new();
    FAULTS.iter().for_each(|fault| table.add(fault, &hosts));
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
            table.add(&Fault { script: WILD, says, ..*fault }, &hosts);
        }
    }
    table.check();
}

/// What came of each fault, written as it is found.
struct Table {
    wrong: Vec<String>,
}

impl Table {
    fn new() -> Table {
        say("| fault | seconds | status | first words | left after 2 s |");
        say("| --- | --- | --- | --- | --- |");
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
        let mut run = hosts.run(&options);
        if fault.is_running {
            run.wait_for_lines(hosts.bed.hosts().len(), "ready");
            begun = now();
            (fault.hurt)(hosts);
        }
        let end = run.end();
        let took = begun.elapsed();
        let (_, left) = hosts.survivors(GONE_WITHIN);
        self.row(fault, took, &end, &left);
        hosts.clear();
        (fault.mend)(hosts);
    }

    fn row(&mut self, fault: &Fault, took: Duration, end: &End, left: &[Member]) {
        let (name, words) = (fault.name, end.stderr.trim_end().replace('\n', " / "));
        let (status, count) = (end.status, left.len());
        say(&format!("| {name} | {} | {status} | {words} | {count} |", seconds(took)));
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
    let to_hurt = format!(" {HURT} exec ");
    let mut members = hosts.members().into_iter();
    members.find(|m| m.role == Role::Shell && m.process.command.contains(&to_hurt)).unwrap()
}

fn misbehave() -> PathBuf {
    testkit::fixture("misbehave")
}

/// A line for whoever reads the run, which is not captured.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").unwrap();
}
