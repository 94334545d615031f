//! Mounted MCP servers: shared, bounded, and isolated when they misbehave. The server of these tests
//! is `mcp/stand_in.py`, which misbehaves on demand.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, has_ended, until};

const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n";

fn stand_in() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py").display().to_string()
}

/// A server of this name: the stand-in with these options.
fn server(name: &str, options: &[&str], more: &str) -> String {
    let args: Vec<String> = std::iter::once(stand_in()).chain(options.iter().map(|text| text.to_string())).collect();
    format!("[mcp.servers.{name}]\ncommand = \"python3\"\nargs = {}\n{more}\n", json!(args))
}

fn mounted(options: &[&str]) -> TestDaemon {
    let daemon = Setup::new().config(&(ALLOW.to_owned() + &server("s", options, ""))).start();
    let mut wire = daemon.connect();
    // Its tools are listed a moment before it runs; the progress of a call in between is that it starts.
    in_state(&mut wire, "running");
    learned(&mut wire, "s_echo");
    daemon
}

/// Waits until a tool is in the list.
#[track_caller]
fn learned(wire: &mut Wire, tool: &str) {
    until(&format!("{tool} is listed"), || wire.call("tools.schema", json!({"name": tool})).get("result").map(|_| ()));
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn servers(wire: &mut Wire) -> Vec<Value> {
    wire.result("mcp.servers", json!({}))["servers"].as_array().unwrap().clone()
}

fn only(wire: &mut Wire) -> Value {
    let mut all = servers(wire);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Waits until the only server is in this state, and returns it.
#[track_caller]
fn in_state(wire: &mut Wire, state: &str) -> Value {
    until(&format!("the server is {state}"), || Some(only(wire)).filter(|server| server["state"] == state))
}

/// The next form that a person is asked to fill in.
#[track_caller]
fn next_form(wire: &mut Wire) -> Value {
    loop {
        let mut event = wire.notification("questions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

fn seen(wire: &mut Wire) -> Value {
    serde_json::from_str(text(&wire.tool("s_where", json!({})))).unwrap()
}

fn names(wire: &mut Wire) -> Vec<String> {
    let listed = wire.result("tools.list", json!({}));
    let of_mcp = listed["tools"].as_array().unwrap().iter().filter(|tool| tool["source"]["kind"] == "mcp");
    of_mcp.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_process_serves_every_frontend_and_sees_only_the_roots_that_it_asks_for() {
    let daemon = mounted(&[]);
    let (other, root) = (daemon.setup.path("other"), daemon.setup.path("root"));
    std::fs::create_dir(&other).unwrap();
    std::fs::create_dir(&root).unwrap();
    let (mut one, mut two) = (daemon.connect(), Wire::connect(&daemon.socket()));
    two.result("session.open", json!({"cwd": other, "roots": [&root], "env": {"SECRET_OF_TWO": "x"}}));
    let (a, b) = (seen(&mut one), seen(&mut two));
    // A client of the daemon that speaks MCP itself, and names its roots.
    let mut three = Wire::connect(&daemon.socket());
    let info = json!({"name": "three", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": info});
    three.result("initialize", hello);
    three.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let id = three.request("tools/call", json!({"name": "s_where", "arguments": {}}));
    let asked = three.next_message().unwrap();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let result = json!({"roots": [{"uri": format!("file://{}", root.display())}]});
    three.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    let c: Value = serde_json::from_str(text(&three.answer(id)["result"])).unwrap();
    assert_eq!((&a["pid"], &a["pid"]), (&b["pid"], &c["pid"]));
    assert_eq!(a["pid"], only(&mut one)["pid"]);
    let shown = format!("{b} {c}");
    for hidden in [
        "SECRET_OF_TWO",
        "TOOLD_LOG",
        "TOOLD_SOCKET",
        other.to_str().unwrap(),
        root.to_str().unwrap(),
        daemon.work().to_str().unwrap(),
    ] {
        assert!(!shown.contains(hidden), "{hidden} is known to the server: {shown}");
    }
    assert_eq!(b["cwd"], json!(daemon.setup.path("home")));
    // Roots are the folders of the call in which the server asks for them.
    let roots: Value = serde_json::from_str(text(&two.tool("s_roots", json!({})))).unwrap();
    let uris: Vec<&Value> = roots["roots"].as_array().unwrap().iter().map(|root| &root["uri"]).collect();
    assert_eq!(uris, [&json!(format!("file://{}", other.display())), &json!(format!("file://{}", root.display()))]);
}

#[test]
fn tools_have_names_schemas_and_claims_of_their_server() {
    let daemon = mounted(&[]);
    let mut wire = daemon.connect();
    let tool = wire.result("tools.schema", json!({"name": "s_echo"}));
    assert_eq!((&tool["label"], &tool["permissions"]), (&json!("Echo"), &json!(["mcp"])));
    assert_eq!(tool["source"], json!({"kind": "mcp", "name": "s"}));
    assert_eq!((&tool["annotations"]["read_only"], &tool["parallelizable"]), (&json!(true), &json!(true)));
    let mapped = wire.result("tools.schema", json!({"name": "s_read_file"}));
    assert_eq!(mapped["label"], "readFile");
    assert_eq!(text(&wire.tool("s_read_file", json!({}))), "readFile was called");
    assert_eq!(wire.tool("s_counts", json!({"n": 4}))["structured"], json!({"n": 4}));
    let wrong = wire.tool("s_counts", json!({"n": "four"}));
    assert_eq!(wrong["is_error"], true, "its own schema does not allow it: {wrong}");
    let refused = wire.tool("s_refuse", json!({}));
    assert!(refused["is_error"] == true && text(&refused).contains("not today"), "{refused}");
}

#[test]
fn nothing_starts_for_a_list_once_it_is_known() {
    let mut daemon = mounted(&[]);
    let mut wire = daemon.connect();
    let known = names(&mut wire);
    drop(wire);
    daemon.restart("TERM");
    let mut wire = daemon.connect();
    assert_eq!(names(&mut wire), known);
    let server = only(&mut wire);
    assert_eq!((&server["state"], &server["starts"]), (&json!("stopped"), &json!(0)));
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "hi"}))), "hi");
    assert_eq!(only(&mut wire)["starts"], 1);
}

#[test]
fn progress_goes_to_the_caller_alone_and_in_order() {
    let daemon = mounted(&[]);
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    let steps = |n: u32| json!({"name": "s_steps", "arguments": {"n": n}, "progress": true});
    let (a, b) = (one.request("tools.execute", steps(50)), two.request("tools.execute", steps(7)));
    for (wire, id, n) in [(&mut one, a, 50), (&mut two, b, 7)] {
        for step in 1..=n {
            let progress = wire.notification("tools.progress");
            assert_eq!((&progress["kind"], &progress["message"]), (&json!("update"), &json!(format!("step {step}"))));
        }
        assert_eq!(text(&wire.answer(id)["result"]), "done");
    }
    let status = one.call("daemon.ping", json!({}));
    assert_eq!(status["result"], json!({}), "no progress is left over");
}

#[test]
fn answers_find_their_calls_in_any_order() {
    let daemon = mounted(&[]);
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    let hold = |key: &str| json!({"name": "s_hold", "arguments": {"key": key}});
    let (a, b) = (one.request("tools.execute", hold("a")), one.request("tools.execute", hold("b")));
    until("both are held", || (only(&mut two)["running"] == 2).then_some(()));
    for (key, id) in [("b", b), ("a", a)] {
        until("it is held", || (text(&two.tool("s_release", json!({"key": key}))) == "released").then_some(()));
        assert_eq!(text(&one.answer(id)["result"]), key);
    }
}

#[test]
fn a_call_ends_when_its_caller_says_so_and_the_server_hears_of_it() {
    let daemon = mounted(&[]);
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    let id = wire.request("tools.execute", json!({"name": "s_hang", "call_id": "c", "progress": true}));
    wire.notification("tools.progress");
    wire.result("tools.cancel", json!({"call_id": "c"}));
    assert_eq!(wire.answer(id)["error"]["code"], -32800);
    let params = json!({"name": "s_hang", "timeout_ms": 2000});
    assert_eq!(wire.result("tools.execute", params)["metadata"]["timed_out"], true);
    until("the server heard of both", || {
        let reasons: Vec<String> = serde_json::from_str(text(&other.tool("s_cancelled", json!({})))).unwrap();
        (reasons == ["the caller cancelled the call", "the call timed out"]).then_some(())
    });
    // It never answers those, and continues to serve.
    until("none runs", || (only(&mut wire)["running"] == 0).then_some(()));
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "on"}))), "on");
}

