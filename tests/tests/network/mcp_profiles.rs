//! Profiles of MCP clients: which tools they get on each transport, and that no request gets more.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Output, Stdio};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use toold_tests::{PATIENCE, Setup, TestDaemon, Wire, toolctl, toold, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) return "hello" end,
}
hygge.register_tool{
  name = "via", description = "Calls a tool", permission = false,
  execute = function(ctx, input) return hygge.call_tool("glob", {pattern = "*"}) end,
}
hygge.register_tool{
  name = "secretly", description = "Is left out", permission = false,
  execute = function(ctx, input) return "left out" end,
}
hygge.register_resource{uri = "weather://now", name = "now", read = function() return "rain" end}
hygge.register_prompt{name = "plan", render = function() return "plan it" end}
hygge.register_command{name = "hi", description = "Says hi", execute = function(ctx, input) return "hi" end}
"#;

const PROFILES: &str = r#"
[mcp]
listen = "127.0.0.1:0"
[mcp.profiles.web]
tools = ["web_*", "hello", "via"]
[mcp.profiles.plain]
without_sources = ["built*"]
[mcp.profiles.built]
sources = ["builtin"]
listing = "deferred"
[mcp.clients.named]
profile = "web"
[mcp.clients.codex]
profile = "web"
[mcp.clients.gemini-cli]
profile = "web"
"#;

/// Tools of the daemon that the profile `web` leaves out.
const LEFT_OUT: [&str; 4] = ["glob", "read", "bash", "secretly"];

fn daemon() -> TestDaemon {
    daemon_of(PROFILES, PLUGIN)
}

fn daemon_of(config: &str, plugin: &str) -> TestDaemon {
    let daemon = Setup::new().config(config).plugin("hello.lua", plugin).start();
    daemon.connect();
    daemon
}

fn names(result: &Value) -> BTreeSet<String> {
    let tools = result["tools"].as_array().unwrap_or_else(|| panic!("{result}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// All that clients with the profile `web` are listed.
fn of_web() -> BTreeSet<String> {
    set(&["hello", "tools_call", "tools_search", "via", "web_fetch", "web_search"])
}

fn initialize(client: &str, meta: Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
        "_meta": meta,
    })
}

/// The params of a stateless request of a client that takes tasks and shows forms.
fn stateless(client: &str, mut params: Value) -> Value {
    let can = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can;
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": client, "version": "1"});
    params
}

fn call(name: &str) -> Value {
    let arguments = match name {
        "glob" => json!({"pattern": "*"}),
        "read" => json!({"path": "x"}),
        "bash" => json!({"command": "true"}),
        _ => json!({}),
    };
    json!({"name": name, "arguments": arguments})
}

/// Every way in which a client of MCP could reach a tool that the profile `web` leaves out. `ask` sends a request and returns
/// its whole answer.
fn check_routes(mut ask: impl FnMut(&str, Value) -> Value) {
    let widened = [
        json!({}),
        json!({"toold/profile": "all"}),
        json!({"toold/profile": "built"}),
        json!({"toold/sources": {"only": ["builtin", "plugin"]}}),
        json!({"toold/listing": "deferred"}),
        json!({"toold/listing": "all", "toold/sources": {}}),
    ];
    for meta in widened {
        let mut request = |method: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            ask(method, params)
        };
        let listed = names(&request("tools/list", json!({}))["result"]);
        assert!(listed.is_subset(&of_web()), "{meta}: {listed:?}");
        let found = request("tools/call", json!({"name": "tools_search", "arguments": {"query": "", "limit": 100}}));
        assert_eq!(found["result"]["isError"], json!(false), "{found}");
        let found = names(&found["result"]["structuredContent"]);
        assert!(found.is_subset(&of_web()), "{meta}: {found:?}");
        for name in LEFT_OUT {
            for params in [call(name), json!({"name": "tools_call", "arguments": call(name)})] {
                let answer = request("tools/call", params);
                let refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
                assert!(refused && answer.to_string().contains("no tool"), "{meta}: {answer}");
            }
        }
        for method in ["session.open", "tools.list", "tools.execute", "permissions.set_mode"] {
            assert!(request(method, call("glob")).get("error").is_some(), "{meta}: {method}");
        }
    }
}

