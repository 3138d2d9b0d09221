//! What users, hosts and programs do wrong: each time the command says what and where,
//! ends with the documented status before its deadline, and leaves nothing running.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use insta::assert_snapshot;
use support::convoke::{Convoke, Ended, Running, convoke_path};
use support::stand::{misbehave, on_hosts};
use support::watch::wait_until;
use testbed::{HEAD, Sshd, Testbed};

mod command_lines {
    use super::*;

    #[test]
    fn more_tasks_than_slots_are_refused_with_a_hint() {
        let run = Convoke::new("slots").words("--hosts a:2,b:1 -n 4 true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn redundant_links_without_a_route_are_refused_and_so_are_too_many() {
        let run = Convoke::new("redundancy").words("--hosts a,b --redundancy 1 true");
        assert_snapshot!(run.run().with_status(2).words());
        let run = Convoke::new("redundancies");
        let run = run.words("--hosts a,b --route binomial --redundancy 9 true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn a_malformed_host_file_is_refused_by_its_line() {
        let run = Convoke::new("hostfile");
        let file = run.dir().join("hosts");
        fs::write(&file, "# good\nn1:4\nn[2-:3\nn3\n").unwrap();
        let ended = run.arg("--hostfile").arg(&file).arg("true").run();
        assert_snapshot!(ended.with_status(2).words());
    }

    #[test]
    fn malformed_slots_in_a_host_file_are_refused_by_their_line() {
        let run = Convoke::new("hostfile-slots");
        let file = run.dir().join("hosts");
        fs::write(&file, "n1:4\n\nn2:many\n").unwrap();
        let ended = run.arg("--hostfile").arg(&file).arg("true").run();
        assert_snapshot!(ended.with_status(2).words());
    }

    #[test]
    fn a_host_file_that_is_not_there_is_named() {
        let run = Convoke::new("no-hostfile").words("--hostfile /nowhere/hosts true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn a_malformed_host_list_is_refused() {
        let run = Convoke::new("hostlist").words("--hosts n[3-1] true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn a_shell_template_without_a_host_is_refused() {
        let run = Convoke::new("template").words("--hosts a --shell rsh true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn more_spares_than_hosts_that_can_be_spared_are_refused() {
        for hosts in ["a", "a,b"] {
            let run = Convoke::new("spares").args(["--hosts", hosts, "--spares", "2", "true"]);
            let words = run.run().with_status(2).words();
            assert!(words.contains("`--spares 2`: there"), "{words}");
        }
        let run = Convoke::new("spares-slots").words("--hosts a:2,b:2 --spares 1 -n 3 true");
        assert_snapshot!(run.run().with_status(2).words());
    }

    #[test]
    fn a_number_of_nodes_that_has_no_meaning_or_is_too_large_is_refused() {
        let run = Convoke::new("min-nodes").words("--hosts a,b --min-nodes 1 true");
        assert_snapshot!("min_nodes_without_continue", run.run().with_status(2).words());
        let run = Convoke::new("min-nodes");
        let run = run.words("--hosts a,b,c --spares 1 --on-missing continue --min-nodes 3 true");
        assert_snapshot!("min_nodes_too_large", run.run().with_status(2).words());
    }

    #[test]
    fn names_of_files_and_places_of_tasks_are_refused_where_tasks_may_move() {
        for (option, value) in
            [("--output", "out"), ("--outfile-pattern", "%r"), ("--errfile-pattern", "%r")]
        {
            for movable in [&["--spares", "1"][..], &["--on-missing", "continue"]] {
                let run = Convoke::new("movable").args(["--hosts", "a,b", option, value]);
                let words = run.args(movable).arg("true").run().with_status(2).words();
                assert!(words.starts_with(&format!("error: `{option}` says where")), "{words}");
            }
        }
    }

    #[test]
    fn a_rank_for_standard_input_that_does_not_exist_is_refused() {
        let run = Convoke::new("stdin-rank").words("-n 2 --stdin 2 true");
        assert_snapshot!(run.run().with_status(2).words());
    }
}

mod programs {
    use super::*;

    #[test]
    fn a_missing_program_is_one_error_for_all_nodes() {
        let ended =
            on_hosts("missing", "a,b,c", "").words("-n 3 no-such-program").env("PATH", PATH);
        assert_snapshot!(ended.run().with_status(127).words());
    }

    #[test]
    fn a_missing_path_is_named_whole() {
        let ended = on_hosts("missing-path", "a,b", "").words("-n 2 /nowhere/solve");
        assert_snapshot!(ended.run().with_status(127).words());
    }

    #[test]
    fn a_file_without_the_execute_bit_is_not_run() {
        let run = on_hosts("not-executable", "a,b", "");
        let program = run.dir().join("solve");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        assert_snapshot!(run.words("-n 2").arg(&program).run().with_status(126).words());
    }

    #[test]
    fn a_file_that_is_no_program_is_not_run() {
        let run = on_hosts("no-program", "a", "");
        let program = run.dir().join("data");
        fs::write(&program, b"\x7fELF\0\0\0").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_snapshot!(run.words("-n 1").arg(&program).run().with_status(126).words());
    }

    #[test]
    fn a_script_whose_interpreter_is_missing_says_so() {
        let run = on_hosts("no-interpreter", "a", "");
        let program = run.dir().join("script");
        fs::write(&program, "#!/nowhere/python\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_snapshot!(run.words("-n 1").arg(&program).run().with_status(127).words());
    }

    #[test]
    fn a_program_whose_loader_is_missing_says_so() {
        let run = on_hosts("no-loader", "a,b", "");
        let program = changed_program(run.dir(), |bytes| {
            let at = bytes.windows(4).position(|window| window == b"/ld-").unwrap();
            bytes[at..at + 4].copy_from_slice(b"/no-");
        });
        let ended = run.words("-n 2").arg(&program).arg("exit:0").run().with_status(127);
        assert!(ended.stderr.contains("a,b: `"), "{}", ended.stderr);
        assert!(ended.stderr.contains("` is to be loaded by `/lib"), "{}", ended.stderr);
        assert!(ended.stderr.ends_with("`, which does not exist\n"), "{}", ended.stderr);
    }

    #[test]
    fn a_program_for_another_machine_says_for_which() {
        let run = on_hosts("machine", "a,b", "");
        let loongarch = |bytes: &mut Vec<u8>| bytes[18..20].copy_from_slice(&258_u16.to_le_bytes());
        let program = changed_program(run.dir(), loongarch);
        let ended = run.words("-n 2").arg(&program).arg("exit:0").run().with_status(126);
        let words = "(it is for loongarch64, and this machine is ";
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }

    /// The fixture with other bytes.
    fn changed_program(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let program = dir.join("solve");
        let mut bytes = fs::read(misbehave()).unwrap();
        change(&mut bytes);
        fs::write(&program, bytes).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn a_directory_is_no_program() {
        let ended = on_hosts("directory", "a", "").words("-n 1 /usr").run();
        assert_snapshot!(ended.with_status(126).words());
    }

    #[test]
    fn a_missing_working_directory_is_named_with_the_nodes() {
        let ended = on_hosts("wdir", "a,b", "").words("-n 2 --wdir /nowhere/at/all true");
        assert_snapshot!(ended.run().with_status(126).words());
    }
}

mod values {
    use super::*;

    /// What no shell would leave alone, were it asked.
    const AWKWARD: [&str; 12] = [
        "",
        " ",
        "a b  c",
        "=",
        "a=b=c",
        "it's",
        "\"quoted\"",
        "back\\slash\\",
        "$HOME `id` $(id) ${x}",
        "new\nline\n",
        "! * ? [a] {b,c} ~ # & ; | < >",
        "\t\r\u{7f}\u{e4}\u{4e16}",
    ];

    #[test]
    fn awkward_arguments_and_variables_arrive_as_they_are() {
        let variables = AWKWARD.iter().enumerate().map(|(i, value)| format!("AWKWARD_{i}={value}"));
        let options = variables.clone().flat_map(|variable| ["--env".to_owned(), variable]);
        let run = on_hosts("awkward", "a,b", "").words("-n 2 --stdin none").args(options);
        let text = run.misbehave(["show"]).args(AWKWARD).run().with_status(0).text();
        for value in AWKWARD {
            assert_eq!(text.matches(&format!("arg {}\n", escaped(value))).count(), 2, "{text}");
        }
        for variable in variables {
            assert_eq!(text.matches(&format!("env {}\n", escaped(&variable))).count(), 2, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_arrive_as_they_are() {
        use std::os::unix::ffi::OsStrExt;
        let bytes: Vec<u8> = (1..=255).collect();
        let word = std::ffi::OsStr::from_bytes(&bytes);
        let run = on_hosts("bytes", "a", "").env("BYTES", word).words("-n 1");
        let text = run.misbehave(["show"]).arg(word).run().with_status(0).text();
        assert!(text.contains(&format!("arg {}\n", bytes.escape_ascii())), "{text}");
        assert!(text.contains(&format!("env BYTES={}\n", bytes.escape_ascii())), "{text}");
    }

    #[test]
    fn ten_thousand_arguments_arrive() {
        let args = (0..10_000).map(|i| format!("argument-{i}"));
        let run = on_hosts("arguments", "a,b", "").words("-n 2").misbehave(["show"]);
        let text = run.args(args).run().with_status(0).text();
        assert_eq!(text.matches("arg argument-").count(), 20_000);
        assert_eq!(text.matches("arg argument-9999\n").count(), 2);
    }

    /// In pieces that come out as whole lines, which are at most 64 KiB long.
    #[test]
    fn an_environment_of_a_mebibyte_arrives() {
        let value = |i: u8| String::from_utf8(vec![b'a' + i; 50_000]).unwrap();
        let mut run = on_hosts("environment", "a,b", "--latency-ms 0").words("-n 2");
        for i in 0..22 {
            run = run.env(format!("LARGE_{i}"), value(i));
        }
        let text = run.misbehave(["show"]).run().with_status(0).text();
        for i in 0..22 {
            let line = format!("env LARGE_{i}={}\n", value(i));
            assert_eq!(text.matches(&line).count(), 2, "variable {i}");
        }
    }

    #[test]
    fn an_awkward_path_of_the_program_passes_every_login_shell() {
        for shell in ["sh", "bash", "dash", "csh", "tcsh", "fish", "zsh", "ksh", "mksh"] {
            if is_installed(shell) {
                starts_from_an_awkward_path(shell);
            }
        }
    }

    fn starts_from_an_awkward_path(shell: &str) {
        let run = Convoke::new(&format!("shell-{shell}"));
        let dir = run.dir().join("it's a $HOME! \\ \"dir\" *");
        fs::create_dir(&dir).unwrap();
        let agent = dir.join("con voke");
        symlink(convoke_path(), &agent).unwrap();
        let template = format!("env HOST={{host}} {shell} -c {{cmd}}");
        let run = run.args(["--hosts", "a,b", "-n", "2", "--shell", &template]).arg("--agent-path");
        let ended = run.arg(&agent).arg("--wdir").arg(&dir).misbehave(["show"]).run();
        let text = ended.with_status(0).text();
        let shown = format!("cwd {}\n", escaped(&dir.to_string_lossy()));
        assert_eq!(text.matches(&shown).count(), 2, "{shell}: {text}");
    }

    fn escaped(text: &str) -> String {
        text.as_bytes().escape_ascii().to_string()
    }

    fn is_installed(program: &str) -> bool {
        std::env::split_paths(PATH).any(|dir| dir.join(program).exists())
    }
}

mod shells {
    use super::*;

    #[test]
    fn a_shell_that_never_answers_ends_with_the_time_to_join() {
        let ended = on_hosts("hang", "a,b,c", "--hang b").words("-n 3 --join-timeout 2s true");
        let ended = ended.run().with_status(252);
        assert!(ended.took < Duration::from_secs(12), "{:?}", ended.took);
        assert_snapshot!(ended.words());
    }

    #[test]
    fn a_shell_that_asks_for_a_password_ends_with_the_time_to_join() {
        let ended = on_hosts("ask", "a,b,c", "--ask c").words("-n 3 --join-timeout 2s true");
        let ended = ended.run().with_status(252);
        assert!(ended.took < Duration::from_secs(12), "{:?}", ended.took);
        // Whether it has said more when it is ended is its affair.
        assert_snapshot!(ended.words().replace(" Permission denied, please try again.", ""));
    }

    #[test]
    fn shells_that_fail_alike_are_told_of_together() {
        let options = "--fail b:1:Disk_quota_exceeded --fail d:1:Disk_quota_exceeded";
        let ended = on_hosts("fail", "a,b,c,d", options).words("--tree flat -n 4 true").run();
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn a_shell_program_that_does_not_exist_is_named() {
        let run = Convoke::new("no-shell").words("--hosts a,b -n 2 --shell");
        let ended = run.arg("/nowhere/rsh {host} {cmd}").arg("true").run();
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn an_agent_program_that_does_not_exist_there_is_named() {
        let run = on_hosts("no-agent", "a,b", "")
            .words("-n 2 --deliver never --agent-path /nowhere/convoke true");
        assert_snapshot!(run.run().with_status(252).words());
    }

    #[test]
    fn an_agent_that_cannot_be_executed_there_is_named() {
        let run = on_hosts("dull-agent", "a,b", "");
        let agent = run.dir().join("agent");
        fs::write(&agent, "").unwrap();
        let ended = run.arg("--agent-path").arg(&agent).words("--deliver never -n 2 true").run();
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn a_shell_that_prints_and_exits_well_is_no_agent() {
        let run = Convoke::new("echo").args(["--hosts", "a,b", "-n", "2", "--shell"]);
        let ended = run.arg("echo {host} {cmd}").arg("true").run();
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn noise_of_login_shells_does_no_harm() {
        let ended = on_hosts("noise", "a,b,c", "--noise").words("-n 3 echo up").run();
        assert_eq!(ended.with_status(0).text(), "up\n".repeat(3));
    }
}

/// Real ssh between real hosts, one testbed for all tests, one at a time.
mod ssh {
    use super::*;

    static BED: LazyLock<Mutex<Testbed>> = LazyLock::new(|| Mutex::new(Testbed::up(2).unwrap()));

    #[test]
    fn an_unknown_host_is_named_with_sshs_words() {
        let ended = on_bed(|_| ()).run("n0,nowhere");
        assert!(ended.stderr.contains("Could not resolve hostname nowhere"), "{}", ended.stderr);
        assert_snapshot!(without_resolver_words(&ended.with_status(252).words()));
    }

    #[test]
    fn a_refused_port_is_named() {
        let ended = on_bed(|bed| bed.stop_sshd("n1").unwrap()).run("n0,n1");
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn an_unreachable_host_is_named() {
        let ended = on_bed(cut_off).run("n0,n1");
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn a_host_that_swallows_everything_ends_with_the_time_to_join() {
        let bed = on_bed(|bed| bed.black_hole("n1").unwrap());
        let ended = bed.run_with("n0,n1", "--join-timeout 3s").with_status(252);
        assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
        assert_snapshot!(ended.words());
    }

    #[test]
    fn a_mute_sshd_ends_with_the_time_to_join() {
        let bed = on_bed(|bed| bed.mute_sshd("n1").unwrap());
        let ended = bed.run_with("n0,n1", "--join-timeout 3s").with_status(252);
        assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
        assert_snapshot!(ended.words());
    }

    #[test]
    fn a_key_that_is_not_let_in_is_named() {
        let ended = on_bed(|bed| bed.start_sshd("n1", Sshd::NoUserKey).unwrap()).run("n0,n1");
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn an_sshd_that_wants_a_password_is_not_asked_for_one() {
        let ended = on_bed(|bed| bed.start_sshd("n1", Sshd::AsksPassword).unwrap()).run("n0,n1");
        assert_snapshot!(ended.with_status(252).words());
    }

    #[test]
    fn a_wrong_host_key_is_named() {
        let ended = on_bed(|bed| bed.start_sshd("n1", Sshd::WrongHostKey).unwrap()).run("n0,n1");
        assert_snapshot!(without_fingerprints(&ended.with_status(252).words()));
    }

    #[test]
    fn healthy_hosts_run_the_job() {
        let ended = on_bed(|_| ()).run("n0,n1").with_status(0);
        assert_eq!(ended.sorted_lines(), ["n0", "n1"]);
    }

    /// The testbed while a test has it, hurt.
    struct Hurt(MutexGuard<'static, Testbed>);

    fn on_bed(hurt: impl FnOnce(&Testbed)) -> Hurt {
        let bed = BED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hurt(&bed);
        Hurt(bed)
    }

    /// Also forgets the host's hardware address, so that it is looked for at once.
    fn cut_off(bed: &Testbed) {
        bed.cut("n1").unwrap();
        bed.run(HEAD, "ip neighbour flush all").unwrap();
    }

    impl Hurt {
        fn run(&self, hosts: &str) -> Ended {
            self.run_with(hosts, "")
        }

        fn run_with(&self, hosts: &str, options: &str) -> Ended {
            let path = convoke_path().to_str().unwrap();
            let run = Convoke::wrapped("ssh", self.0.command(HEAD, path).unwrap());
            let ended = run.arg("run").words(options).args(["--hosts", hosts, "hostname"]).run();
            let is_gone = || self.0.find("__agent").unwrap().is_empty();
            assert!(wait_until(Duration::from_secs(3), is_gone), "agents are left");
            ended
        }
    }

    impl Drop for Hurt {
        fn drop(&mut self) {
            self.0.heal("n1").unwrap();
        }
    }

    /// The C library says what its name service was up to.
    fn without_resolver_words(text: &str) -> String {
        cut_after(text, "hostname nowhere: ")
    }

    fn without_fingerprints(text: &str) -> String {
        cut_after(text, "SHA256:")
    }

    fn cut_after(text: &str, mark: &str) -> String {
        let cut = |line: &str| match line.split_once(mark) {
            Some((before, _)) => format!("{before}{mark}<...>"),
            None => line.to_owned(),
        };
        text.lines().map(cut).collect::<Vec<_>>().join("\n")
    }
}

mod tasks {
    use super::*;

    #[test]
    fn an_agent_that_is_killed_is_named_with_the_signal() {
        let ended = on_hosts("killed-agent", "a,b", "").words("-n 2 sh -c").arg(KILL_ON_B);
        assert_snapshot!(ended.env("VICTIM", "$PPID").run().with_status(251).words());
    }

    /// The keeper is what the shell here has become. Whether the agent's own words come through
    /// after it is a matter of time.
    #[test]
    fn an_agent_whose_keeper_is_killed_is_named_with_the_signal_of_its_shell() {
        let ended = on_hosts("killed-keeper", "a,b", "").words("-n 2 sh -c").arg(KILL_ON_B);
        let ended = ended.env("VICTIM", "$(cut -d' ' -f4 /proc/$PPID/stat)");
        let words = ended.run().with_status(251).words();
        let first = "error: lost node b: its remote shell was killed by signal 9 (SIGKILL)\n";
        assert!(words.starts_with(first), "{words}");
    }

    /// The agent of `b` hangs, and then the task on `a` ends the job.
    #[test]
    fn an_agent_that_hangs_when_the_job_is_ended_is_named_with_what_may_be_missing() {
        let script = r#"[ "$PMI_RANK" = 0 ] || { kill -STOP $PPID; sleep 60; }; sleep 0.5; exit 3"#;
        let run = on_hosts("hung-agent", "a,b", "").words("--grace 300ms -n 2 sh -c").arg(script);
        assert_snapshot!(run.run().with_status(3).words());
    }

    /// Kills what the variable says, on one of two hosts.
    const KILL_ON_B: &str = r#"[ "$PMI_RANK" = 0 ] || eval "kill -9 $VICTIM"; sleep 60"#;

    #[test]
    fn a_pmi_client_that_dies_in_half_a_line_ends_the_job() {
        let run = on_hosts("half-line", "a,b", "").words("-n 2 --ppn 1");
        let script = "if test $PMI_RANK = 1; then exec $0 pmi-init pmi-send:cmd=put\\ kvs exit:0; \
                      else exec $0 pmi-init pmi-barrier; fi";
        let ended = run.args(["sh", "-c", script]).arg(misbehave()).run();
        assert_snapshot!(ended.with_status(250).words());
    }

    #[test]
    fn a_pmi_client_that_talks_nonsense_is_named() {
        let run = on_hosts("nonsense", "a", "").words("-n 1");
        let ended = run.misbehave(["pmi-send:GET / HTTP/1.0\\n\\n", "hang"]).run();
        assert_snapshot!(ended.with_status(250).words());
    }

    #[test]
    fn a_line_of_pmi_without_end_is_cut_off() {
        let run = on_hosts("endless", "a", "").words("-n 1");
        let piece = format!("pmi-send:{}", "x".repeat(100_000));
        let ended = run.misbehave(vec![piece; 12]).arg("hang").run();
        assert_snapshot!(ended.with_status(250).words());
    }

    #[test]
    fn a_reader_that_leaves_ends_the_job() {
        let script = "set -o pipefail; $CONVOKE run --launcher local --hosts a,b -n 2 \
                      $MISBEHAVE flood:10000000:100:block | head -n 1; echo status ${PIPESTATUS[0]}";
        let ended = Convoke::script("head", "bash", script).run().with_status(0);
        assert!(ended.text().ends_with("\nstatus 141\n"), "{}", ended.text());
        assert_eq!(ended.text().lines().count(), 2);
        assert_eq!(ended.stderr, "");
    }

    #[test]
    fn a_few_tasks_run_with_64_descriptors() {
        let script =
            "ulimit -n 64; exec $CONVOKE run --launcher local --hosts a,b -n 4 --ppn 2 echo up";
        let ended = Convoke::script("few-fds", "sh", script).run();
        assert_eq!(ended.with_status(0).text(), "up\n".repeat(4));
    }

    #[test]
    fn tasks_that_need_more_than_64_descriptors_are_told_so() {
        let script =
            "ulimit -n 64; exec $CONVOKE run --launcher local --hosts a:100 -n 100 sleep 100";
        let ended = Convoke::script("many-fds", "sh", script).run();
        let words = one_rank(&ended.with_status(126).words());
        let words = words.replace("create a process", "<step>");
        assert_snapshot!(words.replace("open pipes for a task", "<step>"));
    }

    /// Its link, the way to its standard input, and its shell's complaints.
    #[test]
    fn an_agent_costs_its_parent_three_descriptors() {
        let (few, many) = (hold("few-agents", "n[1-2]"), hold("more-agents", "n[1-12]"));
        // A child may have tried two addresses of its parent at once, and hangs up on one.
        let costs_three = || descriptors_of_head(&many) == descriptors_of_head(&few) + 3 * 10;
        assert!(wait_until(Duration::from_secs(10), costs_three));
        for mut running in [few, many] {
            running.close_stdin();
            running.finish().with_status(0);
        }
    }

    /// A job whose first task has said that it is up, and waits for the end of its input.
    fn hold(test: &str, hosts: &str) -> Running {
        let run = Convoke::new(test).words("--launcher local --tree flat --hosts").arg(hosts);
        let script = "test $PMI_RANK != 0 || { echo up; cat; }";
        let mut running = run.args(["sh", "-c", script]).start();
        running.wait_for_output("`up`", |text| text == b"up\n");
        running
    }

    fn descriptors_of_head(running: &Running) -> usize {
        let mut heads = running.marker().survivors();
        heads.retain(|it| it.pid != running.pid() && it.command.contains("convoke run"));
        let [head] = &heads[..] else { panic!("{heads:?}") };
        fs::read_dir(format!("/proc/{}/fd", head.pid)).unwrap().count()
    }

    /// Their shells are so slow that the head would start them all, were it allowed.
    #[test]
    fn slow_agents_that_need_more_than_64_descriptors_are_started_by_others() {
        let run = on_hosts("slow-agents", "n[1-40]", "--latency-ms 700").words("-n 40 echo up");
        let run = run.under("sh", ["-c", "ulimit -n 64; exec \"$@\"", "sh"]);
        assert_eq!(run.run().with_status(0).text(), "up\n".repeat(40));
    }

    #[test]
    fn agents_that_need_more_than_64_descriptors_are_told_so_or_run() {
        let script = "ulimit -n 64; exec $CONVOKE run --launcher local --tree flat \
                      --hosts n[1-40] -n 40 echo up";
        let ended = Convoke::script("many-agents", "sh", script).run();
        match ended.status {
            0 => assert_eq!(ended.text(), "up\n".repeat(40)),
            _ => assert_snapshot!(some_hosts(&one_rank(&ended.with_status(252).words()))),
        }
    }

    /// How many agents 64 descriptors are enough for depends on what this process inherited.
    fn some_hosts(words: &str) -> String {
        let mut words = words.to_owned();
        for first in 1..40 {
            words = words.replace(&format!("n[{first}-40]"), "n[<n>-40]");
        }
        words
    }

    /// Which of several equal tasks is first is not for the test to say.
    fn one_rank(words: &str) -> String {
        let rank =
            |word: &str| match word.chars().all(|c| c.is_ascii_digit() || c == '-' || c == ',') {
                true if !word.is_empty() => "<n>".to_owned(),
                true | false => word.to_owned(),
            };
        words.split(' ').map(rank).collect::<Vec<_>>().join(" ")
    }
}

/// Where programs are, for tests that show it in their words.
const PATH: &str = "/usr/bin:/bin";

#[test]
fn the_tests_programs_are_where_they_are_looked_for() {
    assert!(Path::new("/usr/bin/env").exists() && misbehave().exists());
}