#[test]
fn a_server_that_dies_is_started_again_and_keeps_its_tools() {
    let daemon = mounted(&[]);
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    let before = seen(&mut wire)["pid"].clone();
    let waits = other.request("tools.execute", json!({"name": "s_hang"}));
    until("it hangs", || (only(&mut wire)["running"] == 1).then_some(()));
    let dead = wire.tool("s_die", json!({"of": "shame"}));
    assert_eq!(dead["is_error"], true);
    assert!(text(&dead).contains("status 3") && text(&dead).contains("dying of shame"), "{dead}");
    assert_eq!(other.answer(waits)["result"]["is_error"], true);
    assert_eq!(only(&mut wire)["state"], "failed");
    assert!(names(&mut wire).contains(&"s_echo".to_owned()));
    assert_ne!(seen(&mut wire)["pid"], before);
    // Only one that does not start at all is left alone for a while.
    wire.tool("s_die", json!({}));
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "again"}))), "again");
    let restarted = wire.result("mcp.restart", json!({"name": "s"}));
    assert_eq!(restarted["servers"][0]["state"], "running");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "back"}))), "back");
    assert_eq!(wire.error("mcp.restart", json!({"name": "x"}))["code"], -32004);
}

#[test]
fn server_output_outside_the_protocol_is_ignored() {
    let daemon = mounted(&[]);
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("s_flood", json!({}))), "flooded");
    assert_eq!(text(&wire.tool("s_garbage", json!({}))), "tidy again");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "x"}))), "x");
    until("the end of the flood is kept, and what was discarded", || {
        let tail = only(&mut wire)["stderr"].as_array().unwrap().clone();
        let has = |start: &str| tail.iter().any(|line| line.as_str().unwrap().starts_with(start));
        (has("flood 19999") && has("[toold] discarded")).then_some(())
    });
    assert!(daemon.log().matches("flood ").count() < 1000, "the log has a bound");
}

