//! Requests and log messages of mounted MCP servers: to the right frontend, with permission, and within limits. The server
//! of these tests is `mcp/asking.py`, which asks its client as its calls tell it to.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// Allows every call of a tool, and still no sampling.
const ALLOW: &str = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n";

fn server(name: &str, options: &[&str], more: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/asking.py").display().to_string();
    let args: Vec<&str> = std::iter::once(program.as_str()).chain(options.iter().copied()).collect();
    format!("[mcp.servers.{name}]\ncommand = \"python3\"\nargs = {}\n{more}\n", json!(args))
}

/// A daemon with these servers, whose tools are known.
fn mounted(servers: &[String]) -> TestDaemon {
    let daemon = Setup::new().config(&(ALLOW.to_owned() + &servers.concat())).start();
    let mut wire = daemon.connect();
    until("all servers have listed their tools", || {
        let all = wire.result("mcp.servers", json!({}))["servers"].take();
        all.as_array().unwrap().iter().all(|server| server["tools"] != json!([])).then_some(())
    });
    daemon
}

fn one(options: &[&str], more: &str) -> TestDaemon {
    mounted(&[server("s", options, more)])
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The JSON that a tool of the server answers.
#[track_caller]
fn read(result: &Value) -> Value {
    serde_json::from_str(text(result)).unwrap_or_else(|_| panic!("{result}"))
}

/// An MCP client of an older revision that has a model, in this folder.
fn old_client(daemon: &TestDaemon, folder: &Path) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"sampling": {}}, "clientInfo": {"name": "agent", "version": "1"},
        "_meta": {"toold/default-cwd": folder},
    });
    wire.result("initialize", params);
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    wire
}

/// A request of a client of revision 2026-07-28 that has a model.
fn of_new_client(daemon: &TestDaemon, mut params: Value, more: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        "toold/cwd": daemon.work(),
    });
    params["_meta"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// A person who is asked for permissions.
fn person(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

/// The next thing that the person is asked.
#[track_caller]
fn asked(person: &mut Wire) -> Value {
    loop {
        let mut event = person.notification("permissions.event")["result"].take();
        if event["type"] == "asked" {
            return event["request"].take();
        }
    }
}

fn reply(person: &mut Wire, ask: &Value, answer: Value) {
    let mut params = json!({"request_id": ask["request_id"]});
    params.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    person.result("permissions.reply", params);
}

fn allow(person: &mut Wire) {
    let ask = asked(person);
    reply(person, &ask, json!({"action": "allow"}));
}

fn nobody_is_asked(daemon: &TestDaemon) {
    assert_eq!(daemon.connect().result("permissions.pending", json!({}))["asks"], json!([]));
}

fn message(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}

fn sampling() -> Value {
    json!({
        "messages": [message("How warm is it?"), {"role": "assistant", "content": {"type": "text", "text": "Where?"}}],
        "systemPrompt": "Be brief.", "maxTokens": 50, "temperature": 0.5, "modelPreferences": {"hints": [{"name": "small"}]},
    })
}

fn sample(server: &str, params: Value) -> Value {
    json!({"name": format!("{server}_ask"), "arguments": {"method": "sampling/createMessage", "params": params}})
}

fn answer_of_model(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m", "stopReason": "endTurn"})
}

/// The next request to the client, which must be one for its model; answers it.
#[track_caller]
fn use_model(client: &mut Wire, text: &str) -> Value {
    let mut asked = client.next_message().unwrap();
    assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer_of_model(text)}));
    asked["params"].take()
}