#[test]
fn no_request_of_a_stream_gets_around_its_profile() {
    let daemon = daemon();
    // By `toolctl mcp --profile`, by a request that names it, and by the name of the client.
    for (client, meta) in [("any", json!({"toold/profile": "web"})), ("named", json!({}))] {
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("initialize", initialize(client, meta.clone()));
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(names(&wire.result("tools/list", json!({}))), of_web());
        assert_eq!(wire.result("tools/call", call("hello"))["content"][0]["text"], "hello");
        // A tool reaches no more than its caller.
        assert_eq!(wire.result("tools/call", call("via"))["isError"], true);
        check_routes(|method, params| wire.call(method, params));

        let mut wire = Wire::connect(&daemon.socket());
        let mut first = stateless(client, json!({"_meta": meta}));
        first["level"] = json!("info");
        // Whichever request comes first.
        wire.call("ping", first);
        check_routes(|method, params| wire.call(method, stateless(client, params)));
    }
    let mut everyday = Wire::connect(&daemon.socket());
    everyday.result("initialize", initialize("any", json!({})));
    let listed = names(&everyday.result("tools/list", json!({})));
    assert!(LEFT_OUT.iter().all(|name| listed.contains(*name)), "{listed:?}");
    assert_eq!(everyday.result("tools/call", call("via"))["isError"], json!(false));
}

#[test]
fn profiles_add_up() {
    let daemon = daemon();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("initialize", initialize("named", json!({"toold/profile": "plain"})));
    assert_eq!(names(&wire.result("tools/list", json!({}))), set(&["hello", "tools_call", "tools_search", "via"]));
    let mut params = json!({});
    params["_meta"]["toold/profile"] = json!("built");
    assert_eq!(names(&wire.result("tools/list", params)), set(&["tools_call", "tools_search"]));
    // It stays.
    assert_eq!(names(&wire.result("tools/list", json!({}))), set(&["tools_call", "tools_search"]));
}

#[test]
fn an_unknown_profile_is_refused_with_a_suggestion() {
    let daemon = daemon();
    for (profile, words) in [
        (json!("bilt"), "did you mean built?"),
        (json!("zzz"), "the profiles are all, without-files-and-shell, built, plain, web"),
        (json!(["web"]), "there is no profile"),
    ] {
        let mut wire = Wire::connect(&daemon.socket());
        let refused = wire.error("initialize", initialize("any", json!({"toold/profile": profile})));
        assert_eq!(refused["code"], -32602, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains(words), "{refused}");
        let mut wire = Wire::connect(&daemon.socket());
        let params = stateless("any", json!({"_meta": {"toold/profile": profile}}));
        assert!(wire.error("tools/list", params)["message"].as_str().unwrap().contains(words));
    }
}