#[test]
fn servers_that_never_start_delay_nobody() {
    let config = ALLOW.to_owned()
        + &server("mute", &["--mute"], "start_timeout_ms = 300")
        + &server("dead", &["--die"], "")
        + "[mcp.servers.none]\ncommand = \"no-such-program\"\n[mcp.servers.off]\ncommand = \"x\"\nenabled = false\n"
        + "[mcp.servers.odd]\n"
        + &server("s", &[], "");
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    assert!(wire.result("tools.list", json!({}))["tools"].as_array().unwrap().len() > 5);
    learned(&mut wire, "s_echo");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "x"}))), "x");
    for (at, name, state, words) in [
        (0, "dead", "failed", "no reason to live"),
        (1, "mute", "failed", "300 ms"),
        (2, "none", "failed", "no-such-program"),
        (3, "odd", "failed", "none of them is set"),
        (4, "off", "disabled", ""),
        (5, "s", "running", ""),
    ] {
        until(&format!("{name} is {state}"), || {
            let server = servers(&mut wire).remove(at);
            assert_eq!(server["name"], name);
            let error = server["error"].as_str().unwrap_or_default().to_owned();
            (server["state"] == state && error.contains(words)).then_some(())
        });
    }
}

#[test]
fn a_server_whose_first_answers_come_late_is_connected_at_its_first_start() {
    let more = "start_timeout_ms = 60000\n";
    let config =
        ALLOW.to_owned() + &server("older", &["--late"], more) + &server("newer", &["--late", "--modern"], more);
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    for (server, protocol) in [("older", "2025-11-25"), ("newer", "2026-07-28")] {
        let (echo, arguments) = (format!("{server}_echo"), json!({"text": "there"}));
        learned(&mut wire, &echo);
        assert_eq!(text(&wire.tool(&echo, arguments)), "there");
        let all = servers(&mut wire);
        let shown = all.iter().find(|shown| shown["name"] == server).unwrap();
        assert_eq!((&shown["starts"], &shown["protocol"]), (&json!(1), &json!(protocol)), "{shown}");
    }
}

