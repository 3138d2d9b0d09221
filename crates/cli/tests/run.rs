//! The command as a user runs it, on this machine: hosts are names that a stand-in for a remote
//! shell ignores.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs what it is given, wherever it was to run.
const SHELL: &str = "sh -c 'exec sh -c \"$1\"' {host} {cmd}";

#[test]
fn every_task_runs_once_and_its_output_comes_through() {
    let output = run(&["--hosts", "n[1-4]:2", "--shell", SHELL, "sh", "-c", "echo $PMI_RANK"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(sorted_lines(&output.stdout), ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn the_status_is_that_of_the_task_that_failed_first_and_the_others_are_stopped() {
    let script = "test $PMI_RANK = 2 && exit 7; sleep 60";
    let output = run(&["--hosts", "n[1-4]", "--shell", SHELL, "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stderr), "task 2 on n3 exited with status 7\n");
}

#[test]
fn with_on_failure_continue_the_others_end_by_themselves() {
    let script = "test $PMI_RANK = 0 && exit 3; sleep 0.2; echo end";
    let output = run(&["-n", "2", "--on-failure", "continue", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "end\n");
}

#[test]
fn a_task_that_a_signal_kills_gives_128_and_its_number() {
    let output = run(&["-n", "1", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(output.status.code(), Some(139));
    assert!(text(&output.stderr).starts_with("task 0 on "), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(" was killed by signal 11 (SIGSEGV)"));
}

/// An agent whose tasks have a processor each is in another session than they, so that it need not share theirs.
#[test]
fn tasks_keep_their_session_to_themselves_where_each_has_a_processor() {
    let script = "of() { cut -d ' ' -f 6 /proc/$1/stat; }; cat; \
                  for round in $(seq $0); do \
                      test $(of $$) = $(of $PPID) || { echo apart; exit; }; sleep 0.05; \
                  done; echo together";
    let tasks_of = |tasks: usize, rounds: &str| {
        let output = run(&["-n", &tasks.to_string(), "sh", "-c", script, rounds]);
        assert_eq!(output.status.code(), Some(0));
        text(&output.stdout)
    };
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(tasks_of(1, "200"), "apart\n");
    assert_eq!(tasks_of(processors + 1, "1"), "together\n".repeat(processors + 1));
}

#[test]
fn a_missing_program_is_named_with_where_it_was_looked_for() {
    let output = run(&["--hosts", "a,b", "--shell", SHELL, "--env", "PATH=/bin", "no-such"]);
    assert_eq!(output.status.code(), Some(127));
    let expected = "error: could not run `no-such` on 2 of 2 nodes: a,b\n  \
                    a,b: no program `no-such` in /bin\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_missing_directory_is_an_error_before_anything_runs() {
    let output = run(&["-n", "2", "--wdir", "/no/such", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("`/no/such`: No such file or directory\n"));
}

#[test]
fn hosts_without_an_agent_are_named_with_what_the_shell_said() {
    let shell = "sh -c 'echo no way to $0 >&2; exit 9' {host} {cmd}";
    let output = run(&["--hosts", "n[1-3]", "--shell", shell, "true"]);
    assert_eq!(output.status.code(), Some(252));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: could not start an agent on 3 of 3 nodes: n[1-3]\n"));
    assert!(stderr.contains("    no way to n1\n"), "{stderr}");
}

#[test]
fn standard_input_reaches_rank_0_unchanged() {
    let bytes: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let script = "test $PMI_RANK != 0 || cat";
    let output = run_with_input(&["-n", "2", "sh", "-c", script], &bytes);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes);
}

#[test]
fn input_that_nobody_may_read_is_left_to_others() {
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let script = format!("{convoke} run --launcher local --stdin none -n 1 true; cat");
    let output = start(Command::new("sh").args(["-c", &script]), b"rest\n");
    assert_eq!(text(&output.stdout), "rest\n");
}

#[test]
fn a_reader_that_leaves_ends_the_job_quietly() {
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let script = format!("{{ {convoke} run --launcher local -n 2 yes; echo $? >&2; }} | head -1");
    let output = start(Command::new("sh").args(["-c", &script]), b"");
    assert_eq!(text(&output.stdout), "y\n");
    assert_eq!(text(&output.stderr), "141\n");
}

#[test]
fn the_time_limit_ends_the_job() {
    let output = run(&["-n", "1", "--timeout", "300ms", "sleep", "60"]);
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("`--timeout`"));
}

#[test]
fn labels_stand_before_every_line() {
    let output = run(&["-n", "2", "--label", "printf", "a\\nb\\n"]);
    assert_eq!(sorted_lines(&output.stdout), ["[0] a", "[0] b", "[1] a", "[1] b"]);
}

#[test]
fn arguments_and_variables_arrive_as_they_are() {
    let value = "A= b=c 'q' \"d\"\n$HOME *";
    let script = "printf '%s|' \"$A\" \"$@\"";
    let output = run(&["-n", "1", "--env", value, "sh", "-c", script, "x", "", "*", "a b\n"]);
    assert_eq!(text(&output.stdout), " b=c 'q' \"d\"\n$HOME *||*|a b\n|");
}

#[test]
fn the_map_is_shown_and_nothing_is_started() {
    let output = run(&["--hosts", "n[1-2]:3", "-n", "5", "--show-map", "/no/such"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "n1: 3 tasks, ranks 0-2\nn2: 2 tasks, ranks 3-4\n");
}

#[test]
fn each_program_has_its_own_tasks_variables_and_directory() {
    let hosts = ["--hosts", "n[1-2]:2", "--shell", SHELL, "--env", "A=1"];
    let script = "echo $PMI_RANK of $PMI_SIZE $A $B $PWD";
    let first = ["--wdir", "/", "sh", "-c", script];
    let second = [":", "-n", "2", "--wdir", "/tmp", "--env", "B=2", "sh", "-c", script];
    let third = [":", "--label", "pwd"];
    let here = std::env::current_dir().unwrap().display().to_string();
    let output = run(&[&hosts[..], &first, &second, &third].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected =
        ["[0] 0 of 4 1 /", "[1] 1 of 4 2 /tmp", "[2] 2 of 4 2 /tmp", &format!("[3] {here}")];
    assert_eq!(sorted_lines(&output.stdout), expected);
}

#[test]
fn a_missing_program_is_named_with_its_number_and_only_where_it_was_to_run() {
    let apps = ["-n", "1", "true", ":", "-n", "2", "/no/such"];
    let output = run(&[&["--hosts", "a,b,c", "--shell", SHELL][..], &apps].concat());
    assert_eq!(output.status.code(), Some(127));
    let expected = "error: could not run `/no/such` of app 1 on 2 of 3 nodes: b,c\n  \
                    b,c: no such program: `/no/such`\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn the_map_shows_programs_and_nodes() {
    let hosts = ["--hosts", "n[1-2]:3", "--map-by", "node", "--show-map"];
    let output = run(&[&hosts[..], &["-n", "2", "a", "-x", ":", "-n", "3", "b"]].concat());
    let expected = "app 0: 2 tasks, ranks 0-1: a -x\napp 1: 3 tasks, ranks 2-4: b\n\
                    n1: 3 tasks, ranks 0,2,4\nn2: 2 tasks, ranks 1,3\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn a_program_can_be_a_line_of_a_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "# two\n-n 1 echo 'a  b'\n-n 2 \\\n  echo c\n").unwrap();
    let path = file.path().to_str().unwrap();
    let output = run(&["--label", "-configfile", path]);
    assert_eq!(sorted_lines(&output.stdout), ["[0] a  b", "[1] c", "[2] c"]);
}

#[test]
fn a_host_has_a_user_and_a_port_and_a_shell_without_a_place_for_them_is_refused() {
    let shell =
        "sh -c 'test \"$0 $1 $2\" = \"me n1 22\" && exec sh -c \"$3\"' {user} {host} {port} {cmd}";
    let output = run(&["--hosts", "me@n1/22", "--shell", shell, "echo", "reached"]);
    assert_eq!(text(&output.stdout), "reached\n", "{}", text(&output.stderr));
    let output = run(&["--hosts", "me@n1/22", "--shell", SHELL, "echo", "reached"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: host `me@n1/22` has a port, and the shell command does not say where \
                    `{port}` goes\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_rank_file_places_the_ranks_and_hosts_are_left_out() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "rank 0=n3 slot=1\nrank 1=n1\nrank 2=n3 slot=0\n").unwrap();
    let path = file.path().to_str().unwrap();
    let options = ["--hosts", "n[1-3]:2", "--show-map", "--rankfile", path];
    let output = run(&[&options[..], &["true"]].concat());
    let expected = "n1: 1 tasks, ranks 1\nn3: 2 tasks, ranks 0,2\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    let output = run(&[&options[..], &["--exclude", "n3,n9", "true"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let words = text(&output.stderr).replace(path, "F");
    assert_eq!(words, "error: use rank file `F`: line 1: `n3` is not among the hosts\n");
    let output = run(&[&options[..], &["-n", "2", "true"]].concat());
    let words = text(&output.stderr).replace(path, "F");
    assert_eq!(words, "error: rank file `F` places 3 tasks, and 2 are asked for\n");
}

#[test]
fn a_job_that_does_not_fit_is_refused_with_a_hint() {
    let output = run(&["--hosts", "a:1,b:1", "-n", "5", "true"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: 5 tasks do not fit into 2 slots on 2 nodes\nhint: "));
}

#[test]
fn a_bulk_start_brings_up_all_agents_with_one_command() {
    let args = ["--hosts", "n[1-8]", "--launcher", "local-bulk", "sh", "-c", "echo $PMI_RANK"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(sorted_lines(&output.stdout).len(), 8);
}

#[test]
fn with_64_descriptors_the_limit_is_named_and_nothing_hangs() {
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let script = format!("ulimit -n 64; {convoke} run --launcher local -n 40 true");
    let output = start(Command::new("sh").args(["-c", &script]), b"");
    assert_eq!(output.status.code(), Some(126));
    assert!(
        text(&output.stderr).contains("64 descriptors are allowed"),
        "{}",
        text(&output.stderr)
    );
}

/// On this machine unless the arguments say how to reach another.
fn run(args: &[&str]) -> Output {
    run_with_input(args, b"")
}

fn run_with_input(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
    command.arg("run");
    if !args.contains(&"--shell") && !args.contains(&"--launcher") {
        command.args(["--launcher", "local"]);
    }
    start(command.args(args), input)
}

#[expect(clippy::disallowed_methods, reason = "a test may fork")]
fn start(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("a child can be waited for");
    writer.join().expect("the writer does not panic");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sorted_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = text(bytes).lines().map(String::from).collect();
    lines.sort();
    lines
}
