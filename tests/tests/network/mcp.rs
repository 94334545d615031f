//! The daemon as an MCP server on its socket and on stdio, in the protocol's both eras.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "greet", label = "Greet somebody", description = "Says hello",
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  output_schema = {type = "object", properties = {said = {type = "string"}}, required = {"said"}},
  annotations = {read_only = true},
  permission = false, execute = function(ctx, input)
    ctx.progress{progress = 1, total = 2, message = "half"}
    return {structured = {said = "hello " .. input.name}}
  end,
}
hygge.register_tool{
  name = "where", description = "Tells its folder",
  permission = false, execute = function(ctx, input) return ctx.cwd end,
}
hygge.register_tool{
  name = "forever", description = "Waits",
  permission = false, execute = function(ctx, input) ctx.progress("waiting") hygge.sleep("60s") return "never" end,
}
"#;

/// A daemon with a folder that a person has opened.
fn daemon() -> TestDaemon {
    let daemon = Setup::new().plugin("greet.lua", PLUGIN).start();
    daemon.connect();
    daemon
}

/// A client of the older revisions, with these capabilities.
fn old(daemon: &TestDaemon, capabilities: Value) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "old", "version": "1"},
        "_meta": {"toold/default-cwd": daemon.work()},
    });
    let answer = wire.result("initialize", params);
    assert_eq!(answer["protocolVersion"], "2025-11-25");
    assert_eq!(answer["serverInfo"]["name"], "toold");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    wire
}

/// The params of a stateless request.
fn new(capabilities: Value, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "new", "version": "1"});
    params
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn an_old_client_lists_and_calls() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let list = client.result("tools/list", json!({}));
    let names = names(&list);
    assert!(names.is_sorted() && names.contains(&"greet") && names.contains(&"read"), "{names:?}");
    let greet = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(greet["title"], "Greet somebody");
    assert_eq!(greet["annotations"]["readOnlyHint"], true);
    // Longer than the 50,000 characters from which on Claude Code keeps a result in a file.
    assert_eq!(greet["_meta"]["anthropic/maxResultSizeChars"], 64 * 1024 + 1024);
    assert_eq!(greet["_meta"].get("anthropic/alwaysLoad"), None);
    let read = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "read").unwrap();
    assert_eq!(read["_meta"]["anthropic/alwaysLoad"], true, "it is pinned");
    assert_eq!(greet["outputSchema"]["required"], json!(["said"]));
    assert!(list.get("resultType").is_none() && list.get("nextCursor").is_none());

    let result = client.result("tools/call", call("greet", json!({"name": "you"})));
    assert_eq!(result["structuredContent"], json!({"said": "hello you"}));
    assert_eq!(result["content"], json!([{"type": "text", "text": r#"{"said":"hello you"}"#}]));
    assert_eq!(result["isError"], false);
    assert_eq!(client.result("ping", json!({})), json!({}));
}

#[test]
fn a_stateless_client_discovers_lists_and_calls() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let found = client.result("server/discover", new(json!({}), json!({})));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{found}");

    let list = client.result("tools/list", new(json!({}), json!({})));
    assert_eq!(list["resultType"], "complete");
    assert_eq!(list["cacheScope"], "private");
    assert!(list["ttlMs"].is_u64());
    assert!(names(&list).contains(&"greet"));
    let again = client.result("tools/list", new(json!({}), json!({})));
    assert_eq!(names(&list), names(&again));

    let result = client.result("tools/call", new(json!({}), call("greet", json!({"name": "you"}))));
    assert_eq!(result["structuredContent"], json!({"said": "hello you"}));
    assert_eq!(result["resultType"], "complete");
    // This revision has no methods of the older ones.
    assert_eq!(client.error("ping", new(json!({}), json!({})))["code"], -32601);
}

#[test]
fn a_stateless_request_can_be_the_first() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let result = client.result("tools/call", new(json!({}), call("greet", json!({"name": "you"}))));
    assert_eq!(result["structuredContent"]["said"], "hello you");
}

#[test]
fn noise_before_the_first_message_is_ignored() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    client.send_bytes(b"\n{oops\n");
    assert_eq!(client.next_message().unwrap()["error"]["code"], -32700);
    let found = client.result("server/discover", new(json!({}), json!({})));
    assert_eq!(found["resultType"], "complete");
}