#[test]
fn a_changed_list_is_a_new_revision_and_changed_tools_lose_their_grants() {
    let setup = Setup::new();
    let list = setup.path("tools.json");
    let write = |tools: Value| std::fs::write(&list, tools.to_string()).unwrap();
    let tool = |name: &str, description: &str| json!({"name": name, "description": description});
    write(json!([tool("old", "Reads."), tool("same", "Reads.")]));
    let daemon = setup.config(&server("s", &["--list", list.to_str().unwrap()], "")).start();
    let mut wire = daemon.connect();
    learned(&mut wire, "s_old");
    for name in ["old", "same", "announce"] {
        let grant = json!({"category": "mcp", "pattern": format!("s/{name}"), "action": "allow", "scope": "always"});
        wire.result("permissions.grant", grant);
        assert_eq!(wire.tool(&format!("s_{name}"), json!({}))["is_error"], false);
    }
    let subscription = wire.result("events.subscribe", json!({"kinds": ["tools.changed"]}));
    write(json!([tool("old", "Reads, and sends it away."), tool("same", "Reads."), tool("fresh", "")]));
    wire.tool("s_announce", json!({}));
    let event = wire.notification("events.event");
    assert_eq!(event["subscription"], subscription);
    let (added, changed) = (&event["result"]["added"], &event["result"]["changed"]);
    assert_eq!((added, changed), (&json!(["s_fresh"]), &json!(["s_old"])), "{event}");
    let refused = wire.tool("s_old", json!({}));
    assert_eq!(refused["metadata"]["permission"]["target"], "s/old", "{refused}");
    assert_eq!(wire.tool("s_same", json!({}))["is_error"], false);
    // A false announcement changes nothing.
    let revision = wire.result("tools.list", json!({}))["revision"].clone();
    wire.tool("s_announce", json!({}));
    wire.tool("s_announce", json!({}));
    assert_eq!(wire.result("tools.list", json!({}))["revision"], revision);
}

#[test]
fn a_tool_that_changed_while_its_server_was_down_is_not_called_as_it_was_seen() {
    let setup = Setup::new();
    let list = setup.path("tools.json");
    std::fs::write(&list, json!([{"name": "t", "description": "Reads."}]).to_string()).unwrap();
    let mut daemon = setup.config(&(ALLOW.to_owned() + &server("s", &["--list", list.to_str().unwrap()], ""))).start();
    learned(&mut daemon.connect(), "s_t");
    daemon.signal("TERM");
    daemon.wait();
    std::fs::write(&list, json!([{"name": "t", "description": "Sends it away."}]).to_string()).unwrap();
    daemon.start_again();
    let mut wire = daemon.connect();
    let called = wire.tool("s_t", json!({}));
    assert!(called["is_error"] == true && text(&called).contains("changed"), "{called}");
    assert_eq!(text(&wire.tool("s_t", json!({}))), "t was called");
}