#[test]
fn sources_choose_resources_and_prompts_too_and_a_profile_its_list() {
    let daemon = daemon();
    let client = |profile: &str| {
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("initialize", initialize("any", json!({"toold/profile": profile})));
        wire
    };
    let mut plain = client("plain");
    assert_eq!(plain.result("resources/list", json!({}))["resources"][0]["uri"], "weather://now");
    let prompts = plain.result("prompts/list", json!({}))["prompts"].clone();
    // Commands are prompts too.
    assert_eq!((&prompts[0]["name"], &prompts[1]["name"]), (&json!("hi"), &json!("plan")));
    let mut built = client("built");
    let listed = built.result("resources/list", json!({}))["resources"].to_string();
    assert!(!listed.contains("weather"), "{listed}");
    assert!(!built.result("prompts/list", json!({})).to_string().contains("plan"));
    assert_eq!(built.error("resources/read", json!({"uri": "weather://now"}))["code"], -32002);
    assert!(built.error("prompts/get", json!({"name": "plan"})).to_string().contains("no prompt plan"));
    let completing = json!({"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "a", "value": ""}});
    assert!(built.error("completion/complete", completing).to_string().contains("no prompt plan"));
    let short = names(&built.result("tools/list", json!({})));
    assert!(short.contains("read") && !short.contains("web_fetch"), "{short:?}");
}

#[test]
fn clients_with_tools_of_their_own_get_neither_files_nor_a_shell_and_plugins_still_work() {
    let daemon = daemon();
    let listed = |client: &str, profile: &str| {
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("initialize", initialize(client, json!({"toold/profile": profile})));
        (names(&wire.result("tools/list", json!({}))), wire)
    };
    let (all, _) = listed("any", "all");
    let (few, mut wire) = listed("any", "without-files-and-shell");
    let left_out: Vec<&String> = all.difference(&few).collect();
    let files_and_shell =
        ["apply_patch", "bash", "bash_output", "edit", "glob", "grep", "kill_shell", "list", "read", "write"];
    assert_eq!(left_out, files_and_shell);
    // Further tools of these agents.
    for (client, own, kept) in [
        ("claude-code", "web_search", "todo"),
        ("copilot", "question", "web_search"),
        ("cursor", "web_fetch", "web_search"),
        ("opencode", "web_fetch", "web_search"),
        ("qwen-code", "skill", "web_search"),
        ("Visual Studio Code", "web_fetch", "question"),
    ] {
        let (fewer, _) = listed(client, "without-files-and-shell");
        let leaves_out = !fewer.contains(own) && !fewer.contains("subagent");
        assert!(fewer.is_subset(&few) && leaves_out && fewer.contains(kept), "{client}: {fewer:?}");
    }
    assert_eq!(listed("claude-code", "all").0, all);
    // The name of the agent, and the ones that its client reports.
    let (web, _) = listed("named", "all");
    assert!(web.is_subset(&all) && web.len() < all.len());
    for client in ["codex", "codex-mcp-client", "gemini", "gemini-cli", "gemini-cli-mcp-client"] {
        assert_eq!(listed(client, "all").0, web, "{client}");
    }
    assert!(wire.call("tools/call", call("glob")).to_string().contains("no tool glob"));
    // It spares a model what it has twice; tools go on using it.
    assert_eq!(wire.result("tools/call", call("via"))["isError"], json!(false));
}

#[test]
fn a_profile_begins_in_its_mode_and_keeps_to_its_folders() {
    let setup = Setup::new().asking();
    let work = setup.path("work");
    let (inside, outside) = (work.join("inside"), work.join("outside"));
    let config = format!(
        "[workspaces]\nallow = [{work:?}]\n[mcp.profiles.looker]\nmode = \"plan\"\nworkspaces = [{inside:?}]\n\
         [[permission.rules]]\ncategory = \"file.write\"\npattern = \"**\"\naction = \"allow\"\n"
    );
    let daemon = setup.config(&config).file("inside/x", "1").file("outside/x", "2").start();
    let client = |meta: Value| {
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("initialize", initialize("any", meta));
        wire
    };
    let mut looker = client(json!({"toold/profile": "looker", "toold/default-cwd": inside}));
    assert_eq!(looker.result("tools/call", call("read"))["isError"], json!(false));
    let write = json!({"name": "write", "arguments": {"path": "new", "content": "x"}});
    let refused = looker.result("tools/call", write.clone());
    assert!(refused.to_string().contains("plan"), "{refused}");
    let mut elsewhere = client(json!({"toold/profile": "looker", "toold/default-cwd": outside}));
    let refused = elsewhere.result("tools/call", call("read"));
    assert!(refused.to_string().contains("see mcp.profiles.looker.workspaces"), "{refused}");
    let mut everyday = client(json!({"toold/default-cwd": outside}));
    assert_eq!(everyday.result("tools/call", call("read"))["isError"], json!(false));
    assert_eq!(everyday.result("tools/call", write)["isError"], json!(false));
}

/// `toolctl mcp` with these arguments.
struct BridgedClient {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next: u64,
}

impl BridgedClient {
    fn start(setup: &Setup, arguments: &[&str]) -> Self {
        let mut command = setup.command(toolctl());
        command.arg("mcp").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, lines: BufReader::new(output).lines(), next: 0 }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.input, "{message}").unwrap();
        loop {
            let answer: Value = serde_json::from_str(&self.lines.next().expect("an answer").unwrap()).unwrap();
            if answer["id"] == self.next && answer.get("method").is_none() {
                return answer;
            }
        }
    }
}

