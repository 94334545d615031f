//! Calls of tools on other daemons.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

use crate::fleet::listing::until_all_listed;

/// Allows everything that the tests do, on all daemons.
const RULES: &str = r#"
[limits]
result_bytes = 30000000
[[permission.rules]]
category = "shell"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "file.write"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "mcp"
pattern = "fleet:*/*"
action = "allow"
"#;

/// `look` ends at once where a test has made the file `go`.
const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) ctx.progress("one") ctx.progress("two") return "hello" end,
}
hygge.register_tool{
  name = "large", description = "Returns a long text", permission = false,
  input_schema = {type = "object", properties = {text = {type = "string"}}},
  execute = function(ctx, input) return string.rep("0123456789", 1200000) .. #(input.text or "") end,
}
hygge.register_tool{
  name = "wait", description = "Waits", permission = false, parallelizable = true,
  execute = function(ctx, input) ctx.progress("waits on " .. NAME) hygge.sleep(3600000) return "never" end,
}
hygge.register_tool{
  name = "look", description = "Looks", permission = false, annotations = {read_only = true}, parallelizable = true,
  input_schema = {type = "object", properties = {wait = {type = "boolean"}}},
  execute = function(ctx, input)
    ctx.progress(NAME)
    if input.wait and not hygge.fs.exists("go") then hygge.sleep(3600000) end
    return NAME
  end,
}
"#;

/// A caller, and daemons that run calls.
struct CallingFleet {
    laptop: TestDaemon,
    others: Vec<TestDaemon>,
    nats: NatsServer,
}

impl CallingFleet {
    /// `None` without a NATS server. The others have the label `gpu`, and `more` lines in `[fleet]`.
    fn start(others: &[&str], more: &str) -> Option<Self> {
        let nats = NatsServer::start()?;
        let names: Vec<&str> = ["laptop"].iter().chain(others).copied().collect();
        let plan = FleetPlan::new(&names, &[]);
        let others: Vec<TestDaemon> = others
            .iter()
            .map(|name| {
                let setup = Setup::new();
                let lines = format!("labels = [\"gpu\"]\ncwd = {:?}\n{more}", setup.path("work"));
                setup
                    .config(&plan.config(name, &nats.url(), None, &lines))
                    .more_config(RULES)
                    .plugin("tools.lua", &PLUGIN.replace("NAME", &format!("{name:?}")))
                    .start()
            })
            .collect();
        let laptop = Setup::new()
            .config(&plan.config("laptop", &nats.url(), None, ""))
            .more_config("[fleet.use_labels.gpu]\n")
            .more_config(RULES)
            .start();
        let fleet = Self { laptop, others, nats };
        for (name, daemon) in names[1..].iter().zip(&fleet.others) {
            until_all_listed(&fleet.laptop, daemon, &format!("{name}_"), "look");
            until_all_listed(&fleet.laptop, daemon, "gpu_", "look");
        }
        Some(fleet)
    }

    fn connect(&self) -> Wire {
        self.laptop.connect()
    }

