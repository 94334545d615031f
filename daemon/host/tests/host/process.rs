//! Runs programs and checks from outside what they write, how they end, and which processes remain.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toold_host::descendants::{OWNER, end_leftovers, owner};
use toold_host::environment::Environment;
use toold_host::kept_programs::KeptPrograms;
use toold_host::process::{ProcessCommand, ProcessEnding, ProcessOutput, StartError, run, run_with_input};
use toold_proto::call::Stream;
use toold_proto::shell::TerminalSize;
use toold_test_kit::{has_ended, wait_until_ended};

fn environment() -> Environment {
    Environment::inherited(std::env::vars_os())
}

async fn shell(line: &str) -> (ProcessOutput, Vec<(Stream, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let command = ProcessCommand::shell(line, folder.path(), environment());
    let cancel = CancellationToken::new();
    let finished = run(command, &cancel, |stream, text| heard.push((stream, text.to_owned()))).await.unwrap();
    (finished, heard)
}

async fn wait_until_gone(pid: i32) {
    wait_until_ended(pid.unsigned_abs()).await;
}

/// Runs a line, cancels it after it has written this many words, and returns the process ids among them.
async fn cancelled_after(words: usize, line: &str, grace: Duration) -> (ProcessOutput, Vec<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let mut heard = String::new();
    let mut command = ProcessCommand::shell(line, folder.path(), environment());
    command.grace = grace;
    let finished = run(command, &cancel, |_, text| {
        heard.push_str(text);
        if heard.split_whitespace().count() == words {
            cancel.cancel();
        }
    });
    let finished = finished.await.unwrap();
    let pids = heard.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (finished, pids)
}

#[tokio::test]
async fn streams_are_separate_and_the_exit_code_is_kept() {
    let (finished, heard) = shell("echo out; echo err >&2; exit 7").await;
    assert_eq!((finished.ending, finished.code, finished.signal), (ProcessEnding::Exited, Some(7), None));
    assert_eq!(finished.stdout.to_text(), "out\n");
    assert_eq!(finished.stderr.to_text(), "err\n");
    assert!(
        heard.contains(&(Stream::Stdout, "out\n".to_owned())) && heard.contains(&(Stream::Stderr, "err\n".to_owned()))
    );
}

#[tokio::test]
async fn output_comes_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let go = fifo.clone();
    let line = "mkfifo fifo; echo first; read word < fifo; echo $word";
    let mut heard = String::new();
    let (sender, mut receiver) = mpsc::channel(1);
    // The program continues only after its first line was received.
    let writer = tokio::spawn(async move {
        receiver.recv().await.unwrap();
        tokio::task::spawn_blocking(move || std::fs::write(go, "second\n")).await.unwrap().unwrap();
    });
    let cancel = CancellationToken::new();
    let finished = run(ProcessCommand::shell(line, folder.path(), environment()), &cancel, |_, text| {
        heard.push_str(text);
        if heard == "first\n" {
            sender.try_send(()).unwrap();
        }
    });
    assert_eq!(finished.await.unwrap().stdout.to_text(), "first\nsecond\n");
    writer.await.unwrap();
}

#[tokio::test]
async fn any_bytes_and_any_line_length_pass() {
    let (finished, _) = shell(r"printf 'a\xff\xc3'; sleep 0.01; printf '\xa9b'; head -c 3000000 /dev/zero").await;
    assert!(finished.stdout.to_text().starts_with("a\u{fffd}éb\0\0"));
    assert_eq!(finished.stdout.total(), 1 + 3 + 2 + 1 + 3_000_000);
}

#[tokio::test]
async fn a_flood_is_kept_at_both_ends_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        ProcessCommand::shell("echo head; yes | head -c 20000000; echo tail", folder.path(), environment());
    command.keep = 10_000;
    let mut bytes = 0;
    let finished = run(command, &CancellationToken::new(), |_, text| bytes += text.len()).await.unwrap();
    let text = finished.stdout.to_text();
    assert!(text.starts_with("head\n") && text.ends_with("tail\n") && text.len() < 11_000);
    assert_eq!((bytes, finished.stdout.total()), (20_000_010, 20_000_010));
}