impl Drop for BridgedClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_bridge_keeps_its_profile_also_when_the_daemon_is_replaced() {
    let setup = Setup::new().config(PROFILES).plugin("hello.lua", PLUGIN);
    let mut bridge = BridgedClient::start(&setup, &["--profile", "web"]);
    // What the client says of itself does not count.
    bridge.ask("initialize", initialize("any", json!({"toold/profile": "all"})));
    writeln!(bridge.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    assert_eq!(names(&bridge.ask("tools/list", json!({}))["result"]), of_web());
    check_routes(|method, params| bridge.ask(method, params));
    // This test is the bridge's agent, unless it is a person's frontend, too.
    let toolctl = |arguments: &[&str]| {
        let _person =
            Wire::connect(&setup.path("run/toold.sock")).result("session.open", json!({"cwd": setup.path("work")}));
        let output = setup.command(toolctl()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    toolctl(&["restart", "--program", toold().to_str().unwrap()]);
    assert_eq!(names(&bridge.ask("tools/list", json!({}))["result"]), of_web());
    check_routes(|method, params| bridge.ask(method, params));
    drop(bridge);
    toolctl(&["stop"]);
}

#[test]
fn a_bridge_with_a_profile_speaks_nothing_but_mcp() {
    let daemon = daemon();
    for first in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"cwd": daemon.work()}}),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"cwd": daemon.work()}}]),
    ] {
        let mut command = daemon.setup.command(toolctl());
        command.args(["mcp", "--profile", "web"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut bridge = command.spawn().unwrap();
        bridge.stdin.take().unwrap().write_all(format!("{first}\n").as_bytes()).unwrap();
        let output = bridge.wait_with_output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no request of MCP"), "{output:?}");
    }
}

/// A daemon on HTTP.
struct ServedProfiles {
    daemon: TestDaemon,
    address: String,
}

fn serve() -> ServedProfiles {
    serve_by(daemon())
}

fn serve_by(daemon: TestDaemon) -> ServedProfiles {
    let url = until("HTTP is served", || {
        daemon.connect().result("daemon.status", json!({}))["mcp_url"].as_str().map(str::to_owned)
    });
    ServedProfiles { address: url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned(), daemon }
}

fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl ServedProfiles {
    fn token(&self, profile: &str) -> String {
        succeeded(self.daemon.toolctl(&["mcp", "token", "--profile", profile]))
    }

    fn plain_token(&self) -> String {
        succeeded(self.daemon.toolctl(&["mcp", "token"]))
    }

    /// The status, the headers and the body of the answer.
    fn send(&self, method: &str, path: &str, token: &str, own: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        own.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let (headers, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = headers.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, headers.to_owned(), body.to_owned())
    }

    /// A stateless request of MCP.
    fn ask(&self, token: &str, own: &[(&str, &str)], method: &str, params: Value) -> Value {
        let params = stateless("any", params);
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", name));
        }
        headers.extend(own);
        let (status, _, body) = self.send("POST", "/mcp", token, &headers, &body.to_string());
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {status} {body}"))
    }

    /// A request of our own JSON-RPC.
    fn rpc(&self, token: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let (status, _, body) = self.send("POST", "/rpc", token, &[], &body);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {status} {body}"))
    }
}

