//! Commands in the background.

use std::sync::Arc;

use serde_json::{Value, json};
use toold_builtins::shells::{ShellEnding, ShellError};
use toold_engine::call::{Caller, Principal};
use toold_proto::permission::Verdict;
use toold_proto::shell::TerminalSize;
use toold_proto::tool::Category;
use toold_test_kit::wait_until_ended;

use crate::builtin_test::{BuiltinTest, session};

async fn start(test: &BuiltinTest, command: &str) -> String {
    let result = test.call("bash", json!({"command": command, "background": true})).await;
    assert!(!result.is_error, "{}", result.text());
    result.metadata["shell_id"].as_str().unwrap().to_owned()
}

/// Reads until the text is there, as a patient caller does.
async fn read_until(test: &BuiltinTest, shell_id: &str, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        text.push_str(&test.ok("bash_output", json!({"shell_id": shell_id, "wait_ms": 10_000})).await);
        text.push('\n');
    }
    text
}

#[tokio::test]
async fn each_read_returns_new_output_and_the_last_the_exit_code() {
    let test = BuiltinTest::new();
    let id = start(&test, "echo one; read word; echo got $word; exit 3").await;
    assert_eq!(read_until(&test, &id, "one").await, "one\n[running]\n");
    assert_eq!(test.ok("bash_output", json!({"shell_id": id})).await, "[running; nothing new]");
    let shell = test.toolkit.shells.find(&test.session.id, &id).unwrap();
    shell.write("two\n").unwrap();
    assert_eq!(shell.ended().await, ShellEnding::Exited(3));
    let result = test.call("bash_output", json!({"shell_id": id})).await;
    assert_eq!((result.text().as_str(), &result.metadata["exit_code"]), ("got two\n[exit code 3]", &json!(3)));
    assert!(matches!(shell.write("x"), Err(ShellError::InputClosed(_))));
}

#[tokio::test]
async fn filters_do_not_take_lines_from_each_other_and_all_connections_of_a_session_read_on() {
    let test = BuiltinTest::new();
    let id = start(&test, "for n in 1 2 3; do echo error $n; echo other $n; done; printf 'error unfinished'").await;
    test.toolkit.shells.find(&test.session.id, &id).unwrap().ended().await;
    let look = |filter: Value| json!({"shell_id": id, "filter": filter});
    assert_eq!(
        test.ok("bash_output", look(json!("^error"))).await,
        "error 1\nerror 2\nerror 3\nerror unfinished\n[exit code 0]"
    );
    assert_eq!(test.ok("bash_output", look(json!("^other"))).await, "other 1\nother 2\nother 3\n[exit code 0]");
    assert_eq!(test.ok("bash_output", look(json!("^error"))).await, "[exit code 0; nothing new]");
    let whole = "error 1\nother 1\nerror 2\nother 2\nerror 3\nother 3\nerror unfinished\n[exit code 0]";
    for (connection, expected) in [(1, whole), (2, "[exit code 0; nothing new]")] {
        let mut call = test.prepare("bash_output", json!({"shell_id": id}));
        call.caller = Arc::new(Caller::new(connection, Principal::Person));
        assert_eq!(test.run(call).await.unwrap().text(), expected);
    }
    assert!(test.bad("bash_output", look(json!("("))).await.starts_with("can't use the filter"));
}

#[tokio::test]
async fn flood_is_bounded_and_lost_bytes_are_reported() {
    let test = BuiltinTest::new();
    let id = start(&test, "seq 1000000").await;
    test.toolkit.shells.find(&test.session.id, &id).unwrap().ended().await;
    let text = test.ok("bash_output", json!({"shell_id": id})).await;
    assert!(
        text.contains("bytes were overwritten before they were read") && text.ends_with("there is more: call again]"),
        "{}",
        text.len()
    );
    let mut last = text;
    while last.contains("there is more") {
        last = test.ok("bash_output", json!({"shell_id": id})).await;
    }
    assert!(last.ends_with("\n1000000\n[exit code 0]"));
}

#[tokio::test]
async fn kill_ends_all_its_processes() {
    let test = BuiltinTest::new();
    let id = start(&test, "trap '' TERM; sleep 1000 & echo pid $!; wait; wait").await;
    let text = read_until(&test, &id, "pid ").await;
    let pid = text.split_whitespace().nth(1).unwrap();
    assert_eq!(test.ok("kill_shell", json!({"shell_id": id})).await, format!("{id}: killed"));
    wait_until_ended(pid.parse().unwrap()).await;
    assert!(test.ok("kill_shell", json!({"shell_id": id})).await.contains("has ended already"));
}

