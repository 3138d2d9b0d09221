//! Tasks that connect to `PMI_PORT`, since they have closed what they inherited or never had it, and strangers who
//! connect there.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::convoke::{Convoke, Running};
use support::ring::{check_ring, pmi2, ring};
use support::stand::on_hosts;
use testkit::fixture;

#[test]
fn mpi_programs_connect_and_need_no_descriptor() {
    for (version, hosts, on) in [(4, "a:4", "a"), (5, "a:2,b:2", "a,b")] {
        let run = on_hosts("port-mpi", hosts, "").words("--pmi-port sh -c");
        let ended = run.arg("exec 3>&-; test -z $PMI_FD && exec $0").arg(ring(version)).run();
        let on: Vec<&str> = on.split(',').collect();
        check_ring(&ended.with_status(0), 4, &on);
    }
}

#[test]
fn programs_of_slurms_pmi_2_library_connect_and_greet_before_they_say_their_rank() {
    let run = on_hosts("port-pmi2", "a:2,b:2", "").words("--pmi-port sh -c");
    let script =
        "exec env -i PMI_PORT=$PMI_PORT PMI_ID=$PMI_ID MPI_LOCALRANKID=$MPI_LOCALRANKID $0";
    let ended = run.arg(script).arg(pmi2()).run().with_status(0);
    assert_eq!(ended.text().matches(": well, with").count(), 4, "{ended:?}");
    let run = on_hosts("port-pmi2-off", "a:2,b:2", "").words("--pmi-port --pmi 1");
    let ended = run.arg(pmi2()).run().with_status(250);
    let words = "PMI-2 is what `--pmi` leaves out: use `--pmi auto`";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn sixty_four_programs_connect_at_once_behind_a_shell_that_loses_everything_but_two_variables() {
    let run = on_hosts("port-64", "a:32,b:32", "").words("--pmi-port sh -c");
    let script = "exec env -i PMI_PORT=$PMI_PORT PMI_ID=$PMI_ID $0 all";
    let ended = run.arg(script).arg(fixture("pmi-client")).run().with_status(0);
    assert!(ended.text().starts_with("rank0 "), "{}", ended.text());
}

#[test]
fn a_task_may_run_one_mpi_program_after_another() {
    let run = on_hosts("port-twice", "a:2,b:2", "").words("--pmi-port sh -c");
    let ended = run.arg("$0 && exec $0").arg(ring(5)).run().with_status(0);
    assert_eq!(ended.text().matches("rank 3 of 4 on b").count(), 2, "{}", ended.text());
}

#[test]
fn an_abort_a_crash_and_a_program_that_leaves_are_told_as_ever() {
    for (words, status, told) in [
        ("abort 7 3", 7, "task 3 on b aborted with code 7: "),
        ("crash 1", 139, "task 1 on a was killed by signal 11 (SIGSEGV)"),
        ("leave 2", 250, "task 2 on b exited with status 0 before it had finalized PMI"),
    ] {
        let run = on_hosts("port-ends", "a:2,b:2", "").words("--pmi-port").arg(ring(5));
        let ended = run.words(words).run().with_status(status);
        assert!(ended.stderr.contains(told), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_wrong_rank_and_garbage_do_not_disturb_the_job_and_are_told() {
    let (mut running, port) = waiting("port-strangers", "a:2");
    for (words, why) in [
        ("cmd=initack pmiid=7\n", "it says that it is task 7, which does not run on this node"),
        ("GET / HTTP/1.1\r\n\r\n", "do, but `GET / HTTP/1.1\\r`"),
        ("cmd=initack pmiid=1\n", "it says that it is task 1, which is connected"),
        (
            "cmd=init pmi_version=2 pmi_subversion=0\n21    cmd=fullinit;srcid=0;",
            "it says that it is task 0, which is connected",
        ),
    ] {
        let mut stranger = connect(port);
        stranger.write_all(words.as_bytes()).unwrap();
        let said = answer(&mut stranger);
        assert_eq!(said.is_empty(), !words.starts_with("cmd=init "), "{words}: {said}");
        let told = |text: &[u8]| String::from_utf8_lossy(text).contains(why);
        running.wait_for_error(why, told);
    }
    goes_on(running);
}

#[test]
fn silent_connections_do_not_disturb_the_job() {
    let (running, port) = waiting("port-silent", "a:2");
    let held: Vec<TcpStream> = (0..200).map(|_| connect(port)).collect();
    goes_on(running);
    drop(held);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it is closed with the job");
}

/// Needs root, as who can become another user.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test runs a program")]
fn a_process_of_another_user_is_turned_away_whatever_it_says() {
    const NOBODY: u32 = 65534;
    let (mut running, port) = waiting("port-user", "a:2");
    if !rustix::process::geteuid().is_root() {
        return goes_on(running);
    }
    let mut stranger = Command::new("bash");
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'cmd=initack pmiid=0\\n' >&3; cat <&3");
    stranger.args(["-c", &script]).uid(NOBODY).gid(NOBODY).stderr(Stdio::null());
    assert_eq!(stranger.output().unwrap().stdout, b"");
    let why = "it is a process of user 65534, and the tasks are of user 0";
    running.wait_for_error(why, |text| String::from_utf8_lossy(text).contains(why));
    goes_on(running);
}

/// A job whose tasks have connected, have said their port, and wait for a line; and that port.
fn waiting(test: &str, hosts: &str) -> (Running, u16) {
    let run = Convoke::new(test).args(["--launcher", "local", "--hosts", hosts]);
    let script = "import os, socket, sys
rank = os.environ['PMI_ID']
host, port = os.environ['PMI_PORT'].split(':')
pmi = socket.create_connection((host, int(port)))
lines = pmi.makefile('rw', newline='\\n')
def ask(request, replies=1):
    lines.write(request + '\\n'); lines.flush()
    return [lines.readline() for _ in range(replies)]
assert ask('cmd=initack pmiid=' + rank, 4)[2] == 'cmd=set rank=' + rank + '\\n'
ask('cmd=init pmi_version=1 pmi_subversion=1')
print('port', port, flush=True)
if rank == '0': sys.stdin.readline()
assert ask('cmd=barrier_in')[0].startswith('cmd=barrier_out')
ask('cmd=finalize')
print('down', flush=True)
";
    let mut running = run.words("--pmi-port python3 -c").arg(script).start();
    running.wait_for_output("the port of each task", |text| {
        String::from_utf8_lossy(text).matches("port").count() == 2
    });
    let text = running.output();
    let port = text.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    (running, port)
}

fn goes_on(mut running: Running) {
    running.write(b"go on\n");
    let ended = running.finish().with_status(0);
    assert_eq!(ended.text().matches("down\n").count(), 2, "{ended:?}");
}

fn connect(port: u16) -> TcpStream {
    let stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stranger
}

/// What comes before the end.
fn answer(stranger: &mut TcpStream) -> String {
    let mut text = String::new();
    let _ = stranger.read_to_string(&mut text); // a reset is an end, too
    text
}