#[test]
fn native_clients_keep_their_dialect() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let refused = client.error("initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(refused["code"], -32601);
}

#[test]
fn progress_comes_before_the_result_and_grows() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let mut params = call("greet", json!({"name": "you"}));
    params["_meta"] = json!({"progressToken": "p1"});
    let id = client.request("tools/call", params);
    let message = client.next_message().unwrap();
    assert_eq!(message["method"], "notifications/progress");
    assert_eq!(message["params"], json!({"progressToken": "p1", "progress": 1.0, "total": 2.0, "message": "half"}));
    assert_eq!(client.answer(id)["result"]["isError"], false);
}

/// Also where the client can be asked, so that a call may outlive its request.
#[test]
fn calls_run_in_the_order_in_which_they_were_sent() {
    let rules = ["shell", "file.write"].map(|category| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"**\"\naction = \"allow\"\n")
    });
    let daemon = Setup::new().config(&rules.concat()).start();
    daemon.connect();
    for (round, capabilities) in [json!({}), json!({"elicitation": {}})].into_iter().enumerate() {
        let mut client = old(&daemon, capabilities);
        let log = format!("log{round}");
        let ids: Vec<u64> = (0..20)
            .map(|number| match number % 2 {
                0 => client.request("tools/call", call("bash", json!({"command": format!("echo {number} >> {log}")}))),
                _ => {
                    let line = json!({"path": log, "content": format!("{number}\n"), "mode": "append"});
                    client.request("tools/call", call("write", line))
                }
            })
            .collect();
        for id in ids {
            let answer = client.answer(id);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        let expected: String = (0..20).map(|number| format!("{number}\n")).collect();
        assert_eq!(std::fs::read_to_string(daemon.work().join(log)).unwrap(), expected);
    }
}

#[test]
fn a_cancelled_call_ends_and_is_not_answered() {
    let daemon = daemon();
    let mut watcher = daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    let mut client = old(&daemon, json!({}));
    let mut params = call("forever", json!({}));
    params["_meta"] = json!({"progressToken": 1});
    let id = client.request("tools/call", params);
    client.notification("notifications/progress");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let finished = watcher.notification("events.event");
    assert_eq!(finished["result"]["outcome"], "cancelled");
    // The next answer belongs to the next request.
    let next = client.request("ping", json!({}));
    assert_eq!(client.next_message().unwrap()["id"], next);
}

#[test]
fn calls_end_with_their_client() {
    let daemon = daemon();
    let mut watcher = daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    let mut client = old(&daemon, json!({}));
    let mut params = call("forever", json!({}));
    params["_meta"] = json!({"progressToken": 1});
    client.request("tools/call", params);
    client.notification("notifications/progress");
    drop(client);
    assert_eq!(watcher.notification("events.event")["result"]["outcome"], "cancelled");
    let left = || daemon.connect().result("session.list", json!({}));
    until("its session is closed", || {
        let left = left();
        let sessions = left["sessions"].as_array().unwrap();
        sessions.iter().all(|session| session["client"]["name"] != "old").then_some(())
    });
}

#[test]
fn a_client_that_only_stops_sending_is_answered() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let id = client.request("tools/call", call("greet", json!({"name": "you"})));
    client.end_sending();
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert!(client.next_message().is_none());
}

#[test]
fn failures_follow_the_protocol() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let unknown = client.error("tools/call", call("gret", json!({})));
    assert_eq!(unknown["code"], -32602);
    assert!(unknown["message"].as_str().unwrap().contains("greet"), "{unknown}");
    let invalid = client.result("tools/call", call("greet", json!({"name": true})));
    assert_eq!(invalid["isError"], true);
    assert!(invalid["content"][0]["text"].as_str().unwrap().contains("/name"), "{invalid}");
    let missing = client.result("tools/call", call("read", json!({"path": "nothing here"})));
    assert_eq!(missing["isError"], true);
    for method in ["tasks/list", "nothing/here", "logging/nothing"] {
        assert_eq!(client.error(method, json!({}))["code"], -32601, "{method}");
    }
}