#[tokio::test]
async fn input_is_written_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ProcessCommand::new("cat", folder.path(), environment());
    command.stdin = Some(b"words".repeat(100_000));
    let finished = run(command, &CancellationToken::new(), |_, _| {}).await.unwrap();
    assert_eq!((finished.code, finished.stdout.total()), (Some(0), 500_000));
    let (finished, _) = shell("cat; echo done").await;
    assert_eq!(finished.stdout.to_text(), "done\n");
}

#[tokio::test]
async fn timeout_keeps_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ProcessCommand::shell("echo before; sleep 1000; echo after", folder.path(), environment());
    command.timeout = Some(Duration::from_secs(3));
    let finished = run(command, &CancellationToken::new(), |_, _| {}).await.unwrap();
    assert_eq!(finished.ending, ProcessEnding::TimedOut);
    assert_eq!(finished.stdout.to_text(), "before\n");
}

#[tokio::test]
async fn cancel_ends_the_whole_tree() {
    let ignores_term = "(trap '' TERM; echo $BASHPID; while :; do sleep 1; done) &";
    let own_session = "setsid bash -c 'echo $$; exec sleep 1000' &";
    let double_fork = "(setsid bash -c 'echo $$; exec sleep 1000' & exit);";
    let line = format!("echo $$; {ignores_term} {own_session} {double_fork} wait; while :; do sleep 1; done");
    let (finished, pids) = cancelled_after(4, &line, Duration::from_millis(100)).await;
    assert_eq!(finished.ending, ProcessEnding::Cancelled);
    assert_eq!(pids.len(), 4, "{pids:?}");
    for pid in pids {
        wait_until_gone(pid).await;
    }
}

#[tokio::test]
async fn a_program_may_clean_up_on_term() {
    let line = "trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let (finished, _) = cancelled_after(1, line, Duration::from_secs(60)).await;
    assert_eq!((finished.ending, finished.code), (ProcessEnding::Cancelled, Some(3)));
    assert!(finished.stdout.to_text().ends_with("cleaned\n"));
}

#[tokio::test]
async fn the_end_does_not_wait_for_those_that_hold_the_pipes() {
    let (finished, _) = shell("sleep 1000 & echo $!").await;
    assert_eq!((finished.ending, finished.code, finished.left_behind), (ProcessEnding::Exited, Some(0), true));
    let pid: i32 = finished.stdout.to_text().trim().parse().unwrap();
    wait_until_gone(pid).await;
    let (finished, _) = shell("true").await;
    assert!(!finished.left_behind);
}

#[tokio::test]
async fn processes_in_other_sessions_end_with_the_command_except_kept_ones() {
    let line = "(setsid bash -c 'echo $$; touch a; exec sleep 1000' &); (setsid sh -c 'echo $$; sleep 1001 & echo $!; touch b; wait' &); until [ -e a ] && [ -e b ]; do :; done";
    let run_with = async |kept: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = ProcessCommand::shell(line, folder.path(), environment());
        let kept = kept.iter().map(|pattern| (*pattern).to_owned()).collect();
        command.kept = Some(Arc::new(KeptPrograms::new(kept)));
        let finished = run(command, &CancellationToken::new(), |_, _| {}).await.unwrap();
        let pids: Vec<i32> = finished.stdout.to_text().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!((finished.ending, finished.left_behind, pids.len()), (ProcessEnding::Exited, true, 3));
        pids
    };
    for pid in run_with(&[]).await {
        wait_until_gone(pid).await;
    }
    // Processes that a kept program started stay, too.
    let pids = run_with(&["sh -c echo*"]).await;
    let gone = || pids.iter().filter(|pid| has_ended(pid.unsigned_abs())).count();
    let first = async {
        while gone() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), first).await.expect("one of them ends");
    let gone = gone();
    for pid in &pids {
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_raw(*pid).unwrap(), rustix::process::Signal::KILL);
    }
    assert_eq!(gone, 1, "the sleep that is kept by no pattern is gone");
}

#[tokio::test]
async fn output_of_a_process_that_ends_a_little_later_is_heard() {
    // It ends once the shell is a zombie or gone. It starts no program for that: on a busy machine, this may take longer
    // than anybody listens.
    let waits = "while read -r _ _ state _ < /proc/$$/stat && [ $state != Z ]; do :; done 2>/dev/null";
    let (finished, _) = shell(&format!("echo text > >(read -r line; {waits}; echo $line)")).await;
    assert_eq!(finished.stdout.to_text(), "text\n");
}

