//! `os::spawn` on real programs.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use os::process::{ExitStatus, pidfd, try_wait};
use os::stream::{Pipe, ReadOutcome, pipe};
use os::{Interest, Pid, Poller, Signal, SpawnError, SpawnSpec, Spawning, spawn};

#[test]
fn a_program_gets_its_arguments_environment_and_directory() {
    let script = c"printf '%s|' \"$0\" \"$@\" \"$A\"; pwd";
    let mut spec = shell(script, &[c"zero", c"a b", c"it's"]);
    spec.env.push(c"A=x=y\nz");
    spec.dir = Some(c"/usr");
    assert_eq!(output_of(spec), "zero|a b|it's|x=y\nz|/usr\n");
}

#[test]
fn descriptors_that_swap_places_all_arrive() {
    swap_places();
}

#[test]
fn descriptors_arrive_and_pipes_end_where_we_hold_many() {
    let list = || output_of(shell(c"ls /proc/self/fd", &[]));
    let before = list();
    let held: Vec<Pipe> = (0..100).map(|_| pipe().unwrap()).collect();
    assert_eq!(list(), before);
    swap_places();
    let last = held.last().unwrap();
    assert!(os::stream::write(&last.write, b"still ours").is_ok());
    let mut spec = shell(c"echo never", &[]);
    spec.dir = Some(c"/no/such");
    spec.fds[1] = Some(last.write.as_fd());
    spawn(&spec).unwrap_err();
    drop(spec);
    let Pipe { read, write } = held.into_iter().next_back().unwrap();
    drop(write);
    assert_eq!(read_all(&read), "still ours");
}

/// Has a child get three descriptors at each other's numbers, and reads all that it writes there.
fn swap_places() {
    let pipes: Vec<Pipe> = (0..3).map(|_| pipe().unwrap()).collect();
    let numbers: Vec<i32> = pipes.iter().map(|p| p.write.as_raw_fd()).collect();
    let text = format!(
        "for i in 0 1 2; do set -- {} {} {}; shift $i; echo $i >&$1; done",
        numbers[1], numbers[2], numbers[0]
    );
    let text = CString::new(format!("bash -c '{text}'")).unwrap();
    let mut spec = shell(&text, &[]);
    spec.env.push(c"PATH=/usr/bin:/bin");
    // Number 1 holds pipe 0, number 2 pipe 1, number 0 pipe 2: a cycle.
    for (index, pipe) in pipes.iter().enumerate() {
        spec.extra_fds.push((pipe.write.as_fd(), numbers[(index + 1) % 3]));
    }
    let pid = spawn(&spec).unwrap();
    drop(spec);
    assert_eq!(wait(pid), ExitStatus::Exited(0));
    for (index, Pipe { read, write }) in pipes.into_iter().enumerate() {
        drop(write);
        assert_eq!(read_all(&read), format!("{index}\n"));
    }
}

#[test]
fn standard_descriptors_may_be_each_others_sources() {
    let out = pipe().unwrap();
    let mut spec = shell(c"echo out; echo err >&2", &[]);
    spec.fds = [None, Some(out.write.as_fd()), Some(out.write.as_fd())];
    spec.extra_fds = vec![(out.write.as_fd(), out.write.as_raw_fd())];
    let pid = spawn(&spec).unwrap();
    drop(spec);
    assert_eq!(wait(pid), ExitStatus::Exited(0));
    drop(out.write);
    assert_eq!(read_all(&out.read), "out\nerr\n");
}

#[test]
fn a_program_gets_no_other_descriptor_and_no_signal_setting_of_ours() {
    let extra = pipe().unwrap();
    let extra = rustix::io::fcntl_dupfd_cloexec(&extra.read, 700).unwrap();
    os::signals::ignore(&[Signal::USR2, Signal::PIPE]);
    let text = output_of(shell(c"cat /proc/self/status; ls /proc/self/fd", &[]));
    for set in ["SigBlk", "SigIgn", "SigCgt"] {
        assert!(text.contains(&format!("{set}:\t0000000000000000\n")), "{text}");
    }
    assert!(!text.contains(&format!("\n{}\n", extra.as_raw_fd())), "{text}");
}

