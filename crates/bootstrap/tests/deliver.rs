//! The script that brings the agent's program to a host, under every shell there is, and with caches
//! of all kinds.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bootstrap::boot;
use bootstrap::deliver::Program;
use bootstrap::{
    AgentProgram, Asked, Bootstrapper, Fallback, Request, RequestReader, ShellTemplate,
};
use tempfile::TempDir;

const BUILD: &str = "0123456789abcdef";

/// What a host that lacks the program asks for: it is sent in two pieces.
const ASKED: [Request; 3] = [Request::Program, Request::Program, Request::Boot];

/// Shells that may be a host's `/bin/sh`.
const INTERPRETERS: [&str; 6] =
    ["dash", "bash --posix", "ksh", "mksh", "zsh --emulate sh", "busybox sh"];

#[test]
fn under_every_shell_a_host_that_lacks_the_program_asks_once_and_then_has_it() {
    for interpreter in INTERPRETERS.iter().filter(|words| is_installed(words)) {
        let host = Host::new();
        let run =
            |host: &Host| host.start(&|command| command.replace("/bin/sh", interpreter)).end();
        let first = run(&host);
        assert_eq!(first.said, "agent of 616263", "{interpreter}: {first:?}");
        assert_eq!(first.requests, ASKED, "{interpreter}");
        let second = run(&host);
        assert_eq!((&*second.said, second.requests.len()), ("agent of 616263", 0), "{interpreter}");
        assert_eq!(host.parts(), 0, "{interpreter}");
    }
}

#[test]
fn every_login_shell_finds_out_that_the_program_is_not_there() {
    for shell in ["sh", "bash", "dash", "csh", "tcsh", "fish", "zsh", "ksh"] {
        if is_installed(shell) {
            let host = Host { login_shell: shell, ..Host::new() };
            let ended = host.run();
            assert_eq!(ended.said, "agent of 616263", "{shell}: {ended:?}");
            assert_eq!(ended.requests, ASKED, "{shell}");
        }
    }
}

#[test]
fn every_login_shell_runs_a_program_that_is_in_place_without_asking() {
    for shell in ["sh", "bash", "dash", "csh", "tcsh", "fish", "zsh", "ksh"] {
        if is_installed(shell) {
            let host = Host { login_shell: shell, ..Host::new() };
            fs::copy(host.sent(), host.path()).unwrap();
            let ended = host.run();
            assert_eq!((&*ended.said, ended.requests.len()), ("agent of 616263", 0), "{shell}");
            assert!(!host.cache().exists());
        }
    }
}

#[test]
fn whatever_lies_at_the_path_and_cannot_be_executed_is_passed_over() {
    let directory = Host::new();
    fs::create_dir(directory.path()).unwrap();
    let not_executable = Host::new();
    fs::write(not_executable.path(), "#!/bin/sh\n").unwrap();
    for host in [directory, not_executable] {
        assert_eq!(host.run().said, "agent of 616263");
    }
}

#[test]
fn a_cached_program_with_other_contents_is_replaced() {
    for damage in [&b""[..], b"#!/bin/sh\necho bad >&2\n"] {
        let host = Host::new();
        host.run();
        fs::write(host.cached(), damage).unwrap();
        let ended = host.run();
        assert_eq!((&*ended.said, ended.requests.len()), ("agent of 616263", 3));
        assert_eq!(host.run().requests, []);
    }
}

