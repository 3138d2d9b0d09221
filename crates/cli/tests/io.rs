//! Standard input, output and error of real jobs: nothing lost, nothing torn, nothing swallowed,
//! and little memory.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use support::convoke::{Convoke, Running};
use support::lines::{by_rank, flooded};
use support::pty::Pty;
use support::stand::{misbehave, on_hosts, profile_directory};
use support::watch::{peak_rss_kib, wait_until};
use testkit::Fnv;

mod output {
    use super::*;

    #[test]
    fn lines_of_many_tasks_are_whole_however_they_are_written() {
        for mode in ["line", "block"] {
            let run = on_hosts(&format!("flood-{mode}"), "a,b,c,d", "").words("-n 8 --ppn 2");
            let ended = run.misbehave([format!("flood:3000:100:{mode}")]).run().with_status(0);
            let expected: BTreeMap<u32, u64> = (0..8).map(|rank| (rank, 3000)).collect();
            assert_eq!(flooded(&ended.stdout), expected, "{mode}");
        }
    }

    #[test]
    fn both_streams_are_whole_at_once() {
        let run = on_hosts("both", "a,b", "").words("-n 4 --ppn 2");
        let steps = ["flood:2000:80:block", "flood-stderr:2000:120:block"];
        let ended = run.misbehave(steps).run().with_status(0);
        let expected: BTreeMap<u32, u64> = (0..4).map(|rank| (rank, 2000)).collect();
        assert_eq!(flooded(&ended.stdout), expected);
        assert_eq!(flooded(ended.stderr.as_bytes()), expected);
    }

    #[test]
    fn lines_that_come_byte_by_byte_are_whole() {
        let run = on_hosts("drip", "a,b", "").words("-n 4 --ppn 2 --stdin none");
        let script = "i=0; while test $i -lt 40; do printf %s $PMI_RANK; printf %s ' of '; \
                      printf '%s\\n' $i; i=$((i+1)); done";
        let ended = run.args(["sh", "-c", script]).run().with_status(0);
        let mut expected: Vec<String> =
            (0..4).flat_map(|rank| (0..40).map(move |i| format!("{rank} of {i}"))).collect();
        expected.sort();
        assert_eq!(ended.sorted_lines(), expected);
    }

    #[test]
    fn a_label_stands_before_every_line_and_nowhere_else() {
        let run = on_hosts("label", "a,b", "").words("-n 4 --ppn 2 --label");
        let ended = run.misbehave(["flood:1000:70:block"]).run().with_status(0);
        let ranks = by_rank(&ended.stdout);
        assert_eq!(ranks.len(), 4);
        for (rank, text) in ranks {
            assert_eq!(flooded(&text), BTreeMap::from([(rank, 1000)]));
        }
    }

    #[test]
    fn what_was_written_right_before_an_end_of_any_kind_arrives() {
        for (end, status) in [("exit:0", 0), ("exit:3", 3), ("signal:11", 139), ("signal:9", 137)] {
            let run = on_hosts("last-bytes", "a,b", "").words("-n 1");
            let ended = run.misbehave(["flood:500:200:block", "partial:the end", end]).run();
            let ended = ended.with_status(status);
            let lines = ended.stdout.strip_suffix(b"the end").expect("the last bytes");
            assert_eq!(flooded(lines), BTreeMap::from([(0, 500)]), "{end}");
        }
    }

    #[test]
    fn the_last_bytes_of_each_task_arrive_when_all_crash_at_once() {
        let run = on_hosts("crash", "a,b", "").words("-n 4 --ppn 2 --label --on-failure continue");
        let ended = run.misbehave(["flood:200:100:line", "signal:11"]).run().with_status(139);
        for (rank, text) in by_rank(&ended.stdout) {
            assert_eq!(flooded(&text), BTreeMap::from([(rank, 200)]));
        }
    }

    #[test]
    fn an_output_without_a_line_end_is_shown_while_its_task_waits() {
        let run = on_hosts("prompt", "a", "").words("-n 1");
        let mut running =
            run.args(["sh", "-c", "printf 'name? '; read name; echo hello $name"]).start();
        running.wait_for_output("the prompt", |text| text == b"name? ");
        running.write(b"world\n");
        assert_eq!(running.finish().with_status(0).text(), "name? hello world\n");
    }

