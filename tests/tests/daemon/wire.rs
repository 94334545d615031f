//! The native dialect, byte by byte, on a real socket.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, WireFraming, until};

#[test]
fn both_framings_are_distinguished_by_the_first_byte() {
    let daemon = TestDaemon::start();
    for framing in [WireFraming::Lines, WireFraming::Headers] {
        let mut wire = Wire::connect_framed(&daemon.socket(), framing);
        wire.send_bytes(b" \n");
        assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
        assert_eq!(wire.result("daemon.status", json!({}))["pid"], daemon.pid());
    }
}

#[test]
fn invalid_json_is_answered_and_the_connection_survives() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    let nonsense: [&[u8]; 3] = [
        b"{\"jsonrpc\": nonsense\n",
        // Also in members that nothing reads, and in a batch.
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\",\"other\":\"\xff\"}\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\",\"other\":\"\xff\"}]\n",
    ];
    for message in nonsense {
        wire.send_bytes(message);
        let answer = wire.next_message().unwrap();
        assert_eq!((answer["error"]["code"].clone(), answer["id"].clone()), (json!(-32700), Value::Null));
    }
    for (request, id) in [
        (r#"{"id":1,"method":"daemon.ping"}"#, json!(1)),
        (r#"{"jsonrpc":"2.0","id":2}"#, json!(2)),
        (r#"{"jsonrpc":"2.0","id":2,"method":7}"#, json!(2)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"daemon.ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"daemon.ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"daemon.ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":9007199254740992,"method":"daemon.ping"}"#, Value::Null),
        ("[]", Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"daemon.ping\"}", Value::Null),
    ] {
        wire.send_bytes(format!("{request}\n").as_bytes());
        let answer = wire.next_message().unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{request}: {answer}");
        assert_eq!(answer["id"], id, "{request}: {answer}");
    }
    assert_eq!(wire.error("no.such", json!({}))["code"], -32601);
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
}

#[test]
fn a_batch_is_answered_as_one_batch() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.send(&json!([
        {"jsonrpc": "2.0", "id": "a", "method": "daemon.ping"},
        {"jsonrpc": "2.0", "method": "daemon.ping"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools.list"},
        {"jsonrpc": "2.0", "id": "c", "method": "events.subscribe"},
        7
    ]));
    let answers = wire.next_message().unwrap();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4, "{answers:?}");
    let of = |id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of("a")["result"], json!({}));
    assert!(of("b")["result"]["tools"].is_array());
    assert_eq!(of("c")["error"]["code"], -32600);
    assert!(answers.iter().any(|answer| answer["id"].is_null() && answer["error"]["code"] == -32600));

    // The largest answer is given once.
    let discover = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "rpc.discover"});
    wire.send(&json!([discover(31), {"jsonrpc": "2.0", "id": 32, "method": "daemon.ping"}, discover(33)]));
    let answers = wire.next_message().unwrap();
    let kind = |id: u64| answers.as_array().unwrap().iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(kind(31)["result"]["openrpc"].as_str().map(|version| &version[..1]), Some("1"));
    assert_eq!(kind(33)["error"]["data"]["kind"], "repeated", "{}", kind(33));
    // A batch of notifications alone has no answer: the next message is the next one's.
    wire.send(&json!([{"jsonrpc": "2.0", "method": "daemon.ping"}]));
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
}

#[test]
fn a_message_over_the_limit_is_answered_and_thrown_away() {
    let daemon = Setup::new().config("[limits]\nmessage_bytes = 4096\n").start();
    for framing in [WireFraming::Lines, WireFraming::Headers] {
        let mut wire = Wire::connect_framed(&daemon.socket(), framing);
        wire.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.ping", "x": "y".repeat(100_000)}));
        let answer = wire.next_message().unwrap();
        assert_eq!(answer["error"]["code"], -32600);
        assert_eq!(answer["error"]["data"]["kind"], "too_large");
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
    }
    let mut wire = Wire::connect(&daemon.socket());
    let error = wire.error("rpc.discover", json!({}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32603), &json!("too_large")));
    // An error that quotes its request is longer than the request.
    let error = wire.error("session.open", json!({"cwd": format!("/{}", "y".repeat(3_800))}));
    assert_eq!(error["data"]["kind"], "invalid_params");
    let error = wire.error("session.open", json!({"cwd": format!("/{}", "y".repeat(4_000))}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32603), &json!("too_large")), "{error}");
}