#[tokio::test]
async fn shells_belong_to_their_session() {
    let test = BuiltinTest::new();
    let id = start(&test, "sleep 1000").await;
    let (other, _) = test.engine.sessions.open(session("s2", &test.root));
    let mut call = test.prepare("bash_output", json!({"shell_id": id}));
    call.session = other.clone();
    assert_eq!(
        test.run(call).await.unwrap().text(),
        format!("this session has no shell {id}: it has none; start one by bash with background")
    );
    assert_eq!(test.toolkit.shells.list(Some(&other.id)).len(), 0);
    assert_eq!(test.toolkit.shells.list(Some(&test.session.id)).len(), 1);
}

#[tokio::test]
async fn shells_end_with_their_session() {
    let test = BuiltinTest::new();
    let id = start(&test, "echo $$; sleep 1000").await;
    let text = read_until(&test, &id, "running").await;
    let shell = test.toolkit.shells.find(&test.session.id, &id).unwrap();
    test.engine.sessions.close(&test.session.id).unwrap();
    assert_eq!(shell.ended().await, ShellEnding::Killed);
    wait_until_ended(text.split_whitespace().next().unwrap().parse().unwrap()).await;
}

#[tokio::test]
async fn a_time_limit_holds_in_the_background_too() {
    let test = BuiltinTest::new();
    let arguments = json!({"command": "sleep 1000", "background": true, "timeout_ms": 50});
    let id = test.call("bash", arguments).await.metadata["shell_id"].as_str().unwrap().to_owned();
    let shell = test.toolkit.shells.find(&test.session.id, &id).unwrap();
    assert_eq!(shell.ended().await, ShellEnding::TimedOut);
}

#[tokio::test]
async fn a_shell_can_be_attached_to() {
    let test = BuiltinTest::new();
    let id = start(&test, "echo before; read word; echo after $word").await;
    let shell = test.toolkit.shells.find(&test.session.id, &id).unwrap();
    let first = shell.next_output(0, 1000).await.unwrap();
    assert_eq!((first.text.as_str(), first.lost), ("before\n", 0));
    assert_eq!(shell.next_output(shell.tail(4), 1000).await.unwrap().text, "ore\n");
    shell.write("x\n").unwrap();
    let (mut text, mut position) = (first.text, first.next);
    while let Some(piece) = shell.next_output(position, 3).await {
        text.push_str(&piece.text);
        position = piece.next;
    }
    assert_eq!(text, "before\nafter x\n");
}

#[tokio::test]
async fn starting_and_killing_need_permission() {
    let test = BuiltinTest::strict();
    let result = test.call("bash", json!({"command": "sh -c 'sleep $((1000))'", "background": true})).await;
    assert_eq!(result.metadata["permission"]["target"], json!("sh -c 'sleep $((1000))'"));
    test.rule(Category::Shell, "sh *", Verdict::Allow);
    let id = start(&test, "sh -c 'sleep $((1000))'").await;
    let result = test.call("kill_shell", json!({"shell_id": id})).await;
    assert_eq!(result.metadata["permission"]["category"], json!("shell"));
    test.rule(Category::Shell, "kill_shell *", Verdict::Allow);
    test.ok("kill_shell", json!({"shell_id": id})).await;
}

#[tokio::test]
async fn a_terminal_is_there_when_it_is_asked_for() {
    let test = BuiltinTest::new();
    let asked =
        json!({"command": "test -t 0 && test -t 1 && stty size; cat; echo end", "tty": true, "cols": 91, "rows": 7});
    assert_eq!(test.ok("bash", asked).await, "7 91\nend\n");
    let asked = json!({"command": "stty size; read w; echo $w; stty size", "tty": true, "background": true});
    let id = test.call("bash", asked).await.metadata["shell_id"].as_str().unwrap().to_owned();
    read_until(&test, &id, "24 80").await;
    let shell = test.toolkit.shells.find(&test.session.id, &id).unwrap();
    assert_eq!(shell.resize(TerminalSize { cols: 0, rows: 1 }), Err(ShellError::BadSize));
    shell.resize(TerminalSize { cols: 132, rows: 50 }).unwrap();
    assert_eq!(shell.info().terminal, Some(TerminalSize { cols: 132, rows: 50 }));
    shell.write("word\n").unwrap();
    assert_eq!(shell.ended().await, ShellEnding::Exited(0));
    // The end of the first line may come later than its text.
    let rest = test.ok("bash_output", json!({"shell_id": id})).await;
    assert_eq!(rest.trim_start(), "word\nword\n50 132\n[exit code 0]");
    let plain = start(&test, "true").await;
    let plain = test.toolkit.shells.find(&test.session.id, &plain).unwrap();
    assert!(matches!(plain.resize(TerminalSize { cols: 1, rows: 1 }), Err(ShellError::NoTerminal(_))));
}

#[tokio::test]
async fn output_to_a_terminal_is_bounded_in_time_too() {
    let test = BuiltinTest::new();
    let asked = json!({"command": "echo before; sleep 1000", "tty": true, "timeout_ms": 3000});
    let result = test.call("bash", asked).await;
    assert!(result.text().starts_with("before\n[ended after 3 s"), "{}", result.text());
}