    #[test]
    fn binary_output_arrives_as_it_is() {
        let run = on_hosts("binary", "a", "").words("-n 1 --stdin none");
        let bytes = random_bytes(3_000_000);
        let file = run.dir().join("binary");
        fs::write(&file, &bytes).unwrap();
        let ended = run.arg("cat").arg(&file).run().with_status(0);
        assert!(ended.stdout == bytes, "{} of {} bytes", ended.stdout.len(), bytes.len());
    }

    #[test]
    fn output_to_a_file_is_whole() {
        let script = "cd $TMPDIR && $CONVOKE run --launcher local --hosts a,b -n 4 --ppn 2 \
                      $MISBEHAVE flood:2000:100:block > out && cat out";
        let dir = tempfile::tempdir().unwrap();
        let run = Convoke::script("to-file", "sh", script).env("TMPDIR", dir.path());
        let expected: BTreeMap<u32, u64> = (0..4).map(|rank| (rank, 2000)).collect();
        assert_eq!(flooded(&run.run().with_status(0).stdout), expected);
    }

    #[test]
    fn a_child_that_holds_the_output_open_does_not_hold_the_job() {
        let run = on_hosts("leak", "a", "").words("-n 1");
        let ended = run.misbehave(["leak-stdout:1000", "say:done"]).run().with_status(0);
        assert_eq!(ended.text(), "done\n");
    }
}

mod input {
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let run = on_hosts("pipe", "a,b", "").words("-n 2 cat");
        assert_eq!(run.input("one\ntwo").run().with_status(0).text(), "one\ntwo");
    }

    #[test]
    fn input_goes_to_the_task_that_was_named() {
        let run = on_hosts("named", "a,b", "").words("-n 2 --label --stdin 1 cat");
        assert_eq!(run.input("one\n").run().with_status(0).text(), "[1] one\n");
    }

    #[test]
    fn a_regular_file_is_read_from_where_it_stands() {
        let run = on_hosts("file", "a", "").words("-n 1 cat");
        let path = run.dir().join("input");
        fs::write(&path, "skipped, read").unwrap();
        let mut file = File::open(path).unwrap();
        file.read_exact(&mut [0; 9]).unwrap();
        assert_eq!(run.run_with_stdin(file).with_status(0).text(), "read");
    }

    #[test]
    fn a_large_regular_file_arrives_whole() {
        let run = on_hosts("large-file", "a", "").words("-n 1 cat");
        let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let path = run.dir().join("input");
        fs::write(&path, &bytes).unwrap();
        let ended = run.run_with_stdin(File::open(path).unwrap()).with_status(0);
        assert!(ended.stdout == bytes, "{} of {} bytes", ended.stdout.len(), bytes.len());
    }

    #[test]
    fn nothing_at_all_is_an_empty_input() {
        let run = on_hosts("null", "a", "").words("-n 1").misbehave(["count-stdin"]);
        let text = run.run_with_stdin(Stdio::null()).with_status(0).text();
        assert!(text.starts_with("stdin bytes=0 "), "{text}");
    }

    #[test]
    fn a_closed_input_is_an_empty_one() {
        let script =
            "exec $CONVOKE run --launcher local --hosts a,b -n 2 $MISBEHAVE count-stdin <&-";
        let text = Convoke::script("closed", "sh", script).run().with_status(0).text();
        assert_eq!(text.matches("stdin bytes=0 ").count(), 2, "{text}");
    }

    #[test]
    fn closed_outputs_do_not_harm_a_job_that_says_nothing() {
        let script = "$CONVOKE run --launcher local --hosts a -n 1 true <&- >&- 2>&-; echo $?";
        let text = Convoke::script("all-closed", "sh", script).run().with_status(0).text();
        assert_eq!(text, "0\n");
    }

    #[test]
    fn a_hundred_megabytes_of_binary_pass_through() {
        let run = on_hosts("hundred", "a,b", "").words("-n 2").misbehave(["count-stdin"]);
        let bytes = random_bytes(100_000_000);
        let sum = Fnv::of(&bytes).value();
        let text = run.input(bytes).run().with_status(0).text();
        assert!(text.contains(&format!("stdin bytes=100000000 fnv={sum:016x}\n")), "{text}");
    }

    #[test]
    fn binary_input_comes_back_as_it_went() {
        let run = on_hosts("round-trip", "a", "").words("-n 1 cat");
        let bytes = random_bytes(20_000_000);
        let ended = run.input(bytes.clone()).run().with_status(0);
        assert!(ended.stdout == bytes, "{} of {} bytes", ended.stdout.len(), bytes.len());
    }

    #[test]
    fn input_that_no_task_wants_stays_with_the_user() {
        let script = "printf 'a\\nb\\n' | ($CONVOKE run --launcher local --hosts a -n 1 \
                      --stdin none echo up; cat)";
        let text = Convoke::script("untouched", "sh", script).run().with_status(0).text();
        assert_eq!(text, "up\na\nb\n");
    }

    #[test]
    fn a_task_that_leaves_its_input_alone_does_not_hold_the_job() {
        let run = on_hosts("ignored", "a", "").words("-n 1 true");
        assert_eq!(run.input(vec![b'x'; 10_000_000]).run().with_status(0).text(), "");
    }

    #[test]
    fn a_task_that_closes_its_input_goes_on() {
        let run = on_hosts("close", "a", "").words("-n 1");
        let run = run.misbehave(["close-stdin", "flood:1000:100:line"]);
        let ended = run.input(vec![b'x'; 10_000_000]).run().with_status(0);
        assert_eq!(flooded(&ended.stdout), BTreeMap::from([(0, 1000)]));
    }
}

