//! Clients that stay attached survive every end of the daemon: `toolctl mcp`, `events` and `watch`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, toold, until};

const PATIENCE: Duration = Duration::from_secs(60);

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "greet", description = "Says hello", permission = false,
  execute = function(ctx, input) return "hello" end,
}
hygge.register_tool{
  name = "slow", description = "Waits", permission = false,
  execute = function(ctx, input) ctx.progress("waiting") hygge.sleep("60s") return "never" end,
}
"#;

/// `toolctl mcp` with an MCP client of an older revision.
struct AttachedClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// The notifications that came.
    told: Vec<String>,
}

impl AttachedClient {
    fn start(daemon: &TestDaemon) -> Self {
        let mut command = daemon.setup.command(toolctl());
        let mut child =
            command.args(["mcp", "--profile", "all"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let input = child.stdin.take();
        let mut client = Self { child, input, lines, told: Vec::new() };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        client.send(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}));
        client.answer(&json!("hello"));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, id: u64, tool: &str) {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": id}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        let message = self.lines.recv_timeout(PATIENCE).expect("the bridge says something");
        if let Some(method) = message["method"].as_str() {
            self.told.push(method.to_owned());
        }
        message
    }

    #[track_caller]
    fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next();
            if message["id"] == *id {
                return message;
            }
        }
    }

    #[track_caller]
    fn greets(&mut self, id: u64) {
        self.call(id, "greet");
        let answer = self.answer(&json!(id));
        assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    }
}

impl Drop for AttachedClient {
    fn drop(&mut self) {
        self.input.take();
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn lines_of(out: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Ok(message) = serde_json::from_str(&line) {
                let _ = sender.send(message);
            }
        }
    });
    receiver
}

/// The process of the daemon that serves now, which the bridge or a command started.
fn pid(daemon: &TestDaemon) -> String {
    let status = daemon.toolctl(&["status", "--json", "--no-start"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("a daemon runs");
    status["pid"].to_string()
}

/// Ends the daemon that serves now, with a signal.
fn end(daemon: &TestDaemon, signal: &str) {
    let pid = pid(daemon);
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
    until("it is gone", || (!Path::new(&format!("/proc/{pid}/fd/0")).exists()).then_some(()));
    // Where a daemon writes that a client has started.
    let _ = std::fs::remove_file(daemon.setup.path("run/toold.sock.log"));
}

fn start() -> TestDaemon {
    Setup::new().plugin("greet.lua", PLUGIN).start()
}

#[test]
fn a_bridge_starts_the_daemon_again_after_a_signal_or_a_kill() {
    for signal in ["TERM", "KILL"] {
        let mut daemon = start();
        let mut client = AttachedClient::start(&daemon);
        client.greets(1);
        daemon.signal(signal);
        daemon.wait();
        client.greets(2);
        assert!(client.told.iter().any(|method| method == "notifications/tools/list_changed"), "{:?}", client.told);
        drop(client);
        end(&daemon, "TERM");
        daemon.start_again();
    }
}

#[test]
fn a_call_that_a_killed_daemon_began_is_not_repeated() {
    let mut daemon = start();
    let mut client = AttachedClient::start(&daemon);
    client.call(1, "slow");
    // Its progress shows that it runs.
    while client.next()["method"] != "notifications/progress" {}
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "none:"}}));
    client.answer(&json!(2));
    daemon.signal("KILL");
    daemon.wait();
    let answer = client.answer(&json!(1));
    let words = answer["error"]["message"].as_str().unwrap();
    assert!(words.contains("may have been executed"), "{words}");
    client.greets(3);
    drop(client);
    end(&daemon, "TERM");
    daemon.start_again();
}

#[test]
fn a_bridge_starts_nothing_that_a_person_has_stopped() {
    let mut daemon = start();
    // This test is a person's frontend, although it also starts a client of a model.
    daemon.connect().result("permissions.review", json!({}));
    let mut client = AttachedClient::start(&daemon);
    client.greets(1);
    let stopped = daemon.toolctl(&["stop", "--drain-ms", "0"]);
    assert!(stopped.status.success(), "{stopped:?}");
    daemon.wait();
    for id in [2, 3] {
        client.call(id, "greet");
        let answer = client.answer(&json!(id));
        assert_eq!(answer["error"]["message"], "toold was stopped by a person: `toolctl start`");
    }
    assert_eq!(daemon.toolctl(&["status", "--no-start"]).status.code(), Some(4), "nothing was started");
    let started = daemon.toolctl(&["start"]);
    assert!(started.status.success(), "{started:?}");
    // The bridge notices it by itself.
    while client.next()["method"] != "notifications/tools/list_changed" {}
    client.greets(4);
    drop(client);
    end(&daemon, "TERM");
    daemon.start_again();
}