#[tokio::test]
async fn dropping_the_run_kills_it() {
    let folder = tempfile::tempdir().unwrap();
    let command = ProcessCommand::shell("echo $$; sleep 1000", folder.path(), environment());
    let (sender, mut receiver) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let task = tokio::spawn(async move {
        run(command, &cancel, |_, text| sender.try_send(text.trim().parse::<i32>().unwrap()).unwrap()).await.unwrap()
    });
    let pid = receiver.recv().await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    wait_until_gone(pid).await;
}

#[tokio::test]
async fn environment_is_exactly_the_given_one() {
    let folder = tempfile::tempdir().unwrap();
    let given = Environment::default().with([("PATH", "/usr/bin:/bin"), ("BASH_ENV", "/tmp/x"), ("WORD", "a b")]);
    let cancel = CancellationToken::new();
    let finished = run(ProcessCommand::shell("env | sort", folder.path(), given), &cancel, |_, _| {}).await.unwrap();
    let text = finished.stdout.to_text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert_eq!(names, ["PATH", "PWD", "SHLVL", "TOOLD_RUN", "WORD", "_"]);
}

#[tokio::test]
async fn it_has_no_terminal_and_a_group_of_its_own() {
    let (finished, _) = shell("ps -o pgid= -p $$; echo $$; (exec < /dev/tty) 2>/dev/null || echo none").await;
    let text = finished.stdout.to_text();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!((words[0] == words[1], words[2]), (true, "none"), "{text}");
}

#[tokio::test]
async fn program_that_cannot_start_reports_why() {
    async fn error(program: &str, cwd: &Path) -> StartError {
        run(ProcessCommand::new(program, cwd, environment()), &CancellationToken::new(), |_, _| {}).await.unwrap_err()
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(
        matches!(error("no-such-program", folder.path()).await, StartError::NotFound(name) if name == "no-such-program")
    );
    assert!(matches!(error("true", &folder.path().join("gone")).await, StartError::NoFolder(_)));
    assert!(matches!(error("./no-such", folder.path()).await, StartError::NotFound(_)));
}

#[tokio::test]
async fn working_folder_does_not_resolve_names() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for name in ["bash", "tool"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "#!/bin/sh\necho wrong\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let given = environment().with([("PATH", ".:/usr/bin:/bin")]);
    let cancel = CancellationToken::new();
    let right =
        run(ProcessCommand::shell("echo right", folder.path(), given.clone()), &cancel, |_, _| {}).await.unwrap();
    assert_eq!(right.stdout.to_text(), "right\n");
    let tool = run(ProcessCommand::new("tool", folder.path(), given), &cancel, |_, _| {}).await;
    assert!(matches!(tool, Err(StartError::NotFound(_))));
}

#[tokio::test]
async fn signal_is_reported() {
    let (finished, _) = shell("kill -9 $$").await;
    assert_eq!((finished.code, finished.signal), (None, Some(9)));
}

#[tokio::test]
async fn input_may_come_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = mpsc::channel(4);
    let line = "while read line; do echo got $line; done; echo end";
    let command = ProcessCommand::shell(line, folder.path(), environment());
    let cancel = CancellationToken::new();
    let mut sender = Some(sender);
    sender.as_ref().unwrap().try_send(b"one\n".to_vec()).unwrap();
    let finished = run_with_input(command, Some(receiver), &cancel, |_, text| match text {
        "got one\n" => sender.as_ref().unwrap().try_send(b"two\n".to_vec()).unwrap(),
        // Closes its input.
        _ => drop(sender.take()),
    });
    assert_eq!(finished.await.unwrap().stdout.to_text(), "got one\ngot two\nend\n");
}