#[test]
fn a_person_is_asked_each_time_before_a_server_uses_a_model() {
    let daemon = one(&[], "");
    let mut person = person(&daemon);
    let mut client = old_client(&daemon, &daemon.work());
    for mode in ["default", "yolo"] {
        let id = client.request("tools/call", sample("s", sampling()));
        let ask = asked(&mut person);
        assert_eq!(
            (&ask["category"], &ask["target"], &ask["tool"]),
            (&json!("mcp"), &json!("s/sampling"), &json!("s_ask"))
        );
        let reason = ask["reason"].as_str().unwrap();
        for words in ["MCP server s", "2 messages", "21 characters", "50 tokens", "Be brief.", "user: How warm is it?"]
        {
            assert!(reason.contains(words), "{words}: {reason}");
        }
        // Nothing wider than this one request can be allowed.
        for scope in ["session", "project", "always"] {
            let wider = json!({"request_id": ask["request_id"], "action": "allow", "scope": scope});
            let refused = person.error("permissions.reply", wider);
            assert!(refused["message"].as_str().unwrap().contains("each time"), "{mode} {scope}: {refused}");
        }
        reply(&mut person, &ask, json!({"action": "allow"}));
        let params = use_model(&mut client, "Warm.");
        for (name, value) in sampling().as_object().unwrap() {
            assert_eq!(params[name], *value, "{name}");
        }
        let answers = read(&client.answer(id)["result"]);
        assert_eq!(answers, json!([answer_of_model("Warm.")]));
        // Not even a grant or a mode allows the next one.
        let session = ask["session_id"].clone();
        person.result("permissions.set_mode", json!({"session_id": session, "mode": "yolo"}));
        let grant = json!({"category": "mcp", "pattern": "s/sampling", "action": "allow", "scope": "always"});
        person.result("permissions.grant", grant);
    }
    let audited = person.result("audit.query", json!({"limit": 1}));
    let decided = &audited["entries"][0]["decisions"][1];
    assert_eq!((&decided["target"], &decided["verdict"]), (&json!("s/sampling"), &json!("allow")), "{audited}");
}

#[test]
fn a_refusal_holds_for_the_call_and_the_server_reads_it() {
    let daemon = one(&[], "");
    let mut person = person(&daemon);
    let mut client = old_client(&daemon, &daemon.work());
    let mut call = sample("s", sampling());
    call["arguments"]["times"] = json!(3);
    let id = client.request("tools/call", call);
    let ask = asked(&mut person);
    reply(&mut person, &ask, json!({"action": "deny", "message": "use the weather tool"}));
    for refused in read(&client.answer(id)["result"]).as_array().unwrap() {
        assert_eq!(refused["code"], -1, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("use the weather tool"), "{refused}");
    }
    // With nobody who can be asked, the model is not used either.
    drop(person);
    until("the person is gone", || {
        let refused = read(&client.result("tools/call", sample("s", sampling())));
        refused.to_string().contains("the use of your model by an MCP server needs approval each time").then_some(())
    });
    nobody_is_asked(&daemon);
}

#[test]
fn a_rule_denies_sampling_of_a_server() {
    let rule = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"s/sampling\"\naction = \"deny\"\n";
    let daemon = one(&[], rule);
    let _person = person(&daemon);
    let refused = read(&old_client(&daemon, &daemon.work()).result("tools/call", sample("s", sampling())));
    assert_eq!(refused[0]["code"], -1, "{refused}");
    nobody_is_asked(&daemon);
}

