//! Hosts that lack the program, or have another build of it, and what they make of it when it comes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use testbed::RUN_DIR;

use crate::World;
use crate::shells::every_shell;
use crate::support::convoke::{Convoke, convoke_path};
use crate::support::watch::wait_until;

/// Where a host keeps the program, in the home directory that all hosts share.
fn cache() -> String {
    format!("{RUN_DIR}/.cache")
}

/// A run that finds no program on `hosts`.
fn without_program(world: &World, test: &str, hosts: &str) -> Convoke {
    let run = world.convoke(test).args(["--agent-path", "/nowhere/convoke", "--hosts", hosts]);
    // The working directory may lie where a test has another disk.
    run.words("--stats --wdir /")
}

/// Gives a host a disk of its own for what it caches.
fn give_disk(world: &World, host: &str, options: &str) {
    let cache = cache();
    world.on(host, &format!("mkdir -p {cache}; mount -t tmpfs -o {options} disk {cache}"));
}

/// What a host has cached.
fn cached(world: &World, host: &str) -> String {
    world.on(host, &format!("find {} -type f", cache()))
}

/// This program with another build id, as another build is.
fn another_build(world: &World) -> PathBuf {
    let mut bytes = fs::read(convoke_path()).unwrap();
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(note.len()).position(|window| window == note).unwrap();
    bytes[at + note.len()] ^= 1;
    let file = world.bed.run_dir().join("another");
    fs::write(&file, bytes).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    PathBuf::from(RUN_DIR).join("another")
}

#[test]
fn hosts_that_lack_the_program_are_sent_it_once_and_keep_it() {
    let world = World::up(4);
    let hosts = ["n0", "n1", "n2", "n3"];
    hosts.iter().for_each(|host| give_disk(&world, host, "mode=755"));
    let sent = "the program was sent to 4 hosts that lacked it";
    for (tree, is_sent) in [("chain", true), ("flat", false)] {
        let run = without_program(&world, "lacking", "n[0-3]").args(["--tree", tree, "hostname"]);
        let ended = world.end(run).with_status(0);
        assert_eq!(ended.sorted_lines(), hosts);
        assert_eq!(ended.stderr.contains(sent), is_sent, "{}", ended.stderr);
        assert_eq!(ended.stderr.contains("hosts that lacked it"), is_sent, "{}", ended.stderr);
    }
    for host in hosts {
        assert_eq!(cached(&world, host).lines().count(), 1);
    }
}

#[test]
fn a_host_with_any_login_shell_is_sent_the_program() {
    let world = every_shell();
    world.bed.hosts().iter().for_each(|host| give_disk(&world, host, "mode=755"));
    let hosts = world.bed.host_list();
    let ended = world.end(without_program(&world, "shells", &hosts).arg("hostname")).with_status(0);
    assert_eq!(ended.sorted_lines(), world.bed.hosts());
    let sent = format!("the program was sent to {} hosts", world.bed.hosts().len());
    assert!(ended.stderr.contains(&sent), "{}", ended.stderr);
}

#[test]
fn hosts_with_one_home_all_get_the_program_into_one_file() {
    let world = World::up(3);
    let run = without_program(&world, "shared", "n[0-2]").words("--tree flat hostname");
    assert_eq!(world.end(run).with_status(0).sorted_lines(), ["n0", "n1", "n2"]);
    assert_eq!(cached(&world, "n0").lines().count(), 1);
}

#[test]
fn a_host_with_another_build_runs_this_one_beside_it() {
    let world = World::up(2);
    let another = another_build(&world);
    let run = |test| world.convoke(test).args(["--hosts", "n[0-1]", "--agent-path"]).arg(&another);
    let ended = world.end(run("another").words("--tree chain --stats hostname")).with_status(0);
    assert_eq!(ended.sorted_lines(), ["n0", "n1"]);
    assert!(ended.stderr.contains("that lacked it"), "{}", ended.stderr);

    let ended = world.end(run("never").words("--deliver never hostname")).with_status(252);
    assert!(ended.stderr.contains("boot payload is from build "), "{}", ended.stderr);
}

#[test]
fn cleaning_removes_what_does_not_run_from_every_host_and_says_so() {
    let world = World::up(2);
    ["n0", "n1"].iter().for_each(|host| give_disk(&world, host, "mode=755"));
    let run = || without_program(&world, "clean", "n[0-1]").arg("hostname");
    world.end(run()).with_status(0);
    let clean = || {
        let program = world.program("clean", &convoke_path().to_string_lossy());
        world.end(program.words("clean --hosts n[0-1]")).with_status(0)
    };
    let lines = clean().sorted_lines();
    for (line, host) in lines.iter().zip(["n0", "n1"]) {
        assert!(line.starts_with(&format!("{host}: removed {}/convoke/", cache())), "{line}");
        assert_eq!(cached(&world, host), "");
    }
    assert_eq!((lines.len(), clean().text()), (2, String::new()));

    world.end(run()).with_status(0);
    let program = cached(&world, "n0");
    world.on("n0", &format!("cp /bin/sleep {program}; {program} 60 >/dev/null 2>&1 &"));
    let kept = clean().sorted_lines();
    assert!(kept[0].starts_with("n0: kept ") && kept[0].ends_with(", which runs"), "{kept:?}");
    assert!(kept[1].starts_with("n1: removed "), "{kept:?}");
}