#[test]
fn a_new_session_is_one_and_a_new_group_is_one() {
    let field = c"read -r s < /proc/self/stat; set -- $s; echo $1 $5 $6";
    let mut spec = shell(field, &[]);
    spec.new_session = true;
    let text = output_of(spec);
    let [pid, group, session] = *text.split_whitespace().collect::<Vec<_>>() else { panic!() };
    assert!(pid == group && pid == session, "{text}");

    let mut spec = shell(field, &[]);
    spec.process_group = true;
    let text = output_of(spec);
    let [pid, group, session] = *text.split_whitespace().collect::<Vec<_>>() else { panic!() };
    assert!(pid == group && pid != session, "{text}");
}

#[test]
fn each_failed_step_is_told_apart_with_its_cause() {
    let mut spec = SpawnSpec::new(c"/no/such", vec![c"x"], vec![]);
    let error = spawn(&spec).unwrap_err();
    assert_eq!(error.to_string(), "execute `/no/such`");
    assert!(matches!(&error, SpawnError::Exec { source, .. } if errno(source) == libc::ENOENT));

    spec.program = c"/etc/passwd";
    let error = spawn(&spec).unwrap_err();
    assert!(matches!(&error, SpawnError::Exec { source, .. } if errno(source) == libc::EACCES));

    spec.dir = Some(c"/no/dir");
    let error = spawn(&spec).unwrap_err();
    assert_eq!(error.to_string(), "change to directory `/no/dir`");

    spec.extra_fds.push((std::io::stderr().as_fd(), 1 << 30));
    let _stderr = std::io::stderr();
    let pid = spawn(&SpawnSpec::new(c"/bin/true", vec![c"true"], vec![]));
    wait(pid.unwrap());
}

#[test]
fn a_childs_descriptor_limit_is_its_own() {
    let limit = os::machine::raise_descriptor_limit().unwrap();
    let mut spec = shell(c"ulimit -Sn; ulimit -Hn", &[]);
    spec.descriptors_max = Some(64);
    assert_eq!(output_of(spec), format!("64\n{}\n", limit.now));
    assert_eq!(os::machine::raise_descriptor_limit().unwrap().before, limit.now);
}

#[test]
fn a_script_without_an_interpreter_runs_in_the_shell() {
    let (_dir, program) = executable(c"echo 'echo \"script $1\"' >$0");
    assert_eq!(output_of(SpawnSpec::new(&program, vec![c"name", c"one"], vec![])), "script one\n");
}

#[test]
fn a_binary_that_the_kernel_refuses_is_not_run_as_a_script() {
    let (_dir, program) = executable(c"printf '\\177ELF\\0\\0' >$0");
    let error = spawn(&SpawnSpec::new(&program, vec![c"name"], vec![])).err().unwrap();
    let os::SpawnError::Exec { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.raw_os_error(), Some(8), "ENOEXEC");
}

/// A file that `script` writes to `$0`, made executable. A process of its own writes it: a child that
/// another test forks meanwhile would inherit our open file, and the kernel then calls it busy.
fn executable(script: &CStr) -> (tempfile::TempDir, CString) {
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join("program").to_str().unwrap()).unwrap();
    let spec = SpawnSpec::new(c"/bin/sh", vec![c"sh", c"-c", script, &path], vec![]);
    assert_eq!(output_of(spec), "");
    std::fs::set_permissions(path.to_str().unwrap(), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    (dir, path)
}

#[test]
fn ten_thousand_arguments_and_a_megabyte_of_environment_arrive() {
    let arguments: Vec<&CStr> = vec![c"x"; 10_000];
    let mut spec = shell(c"echo $#; env | wc -c", &arguments);
    let value = CString::new(format!("A={}", "v".repeat(100_000))).unwrap();
    spec.env = vec![&value; 10];
    spec.env.push(c"PATH=/usr/bin:/bin");
    let text = output_of(spec);
    assert!(text.starts_with("9999\n"), "{text}");
}