#[test]
fn sampling_passes_between_all_eras() {
    let daemon = mounted(&[server("old", &[], ""), server("new", &["--modern"], "")]);
    let mut person = person(&daemon);
    for server in ["old", "new"] {
        let mut client = old_client(&daemon, &daemon.work());
        let id = client.request("tools/call", sample(server, sampling()));
        allow(&mut person);
        use_model(&mut client, "x");
        assert_eq!(read(&client.answer(id)["result"]), json!([answer_of_model("x")]), "{server}");

        let mut client = Wire::connect(&daemon.socket());
        let id = client.request("tools/call", of_new_client(&daemon, sample(server, sampling()), json!({})));
        allow(&mut person);
        let required = client.answer(id)["result"].take();
        assert_eq!(required["resultType"], "input_required", "{required}");
        let (key, request) = required["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["method"], "sampling/createMessage");
        let mut again = sample(server, sampling());
        again["inputResponses"] = json!({key: answer_of_model("y")});
        again["requestState"] = required["requestState"].clone();
        let result = client.result("tools/call", of_new_client(&daemon, again, json!({})));
        assert_eq!(read(&result), json!([answer_of_model("y")]), "{server}");
    }
}

#[test]
fn a_frontend_without_a_model_is_named_as_what_is_missing() {
    let daemon = mounted(&[server("old", &[], ""), server("new", &["--modern"], "")]);
    let mut person = person(&daemon);
    let refused = person.tool("old_ask", sample("old", sampling())["arguments"].take());
    assert!(text(&refused).contains("cannot ask a model (it offers no sampling)"), "{refused}");
    let refused = person.tool("new_ask", sample("new", sampling())["arguments"].take());
    assert!(refused["is_error"] == true && text(&refused).contains("it offers no sampling"), "{refused}");
    nobody_is_asked(&daemon);
    // A newer server is told of it with the call.
    let offered = |result: &Value| {
        let mut seen = read(result);
        seen["meta"]["io.modelcontextprotocol/clientCapabilities"].take()
    };
    let without = offered(&person.tool("new_seen", json!({})));
    assert!(without["sampling"].is_null() && without["elicitation"].is_object() && without["roots"].is_object());
    let mut client = old_client(&daemon, &daemon.work());
    let with = client.result("tools/call", json!({"name": "new_seen", "arguments": {}}));
    assert!(offered(&with)["sampling"].is_object(), "{with}");
}

#[test]
fn requests_that_cannot_be_passed_on_are_answered_with_words() {
    let daemon = one(&[], "");
    let mut person = person(&daemon);
    let mut client = old_client(&daemon, &daemon.work());
    let of = |content: Value| json!({"messages": [{"role": "user", "content": content}], "maxTokens": 5});
    let tool_use = json!({"type": "tool_use", "id": "1", "name": "t", "input": {}});
    let mut with_tools = sampling();
    with_tools["tools"] = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let huge = of(json!({"type": "text", "text": "x".repeat(5 << 20)}));
    let many: Vec<Value> = (0..1001).map(|_| message("x")).collect();
    for (method, params, code, words) in [
        ("sampling/createMessage", huge, -32602, "bytes"),
        ("sampling/createMessage", json!({"messages": many, "maxTokens": 5}), -32602, "1001 messages"),
        ("sampling/createMessage", json!({"messages": [], "maxTokens": 5}), -32602, "at least one"),
        ("sampling/createMessage", of(tool_use), -32602, "expected text, image or audio"),
        ("sampling/createMessage", of(json!({"type": "hologram"})), -32602, "cannot be read"),
        ("sampling/createMessage", json!({"messages": "x"}), -32602, "cannot be read"),
        ("sampling/createMessage", with_tools, -32602, "sampling.tools"),
        ("elicitation/create", json!({"mode": "song"}), -32602, "cannot be read"),
        ("files/read", json!({}), -32601, "toold does not answer files/read"),
    ] {
        let call = json!({"name": "s_ask", "arguments": {"method": method, "params": params}});
        let refused = read(&client.result("tools/call", call));
        assert_eq!(refused[0]["code"], code, "{words}: {refused}");
        assert!(refused[0]["message"].as_str().unwrap().contains(words), "{words}: {refused}");
    }
    nobody_is_asked(&daemon);

    // A flood: each request is answered, and the person is asked about one at a time.
    let mut call = sample("s", sampling());
    call["arguments"]["times"] = json!(300);
    let id = client.request("tools/call", call);
    let ask = asked(&mut person);
    until("those beyond the limit are refused", || {
        let seen = read(&client.result("tools/call", json!({"name": "s_seen", "arguments": {}})));
        (seen["refused"] == 268).then_some(())
    });
    let pending = daemon.connect().result("permissions.pending", json!({}));
    assert_eq!(pending["asks"].as_array().unwrap().len(), 1, "{pending}");
    reply(&mut person, &ask, json!({"action": "deny"}));
    let answers = read(&client.answer(id)["result"]);
    let of_code = |code: i64| answers.as_array().unwrap().iter().filter(|answer| answer["code"] == code).count();
    assert_eq!((of_code(-1), of_code(-32600)), (32, 268));
    // It continues to serve.
    let id = client.request("tools/call", sample("s", sampling()));
    allow(&mut person);
    use_model(&mut client, "x");
    client.answer(id);
}

#[test]
fn nobody_is_asked_for_a_call_that_has_ended() {
    let daemon = one(&[], "");
    let mut person = person(&daemon);
    person.result("questions.subscribe", json!({}));
    let mut client = old_client(&daemon, &daemon.work());
    let form =
        json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    for (method, params, event) in
        [("sampling/createMessage", sampling(), "permissions.event"), ("elicitation/create", form, "questions.event")]
    {
        let arguments = json!({"method": method, "params": params});
        client.result("tools/call", json!({"name": "s_ask_and_end", "arguments": arguments}));
        // The prompt of a call that ends while a person reads it closes.
        let id = client.request("tools/call", json!({"name": "s_ask_and_hold", "arguments": arguments}));
        let request = loop {
            let mut seen = person.notification(event)["result"].take();
            let is_open = |id: &Value| {
                let pending = daemon.connect().result("permissions.pending", json!({}));
                pending["asks"].as_array().unwrap().iter().any(|open| open["request_id"] == *id)
            };
            let request = seen["request"]["request_id"].take();
            if seen["type"] == "asked" && (event == "questions.event" || is_open(&request)) {
                break request;
            }
        };
        until("the server holds the call", || {
            let seen = client.result("tools/call", json!({"name": "s_seen", "arguments": {}}));
            seen["content"][0]["text"].as_str().unwrap().contains("held").then_some(())
        });
        client.result("tools/call", json!({"name": "s_tell", "arguments": {}}));
        client.answer(id);
        until("the prompt is closed", || {
            let seen = person.notification(event)["result"].take();
            (seen["type"] == "resolved" && seen["request_id"] == request).then_some(())
        });
    }
    let late = || person_late(&daemon);
    until("all are answered", || (late().len() == 4).then_some(()));
    for answer in late() {
        let words = answer["message"].as_str().unwrap();
        assert!(words.contains("has ended") || words.contains("no call is running"), "{answer}");
    }
    nobody_is_asked(&daemon);
    // Requests that the server itself has cancelled do not count as unanswered.
    let arguments = json!({"method": "sampling/createMessage", "params": sampling(), "cancel": true});
    for _ in 0..40 {
        client.result("tools/call", json!({"name": "s_ask_and_end", "arguments": arguments}));
    }
    let id = client.request("tools/call", sample("s", sampling()));
    let reason = loop {
        let ask = asked(&mut person);
        let pending = daemon.connect().result("permissions.pending", json!({}));
        let is_open = pending["asks"].as_array().unwrap().iter().any(|open| open["request_id"] == ask["request_id"]);
        if is_open {
            reply(&mut person, &ask, json!({"action": "allow"}));
            break ask["reason"].clone();
        }
    };
    assert!(reason.is_string());
    use_model(&mut client, "x");
    client.answer(id);
}

fn person_late(daemon: &TestDaemon) -> Vec<Value> {
    read(&daemon.connect().tool("s_late", json!({}))).as_array().unwrap().clone()
}

#[test]
fn a_client_that_dies_while_its_call_asks_leaves_nothing_open() {
    let daemon = one(&[], "");
    let mut person = person(&daemon);
    for dies_when_asked_for_its_model in [false, true] {
        let mut client = old_client(&daemon, &daemon.work());
        client.request("tools/call", sample("s", sampling()));
        let ask = asked(&mut person);
        if dies_when_asked_for_its_model {
            reply(&mut person, &ask, json!({"action": "allow"}));
            assert_eq!(client.next_message().unwrap()["method"], "sampling/createMessage");
        }
        drop(client);
        until("nothing runs or asks", || {
            let running = person.result("mcp.servers", json!({}))["servers"][0]["running"].clone();
            let asks = person.result("permissions.pending", json!({}))["asks"].clone();
            (running == 0 && asks == json!([])).then_some(())
        });
    }
    let mut client = old_client(&daemon, &daemon.work());
    let id = client.request("tools/call", sample("s", sampling()));
    allow(&mut person);
    use_model(&mut client, "x");
    assert_eq!(read(&client.answer(id)["result"]), json!([answer_of_model("x")]));
}

/// The roots that a call of this session gets.
#[track_caller]
fn roots(wire: &mut Wire) -> Value {
    let mut answers = read(&wire.tool("s_ask", json!({"method": "roots/list"})));
    answers[0].take()
}

fn uris(folders: &[&Path]) -> Value {
    let root = |folder: &&Path| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        json!({"uri": format!("file://{}", folder.display().to_string().replace(' ', "%20")), "name": name})
    };
    json!({"roots": folders.iter().map(root).collect::<Vec<_>>()})
}

