//! Login shells as they are, and what their start-up files do: one host for each shell.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::RUN_DIR;

use crate::World;
use crate::support::convoke::{Convoke, convoke_path};

/// A login shell, the file that it reads whenever it starts, and how that writes to standard error.
struct Shell {
    path: &'static str,
    startup: Option<&'static str>,
    complain: &'static str,
}

const SHELLS: [Shell; 7] = [
    Shell { path: "/bin/bash", startup: Some(".bashrc"), complain: "echo beware >&2" },
    Shell { path: "/bin/dash", startup: None, complain: "" },
    Shell { path: "/bin/bsd-csh", startup: Some(".cshrc"), complain: "sh -c 'echo beware >&2'" },
    Shell { path: "/bin/tcsh", startup: Some(".tcshrc"), complain: "sh -c 'echo beware >&2'" },
    Shell { path: "/usr/bin/zsh", startup: Some(".zshenv"), complain: "echo beware >&2" },
    Shell { path: "/usr/bin/ksh", startup: None, complain: "" },
    Shell {
        path: "/usr/bin/fish",
        startup: Some(".config/fish/config.fish"),
        complain: "echo beware >&2",
    },
];

/// Names and words that mean something to one shell or another, or look as if.
const ODD_WORDS: [&[u8]; 14] = [
    b"",
    b"a b",
    b" lead and trail ",
    b"$HOME ${PATH} $(id) `id`",
    b"it's \"quoted\"",
    b"*?[a-z]{a,b}",
    b"!x !! ^a^b",
    b"back\\slash \\n",
    b"two\nlines\n",
    b"-n",
    b"~ ~root #comment;&|<>()",
    "\u{fc}ml\u{e4}ut \u{4e2d}\u{6587}".as_bytes(),
    b"\xff\xfe not text",
    b"a=b=c",
];

/// A directory's or file's name of all that a file system takes and csh can be told.
const ODD_NAME: &str = "it's $HOME \\ \"my\" *?! `dir` (\u{fc}) & #1";

#[test]
fn every_login_shell_starts_an_agent_at_any_path() {
    let world = every_shell();
    let dir = world.bed.run_dir().join(ODD_NAME);
    fs::create_dir(&dir).unwrap();
    fs::copy(convoke_path(), dir.join("con voke")).unwrap();
    for link in ["auto", "shell"] {
        let path = Path::new(RUN_DIR).join(ODD_NAME).join("con voke");
        let run =
            world.convoke("odd-agent").words("--link").arg(link).arg("--agent-path").arg(path);
        let ended = world.end(on_all(&world, run).arg("hostname")).with_status(0);
        assert_eq!(ended.sorted_lines(), world.bed.hosts());
    }
}