#[test]
fn two_tokens_see_different_tools_at_once_whatever_they_ask_for() {
    let served = serve();
    let (web, plain) = (served.token("web"), served.token("plain"));
    assert_eq!(served.token("web"), web, "it is printed again");
    let listed = |token: &str, own: &[(&str, &str)]| names(&served.ask(token, own, "tools/list", json!({}))["result"]);
    let of_plain = set(&["hello", "secretly", "tools_call", "tools_search", "via"]);
    assert_eq!((listed(&web, &[]), listed(&plain, &[])), (of_web(), of_plain.clone()));
    assert_eq!(listed(&web, &[("Toold-Profile", "plain")]), set(&["hello", "tools_call", "tools_search", "via"]));
    for own in [
        ("Toold-Profile", "all"),
        ("Toold-Sources", "builtin, plugin"),
        ("Toold-Listing", "all"),
        ("Toold-Listing", "deferred"),
    ] {
        assert!(listed(&web, &[own]).is_subset(&of_web()), "{own:?}");
        assert!(listed(&plain, &[own]).is_subset(&of_plain), "{own:?}");
        for name in LEFT_OUT {
            let refused = served.ask(&web, &[own], "tools/call", call(name));
            assert!(refused.to_string().contains("no tool"), "{own:?}: {refused}");
        }
    }
    check_routes(|method, params| served.ask(&web, &[], method, params));
    assert_eq!(served.ask(&plain, &[], "tools/call", call("secretly"))["result"]["content"][0]["text"], "left out");
    assert!(listed(&served.plain_token(), &[]).contains("bash"), "the plain token is as before");
    assert_eq!(served.send("GET", "/metrics", &web, &[], "").0, 403);

    // The sessions of the older revisions are each token's own.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("any", json!({}))});
    let (status, headers, _) = served.send("POST", "/mcp", &plain, &[], &body.to_string());
    assert_eq!(status, 200);
    let id = headers.lines().find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    let id = id.expect("the answer names the session");
    let own = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).to_string();
    assert_eq!(served.send("POST", "/mcp", &web, &own, &list).0, 404);
    assert_eq!(served.send("DELETE", "/mcp", &web, &own, "").0, 404);
    let (status, _, answer) = served.send("POST", "/mcp", &plain, &own, &list);
    assert!(status == 200 && answer.contains("secretly") && !answer.contains("\"bash\""), "{status} {answer}");
}

#[test]
fn the_token_of_a_profile_is_held_to_it_in_json_rpc_too() {
    let served = serve();
    let (web, built) = (served.token("web"), served.token("built"));
    let tools: BTreeSet<String> = names(&served.rpc(&web, "tools.list", json!({}))["result"]);
    assert_eq!(tools, set(&["hello", "via", "web_fetch", "web_search"]));
    let filter = json!({"tools": {"enable": ["*"], "sources": ["builtin"]}, "session_id": "s-wide", "cwd": "/"});
    assert!(served.rpc(&web, "session.open", filter).get("result").is_some());
    for session in [json!(null), json!("s-wide")] {
        for name in LEFT_OUT {
            let mut params = call(name);
            params["session_id"] = session.clone();
            for method in ["tools.execute", "tools.schema"] {
                let refused = served.rpc(&web, method, params.clone());
                assert_eq!(refused["error"]["data"]["kind"], "unknown_tool", "{method}: {refused}");
            }
            let inner = json!({"name": "tools_call", "arguments": call(name), "session_id": session});
            assert_eq!(served.rpc(&web, "tools.execute", inner)["error"]["data"]["kind"], "unknown_tool");
        }
        let found = served.rpc(&web, "tools.search", json!({"query": "", "limit": 100, "session_id": session}));
        assert!(names(&found["result"]).is_subset(&of_web()), "{found}");
    }
    // A slash command counts as a tool of its name.
    assert_eq!(served.rpc(&web, "commands.list", json!({}))["result"]["commands"], json!([]));
    assert!(served.rpc(&web, "commands.run", json!({"name": "hi", "input": ""})).get("error").is_some());
    assert_eq!(served.rpc(&served.plain_token(), "commands.list", json!({}))["result"]["commands"][0]["name"], "hi");
    // Tokens of different profiles do not share their sessions, and the list is the profile's.
    for token in [&built, &served.plain_token()] {
        let joined = served.rpc(token, "session.open", json!({"session_id": "s-wide"}));
        assert_eq!(joined["error"]["data"]["kind"], "unknown_session", "{joined}");
        assert!(!served.rpc(token, "session.list", json!({})).to_string().contains("s-wide"));
    }
    assert!(served.rpc(&web, "session.list", json!({})).to_string().contains("s-wide"));
    let short = names(&served.rpc(&built, "tools.list", json!({}))["result"]);
    assert!(short.contains("read") && !short.contains("web_fetch"), "{short:?}");

    // The same token on a WebSocket, in both protocols.
    let mut socket = served.websocket(&web);
    let listed = socket.ask("tools.list", json!({}));
    assert_eq!(names(&listed["result"]), set(&["hello", "via", "web_fetch", "web_search"]));
    let mut socket = served.websocket(&web);
    socket.ask("initialize", initialize("any", json!({"toold/profile": "all"})));
    check_routes(|method, params| socket.ask(method, params));
}