fn open(daemon: &TestDaemon, folder: &Path, roots: &[&Path]) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": folder, "roots": roots}));
    wire
}

#[test]
fn a_server_gets_the_roots_of_those_whom_it_serves() {
    for (scope, options) in [("session", &[][..]), ("project", &[]), ("shared", &[]), ("session", &["--modern"])] {
        let daemon = one(options, &format!("scope = \"{scope}\""));
        let (project, below, other) = (daemon.work(), daemon.work().join("be low"), daemon.setup.path("other"));
        for folder in [&below, &other, &project.join(".toold")] {
            fs::create_dir(folder).unwrap();
        }
        let mut two = open(&daemon, &other, &[]);
        let mut one = open(&daemon, &below, &[&other]);
        let expected = if scope == "project" { uris(&[&project]) } else { uris(&[&below, &other]) };
        assert_eq!(roots(&mut one), expected, "{scope} {options:?}");
        assert_eq!(roots(&mut two), uris(&[&other]), "{scope} {options:?}");
        let declared = match options {
            [] => read(&one.tool("s_seen", json!({})))["capabilities"]["roots"].clone(),
            _ => continue,
        };
        let changes = if scope == "shared" { json!({}) } else { json!({"listChanged": true}) };
        assert_eq!(declared, changes, "{scope}");
    }
}