#[test]
fn a_call_that_waits_for_a_person_is_asked_again_by_the_next_daemon() {
    let mut daemon = Setup::new().asking().plugin("greet.lua", PLUGIN).start();
    // This test is a person's frontend, although it also starts a client of a model.
    let person = |daemon: &TestDaemon| {
        let mut person = daemon.connect();
        person.result("permissions.review", json!({}));
        person.result("permissions.subscribe", json!({}));
        person
    };
    let asked = |person: &mut Wire| person.notification("permissions.event")["result"]["request"]["request_id"].take();
    let mut frontend = person(&daemon);
    let mut client = AttachedClient::start(&daemon);
    client.greets(1);
    let call = json!({"name": "bash", "arguments": {"command": "touch done"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let first = asked(&mut frontend);
    let program = toold().display().to_string();
    let restarted = daemon.toolctl(&["restart", "--drain-ms", "0", "--program", &program]);
    assert!(restarted.status.success(), "{restarted:?}");
    daemon.wait();
    let mut frontend = person(&daemon);
    let again = asked(&mut frontend);
    assert_ne!(first, again);
    frontend.result("permissions.reply", json!({"request_id": again, "action": "allow"}));
    let answer = client.answer(&json!(2));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(daemon.work().join("done").exists());
    drop((client, frontend));
    end(&daemon, "TERM");
    daemon.start_again();
}

#[test]
fn a_call_that_waits_for_another_one_goes_over_to_the_next_daemon() {
    for command in ["restart", "signal"] {
        let mut daemon = start();
        // This test is a person's frontend, although it also starts a client of a model.
        let mut wire = daemon.connect();
        wire.result("permissions.review", json!({}));
        let mut client = AttachedClient::start(&daemon);
        client.call(1, "slow");
        while client.next()["method"] != "notifications/progress" {}
        client.call(2, "greet");
        until("the second call waits", || {
            let sessions = wire.result("session.list", json!({}))["sessions"].take();
            let waits = |session: &Value| {
                let calls = wire.result("calls.list", json!({"session_id": session["session_id"]}))["calls"].take();
                calls.as_array().unwrap().iter().any(|call| call["waits_for"] == "lane")
            };
            sessions.as_array().unwrap().iter().any(waits).then_some(())
        });
        match command {
            "restart" => {
                let program = toold().display().to_string();
                let restarted = daemon.toolctl(&["restart", "--drain-ms", "0", "--program", &program]);
                assert!(restarted.status.success(), "{restarted:?}");
            }
            // The second one ends the time that running calls have.
            _ => {
                daemon.signal("TERM");
                daemon.signal("TERM");
            }
        }
        daemon.wait();
        let begun = client.answer(&json!(1))["result"].take();
        let words = begun["content"][0]["text"].as_str().unwrap_or_default();
        assert!(begun["isError"] == true && words.contains("restarted or stopped before the call ended"), "{begun}");
        let waited = client.answer(&json!(2));
        assert_eq!(waited["result"]["content"][0]["text"], "hello", "{waited}");
        drop((client, wire));
        end(&daemon, "TERM");
        daemon.start_again();
    }
}

#[test]
fn a_bridge_starts_a_daemon_three_times_a_minute_at_most() {
    let mut daemon = start();
    let mut client = AttachedClient::start(&daemon);
    daemon.signal("KILL");
    daemon.wait();
    for id in 1..=3 {
        client.greets(id);
        end(&daemon, "KILL");
    }
    client.call(4, "greet");
    let answer = client.answer(&json!(4));
    assert!(answer["error"]["message"].as_str().unwrap().contains("toolctl doctor"), "{answer}");
    drop(client);
    daemon.start_again();
}

#[test]
fn each_end_is_told_with_its_reason() {
    for (reason, end) in [("stop", None), ("signal", Some("TERM"))] {
        let mut daemon = start();
        let mut wire = daemon.connect();
        match end {
            Some(signal) => daemon.signal(signal),
            None => wire.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "daemon.shutdown", "params": {}})),
        }
        let closing = wire.notification("daemon.closing");
        assert_eq!(closing, json!({"reason": reason, "restart": false}));
        daemon.wait();
        daemon.start_again();
    }
}

#[test]
fn events_and_watch_go_on_with_the_next_daemon() {
    for (command, signal) in [("events", "KILL"), ("watch", "KILL"), ("events", "TERM")] {
        let mut daemon = start();
        let mut child = daemon
            .setup
            .command(toolctl())
            .args([command, "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let finished = |daemon: &TestDaemon| {
            until("an event comes", || {
                daemon.connect().result("tools.execute", json!({"name": "greet", "arguments": {}}));
                let event = lines.recv_timeout(Duration::from_millis(500)).ok()?;
                (event["kind"] == "call.started" || event["kind"] == "call.finished").then_some(())
            });
        };
        finished(&daemon);
        daemon.restart(signal);
        // Those of the daemon before.
        while lines.try_recv().is_ok() {}
        finished(&daemon);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