#[test]
fn both_eras_hear_that_the_list_changed() {
    let daemon = daemon();
    let mut first = old(&daemon, json!({}));
    let mut second = Wire::connect(&daemon.socket());
    let listens =
        second.request("subscriptions/listen", new(json!({}), json!({"notifications": {"toolsListChanged": true}})));
    let acknowledged = second.notification("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["notifications"]["toolsListChanged"], true);
    // Answers after `initialized` come after it took effect.
    first.result("tools/list", json!({}));
    std::fs::write(
        daemon.plugins().join("late.lua"),
        r#"hygge.register_tool{name = "late", description = "Came late", permission = false, execute = function() return "late" end}"#,
    )
    .unwrap();
    first.notification("notifications/tools/list_changed");
    let message = second.notification("notifications/tools/list_changed");
    assert_eq!(message["_meta"]["io.modelcontextprotocol/subscriptionId"], listens);
    assert!(names(&first.result("tools/list", json!({}))).contains(&"late"));
    assert!(names(&second.result("tools/list", new(json!({}), json!({})))).contains(&"late"));
    second.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listens}}));
    second.result("tools/list", new(json!({}), json!({})));
}

#[test]
fn meta_tools_reach_tools_registered_later() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let before = client.result("tools/list", json!({}));
    assert!(names(&before).contains(&"tools_call") && names(&before).contains(&"tools_search"));
    std::fs::write(
        daemon.plugins().join("late.lua"),
        r#"hygge.register_tool{name = "late", description = "Came too late", permission = false, execute = function() return "late" end}"#,
    )
    .unwrap();
    client.notification("notifications/tools/list_changed");
    let found = client.result("tools/call", call("tools_search", json!({"query": "TOO late"})));
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "late");
    let result = client.result("tools/call", call("tools_call", json!({"name": "late"})));
    assert_eq!(result["content"][0]["text"], "late");
    let unknown = client.error("tools/call", call("tools_call", json!({"name": "nothing"})));
    assert_eq!(unknown["code"], -32602);
    let wrong = client.result("tools/call", call("tools_call", json!({"arguments": {}})));
    assert_eq!(wrong["isError"], true);
}

#[test]
fn meta_tools_can_be_off_or_only_for_some() {
    let config = "[mcp]\nmeta_tools = \"off\"\n";
    let daemon = Setup::new().config(config).start();
    let mut client = old(&daemon, json!({}));
    assert!(!names(&client.result("tools/list", json!({}))).contains(&"tools_call"));
    assert_eq!(client.error("tools/call", call("tools_search", json!({"query": ""})))["code"], -32602);

    let daemon = Setup::new().config("[mcp.clients.old]\nlist_changed = true\n").start();
    let mut client = old(&daemon, json!({}));
    assert!(!names(&client.result("tools/list", json!({}))).contains(&"tools_call"));
}

