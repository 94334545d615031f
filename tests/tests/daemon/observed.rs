//! A daemon's reports about itself: status, logs, metrics, traces.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use toold_tests::{PATIENCE, Setup, TestDaemon, Wire, toolctl, toold, until};

const TOOLS: &str = r#"
local function hold(ctx)
  while not hygge.store.get("release") do hygge.sleep("5ms") end
  return "held"
end
hygge.register_tool{
  name = "hold", description = "Waits until it is released",
  input_schema = {type = "object"},
  execute = hold,
}
hygge.register_tool{
  name = "go", description = "Lets those that wait go", parallelizable = true,
  input_schema = {type = "object"},
  execute = function() hygge.store.set("release", true) return "gone" end,
}
hygge.register_tool{
  name = "flood", description = "Tells much", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx)
    local text = string.rep("x", 1000)
    for _ = 1, 3000 do ctx.progress(text) end
    return "done"
  end,
}
hygge.register_tool{
  name = "fail", description = "Fails", parallelizable = true,
  input_schema = {type = "object"},
  execute = function() error("no luck") end,
}
"#;

fn daemon(config: &str) -> TestDaemon {
    Setup::new().config(config).plugin("tools.lua", TOOLS).file("notes.txt", "one\n").start()
}

fn status(wire: &mut Wire) -> Value {
    wire.result("daemon.status", json!({}))
}

#[track_caller]
fn until_status(wire: &mut Wire, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
    until(what, || Some(status(wire)).filter(|status| is_so(status)))
}

fn latency<'s>(status: &'s Value, tool: &str) -> &'s Value {
    status["latency"].as_array().unwrap().iter().find(|row| row["tool"] == tool).unwrap_or(&Value::Null)
}

#[test]
fn status_shows_why_calls_wait() {
    let daemon = daemon("");
    let (mut one, mut two, mut beside) = (daemon.connect(), daemon.connect(), daemon.connect());
    let mut person = daemon.connect();
    let at = |wire: &mut Wire, what: &str, expected: [u64; 4]| {
        until_status(wire, what, |status| {
            let queues = &status["queues"];
            let names = ["running", "waiting_for_lane", "waiting_for_place", "waiting_for_person"];
            names.map(|name| queues[name].as_u64().unwrap()) == expected
        })
    };
    at(&mut beside, "nothing runs", [0, 0, 0, 0]);
    let hold = json!({"name": "hold", "arguments": {}});
    let first = one.request("tools.execute", hold.clone());
    at(&mut beside, "a call runs", [1, 0, 0, 0]);
    let second = one.request("tools.execute", hold.clone());
    at(&mut beside, "the next one of its session waits", [1, 1, 0, 0]);
    let third = two.request("tools.execute", hold);
    at(&mut beside, "another session's runs too, since the first one only waits", [2, 1, 0, 0]);
    person.result("permissions.subscribe", json!({}));
    let fourth = beside.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch x"}}));
    let asked = person.notification("permissions.event");
    let mut watching = daemon.connect();
    at(&mut watching, "a person is asked", [2, 1, 0, 1]);
    let shown = String::from_utf8(daemon.toolctl(&["status"]).stdout).unwrap();
    assert!(shown.contains("waiting      1 for an answer from you, 1 for another call of their session"), "{shown}");
    let request_id = &asked["result"]["request"]["request_id"];
    person.result("permissions.reply", json!({"request_id": request_id, "action": "deny"}));
    assert_eq!(beside.answer(fourth)["result"]["is_error"], true);
    watching.tool("go", json!({}));
    for (wire, id) in [(&mut one, first), (&mut two, third)] {
        assert_eq!(wire.answer(id)["result"]["content"][0]["text"], "held");
    }
    one.answer(second);
    let status = at(&mut watching, "all have ended", [0, 0, 0, 0]);
    let hold = latency(&status, "hold");
    assert_eq!((&hold["calls"], &hold["errors"], &hold["runs"]), (&json!(3), &json!(0), &json!(3)));
    let bash = latency(&status, "bash");
    assert_eq!((&bash["calls"], &bash["errors"], &bash["runs"]), (&json!(1), &json!(1), &json!(0)), "it was denied");
}

