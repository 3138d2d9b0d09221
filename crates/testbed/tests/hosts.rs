//! The testbed makes hosts that talk to each other, hurts them, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use testbed::{HEAD, Sshd, Testbed, clock};

#[test]
fn hosts_reach_each_other_by_name_over_ssh() {
    let bed = Testbed::up(4).unwrap();
    assert_eq!(bed.host_list(), "n0,n1,n2,n3");
    for (from, to) in [(HEAD, "n0"), ("n0", "n3"), ("n3", "n0"), ("n2", HEAD)] {
        assert_eq!(said(&bed.run(from, &format!("ssh {to} hostname")).unwrap()), to);
    }
    assert_eq!(
        said(&bed.run("n1", "ssh n2 'ip -o -4 address show eth0'").unwrap())
            .matches("10.77.0.4")
            .count(),
        1
    );
}

#[test]
fn a_cut_host_is_unreachable_until_it_is_healed() {
    let bed = Testbed::up(2).unwrap();
    bed.cut("n1").unwrap();
    assert!(!ssh(&bed, "n1").status.success());
    bed.heal("n1").unwrap();
    assert_eq!(said(&ssh(&bed, "n1")), "n1");
}

#[test]
fn a_black_hole_lets_connections_wait_and_can_be_healed() {
    let bed = Testbed::up(2).unwrap();
    bed.black_hole("n0").unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("timed out"));
    bed.heal("n0").unwrap();
    assert_eq!(said(&ssh(&bed, "n0")), "n0");
}

#[test]
fn sshd_refuses_denies_or_stays_silent_as_asked() {
    let bed = Testbed::up(1).unwrap();
    bed.stop_sshd("n0").unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("Connection refused"));
    bed.start_sshd("n0", Sshd::WrongHostKey).unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("Host key verification failed"));
    bed.start_sshd("n0", Sshd::NoUserKey).unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("Permission denied"));
    bed.mute_sshd("n0").unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("timed out"));
    bed.clog_sshd("n0").unwrap();
    assert!(words(&ssh(&bed, "n0")).contains("timed out"));
    bed.heal("n0").unwrap();
    assert_eq!(said(&ssh(&bed, "n0")), "n0");
}

#[test]
fn a_delayed_host_answers_late_and_in_full() {
    let bed = Testbed::up(2).unwrap();
    bed.delay("n0", Duration::from_millis(100)).unwrap();
    let begun = clock::now();
    let text = said(&bed.run("n1", "ssh n0 head -c 3000000 /dev/zero | wc -c").unwrap());
    assert_eq!(text, "3000000");
    assert!(begun.elapsed() > Duration::from_millis(300), "a key exchange is several round trips");
    bed.heal("n0").unwrap();
    assert_eq!(said(&ssh(&bed, "n0")), "n0");
}

#[test]
fn a_killed_host_takes_its_processes_along_and_nobody_elses() {
    let bed = Testbed::up(2).unwrap();
    for host in ["n0", "n1"] {
        bed.run(host, "setsid sleep 4321 >/dev/null 2>&1 </dev/null &").unwrap();
    }
    assert_eq!(bed.find("sleep 4321").unwrap().len(), 2);
    bed.kill_host("n0").unwrap();
    assert!(bed.run("n0", "true").is_err(), "a dead host runs nothing");
    let left = bed.find("sleep 4321").unwrap();
    assert_eq!(left.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>(), ["n1"]);
    bed.signal("n1", left[0].1.pid, "KILL").unwrap();
    assert!(clock::wait_until(Duration::from_secs(5), || bed
        .find("sleep 4321")
        .unwrap()
        .is_empty()));
}

#[test]
fn a_testbed_leaves_no_process_and_no_mount() {
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let bed = Testbed::up(3).unwrap();
    let namespaces = inodes(&bed);
    drop(bed);
    assert_eq!(in_namespaces(&namespaces), Vec::<String>::new());
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
}

#[test]
fn two_testbeds_at_once_do_not_see_each_other() {
    let (first, second) = (Testbed::up(1).unwrap(), Testbed::up(1).unwrap());
    second.stop_sshd("n0").unwrap();
    assert_eq!(said(&ssh(&first, "n0")), "n0");
    assert!(!ssh(&second, "n0").status.success());
}

#[test]
fn sixty_four_hosts_come_up_in_seconds() {
    let begun: Instant = clock::now();
    let bed = Testbed::up(64).unwrap();
    assert_eq!(said(&ssh(&bed, "n63")), "n63");
    assert!(begun.elapsed() < Duration::from_secs(30), "took {:?}", begun.elapsed());
}

/// A host that answers does so within five seconds, though tests beside this one start eighty sshd.
fn ssh(bed: &Testbed, host: &str) -> Output {
    bed.run(HEAD, &format!("ssh -o ConnectTimeout=5 {host} hostname")).unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", words(output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The network namespaces of all hosts.
fn inodes(bed: &Testbed) -> Vec<String> {
    let hosts = bed.hosts().iter().map(String::as_str).chain([HEAD]);
    hosts.map(|host| network_of(bed.pid(host).unwrap()).unwrap()).collect()
}

/// Every process that lives in one of these namespaces.
fn in_namespaces(namespaces: &[String]) -> Vec<String> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|&pid| network_of(pid).is_some_and(|n| namespaces.contains(&n)))
        .map(|pid: u32| pid.to_string())
        .collect()
}

fn network_of(pid: u32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/ns/net")).ok()?.to_string_lossy().into_owned())
}
