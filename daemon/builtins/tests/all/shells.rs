//! Commands in the background.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toold_builtins::shells::{Ended, ShellError};
use toold_engine::call::{Caller, Principal};
use toold_proto::permission::Verdict;
use toold_proto::shell::TerminalSize;
use toold_proto::tool::Category;

use crate::house::{House, session};

async fn start(house: &House, command: &str) -> String {
    let result = house.call("bash", json!({"command": command, "background": true})).await;
    assert!(!result.is_error, "{}", result.text());
    result.metadata["shell_id"].as_str().unwrap().to_owned()
}

/// Reads until the text is there, as a patient caller does.
async fn read_until(house: &House, shell_id: &str, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        text.push_str(&house.ok("bash_output", json!({"shell_id": shell_id, "wait_ms": 10_000})).await);
        text.push('\n');
    }
    text
}

fn pid_is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !(stat.is_empty() || stat.contains(") Z "))
}

async fn wait_until_gone(pid: &str) {
    let gone = async {
        while pid_is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("the process lives on");
}

#[tokio::test]
async fn each_look_gives_what_is_new_and_the_end_its_exit_code() {
    let house = House::new();
    let id = start(&house, "echo one; read word; echo got $word; exit 3").await;
    assert_eq!(read_until(&house, &id, "one").await, "one\n[running]\n");
    assert_eq!(house.ok("bash_output", json!({"shell_id": id})).await, "[running; nothing new]");
    let shell = house.shared.shells.find(&house.session.id, &id).unwrap();
    shell.write("two\n").unwrap();
    assert_eq!(shell.ended().await, Ended::Exited(3));
    let result = house.call("bash_output", json!({"shell_id": id})).await;
    assert_eq!((result.text().as_str(), &result.metadata["exit_code"]), ("got two\n[exit code 3]", &json!(3)));
    assert!(matches!(shell.write("x"), Err(ShellError::InputClosed(_))));
}

#[tokio::test]
async fn filters_and_callers_do_not_take_lines_from_each_other() {
    let house = House::new();
    let id = start(&house, "for n in 1 2 3; do echo error $n; echo other $n; done; printf 'error unfinished'").await;
    house.shared.shells.find(&house.session.id, &id).unwrap().ended().await;
    let look = |filter: Value| json!({"shell_id": id, "filter": filter});
    assert_eq!(
        house.ok("bash_output", look(json!("^error"))).await,
        "error 1\nerror 2\nerror 3\nerror unfinished\n[exit code 0]"
    );
    assert_eq!(house.ok("bash_output", look(json!("^other"))).await, "other 1\nother 2\nother 3\n[exit code 0]");
    assert_eq!(house.ok("bash_output", look(json!("^error"))).await, "[exit code 0; nothing new]");
    let whole = "error 1\nother 1\nerror 2\nother 2\nerror 3\nother 3\nerror unfinished\n[exit code 0]";
    assert_eq!(house.ok("bash_output", json!({"shell_id": id})).await, whole);
    let mut call = house.prepare("bash_output", json!({"shell_id": id}));
    call.caller = Arc::new(Caller { connection: 2, principal: Principal::Person, in_flight: Arc::default() });
    assert_eq!(house.run(call).await.unwrap().text(), whole);
    assert!(house.bad("bash_output", look(json!("("))).await.starts_with("can't use the filter"));
}

#[tokio::test]
async fn a_flood_is_bounded_and_what_is_lost_is_told() {
    let house = House::new();
    let id = start(&house, "seq 1000000").await;
    house.shared.shells.find(&house.session.id, &id).unwrap().ended().await;
    let text = house.ok("bash_output", json!({"shell_id": id})).await;
    assert!(
        text.contains("bytes came too fast and are lost") && text.ends_with("there is more: call again]"),
        "{}",
        text.len()
    );
    let mut last = text;
    while last.contains("there is more") {
        last = house.ok("bash_output", json!({"shell_id": id})).await;
    }
    assert!(last.ends_with("\n1000000\n[exit code 0]"));
}

#[tokio::test]
async fn kill_ends_all_its_processes() {
    let house = House::new();
    let id = start(&house, "trap '' TERM; sleep 1000 & echo pid $!; wait; wait").await;
    let text = read_until(&house, &id, "pid ").await;
    let pid = text.split_whitespace().nth(1).unwrap();
    assert_eq!(house.ok("kill_shell", json!({"shell_id": id})).await, format!("{id}: killed"));
    wait_until_gone(pid).await;
    assert!(house.ok("kill_shell", json!({"shell_id": id})).await.contains("has ended already"));
}

#[tokio::test]
async fn shells_belong_to_their_session() {
    let house = House::new();
    let id = start(&house, "sleep 1000").await;
    let (other, _) = house.engine.sessions.open(session("s2", &house.root));
    let mut call = house.prepare("bash_output", json!({"shell_id": id}));
    call.session = other.clone();
    assert_eq!(house.run(call).await.unwrap().text(), format!("this session has no shell {id}"));
    assert_eq!(house.shared.shells.list(Some(&other.id)).len(), 0);
    assert_eq!(house.shared.shells.list(Some(&house.session.id)).len(), 1);
}

#[tokio::test]
async fn shells_end_with_their_session() {
    let house = House::new();
    let id = start(&house, "echo $$; sleep 1000").await;
    let text = read_until(&house, &id, "running").await;
    let shell = house.shared.shells.find(&house.session.id, &id).unwrap();
    house.engine.sessions.close(&house.session.id).unwrap();
    assert_eq!(shell.ended().await, Ended::Killed);
    wait_until_gone(text.split_whitespace().next().unwrap()).await;
}

#[tokio::test]
async fn a_time_limit_holds_in_the_background_too() {
    let house = House::new();
    let arguments = json!({"command": "sleep 1000", "background": true, "timeout_ms": 50});
    let id = house.call("bash", arguments).await.metadata["shell_id"].as_str().unwrap().to_owned();
    let shell = house.shared.shells.find(&house.session.id, &id).unwrap();
    assert_eq!(shell.ended().await, Ended::TimedOut);
}

#[tokio::test]
async fn a_shell_can_be_attached_to() {
    let house = House::new();
    let id = start(&house, "echo before; read word; echo after $word").await;
    let shell = house.shared.shells.find(&house.session.id, &id).unwrap();
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
async fn starting_and_killing_need_leave() {
    let house = House::strict();
    let result = house.call("bash", json!({"command": "sh -c 'sleep 1000'", "background": true})).await;
    assert_eq!(result.metadata["permission"]["target"], json!("sh -c 'sleep 1000'"));
    house.rule(Category::Shell, "sh *", Verdict::Allow);
    let id = start(&house, "sh -c 'sleep 1000'").await;
    let result = house.call("kill_shell", json!({"shell_id": id})).await;
    assert_eq!(result.metadata["permission"]["category"], json!("shell"));
    house.rule(Category::Shell, "kill_shell *", Verdict::Allow);
    house.ok("kill_shell", json!({"shell_id": id})).await;
}

#[tokio::test]
async fn a_terminal_is_there_when_it_is_asked_for() {
    let house = House::new();
    let asked =
        json!({"command": "test -t 0 && test -t 1 && stty size; cat; echo end", "tty": true, "cols": 91, "rows": 7});
    assert_eq!(house.ok("bash", asked).await, "7 91\nend\n");
    let asked = json!({"command": "stty size; read w; echo $w; stty size", "tty": true, "background": true});
    let id = house.call("bash", asked).await.metadata["shell_id"].as_str().unwrap().to_owned();
    read_until(&house, &id, "24 80").await;
    let shell = house.shared.shells.find(&house.session.id, &id).unwrap();
    assert_eq!(shell.resize(TerminalSize { cols: 0, rows: 1 }), Err(ShellError::BadSize));
    shell.resize(TerminalSize { cols: 132, rows: 50 }).unwrap();
    assert_eq!(shell.info().terminal, Some(TerminalSize { cols: 132, rows: 50 }));
    shell.write("word\n").unwrap();
    assert_eq!(shell.ended().await, Ended::Exited(0));
    assert_eq!(house.ok("bash_output", json!({"shell_id": id})).await, "word\nword\n50 132\n[exit code 0]");
    let plain = start(&house, "true").await;
    let plain = house.shared.shells.find(&house.session.id, &plain).unwrap();
    assert!(matches!(plain.resize(TerminalSize { cols: 1, rows: 1 }), Err(ShellError::NoTerminal(_))));
}

#[tokio::test]
async fn output_to_a_terminal_is_bounded_in_time_too() {
    let house = House::new();
    let asked = json!({"command": "echo before; sleep 1000", "tty": true, "timeout_ms": 300});
    let result = house.call("bash", asked).await;
    assert!(result.text().starts_with("before\n[ended after 300 ms"), "{}", result.text());
}
