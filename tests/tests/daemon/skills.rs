//! Skills, memories, lists of things to do and sub-agents, on the real daemon.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, toold, until};

fn run(daemon: &TestDaemon, arguments: &[&str]) -> Output {
    daemon.setup.command(toolctl()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn described(wire: &mut Wire) -> String {
    wire.result("tools.schema", json!({"name": "skill"}))["description"].as_str().unwrap().to_owned()
}

#[test]
fn a_skill_that_is_saved_is_seen_without_a_restart() {
    let daemon =
        Setup::new().file(".agents/skills/one/SKILL.md", "---\nname: one\ndescription: The first\n---\nx").start();
    let mut wire = daemon.connect();
    until("the project's skill is listed", || described(&mut wire).contains("- one: The first").then_some(()));
    let mut events = daemon.connect();
    events.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    let folder = daemon.work().join(".claude/skills");
    fs::create_dir_all(&folder).unwrap();
    // An empty file would be a skill too.
    fs::write(folder.join("two"), "# The second\n").unwrap();
    fs::rename(folder.join("two"), folder.join("two.md")).unwrap();
    let changed = events.notification("events.event");
    assert_eq!(changed["result"]["changed"], json!(["skill"]), "{changed}");
    assert!(described(&mut wire).contains("- two: The second"));
    assert_eq!(wire.tool("skill", json!({"name": "two"}))["content"][0]["text"], "# The second");
}

#[test]
fn toolctl_lists_shows_and_examines_skills() {
    let daemon = Setup::new()
        .file(".agents/skills/good.md", "---\ndescription: Does: good\n---\nBe good.\n")
        .file(".agents/skills/bad/SKILL.md", "---\nname: other\ndescription: x\n---\n")
        .start();
    let listed = out(&run(&daemon, &["skills"]));
    assert!(listed.contains("good") && listed.contains("Does: good") && listed.contains("project"), "{listed}");
    assert_eq!(out(&run(&daemon, &["skills", "show", "good"])), "Be good.\n");
    let doctor = run(&daemon, &["skills", "doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(out(&doctor).contains("bad/SKILL.md: is named"), "{}", out(&doctor));
    let none = run(&daemon, &["skills", "show", "none"]);
    assert_eq!(none.status.code(), Some(5));
}

#[test]
fn todos_and_memory_of_a_session_survive_a_restart_and_end_with_the_session() {
    let mut daemon = TestDaemon::start();
    let open = json!({"session_id": "s", "cwd": daemon.work()});
    let mut wire = daemon.connect();
    wire.result("session.open", open.clone());
    wire.tool("todo", json!({"items": [{"content": "Write it down", "status": "pending"}]}));
    wire.tool("remember", json!({"content": "It rains"}));
    daemon.restart("KILL");
    let mut wire = daemon.connect();
    wire.result("session.open", open.clone());
    assert_eq!(wire.result("todo.list", json!({}))["items"][0]["content"], "Write it down");
    assert_eq!(wire.result("memories.list", json!({}))["memories"][0]["content"], "It rains");
    wire.result("session.close", json!({"session_id": "s"}));
    wire.result("session.open", open);
    assert_eq!(wire.result("todo.list", json!({}))["items"], json!([]));
    assert_eq!(wire.result("memories.list", json!({}))["memories"], json!([]));
}

#[test]
fn project_memory_is_shared_by_all_sessions_of_the_project() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let refused = wire.tool("remember", json!({"content": "Use tabs", "scope": "project"}));
    assert!(
        refused["content"][0]["text"].as_str().unwrap().contains("toolctl permissions grant file.write"),
        "{refused}"
    );
    wire.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let kept = wire.tool("remember", json!({"content": "Use tabs", "scope": "project"}));
    assert_eq!(kept["is_error"], false, "{kept}");
    let listed: Value = serde_json::from_slice(&run(&daemon, &["memories", "--json"]).stdout).unwrap();
    assert_eq!(listed["memories"][0]["content"], "Use tabs", "{listed}");
    assert!(out(&run(&daemon, &["memories"])).contains("Use tabs"));
}

const AGENT: &str = r#"
[subagents.default]
command = ["sh", "agent.sh", "{type}", "--", "{prompt}"]
[subagents.writer]
description = "Writes"
"#;

#[test]
fn a_configured_program_is_a_sub_agent_whose_calls_are_judged_like_all_others() {
    let script = "$TOOLCTL call subagent type=writer description=x prompt=y 2>&1\n\
        $TOOLCTL permissions grant shell '**' 2>&1\n\
        $TOOLCTL call read path=notes.txt 2>&1\n";
    let script = script.replace("$TOOLCTL", &toolctl().display().to_string());
    let daemon = Setup::new().config(AGENT).file("agent.sh", &script).file("notes.txt", "a note\n").start();
    let mut wire = daemon.connect();
    let listed = wire.result("subagents.list", json!({}));
    assert_eq!(listed["subagents"][1]["name"], "writer", "{listed}");
    let result = wire.tool("subagent", json!({"type": "writer", "description": "some work", "prompt": "do it"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("cannot start sub-agents"), "{text}");
    assert!(text.contains("agents and processes that tools start may not call it"), "{text}");
    assert!(text.contains("1: a note"), "{text}");
    let granted = wire.result("permissions.list", json!({}));
    assert_eq!(granted["grants"], json!([]), "{granted}");
}

#[test]
fn tool_started_process_cannot_start_a_daemon_that_takes_it_for_a_person() {
    let grant = r#"{"jsonrpc":"2.0","id":1,"method":"permissions.grant","params":{"category":"shell","pattern":"**","action":"allow","scope":"always"}}"#;
    let script = format!(
        "echo '{grant}' | {toold} --stdio 2>&1\n\
         TOOLD_SOCKET=$PWD/own.sock env -u TOOLD_RUN {toolctl} permissions grant shell '**' 2>&1\n\
         true\n",
        toold = toold().display(),
        toolctl = toolctl().display(),
    );
    let daemon = Setup::new().config(AGENT).file("agent.sh", &script).start();
    let mut wire = daemon.connect();
    let result = wire.tool("subagent", json!({"type": "writer", "description": "some work", "prompt": "do it"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.matches("a process that a tool started can't start a daemon").count(), 2, "{text}");
    assert_eq!(wire.result("permissions.list", json!({}))["grants"], json!([]));
}

#[test]
fn the_programs_of_sub_agents_follow_the_configuration() {
    let daemon = Setup::new().config(AGENT).file("agent.sh", "echo one").start();
    let mut wire = daemon.connect();
    let work = json!({"type": "writer", "description": "some work", "prompt": "do it"});
    assert_eq!(wire.tool("subagent", work.clone())["content"][0]["text"], "one");
    fs::write(daemon.setup.path("config/toold/config.toml"), AGENT.replace("agent.sh", "other.sh")).unwrap();
    fs::write(daemon.work().join("other.sh"), "echo two").unwrap();
    until("the new configuration", || {
        (wire.tool("subagent", work.clone())["content"][0]["text"] == "two").then_some(())
    });
}