#[test]
fn status_shows_latency_and_resource_use_of_tools() {
    let daemon = daemon("");
    let mut wire = daemon.connect();
    for _ in 0..20 {
        wire.tool("read", json!({"path": "notes.txt"}));
        wire.tool("fail", json!({}));
    }
    let status = status(&mut wire);
    assert_eq!(status["latency_window_s"], 300);
    let read = latency(&status, "read");
    let us = |name: &str| read[name].as_u64().unwrap();
    assert_eq!((&read["calls"], &read["errors"]), (&json!(20), &json!(0)));
    assert!(us("p50_us") > 0 && us("p50_us") <= us("p90_us") && us("p99_us") <= us("max_us"), "{read}");
    assert_eq!(latency(&status, "fail")["errors"], 20);
    assert_eq!(latency(&status, "hold"), &Value::Null, "it was never called");
    assert!(status["lua"]["machines"].as_u64() >= Some(1), "{status}");
    assert!(status["lua"]["memory_bytes"].as_u64() > Some(10_000), "{status}");
    let (open, limit) = (status["open_files"].as_u64().unwrap(), status["open_files_limit"].as_u64().unwrap());
    assert!(open > 3 && open < limit, "{status}");
    assert!(status["memory_bytes"].as_u64() > status["lua"]["memory_bytes"].as_u64());
    let shown = String::from_utf8(daemon.toolctl(&["status"]).stdout).unwrap();
    for words in ["the last 5 minutes", " TOOL  CALLS  ERRORS", " read     20       0", " fail     20      20"] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn status_is_followed_until_the_user_quits() {
    let daemon = daemon("");
    let mut command = daemon.setup.command(toolctl());
    let mut watching =
        command.args(["status", "--watch", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let (first, second) = (next(), next());
    assert!(first["uptime_s"].as_f64() < second["uptime_s"].as_f64());
    // Not SIGINT, which is ignored when tests run in the background.
    let ended = Command::new("kill").args(["-TERM", &watching.id().to_string()]).status().unwrap();
    assert!(ended.success() && !watching.wait().unwrap().success());
}

#[test]
fn clients_that_read_nothing_are_seen_in_the_status() {
    let daemon = daemon("");
    let (mut deaf, mut slow, mut wire) = (daemon.connect(), daemon.connect(), daemon.connect());
    slow.result("events.subscribe", json!({"kinds": ["call.progress"]}));
    deaf.request("tools.execute", json!({"name": "flood", "arguments": {}, "progress": true}));
    // The answer to a call is sent with all messages that wait before it, however many.
    let status = until_status(&mut wire, "an outbox is full, and events wait", |status| {
        let queues = &status["queues"];
        status["calls"]["finished"] == 1
            && queues["outboxes"]["full"] == 1
            && queues["events"]["lag"].as_u64() > Some(100)
    });
    let outboxes = &status["queues"]["outboxes"];
    assert_eq!((&outboxes["most"], &outboxes["capacity"]), (&json!(256), &json!(256)));
    let shown = String::from_utf8(daemon.toolctl(&["status"]).stdout).unwrap();
    assert!(shown.contains("at most 256 of 256 for one client, 1 full"), "{shown}");
    assert!(shown.contains("the slowest reader is"), "{shown}");
    drop(deaf);
    drop(slow);
    until_status(&mut wire, "they are gone", |status| status["queues"]["outboxes"]["messages"] == 0);
}

/// The only log of the setup's daemon.
fn log_file(setup: &Setup) -> PathBuf {
    let dir = setup.path("state/toold/log");
    // A daemon listens a moment before it writes.
    let mut logs: Vec<_> = until("there is a log", || {
        let files = fs::read_dir(&dir).ok()?.map(|entry| entry.unwrap().path());
        let logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "log")).collect();
        (!logs.is_empty()).then_some(logs)
    });
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

fn logs(daemon: &TestDaemon, arguments: &[&str]) -> String {
    let output = daemon.toolctl(&[&["logs"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_log_is_shown_when_the_daemon_is_dead() {
    let mut daemon = daemon("");
    let mut wire = daemon.connect();
    wire.tool("read", json!({"path": "notes.txt"}));
    wire.tool("fail", json!({}));
    let session = wire.result("session.list", json!({}))["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    drop(wire);
    let file = log_file(&daemon.setup);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    daemon.signal("KILL");
    daemon.wait();
    let all = logs(&daemon, &[]);
    assert!(
        all.contains("INFO  toold") && all.contains(": serving socket=") || all.contains("serving socket="),
        "{all}"
    );
    assert!(all.contains("DEBUG toold_engine::execute call started"), "{all}");
    assert_eq!(logs(&daemon, &["-n", "2"]).lines().count(), 2);
    let of_read = logs(&daemon, &["--tool", "read"]);
    assert_eq!(of_read.lines().count(), 2, "{of_read}");
    assert!(of_read.contains("call finished") && !of_read.contains("fail"), "{of_read}");
    assert_eq!(logs(&daemon, &["--session", &session]).lines().count(), 4);
    assert!(!logs(&daemon, &["--level", "info"]).contains("DEBUG"));
    assert_eq!(logs(&daemon, &["--since", "2100-01-01T00:00:00Z"]), "");
    assert_eq!(logs(&daemon, &["--since", "1h"]), all);
    for line in logs(&daemon, &["--json", "--tool", "fail"]).lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&entry["level"], &entry["target"]), (&json!("DEBUG"), &json!("toold_engine::execute")));
    }
    daemon.start_again();
}

#[test]
fn the_log_takes_turns_and_is_followed_over_them() {
    let daemon = daemon("[log]\nformat = \"json\"\nmax_kib = 16\nkeep = 2\n");
    let path = log_file(&daemon.setup);
    let mut command = daemon.setup.command(toolctl());
    command.args(["logs", "--follow", "--json", "--tool", "fail", "-n", "0"]);
    let mut following = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let (sender, seen) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let entry: Value = serde_json::from_str(&line).unwrap();
            // Fails when the test is over.
            let _ = sender.send(entry["call"].as_str().unwrap().to_owned());
        }
    });
    let mut wire = daemon.connect();
    let mut calls = 0;
    let mut fail = || {
        calls += 1;
        let id = format!("call-{calls:06}");
        wire.result("tools.execute", json!({"name": "fail", "arguments": {}, "call_id": id}));
        id
    };
    // There is no event for the beginning of the subscription.
    let first = until("a call is seen", || {
        fail();
        seen.try_recv().ok()
    });
    let aside = |n: usize| PathBuf::from(format!("{}.{n}", path.display()));
    until("the first file is put aside twice", || {
        let last = fail();
        // All of them are read before there are too many and the oldest is removed.
        until("it is seen", || (seen.try_recv().ok()? == last).then_some(()));
        aside(2).exists().then_some(())
    });
    let last = fail();
    until("the last call is seen", || (seen.recv_timeout(PATIENCE).unwrap() == last).then_some(()));
    assert!(first < last);
    until("a third one is put aside", || {
        let size = fs::metadata(&path).unwrap().len();
        fail();
        (fs::metadata(&path).unwrap().len() < size).then_some(())
    });
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path.clone()), mode(aside(1))), (0o600, 0o600));
    assert!(!aside(3).exists(), "two are kept");
    following.kill().unwrap();
    following.wait().unwrap();
    reader.join().unwrap();
}