#[test]
fn a_shared_server_that_does_not_say_for_which_call_it_asks_for_roots_gets_none_or_takes_turns() {
    let daemon = one(&["--roots-at-start"], "");
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    // It belongs to no call.
    assert_eq!(read(&one.tool("s_seen", json!({})))["start"], json!({"roots": []}));
    let held = two.request("tools.execute", json!({"name": "s_hold", "progress": true}));
    // The server has the call.
    assert_eq!(two.notification("tools.progress")["message"], "holding");
    let refused = roots(&mut one);
    assert!(refused["message"].as_str().unwrap().contains("calls of 2 sessions"), "{refused}");
    let params = json!({"name": "s_ask", "arguments": {"method": "roots/list"}, "progress": true});
    let id = one.request("tools.execute", params);
    let waits = one.notification("tools.progress");
    assert!(waits.to_string().contains("waiting: a call of another session"), "{waits}");
    two.tool("s_tell", json!({}));
    two.answer(held);
    assert_eq!(read(&one.answer(id)["result"])[0], uris(&[&daemon.work()]));
}

#[test]
fn a_server_is_told_of_folders_that_a_person_opens_and_not_before() {
    let daemon = one(&[], "scope = \"session\"");
    let mut person = person(&daemon);
    let folder = daemon.setup.path("unopened");
    fs::create_dir(&folder).unwrap();
    let mut client = old_client(&daemon, &folder);
    let ask = json!({"name": "s_ask", "arguments": {"method": "roots/list"}});
    assert_eq!(read(&client.result("tools/call", ask.clone()))[0], json!({"roots": []}));
    let id = client.request("tools/call", json!({"name": "read", "arguments": {"path": "a"}}));
    let asked = asked(&mut person);
    assert_eq!(asked["target"], json!(folder), "{asked}");
    reply(&mut person, &asked, json!({"action": "allow", "scope": "session"}));
    client.answer(id);
    until("the server is told", || {
        let seen = read(&client.result("tools/call", json!({"name": "s_seen", "arguments": {}})));
        (seen["roots_changed"] == 1).then_some(())
    });
    assert_eq!(read(&client.result("tools/call", ask))[0], uris(&[&folder]));
}

fn log(server: &str, message: Value, times: usize) -> Value {
    json!({"name": format!("{server}_log"), "arguments": {"message": message, "times": times}})
}

/// All messages that come before the answer.
fn logged(client: &mut Wire, id: u64) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let mut message = client.next_message().unwrap();
        if message["id"] == id {
            return messages;
        }
        assert_eq!(message["method"], "notifications/message", "{message}");
        messages.push(message["params"].take());
    }
}