#[test]
fn the_status_tells_a_signal_from_an_exit() {
    let pid = spawn(&shell(c"exit 3", &[])).unwrap();
    assert_eq!(wait(pid), ExitStatus::Exited(3));
    let pid = spawn(&shell(c"kill -SEGV $$", &[])).unwrap();
    let status = wait(pid);
    assert!(matches!(status, ExitStatus::Signaled { signal: Signal::SEGV, .. }));
    assert_eq!(status.code(), 139);
}

#[test]
fn the_environment_of_a_process_is_told_or_not_yet() {
    let script = c"[ $1 = 0 ] || exec /bin/sh -c \"$0\" \"$0\" $(($1 - 1))";
    let mut spec = shell(script, &[script, c"50000"]);
    let long = CString::new(format!("LONG={}", "x".repeat(20_000))).unwrap();
    spec.env.extend([&*long, c"A=B"]);
    let pid = spawn(&spec).unwrap();
    let (mut n_told, mut n_not_yet) = (0, 0);
    while n_told < 20_000 || n_not_yet < 10 {
        match os::process::environment_of(pid) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => n_not_yet += 1,
            told => {
                let text = String::from_utf8(told.unwrap()).unwrap();
                let n = text.len();
                assert!(text.split('\0').any(|it| it == "A=B"), "{n} bytes after {n_told}");
                n_told += 1;
            }
        }
    }
    os::process::kill(pid, Signal::KILL).unwrap();
    wait(pid);
}

#[test]
fn a_process_without_an_environment_has_none_and_so_has_a_zombie() {
    let Pipe { read, write } = pipe().unwrap();
    let mut spec = SpawnSpec::new(c"/bin/cat", vec![c"cat"], vec![]);
    spec.fds[0] = Some(read.as_fd());
    let pid = spawn(&spec).unwrap();
    assert_eq!(settled_environment_of(pid).unwrap(), []);
    drop(write);
    let pidfd = pidfd(pid).unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&pidfd, 0, Interest::READ).unwrap();
    poller.wait(Some(std::time::Duration::from_secs(20)), &mut Vec::new()).unwrap();
    assert_eq!(os::process::environment_of(pid).unwrap(), [], "a zombie");
    wait(pid);
    let error = os::process::environment_of(pid).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Once its first program has begun.
fn settled_environment_of(pid: Pid) -> std::io::Result<Vec<u8>> {
    loop {
        match os::process::environment_of(pid) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            told => return told,
        }
    }
}

/// Each of them gets its own descriptors, fails in its own way, and gives its item back.
#[test]
fn many_are_created_at_once_and_each_gets_what_is_its_own() {
    struct Item {
        pipe: Pipe,
        text: CString,
        program: &'static CStr,
    }
    fn spec(item: &Item) -> SpawnSpec<'_> {
        let argv = vec![c"sh", c"-c", c"echo $0", &item.text];
        let mut spec = SpawnSpec::new(item.program, argv, vec![]);
        spec.fds[1] = Some(item.pipe.write.as_fd());
        spec
    }
    let _held: Vec<Pipe> = (0..40).map(|_| pipe().unwrap()).collect(); // so that seats are of use
    for at_once in [1, 2, 3, 7] {
        let begin = |number: usize| {
            let program = if number % 5 == 3 { c"/no/such" } else { c"/bin/sh" };
            let text = CString::new(format!("number {number}")).unwrap();
            Spawning::begin(Item { pipe: pipe().unwrap(), text, program }, spec)
        };
        let mut begun = VecDeque::new();
        for number in 0..40 {
            begun.push_back((number, begin(number)));
            if begun.len() == at_once {
                check(begun.pop_front().unwrap());
            }
        }
        begun.into_iter().for_each(check);
    }

    fn check((number, spawning): (usize, Spawning<Item>)) {
        let (Item { pipe: Pipe { read, write }, text, .. }, result) = spawning.wait();
        drop(write);
        let output = read_all(&read);
        if number % 5 == 3 {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, SpawnError::Exec { source, .. } if errno(source) == libc::ENOENT)
            );
            assert_eq!(output, "");
        } else {
            assert_eq!(wait(result.unwrap()), ExitStatus::Exited(0));
            assert_eq!(output, format!("{}\n", text.to_str().unwrap()));
        }
    }
}