#[test]
fn params_are_by_name_and_unknown_ones_are_ignored() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    assert_eq!(wire.result("daemon.ping", json!({"later": true})), json!({}));
    for (method, params) in
        [("daemon.ping", json!([1])), ("tools.schema", json!({})), ("tools.list", json!({"names": 7}))]
    {
        let error = wire.error(method, params);
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32602), &json!("invalid_params")), "{error}");
    }
    wire.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"no params\",\"method\":\"daemon.ping\"}\n");
    assert_eq!(wire.next_message().unwrap()["result"], json!({}));
}

#[test]
fn headers_that_are_none_end_the_connection() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.send_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    // The answer is framed as the unreadable message would have been.
    let mut rest = String::new();
    wire.end_sending();
    std::io::Read::read_to_string(wire.stream(), &mut rest).unwrap();
    assert!(rest.contains("-32700"), "{rest}");
}

#[test]
fn the_socket_is_private_and_only_one_daemon_has_it() {
    let daemon = TestDaemon::start();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.socket()), 0o600);
    assert_eq!(mode(daemon.socket().parent().unwrap()), 0o700);
    let second = daemon.setup.command(toold_tests::toold()).arg("serve").output().unwrap();
    assert!(!second.status.success());
    let words = String::from_utf8_lossy(&second.stderr);
    assert!(words.contains("serves") && words.contains("already"), "{words}");
    let detached = daemon.setup.command(toold_tests::toold()).args(["serve", "--detached"]).output().unwrap();
    assert!(detached.status.success());
    assert_eq!(daemon.connect().result("daemon.status", json!({}))["pid"], daemon.pid());
}

#[test]
fn a_stale_socket_is_taken_over_and_a_file_in_its_place_is_not() {
    let setup = Setup::new();
    let socket = setup
        .command(toold_tests::toold())
        .get_envs()
        .find(|(k, _)| *k == "TOOLD_SOCKET")
        .unwrap()
        .1
        .unwrap()
        .to_owned();
    // Bound and left behind, as by a daemon that was killed.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let daemon = setup.start();
    assert_eq!(daemon.connect().result("daemon.ping", json!({})), json!({}));
    daemon.stop();

    let setup = Setup::new();
    let socket = setup
        .command(toold_tests::toold())
        .get_envs()
        .find(|(k, _)| *k == "TOOLD_SOCKET")
        .unwrap()
        .1
        .unwrap()
        .to_owned();
    std::fs::write(&socket, "precious").unwrap();
    let refused = setup.command(toold_tests::toold()).arg("serve").output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not a socket"));
    assert_eq!(std::fs::read(&socket).unwrap(), b"precious");
}

#[test]
fn shutdown_and_signals_stop_it_cleanly() {
    for how in ["TERM", "INT", "shutdown"] {
        let mut daemon = TestDaemon::start();
        let mut wire = daemon.connect();
        match how {
            "shutdown" => _ = wire.result("daemon.shutdown", json!({})),
            signal => daemon.signal(signal),
        }
        assert!(daemon.wait().success(), "{how}");
        // Until the connection ends.
        let messages: Vec<Value> = std::iter::from_fn(|| wire.next_message()).collect();
        assert!(messages.iter().any(|message| message["method"] == "daemon.closing"), "{messages:?}");
        daemon.stop();
    }
}

#[test]
fn stdio_serves_one_client_and_ends_with_it() {
    let setup = Setup::new();
    let mut child = setup
        .command(toold_tests::toold())
        .arg("--stdio")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\"}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"].get("socket"), None);
    assert!(answer["result"]["epoch"].is_string());
}

#[test]
fn sessions_are_opened_resumed_listed_and_closed() {
    let daemon = TestDaemon::start();
    let (mut one, mut two) = (Wire::connect(&daemon.socket()), Wire::connect(&daemon.socket()));
    let opened = one.result("session.open", json!({"cwd": daemon.work(), "session_id": "shared", "protocol": 2}));
    assert_eq!((&opened["resumed"], &opened["server"]["name"]), (&json!(false), &json!("toold")));
    let resumed = two.result("session.open", json!({"session_id": "shared"}));
    assert_eq!((&resumed["resumed"], &resumed["cwd"]), (&json!(true), &json!(daemon.work())));
    assert_eq!(two.error("session.open", json!({"session_id": "shared", "cwd": "/"}))["code"], -32602);
    assert_eq!(two.error("session.open", json!({"cwd": "relative"}))["code"], -32602);
    assert_eq!(two.error("session.open", json!({"cwd": "/no/such/folder"}))["code"], -32602);
    let error = two.error("session.open", json!({"cwd": "/", "protocol": 9}));
    assert_eq!((&error["code"], &error["data"]["supported"]), (&json!(-32600), &json!([2])));
    assert_eq!(two.error("session.open", json!({"cwd": "/", "session_id": "../x"}))["code"], -32602);
    assert_eq!(two.error("tools.list", json!({"session_id": "unknown"}))["code"], -32004);
    let listed = one.result("session.list", json!({}));
    assert_eq!(listed["sessions"][0]["session_id"], "shared");
    assert_eq!(listed["sessions"][0]["connections"], 2);
    drop(one);
    until("the connection is gone", || {
        let listed = two.result("session.list", json!({}));
        (listed["sessions"][0]["connections"] == 1).then_some(())
    });
    assert_eq!(two.result("session.close", json!({"session_id": "shared"})), json!({"cancelled": 0}));
    assert_eq!(two.result("session.list", json!({})), json!({"sessions": []}));
}