#[test]
fn a_servers_log_reaches_the_client_whose_call_runs_at_its_level() {
    let daemon = mounted(&[server("old", &[], ""), server("new", &["--modern"], "")]);
    let (mut client, mut other) = (old_client(&daemon, &daemon.work()), old_client(&daemon, &daemon.work()));
    let disk = json!({"level": "warning", "logger": "disk", "data": {"free": 3}});
    for server in ["old", "new"] {
        let id = client.request("tools/call", log(server, disk.clone(), 1));
        let expected = json!({"level": "warning", "logger": format!("{server}/disk"), "data": {"free": 3}});
        assert_eq!(logged(&mut client, id), [expected]);
        let id = client.request("tools/call", log(server, json!({"level": "debug", "data": "details"}), 1));
        assert_eq!(logged(&mut client, id), Vec::<Value>::new(), "info is the level until the client sets one");
    }
    client.result("logging/setLevel", json!({"level": "debug"}));
    for server in ["old", "new"] {
        let id = client.request("tools/call", log(server, json!({"level": "debug", "data": "details"}), 2));
        let expected = json!({"level": "debug", "logger": server, "data": "details"});
        assert_eq!(logged(&mut client, id), [expected.clone(), expected]);
    }
    // The server is asked for that level, once; the newer one with each call.
    let seen = read(&client.result("tools/call", json!({"name": "old_seen", "arguments": {}})));
    assert_eq!(seen["levels"], json!(["debug"]));
    let seen = read(&client.result("tools/call", json!({"name": "new_seen", "arguments": {}})));
    assert_eq!(seen["meta"]["io.modelcontextprotocol/logLevel"], "debug");
    // A client of the newer revision gets what its request names, and nothing otherwise.
    let mut stateless = Wire::connect(&daemon.socket());
    for server in ["old", "new"] {
        let id = stateless.request("tools/call", of_new_client(&daemon, log(server, disk.clone(), 1), json!({})));
        assert_eq!(logged(&mut stateless, id), Vec::<Value>::new());
        let level = json!({"io.modelcontextprotocol/logLevel": "error"});
        for (of, count) in [("warning", 0), ("alert", 1)] {
            let call = log(server, json!({"level": of, "data": "x"}), 1);
            let id = stateless.request("tools/call", of_new_client(&daemon, call, level.clone()));
            assert_eq!(logged(&mut stateless, id).len(), count, "{server} {of}");
        }
    }
    // Nothing of it went to anybody else. The daemon has all.
    assert_eq!(other.call("ping", json!({}))["result"], json!({}));
    assert!(
        daemon.log().contains("warning disk: {\\\"free\\\":3}") || daemon.log().contains("warning disk: {\"free\":3}")
    );
}

#[test]
fn a_level_that_is_set_during_a_call_is_passed_on_at_once() {
    let daemon = one(&[], "scope = \"session\"");
    let mut client = old_client(&daemon, &daemon.work());
    client.result("tools/call", json!({"name": "s_seen", "arguments": {}}));
    let id = client.request("tools/call", json!({"name": "s_hold", "arguments": {}}));
    until("the call runs", || {
        (daemon.connect().result("mcp.servers", json!({}))["servers"][0]["running"] == 1).then_some(())
    });
    client.result("logging/setLevel", json!({"level": "error"}));
    until("the server has heard of it", || {
        let seen = read(&client.result("tools/call", json!({"name": "s_seen", "arguments": {}})));
        (seen["levels"] == json!(["error"])).then_some(())
    });
    client.result("tools/call", json!({"name": "s_tell", "arguments": {}}));
    client.answer(id);
}

#[test]
fn a_servers_log_has_a_bound_and_never_goes_to_another_session() {
    let daemon = one(&[], "");
    let (mut client, mut other) = (old_client(&daemon, &daemon.work()), old_client(&daemon, &daemon.work()));
    let id = client.request("tools/call", log("s", json!({"level": "info", "data": "y".repeat(100_000)}), 3000));
    let messages = logged(&mut client, id);
    assert!((2..=1001).contains(&messages.len()), "{}", messages.len());
    assert!(messages.iter().all(|message| message.to_string().len() < 20_000));
    let last = messages.last().unwrap();
    assert_eq!(last["logger"], "toold", "{last}");
    // An unknown level is read as info.
    let id = client.request("tools/call", log("s", json!({"level": "chatty", "data": "x"}), 1));
    assert_eq!(logged(&mut client, id)[0]["level"], "info");
    // While calls of two sessions run, a message may belong to either: neither gets it.
    let hold = json!({"name": "s_hold", "arguments": {}, "_meta": {"progressToken": "held"}});
    let held = other.request("tools/call", hold);
    // The server has the call.
    assert_eq!(other.notification("notifications/progress")["message"], "holding");
    let id = client.request("tools/call", log("s", json!({"level": "error", "data": "of one of them"}), 1));
    assert_eq!(logged(&mut client, id), Vec::<Value>::new());
    client.result("tools/call", json!({"name": "s_tell", "arguments": {}}));
    assert_eq!(logged(&mut other, held), Vec::<Value>::new());
    assert!(daemon.log().contains("of one of them"));
}