#[test]
fn a_short_list_has_the_pinned_tools_and_two_that_reach_the_others() {
    let config =
        "[mcp]\nmeta_tools = \"off\"\n[mcp.clients.old]\nlisting = \"deferred\"\n[tools]\npinned = [\"where\"]\n";
    let daemon = Setup::new().plugin("greet.lua", PLUGIN).config(config).start();
    daemon.connect();
    let mut client = old(&daemon, json!({}));
    assert_eq!(names(&client.result("tools/list", json!({}))), ["tools_call", "tools_search", "where"]);
    let all = client.result("tools/list", json!({"_meta": {"toold/listing": "all"}}));
    assert!(names(&all).contains(&"greet") && !names(&all).contains(&"tools_call"), "{all}");
    let wrong = client.error("tools/list", json!({"_meta": {"toold/listing": "some"}}));
    assert!(wrong["message"].as_str().unwrap().contains("expected all or deferred"), "{wrong}");

    let mut client = old(&daemon, json!({}));
    let found = client.result("tools/call", call("tools_search", json!({"query": "hello"})));
    assert_eq!(found["structuredContent"]["tools"][0], json!({"name": "greet", "description": "Says hello"}));
    assert_eq!(found["content"][0]["text"].as_str().unwrap().lines().next(), Some("greet: Says hello"));
    let found = client.result("tools/call", call("tools_search", json!({"query": "hello", "schemas": true})));
    assert_eq!(found["structuredContent"]["tools"][0]["inputSchema"]["required"], json!(["name"]));
    let result =
        client.result("tools/call", call("tools_call", json!({"name": "greet", "arguments": {"name": "you"}})));
    assert_eq!(result["structuredContent"], json!({"said": "hello you"}));

    let listed = daemon.connect().result("tools.list", json!({"mode": "deferred"}));
    assert_eq!(names(&listed), ["tools_call", "tools_search", "where"]);
    let mut modern = Wire::connect(&daemon.socket());
    let params = new(json!({}), json!({"_meta": {"toold/listing": "deferred"}}));
    assert_eq!(names(&modern.result("tools/list", params)), ["tools_call", "tools_search", "where"]);
    assert_eq!(names(&modern.result("tools/list", new(json!({}), json!({})))).len(), 3, "it applies from then on");
}

#[test]
fn a_tool_that_a_client_does_not_see_is_neither_found_nor_called_by_its_short_list() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let sources = json!({"toold/sources": {"without": ["plugin"]}, "toold/listing": "deferred"});
    let with = |mut params: Value| {
        params["_meta"] = sources.clone();
        new(json!({}), params)
    };
    let found = client.result("tools/call", with(call("tools_search", json!({"query": "greet hello"}))));
    assert!(!found["structuredContent"].to_string().contains("greet"), "{found}");
    let arguments = json!({"name": "greet", "arguments": {"name": "you"}});
    let refused = client.error("tools/call", with(call("tools_call", arguments)));
    assert_eq!(refused["code"], -32602, "{refused}");
}

#[test]
fn a_client_works_in_its_roots_else_where_it_says() {
    let daemon = Setup::new().plugin("greet.lua", PLUGIN).file("a/x", "").file("b/x", "").start();
    let work = daemon.work();
    let mut client = old(&daemon, json!({}));
    let place = |result: Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(place(client.result("tools/call", call("where", json!({})))), work.display().to_string());
    let mut params = call("where", json!({}));
    params["_meta"] = json!({"toold/cwd": work.join("a")});
    assert_eq!(place(client.result("tools/call", params)), work.join("a").display().to_string());
    let mut params = call("where", json!({}));
    params["_meta"] = json!({"toold/cwd": work.join("nothing")});
    // Before a person opens the folder, the client must not learn whether it exists.
    assert_eq!(place(client.result("tools/call", params)), work.join("nothing").display().to_string());

    let mut client = old(&daemon, json!({"roots": {"listChanged": true}}));
    let mut folder_for = |root: &str| {
        let id = client.request("tools/call", call("where", json!({})));
        let asked = client.next_message().unwrap();
        assert_eq!(asked["method"], "roots/list", "{asked}");
        let uri = format!("file://{}", work.join(root).display());
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": uri}]}}));
        let place = place(client.answer(id)["result"].take());
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
        // Wait until the change has arrived.
        client.result("ping", json!({}));
        place
    };
    assert_eq!(folder_for("a"), work.join("a").display().to_string());
    assert_eq!(folder_for("b"), work.join("b").display().to_string());
}