#[test]
fn an_agent_at_a_path_that_csh_cannot_be_told_is_refused() {
    let run = Convoke::new("newline").words("--hosts n0 --agent-path").arg("/a\nb/convoke");
    let ended = run.arg("true").run().with_status(2);
    assert!(ended.stderr.contains(r#"path "/a\nb/convoke" has a newline"#), "{}", ended.stderr);
}

#[test]
fn program_directory_arguments_and_environment_arrive_as_they_are() {
    let world = every_shell();
    let variables: String = (0..ODD_WORDS.len()).map(|n| format!("\"$ODD{n}\" ")).collect();
    let program = odd_program(
        &world,
        &format!(
            "printf '%s\\0' \"$@\" {variables} \"$PWD\" \"$(pwd -P)\" | od -An -v -tx1 | tr -d ' \\n'; echo"
        ),
    );
    let dir = program.parent().unwrap();
    let run = on_all(&world, world.convoke("odd-words")).arg("--wdir").arg(dir);
    let run = ODD_WORDS.iter().enumerate().fold(run, |run, (n, word)| {
        let variable = [format!("ODD{n}=").as_bytes(), word].concat();
        run.arg("--env").arg(OsString::from_vec(variable))
    });
    let run = run.arg(&program).args(ODD_WORDS.map(OsStr::from_bytes));
    let ended = world.end(run).with_status(0);
    let dir = dir.as_os_str().as_bytes();
    let words = ODD_WORDS.into_iter().chain(ODD_WORDS).chain([dir, dir]);
    let line: String = words.flat_map(|word| word.iter().chain(&[0])).map(hex).collect();
    assert_eq!(ended.text(), format!("{line}\n").repeat(SHELLS.len()));
}

#[test]
fn what_startup_files_print_is_no_output_of_the_job() {
    let world = every_shell();
    startup_files(&world, |shell| {
        format!("echo Welcome\n{}\necho -n 'prompt> '\n", shell.complain)
    });
    for link in ["auto", "shell"] {
        let run = world.convoke("printing").words("--tree kary:2 --link").arg(link);
        let ended = world.end(on_all(&world, run).args(["echo", "up"])).with_status(0);
        assert_eq!(ended.text(), "up\n".repeat(SHELLS.len()));
    }
}

#[test]
fn startup_files_may_be_slow() {
    let world = every_shell();
    startup_files(&world, |_| "sleep 3\n".to_owned());
    let run = on_all(&world, world.convoke("slow").words("--tree flat"));
    world.end(run.arg("true")).with_status(0);
}

/// `exit` in a start-up file of fish ends the file only.
#[test]
fn a_startup_file_that_exits_is_told_by_its_words() {
    let world = every_shell();
    startup_files(&world, |_| "exec sh -c 'echo quota exceeded >&2; exit 1'\n".to_owned());
    for (shell, host) in SHELLS.iter().zip(world.bed.hosts()) {
        let status = if shell.startup.is_some() { 252 } else { 0 };
        let run = world.convoke("exiting").args(["--hosts", host, "true"]);
        let ended = world.end(run).with_status(status);
        assert!(ended.took < Duration::from_secs(10), "{}: {:?}", shell.path, ended.took);
        if shell.startup.is_some() {
            let words = &ended.stderr;
            assert!(words.contains("exited with status 1"), "{}: {words}", shell.path);
            assert!(words.contains("quota exceeded"), "{}: {words}", shell.path);
        }
    }
}

/// Where the link is on the same stream, nothing can tell what belongs to it.
#[test]
fn a_startup_file_that_goes_on_printing_harms_only_a_link_over_its_shell() {
    let world = World::up(1);
    world.write(".bashrc", "(sleep 1; echo late) &\n");
    let run = |link: &str| world.convoke("late").words("--hosts n0 --link").arg(link);
    world.end(run("auto").args(["sleep", "2"])).with_status(0);
    let ended = world.end(run("shell").args(["sleep", "60"])).with_status(251);
    assert!(ended.stderr.contains("lost node n0: "), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(25), "{:?}", ended.took);
}

#[test]
fn a_startup_file_that_waits_for_input_ends_with_the_time_to_join() {
    let world = World::up(1);
    world.write(".bashrc", "echo who are you? >&2; cat >/dev/null\n");
    let run = world.convoke("reading").words("--hosts n0 --join-timeout 3s true");
    let ended = world.end(run).with_status(252);
    assert!(ended.stderr.contains("who are you?"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
}

#[test]
fn a_path_of_a_program_that_is_not_there_is_told_whatever_the_shell() {
    let world = every_shell();
    for host in world.bed.hosts() {
        let run =
            world.convoke("missing").words("--deliver never --agent-path /no/such/convoke --hosts");
        let words = world.end(run.args([host, "true"])).with_status(252).stderr;
        assert!(words.contains("no agent program there"), "{host}: {words}");
    }
}

#[test]
fn a_home_that_is_missing_or_cannot_be_written_is_no_hindrance() {
    let world = every_shell();
    // Some shells make a home that is missing, where that is possible.
    for home in ["/proc/none", "/proc"] {
        world.bed.set_home(home).unwrap();
        let run = on_all(&world, world.convoke("homeless")).arg("hostname");
        assert_eq!(world.end(run).with_status(0).sorted_lines(), world.bed.hosts());
    }
}

#[test]
fn a_long_or_missing_directory_for_temporary_files_is_the_tasks_affair() {
    let world = World::up(2);
    for dir in [format!("/tmp/{}", "d".repeat(200)), "/no/such/dir".to_owned()] {
        let run = world.convoke("tmpdir").words("--hosts n[0-1]").env("TMPDIR", &dir);
        let ended = world.end(run.args(["sh", "-c", "echo $TMPDIR"])).with_status(0);
        assert_eq!(ended.text(), format!("{dir}\n{dir}\n"));
    }
}

#[test]
fn a_task_is_in_the_directory_that_its_shell_says_it_is_in() {
    let world = World::up(1);
    fs::create_dir_all(world.bed.run_dir().join("real/inner")).unwrap();
    std::os::unix::fs::symlink("real/inner", world.bed.run_dir().join("link")).unwrap();
    for (wdir, pwd) in
        [("link", "link"), ("link/../real/.", "real"), ("real/inner//", "real/inner")]
    {
        let run =
            world.convoke("pwd").words("--hosts n0 --wdir").arg(Path::new(RUN_DIR).join(wdir));
        let run = run.env("OLDPWD", "/old").args(["sh", "-c", "echo $PWD $OLDPWD; pwd"]);
        let ended = world.end(run).with_status(0);
        assert_eq!(ended.text(), format!("{RUN_DIR}/{pwd}\n").repeat(2));
    }
}

#[test]
fn descriptors_that_a_node_does_not_have_are_told_with_what_to_do() {
    let world = World::up(2);
    world.write(".bashrc", "ulimit -n 40\n");
    world.bed.set_login_shell("n1", "/bin/bash").unwrap();
    let few = world.convoke("few").words("--hosts n0:2,n1:2 -n 4 --ppn 2 hostname");
    assert_eq!(world.end(few).with_status(0).sorted_lines(), ["n0", "n0", "n1", "n1"]);
    let many = world.convoke("many").words("--hosts n0:30,n1:30 -n 60 sleep 60");
    let ended = world.end(many).with_status(126);
    assert!(ended.stderr.contains("40 descriptors are allowed"), "{}", ended.stderr);
}

/// Nothing limits root, so this is another user's job.
#[test]
fn processes_that_a_user_may_not_have_are_told_with_what_to_do() {
    let world = World::up(1);
    let copy = world.bed.run_dir().join("convoke");
    fs::copy(convoke_path(), copy).unwrap();
    let user = ["--reuid", "47011", "--regid", "47011", "--clear-groups", "prlimit", "--nproc=12"];
    let run = world.program("processes", "setpriv").args(user).arg(format!("{RUN_DIR}/convoke"));
    let ended = world.end(run.words("run --launcher local --hosts a:40 -n 40 sleep 60"));
    assert!(ended.stderr.contains("may have no more processes"), "{}", ended.stderr);
    ended.with_status(126);
}

#[test]
fn a_startup_file_that_takes_the_agents_first_line_is_told_by_the_agent() {
    let world = World::up(1);
    world.write(".bashrc", "read line\n");
    let run = world.convoke("taken").words("--deliver never --hosts n0 --join-timeout 7s true");
    let ended = world.end(run).with_status(252);
    assert!(
        ended.stderr.contains("does a start-up file here read standard input?"),
        "{}",
        ended.stderr
    );
    assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
}

/// A host for each shell.
pub(crate) fn every_shell() -> World {
    let world = World::up(SHELLS.len());
    for (host, shell) in world.bed.hosts().iter().zip(&SHELLS) {
        assert!(Path::new(shell.path).exists(), "no {}: run `cargo xtask setup`", shell.path);
        world.bed.set_login_shell(host, shell.path).unwrap();
    }
    world
}

fn hex(byte: &u8) -> String {
    format!("{byte:02x}")
}

fn startup_files(world: &World, text: impl Fn(&Shell) -> String) {
    fs::create_dir_all(world.bed.run_dir().join(".config/fish")).unwrap();
    for shell in &SHELLS {
        if let Some(file) = shell.startup {
            world.write(file, &text(shell));
        }
    }
}

fn on_all(world: &World, run: Convoke) -> Convoke {
    run.args(["--hosts", &world.bed.host_list()])
}

/// A script at a path of its own with a newline in it; returns the path on the hosts.
fn odd_program(world: &World, script: &str) -> PathBuf {
    let name = format!("{ODD_NAME}\n2");
    let dir = world.bed.run_dir().join(&name);
    fs::create_dir(&dir).unwrap();
    let file = OsString::from_vec(b"-pro gram\xff".to_vec());
    fs::write(dir.join(&file), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(dir.join(&file), fs::Permissions::from_mode(0o755)).unwrap();
    Path::new(RUN_DIR).join(name).join(file)
}