/// At a real terminal, which the command controls as a job of an interactive shell does.
mod terminal {
    use super::*;

    const END_OF_INPUT: &str = "\u{4}";
    const INTERRUPT: &str = "\u{3}";
    const STOP: &str = "\u{1a}";

    /// Two tasks, in a script.
    const LOCAL: &str = "$CONVOKE run --launcher local --hosts a,b -n 2";

    #[test]
    fn a_terminal_is_read_line_by_line_until_its_end() {
        let (mut pty, end) = Pty::open();
        let run = at_terminal(on_hosts("terminal", "a", "").words("-n 1 cat"));
        let mut running = run.start_with_stdin(end);
        pty.type_in("one\n");
        running.wait_for_output("the first line", |text| text == b"one\n");
        pty.type_in(&format!("two\n{END_OF_INPUT}"));
        assert_eq!(running.finish().with_status(0).text(), "one\ntwo\n");
    }

    #[test]
    fn lines_that_were_typed_before_the_tasks_run_reach_rank_0() {
        let (mut pty, end) = Pty::open();
        pty.type_in("before all\n");
        let run = on_hosts("ahead", "a,b", "--latency-ms 300").words("-n 2 --label cat");
        let mut running = at_terminal(run).start_with_stdin(end);
        let shells = || running.marker().survivors();
        let is_joining = || shells().iter().any(|it| it.command.contains("testbed-shell"));
        assert!(wait_until(Duration::from_secs(20), is_joining), "no shell runs");
        pty.type_in("while they join\nhalf a ");
        running.wait_for_output("the first lines", |text| text.ends_with(b"join\n"));
        pty.type_in(&format!("line\n{END_OF_INPUT}"));
        let text = running.finish().with_status(0).text();
        assert_eq!(text, "[0] before all\n[0] while they join\n[0] half a line\n");
    }

    #[test]
    fn an_interrupt_reaches_tasks_and_ends_the_job_with_130() {
        let (mut pty, end) = Pty::open();
        let run = on_hosts("interrupt", "a,b", "").words("-n 2");
        let script = "trap 'echo heard; trap - INT; kill -INT $$' INT; echo up; sleep 1000 & wait";
        let mut running = at_terminal(run.args(["sh", "-c", script])).start_with_stdin(end);
        running.wait_for_output("`up` of each task", |text| text == b"up\nup\n");
        pty.type_in(INTERRUPT);
        let ended = running.finish().with_status(130);
        // The end of the first may be the end of the second before it hears.
        assert!(ended.text().starts_with("up\nup\nheard\n"), "{}", ended.text());
        assert_eq!(ended.stderr, "");
    }