#[test]
fn a_client_sees_and_calls_the_tools_of_some_sources_alone() {
    let daemon = daemon();
    let mut client = Wire::connect(&daemon.socket());
    let mut narrowed = |sources: Value| {
        let mut params = new(json!({}), json!({}));
        params["_meta"]["toold/sources"] = sources;
        let list = client.result("tools/list", params);
        let listed = names(&list);
        // It applies to later requests of the connection; the tools are not only hidden.
        let greet = client.request("tools/call", new(json!({}), call("greet", json!({"name": "you"}))));
        let greet = client.answer(greet)["result"].is_object();
        let glob = client.request("tools/call", new(json!({}), call("glob", json!({"pattern": "*"}))));
        let glob = client.answer(glob)["result"].is_object();
        assert_eq!((listed.contains(&"greet"), listed.contains(&"glob")), (greet, glob), "{listed:?}");
        (greet, glob)
    };
    assert_eq!(narrowed(json!({"only": ["plugin", "mcp"]})), (true, false));
    assert_eq!(narrowed(json!({"only": ["builtin"]})), (false, true));
    assert_eq!(narrowed(json!({"without": ["builtin"]})), (true, false));
    assert_eq!(narrowed(json!({"without": ["greet"]})), (false, true));
    assert_eq!(narrowed(json!({})), (true, true));
    let mut params = new(json!({}), json!({}));
    params["_meta"]["toold/sources"] = json!(["plugin"]);
    assert_eq!(client.error("tools/list", params)["code"], -32602);

    let mut native = daemon.connect();
    native.result("session.open", json!({"cwd": daemon.work(), "tools": {"sources": ["plugin"]}}));
    let listed = native.result("tools.list", json!({}));
    assert_eq!(names(&listed), ["forever", "greet", "where"]);
    assert_eq!(native.error("tools.execute", call("glob", json!({"pattern": "*"})))["data"]["kind"], "unknown_tool");
}

#[test]
fn a_client_is_an_agent_with_a_session_of_its_own() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    client.result("tools/call", call("greet", json!({"name": "you"})));
    let sessions = daemon.connect().result("session.list", json!({}));
    let own = sessions["sessions"].as_array().unwrap().iter().find(|session| session["client"]["name"] == "old");
    assert_eq!(own.unwrap()["cwd"], json!(daemon.work()));
    // None of the native methods exist for it.
    assert_eq!(client.error("permissions.grant", json!({"category": "shell", "pattern": "*"}))["code"], -32601);
}

#[test]
fn without_elicitation_a_refusal_says_how_to_allow() {
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    let refused = client.result("tools/call", call("bash", json!({"command": "touch x"})));
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("toolctl permissions grant shell 'touch x'"), "{text}");
}