#[test]
fn tokens_share_neither_tasks_nor_requests_that_wait_for_an_answer() {
    let plugin = r#"
hygge.register_tool{
  name = "job", description = "Is a task", permission = false, annotations = {task = "required"},
  execute = function() return "done" end,
}
hygge.register_tool{
  name = "ask", description = "Asks", permission = false,
  execute = function(ctx)
    local schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}}
    local answer = ctx.elicit{key = "who", message = "Who?", schema = schema}
    return "hello " .. answer.content.name
  end,
}
"#;
    let config = "[mcp]\nlisten = \"127.0.0.1:0\"\ntask_after_ms = 0\n[mcp.profiles.a]\n[mcp.profiles.b]\n";
    let served = serve_by(daemon_of(config, plugin));
    let (a, others) = (served.token("a"), [served.token("b"), served.plain_token()]);
    let task = served.ask(&a, &[], "tools/call", call("job"));
    let id = json!({"taskId": task["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{task}"))});
    let asked = served.ask(&a, &[], "tools/call", call("ask"));
    let mut answer = call("ask");
    answer["requestState"] = asked["result"]["requestState"].clone();
    answer["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "you"}}});
    assert!(answer["requestState"].is_string(), "{asked}");
    for other in &others {
        assert!(served.ask(other, &[], "tasks/get", id.clone()).to_string().contains("there is no task"));
        let refused = served.ask(other, &[], "tools/call", answer.clone());
        assert!(refused.to_string().contains("gave no such state for this request"), "{refused}");
    }
    assert!(served.ask(&a, &[], "tasks/get", id).get("result").is_some());
    assert!(served.ask(&a, &[], "tools/call", answer).to_string().contains("hello you"));
}

struct ProfileSocket {
    socket: tungstenite::WebSocket<TcpStream>,
    next: u64,
}

impl ServedProfiles {
    fn websocket(&self, token: &str) -> ProfileSocket {
        let mut request = format!("ws://{}/rpc", self.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        ProfileSocket { socket: tungstenite::client(request, stream).unwrap().0, next: 0 }
    }
}

impl ProfileSocket {
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let answer: Value = serde_json::from_str(&text).unwrap();
                if answer["id"] == self.next {
                    return answer;
                }
            }
        }
    }

    /// Reads until the daemon ends the connection.
    fn wait_for_end(mut self) {
        while let Ok(message) = self.socket.read() {
            assert!(!message.is_text(), "{message}");
        }
    }
}