    #[test]
    fn an_interrupt_while_agents_join_ends_the_command_with_130() {
        let (mut pty, end) = Pty::open();
        let run = on_hosts("interrupt-join", "a,b", "--hang b").words("-n 2 echo up");
        let running = at_terminal(run).start_with_stdin(end);
        let processes = || running.marker().survivors();
        let is_a_there = || processes().iter().any(|it| it.command.contains("convoke __agent"));
        assert!(wait_until(Duration::from_secs(20), is_a_there), "no agent runs");
        pty.type_in(INTERRUPT);
        assert_eq!(running.finish().with_status(130).text(), "");
    }

    #[test]
    fn a_second_interrupt_kills_tasks_that_are_deaf_to_the_first() {
        let (mut pty, end) = Pty::open();
        let run = on_hosts("interrupt-twice", "a,b", "").words("-n 2 --grace 1000s");
        let script = "trap 'echo heard' INT; trap '' TERM; echo up; while :; do sleep 0.05; done";
        let mut running = at_terminal(run.args(["sh", "-c", script])).start_with_stdin(end);
        let count = |text: &[u8], word| String::from_utf8_lossy(text).matches(word).count();
        running.wait_for_output("`up` of each task", |text| count(text, "up\n") == 2);
        pty.type_in(INTERRUPT);
        running.wait_for_output("`heard` of each task", |text| count(text, "heard\n") == 2);
        pty.type_in(INTERRUPT);
        running.finish().with_status(130);
    }

    #[test]
    fn a_job_that_is_stopped_at_the_terminal_goes_on_in_the_foreground() {
        let task = "echo up; test $PMI_RANK = 0 || exec sleep 1000; read line; echo $line; exit 5";
        let run = format!("{LOCAL} sh -c '{task}'; echo $?");
        let script = format!("{run}; read word; fg > /dev/null; echo $?");
        let (mut pty, mut running) = in_shell("stop", &script);
        running.wait_for_output("`up` of each task", |text| text == b"up\nup\n");
        pty.type_in(STOP);
        running.wait_for_output("the status of a stop", |text| text == b"up\nup\n148\n");
        assert!(wait_until(Duration::from_secs(20), || stopped_tasks(&running) == 2));
        pty.type_in("go on\n");
        assert!(wait_until(Duration::from_secs(20), || stopped_tasks(&running) == 0));
        pty.type_in("hello\n");
        let text = running.finish().with_status(0).text();
        assert_eq!(text, "up\nup\n148\nhello\n5\n");
    }

    /// For longer than an agent waits for its parent's answer: it gives up, and is started again.
    #[test]
    fn a_front_end_that_is_stopped_while_agents_come_up_goes_on_in_the_foreground() {
        let run = on_hosts("stop-early", "a,b", "--latency-ms 2000").words("-n 2 echo up");
        let script = "exec 2> /dev/tty; set -m; \"$@\"; echo $?; sleep 35; fg > /dev/null; echo $?";
        let run = at_terminal(run.under("bash", ["-c", script, "bash"]));
        let (mut pty, end) = Pty::open();
        let mut running = run.patience(Duration::from_secs(100)).start_with_stdin(end);
        let shell = profile_directory().join("testbed-shell").display().to_string();
        let shells = || {
            let processes = running.marker().survivors().into_iter();
            processes.filter(|process| process.command.starts_with(&shell)).count()
        };
        assert!(wait_until(Duration::from_secs(20), || shells() == 2));
        pty.type_in(STOP);
        running.wait_for_output("the status of a stop", |text| text == b"148\n");
        let ended = running.finish();
        assert_eq!(ended.text(), "148\nup\nup\n0\n", "{}", ended.stderr);
    }