    fn stop(self) {
        self.laptop.stop();
        self.others.into_iter().for_each(TestDaemon::stop);
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Begins a call, and returns when it has reported progress.
fn begin(wire: &mut Wire, name: &str, arguments: Value, call_id: &str) -> (u64, Value) {
    let params = json!({"name": name, "arguments": arguments, "call_id": call_id, "progress": true});
    let id = wire.request("tools.execute", params);
    (id, wire.notification("tools.progress"))
}

/// A command that writes its process group to a file, and lasts.
fn lasting(file: &Path) -> Value {
    json!({"command": format!("echo $$ > {}; echo started; sleep 3000 | cat", file.display())})
}

fn is_alive(group: &str) -> bool {
    std::process::Command::new("pgrep").args(["-g", group]).output().unwrap().status.success()
}

fn read_group(file: &Path) -> String {
    until("the command has started", || {
        std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n')).map(|text| text.trim().to_owned())
    })
}

#[test]
fn a_call_returns_its_result_with_progress_and_output() {
    let Some(fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let (id, first) = begin(&mut wire, "build_hello", json!({}), "a");
    assert_eq!(first["text"], "one");
    assert_eq!(wire.notification("tools.progress")["text"], "two");
    let result = wire.answer(id)["result"].take();
    assert_eq!((text(&result), &result["metadata"]["fleet"]), ("hello", &json!("build")));
    // It is the id of the call in the audit log there.
    let there = fleet.others[0].connect().result("audit.query", json!({}))["entries"].take();
    let has_row = |row: &Value| row["tool"] == "hello" && row["call_id"] == result["metadata"]["fleet_call_id"];
    assert!(there.as_array().unwrap().iter().any(has_row), "{there}");

    let command = json!({"command": "for i in $(seq 1 200); do echo line $i; done; echo done >&2; pwd"});
    let id = wire.request("tools.execute", json!({"name": "build_bash", "arguments": command, "progress": true}));
    let streamed = wire.notification("tools.progress");
    // The first piece of either stream.
    let text_of = streamed["text"].as_str().unwrap();
    assert!(text_of.starts_with("line 1\n") || text_of == "done\n", "{streamed}");
    let result = wire.answer(id)["result"].take();
    let expected: String = (1..=200).map(|i| format!("line {i}\n")).collect();
    let folder = fleet.others[0].work();
    // The line on stderr may arrive between two of stdout.
    let shown = text(&result);
    let without_stderr = shown.replacen("done\n", "", 1);
    assert!(shown.len() > without_stderr.len() && without_stderr.contains(&expected), "{shown}");
    assert!(shown.contains(folder.to_str().unwrap()), "{shown}");
    assert_eq!(result["is_error"], false);
    fleet.stop();
}

#[test]
fn long_arguments_and_results_go_through_the_object_store_and_are_deleted() {
    let Some(fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let result = wire.tool("build_large", json!({"text": "x".repeat(3_000_000)}));
    assert_eq!(text(&result).len(), 12_000_007);
    assert!(text(&result).ends_with("01234567893000000"));
    let mut raw = RawNats::connect(&fleet.nats);
    until("the texts are deleted", || {
        let state = raw.request("$JS.API.STREAM.INFO.OBJ_TOOLD_BLOBS", "{}");
        let state: Value = serde_json::from_str(&state).unwrap();
        // The records of deleted objects stay, which are short.
        (state["state"]["bytes"].as_u64()? < 10_000).then_some(())
    });
    fleet.stop();
}

#[test]
fn a_cancelled_call_is_confirmed_when_its_processes_are_gone() {
    let Some(fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let file = fleet.others[0].setup.path("home/group");
    let mut raw = RawNats::connect(&fleet.nats);
    raw.subscribe("toold.build.cancel.*");
    raw.subscribe("_INBOX.laptop.>");
    let (id, _) = begin(&mut wire, "build_bash", lasting(&file), "a");
    let group = read_group(&file);
    assert!(is_alive(&group));
    assert_eq!(wire.result("tools.cancel", json!({"call_id": "a"})), json!({"cancelled": true}));
    assert!(wire.answer(id)["error"]["message"].as_str().unwrap().contains("cancelled"));
    loop {
        let (_, payload) = raw.next();
        let Ok(message) = serde_json::from_str::<Value>(&payload) else { continue };
        if message["kind"] == "cancelled" {
            assert_eq!((&message["was_running"], &message["from"]), (&json!(true), &json!("build")));
            break;
        }
    }
    assert!(!is_alive(&group));
    fleet.stop();
}

#[test]
fn a_daemon_that_dies_leaves_it_unknown_whether_the_call_was_done() {
    let Some(mut fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let file = fleet.others[0].setup.path("home/group");
    let (id, _) = begin(&mut wire, "gpu_bash", lasting(&file), "a");
    // It comes back as another instance, which the caller sees at once.
    fleet.others[0].restart("KILL");
    let result = wire.answer(id)["result"].take();
    assert_eq!((&result["is_error"], &result["metadata"]["outcome"]), (&json!(true), &json!("unknown")));
    assert!(text(&result).starts_with("It is unknown whether the call was done: build "), "{result}");
    fleet.stop();
}

#[test]
fn only_a_harmless_call_is_repeated_on_another_daemon() {
    let Some(mut fleet) = CallingFleet::start(&["one", "two"], "") else { return };
    let mut wire = fleet.connect();
    // It waits wherever it runs first. That daemon is killed, and does not come back: it could get the call again.
    let (id, first) = begin(&mut wire, "gpu_look", json!({"wait": true}), "a");
    let (killed, other) = match first["text"].as_str() {
        Some("one") => (0, 1),
        Some("two") => (1, 0),
        other => panic!("{other:?}"),
    };
    std::fs::write(fleet.others[other].work().join("go"), "").unwrap();
    fleet.others[killed].signal("KILL");
    fleet.others[killed].wait();
    let result = wire.answer(id)["result"].take();
    assert_eq!((text(&result), &result["is_error"]), (["one", "two"][other], &json!(false)), "{result}");
    fleet.others[killed].start_again();
    fleet.stop();
}

#[test]
fn a_call_whose_caller_dies_is_cancelled() {
    let Some(mut fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let file = fleet.others[0].setup.path("home/group");
    begin(&mut wire, "build_bash", lasting(&file), "a");
    let group = read_group(&file);
    fleet.laptop.restart("KILL");
    until("the command is gone", || (!is_alive(&group)).then_some(()));
    fleet.stop();
}

#[test]
fn a_call_survives_a_restart_of_the_server() {
    let Some(mut fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    let (go, file) = (fleet.others[0].setup.path("home/go"), fleet.others[0].setup.path("home/group"));
    let command = format!(
        "echo $$ > {}; echo before; while [ ! -e {} ]; do sleep 0.05; done; for i in 1 2 3; do echo after $i; done",
        file.display(),
        go.display()
    );
    let (id, _) = begin(&mut wire, "build_bash", json!({"command": command}), "a");
    read_group(&file);
    fleet.nats.kill();
    // It ends while the server is away.
    std::fs::write(&go, "").unwrap();
    let group = read_group(&file);
    until("the command has ended", || (!is_alive(&group)).then_some(()));
    fleet.nats.start_again();
    let result = wire.answer(id)["result"].take();
    assert!(text(&result).contains("before\nafter 1\nafter 2\nafter 3"), "{result}");
    fleet.stop();
}

#[test]
fn calls_run_on_free_daemons_of_a_label_and_wait_for_busy_ones() {
    let Some(fleet) = CallingFleet::start(&["one", "two", "three"], "max_calls = 1") else { return };
    let mut wire = fleet.connect();
    let mut wait = |call: &str| begin(&mut wire, "gpu_wait", json!({}), call).1["text"].take().to_string();
    let mut places = ["a", "b", "c"].map(&mut wait);
    places.sort();
    assert_eq!(places, [r#""waits on one""#, r#""waits on three""#, r#""waits on two""#]);
    let (named, waits) = begin(&mut wire, "one_look", json!({}), "e");
    assert_eq!(waits["text"], "waiting: one is busy: it runs 1 of 1 calls");
    wire.result("tools.cancel", json!({"call_id": "e"}));
    assert_eq!(wire.answer(named)["error"]["code"], -32800);

    // The fourth waits until one is free.
    let (id, waits) = begin(&mut wire, "gpu_look", json!({}), "d");
    assert_eq!(waits["text"], "waiting for a free daemon with gpu: 3 of 3 are busy");
    wire.result("tools.cancel", json!({"call_id": "b"}));
    let result = wire.answer(id)["result"].take();
    assert_eq!(result["is_error"], false, "{result}");
    for call in ["a", "c"] {
        wire.result("tools.cancel", json!({"call_id": call}));
    }
    fleet.stop();
}

#[test]
fn a_daemon_that_has_gone_is_away_and_without_the_server_nothing_runs() {
    let Some(mut fleet) = CallingFleet::start(&["build"], "") else { return };
    let mut wire = fleet.connect();
    fleet.others.remove(0).stop();
    let refused = wire.call("tools.execute", json!({"name": "build_look", "arguments": {}}));
    let shown = refused.to_string();
    assert!(shown.contains("build is away"), "{shown}");
    fleet.nats.kill();
    let refused = wire.call("tools.execute", json!({"name": "build_look", "arguments": {}})).to_string();
    assert!(refused.contains("away") || refused.contains("not connected"), "{refused}");
    fleet.stop();
}

/// A client of the server without a library: it sees what everybody on the server can see.
struct RawNats {
    reader: BufReader<TcpStream>,
    subscriptions: usize,
}

impl RawNats {
    fn connect(server: &NatsServer) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(toold_tests::PATIENCE)).unwrap();
        let mut raw = Self { reader: BufReader::new(stream), subscriptions: 0 };
        raw.send("CONNECT {\"verbose\":false}\r\nPING\r\n");
        while raw.line() != "PONG" {}
        raw
    }

    fn send(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.reader.read_line(&mut line).unwrap() > 0, "the server closed the connection");
        line.trim_end().to_owned()
    }

    fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        self.send(&format!("SUB {subject} {}\r\nPING\r\n", self.subscriptions));
        while self.line() != "PONG" {}
    }

    /// The subject and the text of the next message.
    fn next(&mut self) -> (String, String) {
        loop {
            let line = self.line();
            if line == "PING" {
                self.send("PONG\r\n");
            }
            let Some(header) = line.strip_prefix("MSG ") else { continue };
            let length: usize = header.rsplit(' ').next().unwrap().parse().unwrap();
            let mut payload = vec![0; length + 2];
            self.reader.read_exact(&mut payload).unwrap();
            payload.truncate(length);
            let subject = header.split(' ').next().unwrap().to_owned();
            return (subject, String::from_utf8_lossy(&payload).into_owned());
        }
    }

    fn request(&mut self, subject: &str, text: &str) -> String {
        let inbox = format!("_INBOX.raw.{}", self.subscriptions);
        self.subscribe(&inbox);
        self.send(&format!("PUB {subject} {inbox} {}\r\n{text}\r\n", text.len()));
        loop {
            let (to, answer) = self.next();
            if to == inbox {
                return answer;
            }
        }
    }
}