#[test]
fn a_disk_that_is_full_is_named() {
    let world = World::up(1);
    give_disk(&world, "n0", "size=1m");
    let ended = world.end(without_program(&world, "full", "n0").arg("hostname")).with_status(252);
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the agent's program was not stored"), "{}", ended.stderr);
    assert_eq!(cached(&world, "n0"), "");
}

#[test]
fn a_home_that_is_read_only_or_runs_no_programs_is_no_trouble() {
    for options in ["ro", "noexec"] {
        let world = World::up(1);
        give_disk(&world, "n0", options);
        world.on("n0", "mount -t tmpfs -o mode=1777 disk /tmp");
        let run = without_program(&world, options, "n0").arg("hostname");
        assert_eq!(world.end(run).with_status(0).text(), "n0\n");
        assert_eq!(world.on("n0", "ls -d /tmp/convoke-*/*/convoke").lines().count(), 1);
        assert_eq!(cached(&world, "n0"), "");
    }
}

#[test]
fn a_host_without_any_place_is_told_with_what_each_said() {
    let world = World::up(1);
    give_disk(&world, "n0", "ro");
    world.on("n0", "mount -t tmpfs -o ro disk /tmp");
    let ended = world.end(without_program(&world, "nowhere", "n0").arg("hostname"));
    let ended = ended.with_status(252);
    assert!(ended.stderr.contains("no place to keep the agent's program"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("Read-only file system").count(), 2, "{}", ended.stderr);
}

#[test]
fn a_program_that_a_cache_has_damaged_is_sent_again() {
    let world = World::up(1);
    give_disk(&world, "n0", "mode=755");
    let run = || world.end(without_program(&world, "damaged", "n0").arg("hostname")).with_status(0);
    run();
    world.on("n0", &format!("truncate -s 1000000 {}", cached(&world, "n0")));
    assert!(run().stderr.contains("that lacked it"));
    assert!(!run().stderr.contains("that lacked it"));
}

/// The program in it is whole each time: it is the directory that is wrong.
#[test]
fn a_cache_that_others_could_have_written_is_not_trusted() {
    let world = World::up(1);
    give_disk(&world, "n0", "mode=755");
    world.on("n0", "mount -t tmpfs -o mode=1777 disk /tmp");
    let run = || world.end(without_program(&world, "cache", "n0").arg("hostname")).with_status(0);
    run();
    for (spoil, is_mended) in [
        ("chmod 777 $d", true),
        ("chown 47011 $d", false),
        ("mv $d $d.real; ln -s $d.real $d", false),
        ("rm $d; echo x >$d", false),
    ] {
        world.on("n0", &format!("d={}/convoke; {spoil}; rm -rf /tmp/convoke-*", cache()));
        assert!(run().stderr.contains("that lacked it"), "{spoil}");
        assert!(!run().stderr.contains("that lacked it"), "{spoil}");
        let elsewhere = world.on("n0", "ls -d /tmp/convoke-*/*/convoke || true");
        assert_eq!(elsewhere.is_empty(), is_mended, "{spoil}: {elsewhere}");
    }
}

#[test]
fn a_program_at_the_path_that_is_another_one_is_told_by_what_it_says() {
    let world = World::up(1);
    for (name, script, words) in [
        ("refuses", "echo unknown command $1 >&2; exit 64", "unknown command __agent"),
        ("succeeds", "echo fine", "exited with status 0"),
    ] {
        let file = world.write(name, &format!("#!/bin/sh\n{script}\n"));
        world.on("n0", &format!("chmod 755 {}", file.display()));
        let run = world.convoke(name).words("--hosts n0 --retries 0 --agent-path").arg(file);
        let ended = world.end(run.arg("hostname")).with_status(252);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    }
}

#[test]
fn whenever_the_front_end_is_killed_nothing_is_left_and_the_next_run_works() {
    let world = World::up(1);
    give_disk(&world, "n0", "mode=755");
    for tenths in [1, 2, 3, 4, 6, 8] {
        let run = world.program("killed", "timeout").words(&format!("-s KILL 0.{tenths}"));
        let run = run.arg(convoke_path()).words("run --agent-path /nowhere/convoke --hosts n0");
        world.end(run.arg("hostname"));
        let is_whole = || !cached(&world, "n0").contains("/part.");
        assert!(wait_until(Duration::from_secs(10), is_whole), "{}", cached(&world, "n0"));
        world.on("n0", &format!("rm -rf {}/*", cache()));
    }
    let run = without_program(&world, "next", "n0").arg("hostname");
    assert_eq!(world.end(run).with_status(0).text(), "n0\n");
}