#[test]
fn log_level_follows_the_configuration() {
    let setup = Setup::new().config("[log]\nfilter = \"info\"\n").file("notes.txt", "one\n");
    let mut command = setup.command(toold());
    command.env_remove("TOOLD_LOG").args(["serve", "--detached"]).stdin(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let socket = setup.path("run/toold.sock");
    until("it listens", || std::os::unix::net::UnixStream::connect(&socket).ok());
    let mut wire = Wire::connect(&socket);
    wire.result("session.open", json!({"cwd": setup.path("work")}));
    let file = log_file(&setup);
    let log = || fs::read_to_string(&file).unwrap();
    wire.tool("read", json!({"path": "notes.txt"}));
    assert!(log().contains("serving") && !log().contains("call started"), "{}", log());
    fs::write(setup.path("config/toold/config.toml"), "[log]\nfilter = \"toold_engine=debug\"\n").unwrap();
    until("calls are logged", || {
        wire.tool("read", json!({"path": "notes.txt"}));
        log().contains("call started").then_some(())
    });
    let reloaded = {
        fs::write(setup.path("config/toold/config.toml"), "[log]\nfilter = \"inof\"\nfile = false\n").unwrap();
        wire.result("daemon.reload", json!({}))
    };
    assert_eq!(reloaded["applied"], false);
    let problem = reloaded["problems"][0].as_str().unwrap();
    assert!(problem.contains("config.toml:2") && problem.contains("inof"), "{problem}");
    fs::write(setup.path("config/toold/config.toml"), "[log]\nfile = false\n").unwrap();
    assert_eq!(wire.result("daemon.reload", json!({}))["needs_restart"], json!(["log.file"]));
    wire.result("daemon.shutdown", json!({}));
    drop(wire);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words, "", "a daemon in the background has its log for what it says");
    assert!(log().contains("stopped"), "{}", log());
}