#[test]
fn events_are_numbered_filtered_and_replayed() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let subscription = wire.result("events.subscribe", json!({"kinds": ["session.opened", "session.closed"]}));
    assert!(subscription.is_string());
    let mut other = daemon.connect();
    let id = other.result("session.open", json!({"cwd": "/"}))["session_id"].take();
    let first = wire.notification("events.event");
    assert_eq!((&first["subscription"], &first["result"]["kind"]), (&subscription, &json!("session.opened")));
    let second = wire.notification("events.event")["result"].take();
    assert_eq!(second["session_id"], id);
    assert!(second["at"].as_str().unwrap().ends_with('Z'));
    assert!(second["seq"].as_u64() > first["result"]["seq"].as_u64());

    assert_eq!(wire.result("events.unsubscribe", json!({"subscription": subscription})), true);
    assert_eq!(wire.result("events.unsubscribe", json!({"subscription": subscription})), false);
    let since = second["seq"].as_u64().unwrap() - 1;
    wire.result("events.subscribe", json!({"since": since, "epoch": second["epoch"]}));
    assert_eq!(wire.notification("events.event")["result"], second);
    assert_eq!(wire.error("events.subscribe", json!({"kinds": ["no.such"]}))["code"], -32602);
}

#[test]
fn openrpc_document_lists_the_served_methods() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let document = wire.result("rpc.discover", json!({}));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    for method in document["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        if name == "daemon.shutdown" || name == "daemon.restart" || name.ends_with("subscribe") {
            continue;
        }
        let answer = wire.call(name, json!({}));
        assert_ne!(answer["error"]["code"], -32601, "{name}");
    }
}

#[test]
fn an_agent_may_not_decide() {
    let daemon = TestDaemon::start();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    for method in ["daemon.shutdown", "plugins.reload"] {
        let error = wire.error(method, json!({}));
        assert_eq!(error["code"], -32002, "{method}: {error}");
    }
    // Opening another session does not restore the right.
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "person"}));
    assert_eq!(wire.error("daemon.shutdown", json!({}))["code"], -32002);
}

#[test]
fn messages_look_as_snapshots_say() {
    let tool = r#"
hygge.register_tool{
  name = "greet", description = "Greets", parallelizable = true, timeout = "5s",
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input) ctx.progress("greeting") return {content = "hello " .. input.name, metadata = {n = 1}} end,
}"#;
    let daemon = Setup::new().plugin("greet.lua", tool).start();
    let mut wire = daemon.connect();
    let mut seen = Vec::new();
    for (method, params) in [
        ("tools.schema", json!({"name": "greet"})),
        ("tools.execute", json!({"name": "greet", "arguments": {"name": "you"}, "call_id": "c", "progress": true})),
        ("tools.execute", json!({"name": "greet", "arguments": {"nmae": 1}, "call_id": "d"})),
        ("tools.execute", json!({"name": "gret", "call_id": "e"})),
        ("tools.execute", json!({"name": "bash", "arguments": {"command": "make"}, "call_id": "f"})),
        ("tools.cancel", json!({"call_id": "none"})),
        ("plugins.list", json!({})),
        ("session.open", json!({"cwd": daemon.work(), "session_id": "named"})),
        ("no.such", json!({})),
    ] {
        let id = wire.request(method, params.clone());
        seen.push(json!({"method": method, "params": params}));
        loop {
            let mut message = wire.next_message().unwrap();
            let last = message["id"] == id;
            message.as_object_mut().unwrap().remove("jsonrpc");
            seen.push(message);
            if last {
                break;
            }
        }
    }
    // These values differ from run to run.
    let root = daemon.work().parent().unwrap().display().to_string();
    let text = serde_json::to_string_pretty(&seen).unwrap().replace(&root, "ROOT");
    let text: Vec<String> = text
        .lines()
        .map(|line| match line.trim_start().split('"').nth(1) {
            Some(key @ ("duration_ms" | "loaded_at")) => format!("  \"{key}\": ..."),
            _ => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!("messages", text.join("\n"));
}