#[test]
fn a_revoked_token_is_refused_and_its_connections_end() {
    let served = serve();
    let web = served.token("web");
    let (mut native, mut mcp) = (served.websocket(&web), served.websocket(&web));
    native.ask("tools.list", json!({}));
    mcp.ask("initialize", initialize("any", json!({})));
    succeeded(served.daemon.toolctl(&["mcp", "token", "--profile", "web", "--revoke"]));
    assert_eq!(served.send("POST", "/mcp", &web, &[], "{}").0, 401);
    native.wait_for_end();
    mcp.wait_for_end();
    assert!(!served.daemon.toolctl(&["mcp", "token", "--profile", "web", "--revoke"]).status.success());
    let again = served.token("web");
    assert_ne!(again, web);
    assert_eq!(served.send("POST", "/mcp", &web, &[], "{}").0, 401);
    assert_eq!(names(&served.ask(&again, &[], "tools/list", json!({}))["result"]), of_web());
    // No other file is taken for a token, and none that others can read.
    for other in ["../mcp-token.x", "admin.x", ".", "web", "web.", "plain.0123456789abcdef"] {
        assert_eq!(served.send("POST", "/mcp", other, &[], "{}").0, 401, "{other}");
    }
    let file = served.daemon.state().join("mcp-tokens/web");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    // No tool reveals it.
    let mut person = served.daemon.connect();
    person.result("permissions.grant", json!({"category": "file.read", "pattern": "/**", "scope": "always"}));
    let read = person.tool("read", json!({"path": file}));
    assert!(read["is_error"] == true && !read.to_string().contains(&again), "{read}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(served.send("POST", "/mcp", &again, &[], "{}").0, 401);
}

#[test]
fn the_token_of_a_profile_that_is_gone_is_refused_and_doctor_says_so() {
    let served = serve();
    let refused = served.daemon.toolctl(&["mcp", "token", "--profile", "wob"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("did you mean web?"), "{refused:?}");
    let web = served.token("web");
    let file = served.daemon.setup.path("config/toold/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let without = text.replace("profiles.web", "profiles.net").replace("profile = \"web\"", "profile = \"net\"");
    std::fs::write(&file, without).unwrap();
    succeeded(served.daemon.toolctl(&["config", "reload"]));
    let (status, _, words) = served.send("POST", "/mcp", &web, &[], "{}");
    assert!(status == 403 && words.contains("there is no profile web"), "{status} {words}");
    assert_eq!(served.send("POST", "/rpc", &web, &[], "{}").0, 403);
    let doctor = served.daemon.toolctl(&["mcp", "doctor"]);
    let printed = String::from_utf8(doctor.stdout).unwrap();
    assert!(!doctor.status.success() && printed.contains("bad   HTTP: token of profile web: there is no"), "{printed}");
}

#[test]
fn a_changed_profile_holds_from_the_next_request_on() {
    let daemon = daemon();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("initialize", initialize("any", json!({"toold/profile": "web"})));
    assert!(names(&wire.result("tools/list", json!({}))).contains("hello"));
    let file = daemon.setup.path("config/toold/config.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"hello\", ", "");
    std::fs::write(&file, text).unwrap();
    succeeded(daemon.toolctl(&["config", "reload"]));
    assert!(!names(&wire.result("tools/list", json!({}))).contains("hello"));
    assert!(wire.call("tools/call", call("hello")).to_string().contains("no tool hello"));
}

#[test]
fn mistakes_in_profiles_are_reported_with_their_line_and_a_suggestion() {
    let check = |config: &str| {
        let setup = Setup::new().config(config);
        let output = setup.command(toold()).args(["config", "check"]).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    for (config, words) in [
        (
            "[mcp.clients.a]\nprofile = \"wbe\"\n[mcp.profiles.web]\n",
            ":2: mcp.clients.a.profile: there is no profile wbe",
        ),
        ("[mcp.clients.a]\nprofile = \"without-file-and-shell\"\n", "did you mean without-files-and-shell?"),
        ("[mcp.profiles.web]\nmode = \"plam\"\n", ":2:8: mcp.profiles.web.mode: "),
        ("[mcp.profiles.web]\nmode = \"yolo\"\n", "expected `plan` or `default`"),
        ("[mcp.profiles.web]\ntolls = []\n", "did you mean tools?"),
        ("[mcp.profiles.web]\ntools = [\"[\"]\n", ":2: mcp.profiles.web.tools: "),
        ("[mcp.profiles.web]\nworkspaces = [\"src\"]\n", ":2: mcp.profiles.web.workspaces: "),
        ("[mcp.profiles.all]\n", "this profile is built in"),
        ("[mcp.profiles.\"a/b\"]\n", "not the name of a profile"),
    ] {
        let (is_fine, printed) = check(config);
        assert!(!is_fine && printed.contains(words), "{config}: {printed}");
    }
    let (is_fine, printed) =
        check("[mcp.profiles.web]\ntools = [\"web_*\", \"web_fech\"]\nsources = [\"bultin\", \"mcp\"]\n");
    assert!(is_fine, "{printed}");
    assert!(
        printed.contains(":2: warning: mcp.profiles.web.tools: there is no tool web_fech now: did you mean web_fetch?")
    );
    assert!(
        printed.contains(":3: warning: mcp.profiles.web.sources: there is no source bultin now: did you mean builtin?")
    );
    assert_eq!(printed.matches("warning").count(), 2, "{printed}");
}

#[test]
fn costs_are_those_of_the_profile() {
    let daemon = daemon();
    let costs = daemon.connect().result("tools.cost", json!({}));
    let of_client = costs["clients"].as_array().unwrap().iter().find(|client| client["client"] == "named").unwrap();
    assert_eq!(of_client["list"]["tools"], 4, "{costs}");
}