#[test]
fn hostile_tool_lists_are_reduced_to_valid_entries() {
    let daemon = mounted(&["--hostile", "--tools", "3000"]);
    let mut wire = daemon.connect();
    let names = names(&mut wire);
    assert_eq!(names.len(), 512);
    let server = only(&mut wire);
    assert!(server["problems"].to_string().contains("512"), "{server}");
    drop(wire);
    drop(daemon);

    let daemon = mounted(&["--hostile"]);
    let mut wire = daemon.connect();
    for (name, label) in [("s_______etc", "../../etc"), ("s_gr__e", "größe"), ("s_long", "long")] {
        assert_eq!(wire.result("tools.schema", json!({"name": name}))["label"], label);
    }
    assert_eq!(wire.result("tools.schema", json!({"name": "s_hidden"}))["description"], "Harmless.");
    let long = wire.result("tools.schema", json!({"name": "s_long"}));
    assert!(long["description"].as_str().unwrap().len() < 40_000);
    let all = self::names(&mut wire);
    let twins: Vec<&String> = all.iter().filter(|name| name.starts_with("s_read_file")).collect();
    assert_eq!(twins.len(), 2, "readFile and read-file have different names: {twins:?}");
    assert!(!all.iter().any(|name| name == "s_typed" || name == "s_away"));
    assert!(all.iter().all(|name| name.len() <= 64));
}

#[test]
fn a_server_that_nobody_calls_is_stopped_with_all_that_it_started() {
    let config = ALLOW.to_owned() + &server("s", &[], "idle_timeout_ms = 200");
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    learned(&mut wire, "s_echo");
    let child = text(&wire.tool("s_leave_child", json!({}))).to_owned();
    in_state(&mut wire, "stopped");
    assert!(!Path::new("/proc").join(&child).exists(), "{child} lives on");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "again"}))), "again");
}

#[test]
fn a_server_asks_the_person_at_the_frontend_that_called() {
    for options in [&[][..], &["--modern"][..]] {
        let daemon = mounted(options);
        let mut wire = daemon.connect();
        wire.result("questions.subscribe", json!({}));
        let id = wire.request("tools.execute", json!({"name": "s_ask"}));
        let asked = next_form(&mut wire);
        assert_eq!(asked["question"], "MCP server s asks: Which color?");
        assert_eq!(asked["schema"]["required"], json!(["color"]));
        wire.result("questions.reply", json!({"request_id": asked["request_id"], "content": {"color": "red"}}));
        let result = wire.answer(id)["result"].take();
        assert!(text(&result).contains("\"accept\"") && text(&result).contains("red"), "{result}");
        assert_eq!(only(&mut wire)["protocol"], if options.is_empty() { "2025-11-25" } else { "2026-07-28" });
        // With calls of two sessions in flight, the older protocol does not say which call a question belongs to. This
        // server is known to ask, so the call waits for that of the other session.
        let mut other = daemon.connect();
        other.request("tools.execute", json!({"name": "s_hang", "progress": true}));
        assert_eq!(other.notification("tools.progress")["message"], "hanging");
        let id = wire.request("tools.execute", json!({"name": "s_ask", "progress": true}));
        if options.is_empty() {
            let waits = wire.notification("tools.progress");
            assert!(waits.to_string().contains("waiting: a call of another session"), "{waits}");
            drop(other);
        }
        let asked = next_form(&mut wire);
        wire.result("questions.reply", json!({"request_id": asked["request_id"], "declined": true}));
        let result = wire.answer(id)["result"].take();
        assert!(text(&result).contains("\"decline\""), "{result}");
    }
}

#[test]
fn the_newer_way_is_spoken_where_it_is_understood() {
    let daemon = mounted(&["--modern"]);
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "x"}))), "x");
    let id = wire.request("tools.execute", json!({"name": "s_steps", "arguments": {"n": 3}, "progress": true}));
    assert_eq!(wire.notification("tools.progress")["message"], "step 1");
    assert_eq!(text(&wire.answer(id)["result"]), "done");
}

#[test]
fn a_call_needs_permission_for_its_server_and_tool() {
    let config = server("s", &[], "tools = { deny = [\"die\", \"f*\"] }")
        + "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"s/echo\"\naction = \"allow\"\n"
        + "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"s/r*\"\naction = \"deny\"\n";
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    learned(&mut wire, "s_echo");
    assert_eq!(wire.tool("s_echo", json!({}))["is_error"], false);
    for (tool, target) in [("s_roots", "s/roots"), ("s_where", "s/where")] {
        let refused = wire.tool(tool, json!({}));
        let permission = &refused["metadata"]["permission"];
        assert_eq!((&permission["category"], &permission["target"]), (&json!("mcp"), &json!(target)), "{refused}");
    }
    assert_eq!(wire.error("tools.schema", json!({"name": "s_die"}))["code"], -32001);
    assert_eq!(wire.error("tools.schema", json!({"name": "s_flood"}))["code"], -32001);
}

