use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toold_engine::Settings;
use toold_engine::call::CallError;
use toold_proto::call::Stream;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::builtin_test::{BuiltinTest, OutputListener};

#[tokio::test]
async fn output_and_exit_code_are_returned() {
    let test = BuiltinTest::new();
    assert_eq!(test.ok("bash", json!({"command": "echo out; sleep 1; echo err >&2"})).await, "out\nerr\n");
    let result = test.call("bash", json!({"command": "echo text; exit 3"})).await;
    assert_eq!((result.text().as_str(), result.is_error), ("text\n[exit code 3]", true));
    assert_eq!(result.metadata["exit_code"], json!(3));
    assert_eq!(test.ok("bash", json!({"command": "true"})).await, "[no output]");
}

#[tokio::test]
async fn output_streams_as_it_comes() {
    let test = BuiltinTest::new();
    let ears = Arc::new(OutputListener::default());
    let mut call = test.prepare("bash", json!({"command": "echo one; sleep 1; echo two >&2"}));
    call.progress.push(ears.clone());
    test.run(call).await.unwrap();
    let heard = ears.heard.lock().unwrap().clone();
    assert_eq!(heard, [(Stream::Stdout, "one\n".to_owned()), (Stream::Stdout, "two\n".to_owned())]);
}

#[tokio::test]
async fn stdout_and_stderr_keep_their_order() {
    let test = BuiltinTest::new();
    let text = test.ok("bash", json!({"command": "for i in {1..200}; do echo $i; echo e$i >&2; done"})).await;
    let expected: String = (1..=200).map(|n| format!("{n}\ne{n}\n")).collect();
    assert_eq!(text, expected);
}

#[tokio::test]
async fn command_runs_in_cwd_with_the_sessions_environment() {
    let test = BuiltinTest::new();
    std::fs::create_dir(test.root.join("sub")).unwrap();
    let root = test.root.display().to_string();
    assert_eq!(test.ok("bash", json!({"command": "pwd; echo $FROM_SESSION"})).await, format!("{root}\nyes\n"));
    assert_eq!(test.ok("bash", json!({"command": "pwd", "cwd": "sub"})).await, format!("{root}/sub\n"));
    let text = test.bad("bash", json!({"command": "pwd", "cwd": "/"})).await;
    assert!(text.contains("outside the session's folders"), "{text}");
}

#[tokio::test]
async fn its_own_time_limit_keeps_the_output_so_far() {
    let test = BuiltinTest::new();
    let result = test.call("bash", json!({"command": "echo before; sleep 1000", "timeout_ms": 3000})).await;
    assert!(result.text().starts_with("before\n[ended after 3 s"), "{}", result.text());
    assert_eq!((result.is_error, &result.metadata["timed_out"]), (true, &json!(true)));
}

#[tokio::test]
async fn the_calls_deadline_keeps_the_output_so_far() {
    let test = BuiltinTest::new();
    let mut call = test.prepare("bash", json!({"command": "echo before; sleep 1000"}));
    call.timeout = Some(Duration::from_secs(3));
    let result = test.run(call).await.unwrap();
    assert!(result.text().starts_with("before\n"), "{}", result.text());
    assert_eq!((result.is_error, &result.metadata["timed_out"]), (true, &json!(true)));
}

#[tokio::test]
async fn cancel_ends_its_processes() {
    let test = BuiltinTest::new();
    let mut call = test.prepare("bash", json!({"command": "echo $$; exec sleep 1000"}));
    let cancel = call.cancel.clone();
    let ears =
        Arc::new(OutputListener { on_text: Some(Box::new(move |_| cancel.cancel())), ..OutputListener::default() });
    call.progress.push(ears.clone());
    assert_eq!(test.run(call).await.unwrap_err(), CallError::Cancelled);
    let pid: i32 = ears.text().trim().parse().unwrap();
    let gone = rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_err();
    assert!(gone);
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_is_whole_in_a_file() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "**", Verdict::Allow);
    let result = test.call("bash", json!({"command": "seq 100000"})).await;
    let text = result.text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n99999\n100000\n") && text.len() < 65_536);
    let whole_lines = text.lines().all(|line| line.parse::<u32>().is_ok() || line.starts_with("[... "));
    assert!(whole_lines, "cut inside a line");
    let spool = result.metadata["spool"].as_str().unwrap();
    assert!(text.contains(&format!("the full output is in {spool}: read it there")));
    // The spool is outside the session's folders but belongs to the session.
    let page = test.ok("read", json!({"path": spool, "offset": 50_000, "limit": 1})).await;
    assert!(page.starts_with("50000: 50000\n"), "{page}");
}