#[test]
fn secrets_are_in_no_log() {
    const SECRETS: [&str; 3] = ["hunter2-hunter2", "ghp_A1b2C3d4E5f6G7h8I9j0K1l2", "s3cr3t-value"];
    let daemon = daemon("[log]\nformat = \"json\"\n[plugins.tools]\napi_token = \"s3cr3t-value\"\n");
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "yolo"}));
    let command = "echo PASSWORD=hunter2-hunter2 ghp_A1b2C3d4E5f6G7h8I9j0K1l2";
    let ran = wire.tool("bash", json!({"command": command}));
    assert_eq!(ran["is_error"], false, "{ran}");
    wire.call("tools.execute", json!({"name": "bash", "arguments": {"command": 7, "token": SECRETS[0]}}));
    let kept = fs::read_to_string(log_file(&daemon.setup)).unwrap();
    assert!(kept.contains("call finished"));
    for line in kept.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(!SECRETS.iter().any(|secret| line.to_string().contains(secret)), "{line}");
    }
    assert!(!SECRETS.iter().any(|secret| daemon.log().contains(secret)));
}

fn number(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(line.parse().unwrap())
}

#[test]
fn metrics_have_the_format_of_prometheus() {
    let daemon = daemon("");
    let mut wire = daemon.connect();
    for _ in 0..3 {
        wire.tool("read", json!({"path": "notes.txt"}));
    }
    wire.tool("fail", json!({}));
    wire.tool("read", json!({"path": "nowhere"}));
    let output = daemon.toolctl(&["status", "--prometheus"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let of = |series: &str| number(&text, series).unwrap_or_else(|| panic!("no {series} in {text}"));
    assert_eq!(of(r#"toold_calls_total{tool="read",outcome="ok"}"#), 3.0);
    assert_eq!(of(r#"toold_calls_total{tool="read",outcome="error"}"#), 1.0);
    assert_eq!(of(r#"toold_calls_total{tool="fail",outcome="error"}"#), 1.0);
    assert_eq!(of(r#"toold_call_duration_seconds_count{tool="read"}"#), 4.0);
    assert_eq!(of(r#"toold_call_duration_seconds_bucket{le="+Inf",tool="read"}"#), 4.0);
    assert!(of(r#"toold_call_duration_seconds_sum{tool="read"}"#) > 0.0);
    assert_eq!(of(r#"toold_calls_waiting{for="person"}"#), 0.0);
    assert!(of("process_resident_memory_bytes") > 1e6 && of("process_open_fds") > 3.0);
    assert!(of("process_start_time_seconds") > 1.7e9 && of("process_cpu_seconds_total") >= 0.0);
    assert!(of("toold_lua_memory_bytes") > 0.0 && of("toold_connections") >= 1.0);
    assert!(text.contains("# TYPE toold_call_duration_seconds histogram\n") && text.ends_with("# EOF\n"));
    assert!(wire.result("daemon.metrics", json!({}))["content_type"].as_str().unwrap().contains("openmetrics"));
}

/// How much of the code of a daemon's program is in memory, in KiB.
fn code_in_memory(daemon: &TestDaemon) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", daemon.pid())).unwrap();
    let mut lines = maps.lines().skip_while(|line| !(line.contains(" r-xp ") && line.ends_with("/toold")));
    let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    resident.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_code_of_a_daemon_that_rests_leaves_memory() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    // It may leave right after the start.
    let most = until("code has run", || {
        wire.result("tools.list", json!({}));
        Some(code_in_memory(&daemon)).filter(|resident| *resident > 12_000)
    });
    until("code has left", || (code_in_memory(&daemon) < most / 2).then_some(()));
    wire.result("tools.list", json!({}));
}

/// Asks by HTTP; gives status and body.
fn get(address: &str, path: &str, token: Option<&str>) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn metrics_endpoint_needs_a_token_and_is_off_by_default() {
    let config = "[mcp]\nlisten = \"127.0.0.1:0\"\n";
    let daemon = daemon(config);
    let mut wire = daemon.connect();
    let url = status(&mut wire)["mcp_url"].as_str().unwrap().to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let token = fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    assert_eq!(get(&address, "/metrics", Some(&token)).0, 404, "it is off");
    fs::write(daemon.setup.path("config/toold/config.toml"), format!("{config}[metrics]\nprometheus = true\n"))
        .unwrap();
    assert_eq!(wire.result("daemon.reload", json!({}))["applied"], true);
    let (status, body) = get(&address, "/metrics", Some(&token));
    assert!(status == 200 && body.contains("toold_connections "), "{status} {body}");
    assert_eq!(get(&address, "/metrics", None).0, 401);
    assert_eq!(get(&address, "/metrics", Some("wrong")).0, 401);
}

/// Stands for an OpenTelemetry collector; gives the spans that it is sent.
fn collector() -> (String, mpsc::Receiver<Span>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, spans) = mpsc::channel();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sender) = (BufReader::new(stream.unwrap()), sender.clone());
            std::thread::spawn(move || while take_request(&mut stream, &sender).is_some() {});
        }
    });
    (endpoint, spans)
}

/// `None` when the client is gone.
fn take_request(stream: &mut BufReader<std::net::TcpStream>, spans: &mpsc::Sender<Span>) -> Option<()> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        match stream.read_line(&mut line).ok()? {
            0 => return None,
            _ if line == "\r\n" => break,
            _ => head.push(line.trim().to_ascii_lowercase()),
        }
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    for of_resource in ExportTraceServiceRequest::decode(body.as_slice()).unwrap().resource_spans {
        let resource = of_resource.resource.unwrap();
        assert_eq!(attribute(&resource.attributes, "service.name"), "toold");
        for span in of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            // Fails when the test is over.
            let _ = spans.send(span);
        }
    }
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|known| known.key == key).and_then(|known| known.value.clone()?.value);
    match value {
        Some(AnyValue::StringValue(text)) => text,
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn calls_are_traced_within_the_traces_of_their_callers() {
    let (endpoint, spans) = collector();
    let nested = r#"
hygge.register_tool{
  name = "outer", description = "Calls another", input_schema = {type = "object"},
  execute = function() return hygge.call_tool("read", {path = "notes.txt"}) end,
}"#;
    let setup = Setup::new().config(&format!("[trace]\notlp_endpoint = {endpoint:?}\n")).plugin("outer.lua", nested);
    let mut daemon = setup.plugin("tools.lua", TOOLS).file("notes.txt", "one\n").start();
    let mut wire = daemon.connect();
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let call = |name: &str, id: &str| json!({"name": name, "arguments": {}, "call_id": id, "traceparent": parent});
    wire.result("tools.execute", call("outer", "c-outer"));
    wire.result(
        "tools.execute",
        json!({"name": "fail", "arguments": {}, "call_id": "c-fail", "traceparent": "rubbish"}),
    );
    let mut detached = call("go", "c-go");
    detached["detach"] = json!(true);
    wire.result("tools.execute", detached);
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let asking = wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch x"}}));
    let request_id = person.notification("permissions.event")["result"]["request"]["request_id"].clone();
    person.result("permissions.reply", json!({"request_id": request_id, "action": "deny"}));
    wire.answer(asking);
    let mut mcp = Wire::connect(&daemon.socket());
    let client =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    mcp.result("initialize", client);
    mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let of_mcp = format!("00-{}-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736");
    mcp.result("tools/call", json!({"name": "go", "arguments": {}, "_meta": {"traceparent": of_mcp}}));
    drop((wire, person, mcp));
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    // All of them were sent before it ended.
    let spans: Vec<Span> = spans.try_iter().collect();
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name.starts_with("execute_tool ")).collect();
    let find = |id: &str| {
        let call = calls.iter().find(|span| attribute(&span.attributes, "gen_ai.tool.call.id") == id);
        *call.unwrap_or_else(|| panic!("no call {id} in {spans:#?}"))
    };
    let children =
        |of: &Span| -> Vec<&Span> { spans.iter().filter(|span| span.parent_span_id == of.span_id).collect() };
    let names = |of: &Span| children(of).iter().map(|span| span.name.clone()).collect::<Vec<_>>();

    let outer = find("c-outer");
    assert_eq!(outer.name, "execute_tool outer");
    assert_eq!((hex(&outer.trace_id).as_str(), hex(&outer.parent_span_id).as_str()), (TRACE, "b7ad6b7169203331"));
    assert_eq!(attribute(&outer.attributes, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(attribute(&outer.attributes, "gen_ai.tool.name"), "outer");
    assert_eq!(attribute(&outer.attributes, "toold.outcome"), "ok");
    assert_eq!(attribute(&outer.attributes, "error.type"), "");
    assert!(outer.end_time_unix_nano > outer.start_time_unix_nano);
    let steps = names(outer);
    assert_eq!(steps.iter().filter(|name| *name == "permission").count(), 1, "{steps:?}");
    let run = *children(outer).iter().find(|span| span.name == "run").unwrap();
    assert_eq!(names(run), ["execute_tool read"], "a call within a call");
    assert_eq!(hex(&find("c-go").trace_id), TRACE);

    let failed = find("c-fail");
    assert!(failed.parent_span_id.is_empty() && hex(&failed.trace_id) != TRACE);
    assert_eq!(attribute(&failed.attributes, "error.type"), "error");
    assert_eq!(failed.status.as_ref().unwrap().code, 2, "an error");

    let denied = *calls.iter().find(|span| span.name == "execute_tool bash").unwrap();
    assert_eq!(attribute(&denied.attributes, "error.type"), "denied");
    assert_eq!(names(denied), ["permission"]);
    assert_eq!(names(children(denied)[0]), ["ask a person"]);
    let by_mcp = calls.iter().find(|span| hex(&span.trace_id) == "4bf92f3577b34da6a3ce929d0e0e4736").unwrap();
    assert_eq!((by_mcp.name.as_str(), hex(&by_mcp.parent_span_id).as_str()), ("execute_tool go", "00f067aa0ba902b7"));
    let all = format!("{spans:?}");
    assert!(!all.contains("touch x") && !all.contains("notes.txt"), "neither arguments nor results are in a trace");
}

#[test]
fn a_daemon_serves_whatever_becomes_of_its_collector() {
    // There is no listener any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let daemon = daemon(&format!("[trace]\notlp_endpoint = \"http://{gone}\"\n"));
    assert_eq!(daemon.connect().tool("read", json!({"path": "notes.txt"}))["is_error"], false);
    daemon.stop();
    let wrong = self::daemon("[trace]\notlp_endpoint = \"collector\"\n");
    assert_eq!(wrong.connect().tool("read", json!({"path": "notes.txt"}))["is_error"], false);
    assert!(wrong.log().contains("calls are not traced: trace.otlp_endpoint"), "{}", wrong.log());
}