#[test]
fn what_is_dropped_while_it_is_created_runs_all_the_same() {
    let Pipe { read, write } = pipe().unwrap();
    drop(Spawning::begin(write, |write| {
        let mut spec = shell(c"echo runs", &[]);
        spec.fds[1] = Some(write.as_fd());
        spec
    }));
    assert_eq!(read_all(&read), "runs\n");
}

/// A fork makes every page of the parent copy-on-write, so that touching it again faults once for
/// each page. A child that borrows our memory costs no such fault.
#[test]
fn no_spawn_copies_the_address_space() {
    let mut heap = touched_heap();
    let mut spec = SpawnSpec::new(c"/bin/true", vec![c"true"], vec![]);
    spec.dir = Some(c"/");
    spec.new_session = true;
    spec.parent_death_signal = Some(Signal::KILL);
    let before = minor_faults();
    let pid = spawn(&spec).unwrap();
    touch(&mut heap);
    let spawned = minor_faults() - before;
    wait(pid);
    assert!(spawned < 200, "{spawned} faults after a spawn");

    let forked = faults_after_a_fork(&mut heap);
    assert!(forked > 1_000, "only {forked} faults after a fork: the test proves nothing");
}

const HEAP_BYTES: usize = 64 << 20;
const PAGE_BYTES: usize = 4096;

fn touched_heap() -> Vec<u8> {
    let mut heap = vec![0; HEAP_BYTES];
    // SAFETY: whole pages within the vector; this only keeps huge pages away.
    #[expect(unsafe_code, reason = "rustix has no way to say this of a Vec without unsafe either")]
    unsafe {
        let start = heap.as_mut_ptr().align_offset(PAGE_BYTES);
        let first = heap.as_mut_ptr().add(start).cast();
        libc::madvise(first, HEAP_BYTES - 2 * PAGE_BYTES, libc::MADV_NOHUGEPAGE);
    }
    touch(&mut heap);
    heap
}

fn touch(heap: &mut [u8]) {
    for page in heap.chunks_mut(PAGE_BYTES) {
        page[0] = std::hint::black_box(page[0].wrapping_add(1));
    }
}

#[expect(unsafe_code, reason = "the faults of this thread alone, and a real fork to compare with")]
fn minor_faults() -> i64 {
    // SAFETY: zeroed is a valid rusage.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_minflt
    }
}

#[expect(unsafe_code, reason = "a real fork to compare with")]
fn faults_after_a_fork(heap: &mut [u8]) -> i64 {
    let before = minor_faults();
    // SAFETY: the child does nothing but exit.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(0);
        }
        touch(heap);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    minor_faults() - before
}

fn shell<'a>(script: &'a CStr, arguments: &[&'a CStr]) -> SpawnSpec<'a> {
    let argv = [c"sh", c"-c", script].into_iter().chain(arguments.iter().copied()).collect();
    SpawnSpec::new(c"/bin/sh", argv, vec![])
}

fn output_of(spec: SpawnSpec<'_>) -> String {
    let Pipe { read, write } = pipe().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let fds = [Some(null.as_fd()), Some(write.as_fd()), None];
    let spec = SpawnSpec { fds, ..spec };
    let pid = spawn(&spec).unwrap();
    drop(spec);
    drop(write);
    let text = read_all(&read);
    assert_eq!(wait(pid), ExitStatus::Exited(0));
    text
}

fn read_all(fd: &OwnedFd) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let ReadOutcome::Data(n) = os::stream::read(fd, &mut buffer).unwrap() {
        text.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(text).unwrap()
}

fn wait(pid: Pid) -> ExitStatus {
    let pidfd = pidfd(pid).unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&pidfd, 0, Interest::READ).unwrap();
    let mut ready = Vec::new();
    poller.wait(Some(std::time::Duration::from_secs(20)), &mut ready).unwrap();
    try_wait(&pidfd).unwrap().expect("the child has ended")
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap()
}