#[tokio::test]
async fn every_command_of_a_line_is_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "echo *", Verdict::Allow);
    assert_eq!(test.ok("bash", json!({"command": "echo a && echo b"})).await, "a\nb\n");
    for command in ["echo a && touch x", "echo $(touch x)", "echo a > x", "echo a; rm -rf x", "bash -c 'touch x'"] {
        let result = test.call("bash", json!({"command": command})).await;
        assert!(result.metadata.contains_key("permission"), "{command}: {}", result.text());
    }
    assert!(!test.root.join("x").exists());
}

#[tokio::test]
async fn redirects_are_held_to_ignore_files() {
    let test = BuiltinTest::new();
    test.write(".toolignore", "kept\n");
    let text = test.bad("bash", json!({"command": "echo a > kept"})).await;
    assert!(text.contains(".toolignore"), "{text}");
}

#[tokio::test]
async fn input_is_closed_and_no_start_up_file_is_read() {
    let test = BuiltinTest::new();
    let file = test.write("start-up", "echo started");
    let command = format!("BASH_ENV={} bash -c true; cat; echo ${{BASH_ENV-none}}", file.display());
    let text = test.ok("bash", json!({"command": "cat; echo ${BASH_ENV-none}"})).await;
    assert_eq!(text, "none\n", "{command}");
}

#[tokio::test]
async fn a_silent_command_shows_that_it_lives() {
    let test = BuiltinTest::new();
    let settings = Settings { heartbeat: Duration::from_millis(20), ..Settings::default() };
    test.engine.settings.store(Arc::new(settings));
    let ears = Arc::new(OutputListener::default());
    let mut call = test.prepare("bash", json!({"command": "sleep 0.2"}));
    call.progress.push(ears.clone());
    test.run(call).await.unwrap();
    assert!(ears.messages.lock().unwrap().iter().any(|message| message == "running for 0 s"));
}

#[tokio::test]
async fn colours_and_progress_are_for_people() {
    let test = BuiltinTest::new();
    let ears = Arc::new(OutputListener::default());
    let command = r"printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\nlast'";
    let mut call = test.prepare("bash", json!({"command": command}));
    call.progress.push(ears.clone());
    assert_eq!(test.run(call).await.unwrap().text(), "red\n100%\nlast");
    assert_eq!(ears.text(), "\x1b[31mred\x1b[0m\n10%\r50%\r100%\nlast");
    test.call("bash", json!({"command": command, "background": true})).await;
    let text = test.ok("bash_output", json!({"shell_id": "sh_1", "wait_ms": 10_000, "filter": "^1"})).await;
    assert!(text.starts_with("100%\n"), "{text}");
}

#[tokio::test]
async fn builds_have_longer_by_default() {
    let test = BuiltinTest::new();
    for (command, limit) in
        [("echo a", 30_000), ("make --version", 300_000), ("cd . && env A=1 cargo --version", 300_000)]
    {
        let result = test.call("bash", json!({"command": command})).await;
        assert_eq!(result.metadata["timeout_ms"], json!(limit), "{command}");
    }
    let result = test.call("bash", json!({"command": "make --version", "timeout_ms": 20_000})).await;
    assert_eq!(result.metadata["timeout_ms"], json!(20_000));
}

#[tokio::test]
async fn a_command_line_that_is_too_long_says_what_to_do() {
    let test = BuiltinTest::new();
    let text = test.bad("bash", json!({"command": format!("echo {}", "x".repeat(200_000))})).await;
    assert!(text.contains("128 KiB for one argument; write what is long into a file"), "{text}");
}