/// Lines that are no messages, or several, with the answers: their ids, and the codes of the errors.
fn odd_lines() -> (Vec<u8>, Vec<(Value, Option<i64>)>) {
    let long = "x".repeat(17 << 20);
    /// The bytes of a line, and the id and code of each of its answers.
    type OddLine<'a> = (&'a [u8], &'a [(Value, Option<i64>)]);
    let lines: [OddLine; 8] = [
        (b"{\"jsonrpc\":\"2.0\",\"id\":95,\"method\":\"ping\",\"params\":{\"x\":\"caf\xe9\"}}", &[(json!(95), Some(-32700))]),
        (b"{\"jsonrpc\":\"2.0\",\"id\":96,\"method\":", &[(json!(96), Some(-32700))]),
        (
            br#"{"jsonrpc":"2.0","id":"97","method":"tools/call","params":{"name":"greet","arguments":{"name":"a\ud800"}}}"#,
            &[(json!("97"), Some(-32602))],
        ),
        (
            br#"[{"jsonrpc":"2.0","id":98,"method":"ping"},{"jsonrpc":"2.0","id":99,"method":"ping"}]"#,
            &[(json!(98), None), (json!(99), None)],
        ),
        (
            // In the order of the TypeScript SDK.
            &format!(r#"{{"method":"tools/call","params":{{"name":"{long}"}},"jsonrpc":"2.0","id":100}}"#).into_bytes(),
            &[(json!(100), Some(-32600))],
        ),
        (b"{", &[(json!(null), Some(-32700))]),
        (b"[]", &[(json!(null), Some(-32600))]),
        (br#"{"jsonrpc":"2.0","id":101,"method":"ping"}"#, &[(json!(101), None)]),
    ];
    let text = lines.iter().flat_map(|(line, _)| [line, b"\n".as_slice()].concat()).collect();
    (text, lines.iter().flat_map(|(_, answers)| answers.to_vec()).collect())
}

#[track_caller]
fn check_odd_lines(mut answers: Vec<Value>, mut expected: Vec<(Value, Option<i64>)>) {
    let mut seen: Vec<_> =
        answers.iter_mut().map(|answer| (answer["id"].take(), answer["error"]["code"].as_i64())).collect();
    for list in [&mut seen, &mut expected] {
        list.sort_by_key(|(id, code)| (id.to_string(), *code));
    }
    assert_eq!(seen, expected, "{answers:?}");
}

#[test]
fn every_line_of_a_client_is_answered_under_its_id() {
    let (text, expected) = odd_lines();
    let daemon = daemon();
    let mut client = old(&daemon, json!({}));
    client.send_bytes(&text);
    let mut answers = Vec::new();
    while answers.len() < expected.len() {
        let message = client.next_message().unwrap();
        if message.get("method").is_none() {
            answers.push(message);
        }
    }
    check_odd_lines(answers, expected);
}

/// What `toolctl mcp` answers to a client that begins with `initialize`, sends this, and sends no more.
fn bridged(setup: &Setup, text: &[u8]) -> Vec<Value> {
    use std::io::Write;
    let mut child = setup
        .command(toold_tests::toolctl())
        .arg("mcp")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut input = child.stdin.take().unwrap();
    // Nothing is said that is no answer, and noise before the first message has one too.
    input.write_all(format!("oops\n{initialize}\n{initialized}\n").as_bytes()).unwrap();
    input.write_all(text).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut answers: Vec<Value> = answers.filter(|message| message.get("method").is_none()).collect();
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(null), &json!(-32700)));
    answers.remove(0);
    let first = answers.iter().position(|answer| answer["id"] == "first").unwrap();
    assert_eq!(answers.remove(first)["result"]["protocolVersion"], "2025-06-18");
    answers
}

#[test]
fn every_line_through_the_bridge_is_answered_under_its_id() {
    let (text, expected) = odd_lines();
    let daemon = daemon();
    check_odd_lines(bridged(&daemon.setup, &text), expected);
}

#[test]
fn a_daemon_that_ends_while_the_bridge_begins_is_followed_by_another() {
    use std::io::{BufRead, BufReader, Write};
    let setup = Setup::new().plugin("greet.lua", PLUGIN);
    let socket = setup.path("run/toold.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let ends = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let ping: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            writeln!(stream, "{}", json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}})).unwrap();
            lines.next().unwrap().unwrap();
            // At the second request.
            std::fs::remove_file(socket).unwrap();
        }
    });
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(bridged(&setup, format!("{ping}\n").as_bytes()), [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
    ends.join().unwrap();
    stop(&setup);
}

/// Stops the daemon that a bridge has started.
fn stop(setup: &Setup) {
    // This test is the bridge's agent, and so would be its `toolctl`. It becomes a person's frontend first.
    Wire::connect(&setup.path("run/toold.sock")).result("session.open", json!({"cwd": setup.path("work")}));
    let stopped = setup.command(toold_tests::toolctl()).arg("stop").output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn toolctl_mcp_starts_the_daemon_and_says_where_it_is() {
    use std::io::Write;
    use std::process::Stdio;
    let setup = Setup::new().plugin("greet.lua", PLUGIN).file("below/x", "");
    let mut child = setup
        .command(toold_tests::toolctl())
        .args(["mcp", "--cwd", "below", "--without-source", "builtin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = |id: u64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let initialize =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let lines = [
        request(1, "initialize", initialize),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        request(2, "tools/call", call("where", json!({}))),
        request(3, "tools/list", json!({})),
    ];
    child.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let answer = |id: u64| &answers.iter().find(|answer| answer["id"] == id).unwrap()["result"];
    assert_eq!(answer(2)["content"][0]["text"], setup.path("work/below").display().to_string());
    assert_eq!(names(answer(3)), ["forever", "greet", "tools_call", "tools_search", "where"]);
    stop(&setup);
}