    #[test]
    fn a_job_in_the_background_leaves_the_terminal_to_the_shell() {
        let task = "trap \"echo told; test \\$PMI_RANK = 0 || exit 0\" USR1; echo up; \
                    while test $PMI_RANK != 0; do sleep 0.05; done; \
                    read line || read line; echo job: $line";
        let shell = "read line; echo shell: $line; kill -USR1 $!; read line; fg > /dev/null";
        let script = format!("{LOCAL} sh -c '{task}' & {shell}");
        let (mut pty, mut running) = in_shell("background", &script);
        running.wait_for_output("`up` of each task", |text| text == b"up\nup\n");
        pty.type_in("one\n");
        let told = "up\nup\nshell: one\ntold\ntold\n";
        running.wait_for_output("the job, which goes on", |text| text == told.as_bytes());
        assert_eq!(stopped(&running, ""), 0);
        pty.type_in("two\nthree\n");
        let text = running.finish().with_status(0).text();
        assert_eq!(text, format!("{told}job: three\n"));
    }

    /// A script with job control, which bash does through its standard error, at a terminal.
    fn in_shell(test: &str, script: &str) -> (Pty, Running) {
        let (pty, end) = Pty::open();
        let script = format!("exec 2> /dev/tty; set -m; {script}");
        (pty, at_terminal(Convoke::script(test, "bash", &script)).start_with_stdin(end))
    }

    fn stopped_tasks(running: &Running) -> usize {
        stopped(running, "sh -c echo up") + stopped(running, "sleep 1000")
    }

    /// How many processes with such a command are stopped (proc(5), field 3 of `stat`).
    fn stopped(running: &Running, command: &str) -> usize {
        let is_stopped = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
        };
        let processes = running.marker().survivors().into_iter();
        processes.filter(|it| it.command.starts_with(command) && is_stopped(it.pid)).count()
    }

    /// `run` as the leader of the session whose terminal is its standard input.
    fn at_terminal(run: Convoke) -> Convoke {
        run.under("setsid", ["--ctty", "--wait"])
    }
}

mod memory {
    use super::*;

    /// What the head and each agent may need while nobody takes their output.
    const PEAK_KIB_MAX: u64 = 32 * 1024;

    /// How many MiB each of the two tasks writes.
    const MIB: usize = 100;

    #[test]
    fn a_reader_that_stops_stops_the_tasks_and_costs_little_memory() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("output");
        let script = "mkfifo $FIFO; exec $CONVOKE run --launcher local --hosts a,b -n 2 \
                      --stdin none $MISBEHAVE blast:100 > $FIFO";
        let run = Convoke::script("slow", "sh", script).env("FIFO", &fifo);
        let running = run.patience(Duration::from_secs(100)).start();
        assert!(wait_until(Duration::from_secs(10), || fifo.exists()));
        let mut reader = File::open(&fifo).unwrap();
        reader.read_exact(&mut [0; 1000]).unwrap();
        wait_until_stuck(&running);
        check_peak(&running);
        let mut read = 1000;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => break,
                bytes => read += bytes,
            }
            if read < 60 << 20 && read % (10 << 20) < 1 << 16 {
                check_peak(&running);
            }
        }
        assert_eq!(read, (2 * MIB) << 20);
        running.finish().with_status(0);
    }

    fn check_peak(running: &Running) {
        let peak = peak_rss_kib(running.marker(), "convoke");
        assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
        assert!(peak > 0, "nobody runs");
    }

    /// Waits until none of the job's processes has used the processor between two looks.
    fn wait_until_stuck(running: &Running) {
        let mut before = (0, 0);
        let is_stuck = || {
            let used = ticks(running);
            before = if used == before.0 { (used, before.1 + 1) } else { (used, 0) };
            before.1 >= 15
        };
        assert!(wait_until(Duration::from_secs(40), is_stuck), "the tasks are not held up");
    }

    /// Processor time of all processes of the job, in ticks (proc(5), fields 14 and 15).
    fn ticks(running: &Running) -> u64 {
        let of_process = |pid: u32| -> Option<u64> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
        };
        let survivors = running.marker().survivors();
        survivors.iter().filter_map(|process| of_process(process.pid)).sum()
    }
}

/// The same bytes in every run, which no compression or line handling survives unseen.
fn random_bytes(count: usize) -> Vec<u8> {
    let mut state = 88172645463325252_u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.write_all(&state.to_le_bytes()).unwrap();
    }
    bytes.truncate(count);
    bytes
}

#[test]
fn the_fixture_is_built() {
    assert!(misbehave().exists());
}
