//! Which task runs where: against Open MPI's own maps, as MPI programs see it, and what is refused.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use model::IdSet;
use support::convoke::{Convoke, convoke_path};
use support::ring::program;
use support::stand::{on_hosts, on_shell, open_mpi};

/// How a program is placed and ranked, in words that both understand.
const POLICIES: [&str; 6] = [
    "--map-by slot",
    "--map-by node",
    "--map-by slot --rank-by slot",
    "--map-by slot --rank-by node",
    "--map-by node --rank-by slot",
    "--map-by node --rank-by node",
];

/// Open MPI 5.0 fails to map some jobs by node that have as many tasks as there are slots.
#[test]
fn each_rank_is_where_open_mpi_has_it() {
    let mut maps = 0;
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    for slots in [&[3, 1, 2][..], &[1, 1, 1, 1], &[1, 4, 2, 3], &[8]] {
        let line = |(name, slots): (char, &u32)| format!("{name} slots={slots}\n");
        fs::write(&hosts, ('a'..).zip(slots).map(line).collect::<String>()).unwrap();
        let all: u32 = slots.iter().sum();
        for programs in [vec![all], vec![all - 1], vec![1, all - 2], vec![1, 2, 1]] {
            let programs: Vec<String> = programs.iter().map(|n| format!("-n {n} true")).collect();
            for policy in POLICIES {
                let options = format!("--hostfile {} {policy}", hosts.display());
                let programs = programs.join(" : ");
                let Some(theirs) = open_mpi_map(dir.path(), &options, &programs) else {
                    assert!(policy.starts_with("--map-by node"), "{options} {programs}");
                    continue;
                };
                assert_eq!(our_map(&options, &programs), theirs, "{slots:?} {policy} {programs}");
                maps += 1;
            }
        }
    }
    assert!(maps >= 80, "{maps} maps");
}

#[test]
fn programs_with_hosts_of_their_own_are_where_open_mpi_has_them() {
    let dir = tempfile::tempdir().unwrap();
    for programs in [
        [("a,b", 2), ("c", 1)],
        [("a:2,b", 3), ("c:2,d:2", 3)],
        [("c:2,a:3", 4), ("b", 1)],
        [("a:2,b:2", 2), ("a:2,c:2", 2)],
    ] {
        let open_mpi = programs.map(|(hosts, n)| format!("--host {hosts} -n {n} true")).join(" : ");
        for policy in POLICIES {
            let theirs = open_mpi_map(dir.path(), policy, &open_mpi);
            let ours = our_map(policy, &open_mpi.replace("--host", "--hosts"));
            assert_eq!(Some(ours), theirs, "{policy} {open_mpi}");
        }
    }
}

#[test]
fn what_a_layout_cannot_have_is_refused_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ranks");
    fs::write(&file, "rank 0=a\nrank 1=c\n").unwrap();
    let own = |options: &str| format!("{options} --hosts a,b true : --hosts c true");
    let lines = [
        own("--rankmap 0,2,1"),
        own("--rankfile FILE"),
        own("--on-missing continue"),
        own("--min-nodes 1"),
        own("--spares 1"),
        own("--hostfile FILE"),
        own("--exclude c"),
        own("--exclude a,b,c"),
        "--hosts a true : true : --hosts c true".into(),
        "--hosts a,b -n 1 true : --hosts c:2 -n 3 true".into(),
        "--hosts a -n 1 true : --hosts c:x true".into(),
        "--hosts a -n 0 true : --hosts c true".into(),
        "--hosts a,b --rankmap 0,2 true".into(),
        "--hosts a:2,b:1 --rankmap 0,1,1 true".into(),
        "--hosts a,b --rankmap 0,1 -n 3 true".into(),
        "--hosts a,b --rankmap 0,1 true : -n 3 true".into(),
        "--hosts a,b --rankmap 0,x true".into(),
        "--hosts a,b --rankmap 0,1 --map-by node true".into(),
        "--hosts a,b --rank-by fill true".into(),
        "--rankfile FILE --rank-by node true".into(),
    ];
    let refused = |line: String| {
        let run = Convoke::new("layout").words(&line.replace("FILE", &file.display().to_string()));
        let words = run.run().with_status(2).words();
        let words = words.split("\n\n").next().unwrap_or_default().trim_end();
        format!("$ {line}\n{words}")
    };
    assert_snapshot!(lines.map(refused).join("\n").replace(file.to_str().unwrap(), "FILE"));
}

#[test]
fn a_rank_map_runs_as_many_tasks_as_it_has_ranks() {
    let run = |line: &str| our_map("", line);
    let expected = |hosts: &[&str]| (0..).zip(hosts.iter().map(|host| host.to_string())).collect();
    let mapped: BTreeMap<u32, String> = expected(&["b", "b", "c", "b"]);
    assert_eq!(run("--hosts a,b,c --rankmap 1,1,2,1 true"), mapped);
    assert_eq!(run("--hosts a,b,c --rankmap (vector,(1,1,2),(2,1,1),1) -n 4 true"), mapped);
    let apps = "--hosts x,a,b,c --exclude x --rankmap 1,1,2,1 -n 3 true : true";
    assert_eq!(run(apps), mapped);
}

