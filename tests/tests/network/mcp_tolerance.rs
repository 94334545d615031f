//! Servers and clients are taken as they are: odd schemas, long results, slow starts, requests that do not fit.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n";

/// A server of revision 2025-06-18 in Python. `tools` is a list, `call(id, params)` answers, `start()` runs first.
const SERVER: &str = r#"
import json, sys, threading, time
lock = threading.Lock()
def send(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def ok(id, result): send({"id": id, "result": result})
def text(words, **more): return {"content": [{"type": "text", "text": words}], **more}
def tool(name, **more): return {"name": name, "inputSchema": {"type": "object"}, **more}
def start(): pass
version = ["2025-06-18"]
BODY
start()
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        version[0] = params["protocolVersion"]
        ok(id, {"protocolVersion": version[0], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list": ok(id, {"tools": tools})
    elif method == "tools/call": threading.Thread(target=call, args=(id, params), daemon=True).start()
    elif method == "ping": ok(id, {})
    elif id is not None and method: send({"id": id, "error": {"code": -32601, "message": "no"}})
"#;

/// A daemon with servers: name, Python, more lines of their configuration.
fn with_servers(servers: &[(&str, &str, &str)]) -> TestDaemon {
    let setup = Setup::new();
    let mut config = ALLOW.to_owned();
    for (name, body, more) in servers {
        let file = setup.path("").join(format!("{name}.py"));
        std::fs::write(&file, SERVER.replace("BODY", body)).unwrap();
        let args = json!([file]);
        writeln!(config, "[mcp.servers.{name}]\ncommand = \"python3\"\nargs = {args}\n{more}").unwrap();
    }
    setup.config(&config).start()
}

fn listed(daemon: &TestDaemon, tool: &str) -> Wire {
    let mut wire = daemon.connect();
    until("the server has listed its tools", || {
        let tools = wire.result("tools.list", json!({"names": [tool]}));
        (!tools["tools"].as_array().unwrap().is_empty()).then_some(())
    });
    wire
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn mcp_client(daemon: &TestDaemon) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
        "_meta": {"toold/default-cwd": daemon.work()}});
    wire.result("initialize", params);
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    wire
}

const ODD: &str = r#"
tools = [tool("good"), {"name": "bad", "inputSchema": {"type": "strng"}},
    {"name": "either", "inputSchema": {"anyOf": [
        {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}]}}]
def call(id, params): ok(id, text("did"))
"#;

#[test]
fn a_tool_that_is_left_out_is_named_with_the_reason() {
    let daemon = with_servers(&[("odd", ODD, "")]);
    let mut wire = listed(&daemon, "odd_good");
    let error = wire.error("tools.execute", call("odd_bad", json!({})));
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("lists bad, but it cannot be used") && words.contains("its input schema"), "{words}");
    let shown = |arguments: &[&str]| {
        let output = daemon.toolctl(arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for arguments in [&["mcp", "list"][..], &["mcp", "doctor"], &["doctor"]] {
        assert!(shown(arguments).contains("bad is left out: its input schema"), "{arguments:?}");
    }
}

#[test]
fn a_union_at_the_root_is_said_in_the_description_for_mcp_clients() {
    let daemon = with_servers(&[("odd", ODD, "")]);
    listed(&daemon, "odd_either");
    let mut client = mcp_client(&daemon);
    let list = client.result("tools/list", json!({}));
    let either = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "odd_either").unwrap();
    assert_eq!(either["inputSchema"]["type"], "object");
    assert_eq!(either["inputSchema"].get("anyOf"), None);
    assert!(either["inputSchema"]["properties"].get("name").is_some(), "{either}");
    assert!(either["description"].as_str().unwrap().contains("anyOf"), "{either}");
    // The daemon still checks by the schema as it is.
    let fits = client.result("tools/call", call("odd_either", json!({"id": "a"})));
    assert_eq!(fits["isError"], false, "{fits}");
    let does_not = client.call("tools/call", call("odd_either", json!({})));
    assert!(does_not.get("error").is_some() || does_not["result"]["isError"] == true, "{does_not}");
}

#[test]
fn a_long_structured_result_is_kept_in_a_file() {
    let body = r#"
tools = [tool("rows"), tool("strict", outputSchema={"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]})]
def call(id, params): ok(id, text("short", structuredContent={"rows": list(range(100000))}))
"#;
    let daemon = with_servers(&[("g", body, "")]);
    let mut wire = listed(&daemon, "g_rows");
    for (tool, is_error) in [("g_rows", false), ("g_strict", true)] {
        let result = wire.result("tools.execute", call(tool, json!({})));
        assert!(result.to_string().len() < 4096, "{tool}");
        assert_eq!(result["is_error"], is_error, "{tool}");
        let kept = std::fs::read_to_string(result["metadata"]["spool"].as_str().unwrap()).unwrap();
        assert!(kept.starts_with("{\"rows\":[0,1,"), "{tool}");
    }
}

#[test]
fn further_members_of_content_reach_the_client() {
    let body = r#"
tools = [tool("link", icons=[{"src": "data:image/png;base64,AA", "sizes": ["16x16"]}])]
link = {"type": "resource_link", "uri": "file:///b", "name": "b", "title": "B", "size": 3, "annotations": {"priority": 0.5}}
def call(id, params): ok(id, {"content": [link]})
"#;
    let daemon = with_servers(&[("s", body, "")]);
    listed(&daemon, "s_link");
    let mut client = mcp_client(&daemon);
    let list = client.result("tools/list", json!({}));
    let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "s_link").unwrap();
    assert_eq!(tool["icons"][0]["sizes"], json!(["16x16"]), "{tool}");
    let result = client.result("tools/call", call("s_link", json!({})));
    let link = &result["content"][0];
    assert_eq!((&link["title"], &link["size"]), (&json!("B"), &json!(3)), "{result}");
    assert_eq!(link["annotations"]["priority"], 0.5, "{result}");
}

#[test]
fn integers_of_a_structured_result_are_never_rounded() {
    let body = r#"
tools = [tool("big"), tool("typed", outputSchema={"type": "object", "properties": {
    "beyond": {"type": "number"}, "account": {"type": "string"}}})]
whole = {"most": 18446744073709551615, "least": -9223372036854775808, "beyond": 123456789012345678901234567890,
         "account": "123456789012345678901234567890"}
def call(id, params): ok(id, text("big", structuredContent=whole))
"#;
    let daemon = with_servers(&[("n", body, "")]);
    listed(&daemon, "n_big");
    let mut client = mcp_client(&daemon);
    let structured = client.result("tools/call", call("n_big", json!({})))["structuredContent"].take();
    assert_eq!(structured["most"], json!(u64::MAX));
    assert_eq!(structured["least"], json!(i64::MIN));
    assert_eq!(structured["beyond"], "123456789012345678901234567890");
    // The server says that it is a number.
    let typed = client.result("tools/call", call("n_typed", json!({})));
    assert!(typed["isError"] == false && typed["structuredContent"]["beyond"].is_number(), "{typed}");
    assert_eq!(typed["structuredContent"]["account"], "123456789012345678901234567890");
}

#[test]
fn long_names_leave_room_for_the_prefix_of_a_host() {
    let long = "reads_the_oldest_of_all_the_entries_in_the_list";
    let body = format!("tools = [tool(\"{long}\")]\ndef call(id, params): ok(id, text(params[\"name\"]))\n");
    let daemon = with_servers(&[("server_of", &body, "")]);
    let whole = format!("server_of_{long}");
    listed(&daemon, &whole);
    let mut client = mcp_client(&daemon);
    let list = client.result("tools/list", json!({}));
    let names: Vec<&str> = list["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let short = *names.iter().find(|name| name.starts_with("server_of_")).unwrap();
    assert!(short.len() == 52 && names.iter().all(|name| name.len() <= 52), "{names:?}");
    // A model may know the name from elsewhere.
    for name in [short, &whole] {
        let result = client.result("tools/call", call(name, json!({})));
        assert_eq!(result["content"][0]["text"], long, "{name}");
    }
    let file = daemon.setup.path("config/toold/config.toml");
    let config = std::fs::read_to_string(&file).unwrap() + "\n[mcp.clients.x]\nname_length = 64\n";
    std::fs::write(file, config).unwrap();
    assert!(daemon.toolctl(&["config", "reload"]).status.success());
    let list = mcp_client(&daemon).result("tools/list", json!({}));
    assert!(list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == whole), "{list}");
}

/// A server of 2026-07-28 that does not report changes, but says how long its list is good.
#[test]
fn a_list_that_has_grown_old_is_read_again() {
    let body = r#"
tools, lists = [tool("first")], [0]
def call(id, params): ok(id, {**text("did"), "resultType": "complete"})
def start():
    for line in sys.stdin:
        message = json.loads(line)
        id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        base = {"resultType": "complete", "ttlMs": 1, "cacheScope": "public"}
        if method == "server/discover":
            ok(id, {**base, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"}})
        elif method == "tools/list":
            lists[0] += 1
            ok(id, {**base, "tools": tools + ([tool("second")] if lists[0] > 1 else [])})
        elif method == "tools/call": call(id, params)
        elif id is not None and method: send({"id": id, "error": {"code": -32601, "message": "no"}})
"#;
    let daemon = with_servers(&[("s", body, "")]);
    listed(&daemon, "s_first");
    listed(&daemon, "s_second");
}

/// A server whose next version speaks a newer revision.
#[test]
fn what_was_learned_of_a_server_is_forgotten_with_its_version() {
    let body = r#"
tools = [tool("spoken")]
def call(id, params): pass
def start():
    own = open(sys.argv[1]).read().strip()
    for line in sys.stdin:
        message = json.loads(line)
        id, method = message.get("id"), message.get("method")
        info = {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": own}}
        base = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        if method == "server/discover" and own == "2": ok(id, {**base, **info, "supportedVersions": ["2026-07-28"]})
        elif method == "initialize": ok(id, {**info, "protocolVersion": "2025-06-18"})
        elif method == "tools/list": ok(id, {**base, "tools": tools})
        elif method == "ping": ok(id, {})
        elif id is not None and method: send({"id": id, "error": {"code": -32601, "message": "no"}})
"#;
    let setup = Setup::new();
    let (script, version) = (setup.path("s.py"), setup.path("version"));
    std::fs::write(&script, SERVER.replace("BODY", body)).unwrap();
    std::fs::write(&version, "1").unwrap();
    let args = json!([script, version]);
    let daemon = setup.config(&format!("[mcp.servers.s]\ncommand = \"python3\"\nargs = {args}\n")).start();
    let mut wire = listed(&daemon, "s_spoken");
    let mut restarted = || {
        let list = wire.result("mcp.restart", json!({"name": "s"}));
        list["servers"][0]["protocol"].as_str().map(str::to_owned)
    };
    assert_eq!(restarted().as_deref(), Some("2025-06-18"));
    std::fs::write(&version, "2").unwrap();
    assert_eq!(restarted().as_deref(), Some("2025-06-18"), "it is greeted as was learned");
    assert_eq!(restarted().as_deref(), Some("2026-07-28"));
}

#[test]
fn the_first_list_and_the_first_call_wait_for_a_new_server() {
    let body = "tools = [tool(\"hi\")]\ndef call(id, params): ok(id, text(\"hello\"))\ndef start(): time.sleep(2)\n";
    let daemon = with_servers(&[("slow", body, "")]);
    let result = daemon.connect().result("tools.execute", call("slow_hi", json!({})));
    assert_eq!(result["content"][0]["text"], "hello");
    let daemon = with_servers(&[("slow", body, "")]);
    let list = mcp_client(&daemon).result("tools/list", json!({}));
    assert!(list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "slow_hi"), "{list}");
}

#[test]
fn a_call_does_not_wait_for_one_of_an_earlier_turn() {
    let body = "tools = [tool(\"slow\"), tool(\"quick\")]\n\
                def call(id, params):\n    if params[\"name\"] == \"slow\": time.sleep(30)\n    ok(id, text(\"ok\"))\n";
    let daemon = with_servers(&[("s", body, ""), ("one", body, "parallel = false"), ("all", body, "parallel = true")]);
    listed(&daemon, "one_quick");
    listed(&daemon, "all_quick");
    let mut wire = listed(&daemon, "s_quick");
    for server in ["s", "one", "all"] {
        wire.request("tools.execute", call(&format!("{server}_slow"), json!({})));
    }
    let began = Instant::now();
    let quick = wire.result("tools.execute", call("all_quick", json!({})));
    assert_eq!(quick["content"][0]["text"], "ok");
    // A client that gave the first call up says nothing.
    until("the turn is over", || (began.elapsed() > Duration::from_secs(1)).then_some(()));
    let quick = wire.result("tools.execute", call("s_quick", json!({})));
    assert_eq!(quick["content"][0]["text"], "ok");
    let waiting = wire.request("tools.execute", call("one_quick", json!({})));
    wire.result("daemon.ping", json!({}));
    let calls = wire.result("calls.list", json!({}));
    let runs = |tool: &str| calls["calls"].as_array().unwrap().iter().any(|call| call["tool"] == tool);
    assert!(runs("one_quick"), "request {waiting} waits for its turn: {calls}");
    assert!(runs("s_slow") && runs("all_slow"), "the quick ones have not waited for these: {calls}");
}

#[test]
fn a_configuration_chooses_the_revision() {
    let body = "tools = [tool(\"spoken\")]\ndef call(id, params): ok(id, text(version[0]))\n";
    let servers = [("old", body, "protocol = \"2025-06-18\""), ("legacy", body, "protocol = \"legacy\"")];
    let daemon = with_servers(&servers);
    for (name, revision) in [("old", "2025-06-18"), ("legacy", "2025-11-25")] {
        let tool = format!("{name}_spoken");
        let result = listed(&daemon, &tool).result("tools.execute", call(&tool, json!({})));
        assert_eq!(result["content"][0]["text"], revision);
    }
    let wrong = daemon.setup.path("wrong.toml");
    std::fs::write(&wrong, "[mcp.servers.s]\ncommand = \"true\"\nprotocol = \"newest\"\n").unwrap();
    let checked = daemon.toolctl(&["config", "check", wrong.to_str().unwrap()]);
    let words = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(words.contains("\"newest\" is no revision that toold speaks"), "{words}");
}

#[test]
fn a_request_that_does_not_fit_gets_its_id_and_the_reason() {
    let daemon = TestDaemon::start();
    let mut client = mcp_client(&daemon);
    for (method, params, reason) in [
        ("tools/call", json!([]), "expected an object, got a list"),
        ("tools/call", json!({"name": 5}), "invalid type"),
        ("tools/list", json!({"_meta": 5}), "expected a map"),
        ("prompts/get", json!(null), "expected an object, got none"),
        ("resources/read", json!({"uri": []}), "invalid type"),
    ] {
        let error = client.error(method, params);
        assert_eq!(error["code"], -32602, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains(reason), "{method}: {error}");
    }
}