/// Runs what `owner` left in a session of its own, looks for leftovers, and returns the process id and how it ended.
async fn left_by(owner: String) -> (i32, CancellationToken, JoinHandle<ProcessOutput>) {
    let environment = environment().with([(OWNER, owner)]);
    // It does not end by itself when the other one is ended first.
    let line = "setsid bash -c 'echo $$; exec sleep 1000' & wait; exec sleep 1000";
    let (sender, mut receiver) = mpsc::channel(1);
    let command = ProcessCommand::shell(line, "/", environment);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let task = tokio::spawn(async move {
        run(command, &stop, |_, text| sender.try_send(text.trim().parse::<i32>().unwrap()).unwrap()).await.unwrap()
    });
    let pid = receiver.recv().await.unwrap();
    // Not counted: a daemon that starts meanwhile ends leftovers too.
    tokio::task::spawn_blocking(end_leftovers).await.unwrap();
    (pid, cancel, task)
}

#[tokio::test]
async fn leftovers_of_a_killed_daemon_are_ended() {
    let own = owner();
    let [_, _, namespace] = own.split('.').collect::<Vec<_>>()[..] else { panic!("{own}") };
    // The process has ended: none has this start time.
    let (pid, _, task) = left_by(format!("{}.1.{namespace}", std::process::id())).await;
    wait_until_gone(pid).await;
    assert_eq!(task.await.unwrap().signal, Some(9));
}

#[tokio::test]
async fn processes_of_a_daemon_in_a_container_are_not_ended() {
    // Seen from outside, its ids belong to other processes.
    let (pid, cancel, task) = left_by(format!("{}.1.1", std::process::id())).await;
    assert!(!has_ended(pid.unsigned_abs()));
    cancel.cancel();
    assert_eq!(task.await.unwrap().ending, ProcessEnding::Cancelled);
    wait_until_gone(pid).await;
}

#[tokio::test]
async fn a_terminal_has_its_size_and_input_at_its_end() {
    let mut command =
        ProcessCommand::shell("tty >/dev/null && stty size; cat; cat; echo $TERM; exit 4", "/", environment());
    let (_keep, size) = tokio::sync::watch::channel(TerminalSize { cols: 90, rows: 20 });
    command.terminal = Some(size);
    let finished = run(command, &CancellationToken::new(), |_, _| {}).await.unwrap();
    assert_eq!(finished.stdout.to_text(), "20 90\nxterm-256color\n");
    assert_eq!((finished.ending, finished.code), (ProcessEnding::Exited, Some(4)));
}

#[tokio::test]
async fn a_terminal_takes_keys_and_new_sizes() {
    let line = "read word; echo got $word; read go; stty size; cat; echo end";
    let mut command = ProcessCommand::shell(line, "/", environment());
    let (resize, size) = tokio::sync::watch::channel(TerminalSize { cols: 80, rows: 24 });
    command.terminal = Some(size);
    let (keys, input) = tokio::sync::mpsc::channel(8);
    keys.try_send(b"this\n".to_vec()).unwrap();
    let mut heard = String::new();
    let (mut resized, mut ended) = (false, false);
    run_with_input(command, Some(input), &CancellationToken::new(), |_, text| {
        heard.push_str(text);
        if heard.contains("got this") && !resized {
            resized = true;
            resize.send_replace(TerminalSize { cols: 100, rows: 30 });
            keys.try_send(b"go\n".to_vec()).unwrap();
        }
        if heard.contains("30 100") && !ended {
            ended = true;
            keys.try_send(b"\x04".to_vec()).unwrap();
        }
    })
    .await
    .unwrap();
    assert!(heard.starts_with("this\r\ngot this\r\n") && heard.contains("30 100\r\n"), "{heard:?}");
    assert!(heard.ends_with("end\r\n"), "{heard:?}");
}

#[tokio::test]
async fn cancel_ends_a_program_in_a_terminal() {
    let mut command =
        ProcessCommand::shell("trap '' TERM HUP; echo $$; while :; do sleep 1000; done", "/", environment());
    let (_keep, size) = tokio::sync::watch::channel(TerminalSize { cols: 80, rows: 24 });
    command.terminal = Some(size);
    command.grace = Duration::from_millis(50);
    let cancel = CancellationToken::new();
    let mut pid = None;
    let finished = run(command, &cancel, |_, text| {
        pid = pid.or(text.trim().parse().ok());
        cancel.cancel();
    });
    assert_eq!(finished.await.unwrap().ending, ProcessEnding::Cancelled);
    wait_until_gone(pid.unwrap()).await;
}