#[test]
fn what_others_could_have_written_into_is_thrown_away_and_closed() {
    for mode in [0o777, 0o770, 0o755] {
        let host = Host::new();
        host.run();
        fs::set_permissions(host.cache(), Permissions::from_mode(mode)).unwrap();
        assert_eq!(host.run().requests, ASKED, "{mode:o}");
        assert_eq!(fs::metadata(host.cache()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(host.run().requests, []);
    }
}

/// As directories do that are made where those of a group are.
#[test]
fn a_cache_that_belongs_to_a_group_which_may_not_enter_it_is_kept() {
    let host = Host::new();
    host.run();
    fs::set_permissions(host.cache(), Permissions::from_mode(0o2700)).unwrap();
    assert_eq!(host.run().requests, []);
}

#[test]
fn a_cache_that_is_a_link_or_a_file_is_not_used_and_another_place_is() {
    let linked = Host::new();
    fs::create_dir_all(linked.cache().parent().unwrap()).unwrap();
    fs::create_dir(linked.dir.path().join("elsewhere")).unwrap();
    symlink(linked.dir.path().join("elsewhere"), linked.cache()).unwrap();
    let file = Host::new();
    fs::create_dir_all(file.cache().parent().unwrap()).unwrap();
    fs::write(file.cache(), "").unwrap();
    let homeless = Host { home: Some("/proc/no/home".into()), ..Host::new() };
    let without_home = Host { home: None, ..Host::new() };
    for host in [linked, file, homeless, without_home] {
        assert_eq!(host.run().requests, ASKED);
        let again = host.run();
        assert_eq!((&*again.said, again.requests.len()), ("agent of 616263", 0));
        assert_eq!(fs::read_dir(host.tmp()).unwrap().count(), 1);
    }
}

#[test]
fn a_host_without_any_place_says_why_for_each() {
    let host = Host { home: Some("/proc/no/home".into()), ..Host::new() };
    fs::remove_dir(host.tmp()).unwrap();
    fs::write(host.tmp(), "").unwrap();
    let ended = host.run();
    assert_eq!((ended.status, ended.requests.len()), (Some(127), 0));
    let words = "convoke: no place to keep the agent's program: mkdir: ";
    assert!(ended.said.starts_with(words), "{}", ended.said);
    assert!(ended.said.contains("/proc/no") && ended.said.contains("/tmp/"), "{}", ended.said);
}

#[test]
fn a_program_that_came_garbled_or_not_whole_is_not_run() {
    for cut in [0, 10] {
        let host = Host::new();
        let mut talk = host.start(&str::to_owned);
        talk.wait_for(Request::Program);
        let mut bytes = fs::read(host.sent()).unwrap();
        bytes.truncate(bytes.len() - cut);
        bytes[12] ^= 1;
        talk.send(&talk.program.announcement(&(0..talk.program.bytes)));
        talk.send(&bytes);
        let ended = talk.hang_up();
        assert_eq!(ended.status, Some(127));
        assert_eq!(ended.said, "convoke: the agent's program came garbled, or not whole");
        assert_eq!(host.parts(), 0);
    }
}

#[test]
fn a_program_that_does_not_run_there_is_named_with_what_the_system_says() {
    let host = Host::new();
    let script = "#!/nowhere/ld-linux.so\n";
    fs::write(host.sent(), script).unwrap();
    let ended = host.run();
    assert_eq!(ended.status, Some(127));
    let words = "convoke: the agent's program does not run here: ";
    assert!(ended.said.starts_with(words) && ended.said.contains("not found"), "{}", ended.said);
    assert_eq!(host.parts(), 0);
}

#[test]
fn another_kind_of_machine_is_named_and_asks_for_nothing() {
    let ended = Host { machine: "vax".into(), ..Host::new() }.run();
    assert_eq!((ended.status, ended.requests.len()), (Some(126), 0));
    assert!(ended.said.ends_with(", and the agent's program is for vax"), "{}", ended.said);
}

#[test]
fn two_that_ask_at_once_both_get_on_and_the_first_to_have_it_stays() {
    let host = Host::new();
    let mut talks = [host.start(&str::to_owned), host.start(&str::to_owned)];
    talks.iter_mut().for_each(|talk| talk.wait_for(Request::Program));
    assert_eq!(host.parts(), 2);
    for talk in talks {
        assert_eq!(talk.end().said, "agent of 616263");
    }
    assert_eq!((host.parts(), host.run().requests.len()), (0, 0));
}

#[test]
fn the_latest_builds_stay_and_what_killed_transfers_left_goes_after_a_day() {
    let host = Host::new();
    host.run();
    for old in 1..=6 {
        let entry = host.cache().join(format!("build{old}-sum"));
        fs::create_dir(&entry).unwrap();
        let day = std::time::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * old);
        File::open(&entry).unwrap().set_modified(day).unwrap();
        let part = host.cache().join(format!("part.{old}"));
        fs::create_dir(&part).unwrap();
        File::create(part.join("convoke")).unwrap();
        File::open(part).unwrap().set_modified(day).unwrap();
    }
    File::create(host.cache().join("part.new")).unwrap();
    fs::remove_file(host.cached()).unwrap();
    host.run();
    let names = fs::read_dir(host.cache()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names.retain(|name| !name.starts_with(BUILD));
    assert_eq!(names, ["build4-sum", "build5-sum", "build6-sum", "part.new"]);
}

/// A host with a home, a directory for temporary files, and a program to be sent to it.
struct Host {
    dir: TempDir,
    home: Option<PathBuf>,
    machine: String,
    login_shell: &'static str,
}

/// A start on it that runs.
struct Talk {
    child: Child,
    reader: RequestReader,
    requests: Vec<Request>,
    program: Program,
    sent: u64,
}

/// One that is over.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    said: String,
    requests: Vec<Request>,
}

impl Host {
    fn new() -> Host {
        let dir = tempfile::tempdir().unwrap();
        let home = Some(dir.path().join("home"));
        let host = Host { dir, home, machine: os::machine::architecture(), login_shell: "sh" };
        fs::create_dir_all(host.dir.path().join("home")).unwrap();
        fs::create_dir_all(host.tmp()).unwrap();
        let agent = "#!/bin/sh\n[ $1 != --version ] || exit 0\nwhile read -r magic hex; do\n\
                     [ \"$magic\" != CONVOKE-BOOT-1 ] || break\ndone\necho agent of $hex >&2\n";
        fs::write(host.sent(), agent).unwrap();
        fs::set_permissions(host.sent(), Permissions::from_mode(0o755)).unwrap();
        host
    }

    /// What is sent to it.
    fn sent(&self) -> PathBuf {
        self.dir.path().join("sent")
    }

    /// Where its own is looked for.
    fn path(&self) -> PathBuf {
        self.dir.path().join("con voke")
    }

    fn tmp(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("home/.cache/convoke")
    }

    fn cached(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        let is_entry = |path: &PathBuf| path.to_string_lossy().contains(BUILD);
        entries.find(is_entry).unwrap().join("convoke")
    }

    /// How many transfers have left something.
    fn parts(&self) -> usize {
        let is_part = |name: OsString| name.to_string_lossy().starts_with("part.");
        let entries = fs::read_dir(self.cache()).unwrap();
        entries.filter(|entry| is_part(entry.as_ref().unwrap().file_name())).count()
    }

    fn run(&self) -> Ended {
        self.start(&str::to_owned).end()
    }

    #[expect(clippy::disallowed_methods, reason = "a test that needs the child's output")]
    fn start(&self, change: &dyn Fn(&str) -> String) -> Talk {
        let fallback = Fallback { build: BUILD.into(), machine: self.machine.clone() };
        let program = AgentProgram { path: self.path().into(), fallback: Some(fallback) };
        let shell = Bootstrapper::Shell(ShellTemplate::parse("x {host}").unwrap());
        let command = shell.command(&["n1"], &program, b"abc").unwrap();
        let words = change(&command.argv[2].clone().into_string().unwrap());
        let mut child = Command::new(self.login_shell);
        child.args(["-c", &words]).env("TMPDIR", self.tmp()).env_remove("XDG_CACHE_HOME");
        match &self.home {
            Some(home) => child.env("HOME", home),
            None => child.env_remove("HOME"),
        };
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = Program::of(File::open(self.sent()).unwrap()).unwrap();
        let child = child.spawn().unwrap();
        let (reader, requests) = (RequestReader::default(), Vec::new());
        let mut talk = Talk { child, reader, requests, program, sent: 0 };
        talk.send(&command.stdin.unwrap());
        talk
    }
}

impl Talk {
    /// What waits for nobody is sent; a host that has given up reads no more.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.child.stdin.as_mut().unwrap().write_all(bytes);
    }

    fn read_requests(&mut self) -> Option<Vec<Request>> {
        let mut buffer = [0; 4096];
        let n = self.child.stdout.as_mut().unwrap().read(&mut buffer).unwrap();
        let mut asked = self.reader.push((n > 0).then_some(&buffer[..n])?);
        let mut requests = Vec::new();
        while let Some(Asked { request, rest }) = asked {
            requests.push(request);
            asked = self.reader.push(&rest);
        }
        Some(requests)
    }

    fn wait_for(&mut self, request: Request) {
        while self.requests.last() != Some(&request) {
            let more = self.read_requests().expect("it ends before it asks");
            self.requests.extend(more);
        }
    }

    /// Gives it all that it asks for and has asked for, until it ends.
    fn end(mut self) -> Ended {
        let mut asked = self.requests.clone();
        loop {
            for request in asked {
                let answer = match request {
                    Request::Program => self.next_piece(),
                    Request::Boot => boot::line(b"abc"),
                    Request::Link => panic!("it asks for a link"),
                };
                self.send(&answer);
            }
            let Some(more) = self.read_requests() else { return self.hang_up() };
            self.requests.extend(&more);
            asked = more;
        }
    }

    /// Half of the program, as it is announced.
    fn next_piece(&mut self) -> Vec<u8> {
        let piece = self.sent..self.program.bytes.min(self.sent + self.program.bytes.div_ceil(2));
        self.sent = piece.end;
        let mut bytes = vec![0; usize::try_from(piece.end - piece.start).unwrap()];
        self.program.file.read_exact_at(&mut bytes, piece.start).unwrap();
        [self.program.announcement(&piece), bytes].concat()
    }

    /// Sends nothing more.
    fn hang_up(mut self) -> Ended {
        drop(self.child.stdin.take());
        while let Some(more) = self.read_requests() {
            self.requests.extend(more);
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap().code();
        Ended { status, said: said.trim_end().to_owned(), requests: self.requests }
    }
}

fn is_installed(words: &str) -> bool {
    let program = words.split(' ').next().unwrap_or_default();
    ["/bin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
}