#[test]
fn programs_with_hosts_of_their_own_have_a_task_for_each_of_their_slots() {
    let map = our_map("", "--hosts a:2 true : --hosts c,b true");
    assert_eq!(map.into_values().collect::<Vec<_>>(), ["a", "a", "c", "b"]);
}

/// Ranks, their programs, and who shares a host with them, as programs of MPICH 5 see it.
#[test]
fn mpi_programs_see_who_shares_their_host() {
    let on = |options: &str, lines: &[&str]| {
        let run = on_hosts("neighbours", "a:3,b:1,c:2", "").words(options);
        let run = run.arg(program("neighbours", 5)).run().with_status(0);
        assert_eq!(run.sorted_lines(), lines, "{options}");
    };
    let lines = [
        "rank 0 of app 0 on a: 0 3 5",
        "rank 1 of app 0 on b: 1",
        "rank 2 of app 0 on c: 2 4",
        "rank 3 of app 0 on a: 0 3 5",
        "rank 4 of app 0 on c: 2 4",
        "rank 5 of app 0 on a: 0 3 5",
    ];
    on("--rank-by node", &lines);
    on("--rankmap [0,1,2]x1,0,2,0", &lines);
    let run = on_shell("own-hosts", "").words("--hosts b,a -n 2").arg(program("neighbours", 5));
    let run = run.words(": --hosts c,b:2 -n 3").arg(program("neighbours", 5)).run();
    let lines = [
        "rank 0 of app 0 on b: 0 3 4",
        "rank 1 of app 0 on a: 1",
        "rank 2 of app 1 on c: 2",
        "rank 3 of app 1 on b: 0 3 4",
        "rank 4 of app 1 on b: 0 3 4",
    ];
    assert_eq!(run.with_status(0).sorted_lines(), lines);
}

#[test]
fn hosts_without_tasks_are_there_only_for_who_asks_for_them() {
    let map = |options: &str, programs: &str| {
        said(Command::new(convoke_path()).args(["run", "--show-map"]), options, programs).unwrap()
    };
    let (used, idle) = ("a: 2 tasks, ranks 0-1\n", "b: for jobs that tasks start\n");
    assert_eq!(map("--hosts a:2,b:2 -n 2", "true"), used);
    assert_eq!(map("--hosts a:2,b:2 -n 2 --all-hosts", "true"), [used, idle].concat());
    let apart = map("--all-hosts", "--hosts a:2,b -n 2 true : --hosts b,c -n 1 true");
    assert_eq!(apart.lines().last(), Some("c: for jobs that tasks start"), "{apart}");
}

/// The host of each rank, as `--show-map` has it.
fn our_map(options: &str, programs: &str) -> BTreeMap<u32, String> {
    let text = said(Command::new(convoke_path()).args(["run", "--show-map"]), options, programs);
    let text = text.unwrap_or_else(|error| panic!("{options} {programs}: {error}"));
    let lines = text.lines().filter(|line| !line.starts_with("app "));
    let ranks = lines.flat_map(|line| {
        let (host, ranks) = line.split_once(": ").unwrap();
        let (_, ranks) = ranks.split_once("ranks ").unwrap();
        let ranks: IdSet = ranks.parse().unwrap();
        ranks.iter().map(|rank| (rank, host.to_owned())).collect::<Vec<_>>()
    });
    ranks.collect()
}

/// The same from Open MPI, which is asked for the map alone; none where it finds none.
fn open_mpi_map(dir: &Path, options: &str, programs: &str) -> Option<BTreeMap<u32, String>> {
    let mut mpirun = Command::new(open_mpi("mpirun"));
    mpirun.env("TMPDIR", dir).args(["--allow-run-as-root", "--bind-to", "none"]);
    mpirun.args(["--runtime-options", "donotlaunch", "--display", "map"]);
    let text = match said(&mut mpirun, options, programs) {
        Ok(text) => text,
        Err(words) if words.contains("Your job failed to map") => return None,
        Err(words) => panic!("{options} {programs}: {words}"),
    };
    let mut host = "";
    let mut ranks = BTreeMap::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("Data for node: ") {
            host = rest.split_whitespace().next().unwrap();
        } else if line.starts_with("Data for proc: ") {
            let rank = line.rsplit(',').next().unwrap().trim_end_matches(']');
            ranks.insert(rank.parse().unwrap(), host.to_owned());
        }
    }
    Some(ranks)
}

/// What it says, or the words with which it fails.
#[expect(clippy::disallowed_methods, reason = "nothing is started but a look at the map")]
fn said(command: &mut Command, options: &str, programs: &str) -> Result<String, String> {
    let words = options.split_whitespace().chain(programs.split_whitespace());
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}