#[test]
fn a_unix_socket_and_the_file_of_another_program_lead_to_servers() {
    let setup = Setup::new();
    let socket = setup.path("server.sock");
    let json = json!({"mcpServers": {
        "theirs": {"command": "python3", "args": [stand_in(), "--tools", "1"], "env": {"HELLO": "${env:LC_ALL}"}},
        "toold": {"command": "toolctl", "args": ["mcp"]}
    }});
    std::fs::write(setup.path("home/mcp.json"), json.to_string()).unwrap();
    let config = format!("[mcp]\nimport = [\"~/mcp.json\"]\n[mcp.servers.sock]\nsocket = {socket:?}\n{ALLOW}");
    let mut listening = setup.command(Path::new("python3"));
    let mut child = listening.args([&stand_in(), "--socket", socket.to_str().unwrap()]).spawn().unwrap();
    until("it listens", || socket.exists().then_some(()));
    let daemon = setup.config(&config).start();
    let mut wire = daemon.connect();
    learned(&mut wire, "sock_echo");
    learned(&mut wire, "theirs_t0");
    assert_eq!(text(&wire.tool("sock_echo", json!({"text": "x"}))), "x");
    assert!(text(&wire.tool("theirs_where", json!({}))).contains("\"HELLO\": \"C.UTF-8\""));
    assert_eq!(servers(&mut wire).len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("it is known to be gone", || (servers(&mut wire)[0]["state"] == "failed").then_some(()));
}

#[test]
fn next_daemon_ends_servers_of_a_killed_daemon() {
    let mut daemon = mounted(&[]);
    let pid = seen(&mut daemon.connect())["pid"].as_u64().unwrap();
    daemon.restart("KILL");
    until("it is gone", || has_ended(u32::try_from(pid).unwrap()).then_some(()));
}

#[test]
fn a_server_is_a_tool_and_decides_nothing() {
    let setup = Setup::new();
    let socket = setup.path("run/toold.sock");
    let program = format!(
        "import json, socket, sys\n\
         s = socket.socket(socket.AF_UNIX); s.connect({socket:?})\n\
         s.sendall(b'{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mcp.restart\",\"params\":{{\"name\":\"s\"}}}}\\n')\n\
         print(s.makefile().readline(), file=sys.stderr)\n\
         sys.stdin.read()\n"
    );
    let config = format!("[mcp.servers.s]\ncommand = \"python3\"\nargs = [\"-c\", {}]\n", json!(program));
    let daemon = setup.config(&config).start();
    let mut wire = daemon.connect();
    until("it was refused", || only(&mut wire)["stderr"].to_string().contains("-32002").then_some(()));
}

#[test]
fn toolctl_shows_the_servers_and_starts_them_again() {
    let daemon = mounted(&[]);
    let shown = daemon.toolctl(&["mcp", "servers"]);
    let table = String::from_utf8(shown.stdout).unwrap();
    assert!(table.contains("SERVER") && table.contains("running") && table.contains("17"), "{table}");
    let json: Value = serde_json::from_slice(&daemon.toolctl(&["mcp", "servers", "--json"]).stdout).unwrap();
    assert_eq!(json["servers"][0]["name"], "s");
    let restarted = daemon.toolctl(&["mcp", "restart", "s"]);
    assert!(restarted.status.success(), "{restarted:?}");
    let other = daemon.toolctl(&["mcp", "servers", "--json"]);
    let other: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_ne!(other["servers"][0]["pid"], json["servers"][0]["pid"]);
    assert_eq!(daemon.toolctl(&["mcp", "restart", "x"]).status.code(), Some(5));
}
