//! Permissions of callers: every method for every kind of caller, and the limits of sessions and plugins.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;
use toold_tests::{Browser, Setup, TestDaemon, Wire};

const ALLOW_ALL: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

/// The methods that a kind of caller may call, by the table in the security document: every cell but `no` allows it.
fn table(column: &str) -> BTreeMap<String, bool> {
    let document = include_str!("../../../daemon/SECURITY.md");
    let mut rows = document.lines().skip_while(|line| !line.starts_with("| methods |"));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let heading = cells(rows.next().expect("the table is there"));
    let at =
        heading.iter().position(|cell| cell == column).unwrap_or_else(|| panic!("no column {column}: {heading:?}"));
    let mut all = BTreeMap::new();
    for row in rows.skip(1).take_while(|line| line.starts_with('|')) {
        let row = cells(row);
        for method in row[0].split(", ") {
            let method = method.trim_matches('`').to_owned();
            assert_eq!(all.insert(method.clone(), row[at] != "no"), None, "{method} stands there twice");
        }
    }
    all
}

#[test]
fn security_document_lists_every_method_and_decisions_of_people() {
    let daemon = TestDaemon::start();
    let served = methods(&mut daemon.connect());
    // Only the owner of a subscription can end it.
    let ends = ["unsubscribe", ".detach", ".unprovide"];
    let served: BTreeSet<String> =
        served.into_iter().filter(|method| !ends.iter().any(|end| method.ends_with(end))).collect();
    let not_for_page = not_for_page();
    for (column, expected) in [
        ("person's frontend", &[] as &[&str]),
        ("page", &not_for_page),
        ("agent", FOR_PERSONS),
        ("token `call`", FOR_PERSONS),
        ("token `admin`", FOR_LOCAL_PERSONS),
        ("what a tool started", FOR_PERSONS),
    ] {
        let table = table(column);
        assert_eq!(table.keys().cloned().collect::<BTreeSet<_>>(), served, "{column}");
        let refused: Vec<&str> = table.iter().filter(|(_, may)| !**may).map(|(method, _)| method.as_str()).collect();
        // The other tests of this file call each of these as each of them.
        assert_eq!(refused, expected, "{column}");
    }
}

/// Only for a person's frontend: neither an agent nor a tool-started process may call them. Sorted.
const FOR_PERSONS: &[&str] = &[
    "buffers.clear",
    "buffers.set",
    "daemon.config",
    "daemon.pause",
    "daemon.reload",
    "daemon.restart",
    "daemon.resume",
    "daemon.shutdown",
    "files.forget",
    "files.undo",
    "fleet.audit",
    "fleet.grant",
    "fleet.grants",
    "fleet.revoke",
    "mcp.login.begin",
    "mcp.login.finish",
    "mcp.logout",
    "mcp.registry.get",
    "mcp.registry.search",
    "mcp.restart",
    "mcp.test",
    "notify.test",
    "page.open",
    "page.revoke",
    "page.sessions",
    "permissions.code",
    "permissions.grant",
    "permissions.observe",
    "permissions.replay",
    "permissions.reply",
    "permissions.review",
    "permissions.revoke",
    "permissions.set_level",
    "permissions.set_mode",
    "permissions.suggest",
    "plugins.disable",
    "plugins.enable",
    "plugins.evaluate",
    "plugins.profile",
    "plugins.reload",
    "plugins.trust",
    "questions.reply",
    "questions.subscribe",
    "remotes.reconnect",
    "secrets.give_back",
    "secrets.list",
    "secrets.remove",
    "secrets.set",
    "secrets.unlock",
    "session.share",
    "shells.kill",
    "tools.provide",
    "workspaces.allow",
    "workspaces.forget",
    "workspaces.list",
];

/// Only for a person's frontend on this machine, so not for the token of administrators either. Sorted.
const FOR_LOCAL_PERSONS: &[&str] = &["page.open", "page.revoke", "page.sessions", "secrets.give_back"];

/// The methods for persons that the page may call. Sorted.
const PAGE_DECIDES: &[&str] = &[
    "daemon.pause",
    "daemon.resume",
    "files.forget",
    "files.undo",
    "fleet.grant",
    "fleet.grants",
    "fleet.revoke",
    "mcp.login.begin",
    "mcp.login.finish",
    "mcp.logout",
    "mcp.restart",
    "mcp.test",
    "permissions.code",
    "permissions.grant",
    "permissions.observe",
    "permissions.replay",
    "permissions.reply",
    "permissions.review",
    "permissions.revoke",
    "permissions.set_level",
    "permissions.set_mode",
    "permissions.suggest",
    "plugins.disable",
    "plugins.enable",
    "plugins.reload",
    "questions.reply",
    "questions.subscribe",
    "remotes.reconnect",
    "shells.kill",
];

/// The methods for everybody that the page may not call. Sorted.
const FOR_PROGRAMS: &[&str] = &[
    "hooks.run",
    "permissions.confine",
    "permissions.confirm",
    "permissions.done",
    "permissions.request",
    "shells.resize",
    "shells.write",
    "tools.provide_progress",
    "tools.provide_result",
];

/// What the page may not call. Sorted.
fn not_for_page() -> Vec<&'static str> {
    let of_persons = FOR_PERSONS.iter().filter(|method| !PAGE_DECIDES.contains(method));
    let mut all: Vec<&str> = of_persons.chain(FOR_PROGRAMS).copied().collect();
    all.sort_unstable();
    all
}

/// Parameters that fit each of them, so that nothing but the caller is a reason to refuse.
fn params_of(method: &str) -> Value {
    match method {
        "buffers.clear" => json!({"path": "/x"}),
        "buffers.set" => json!({"path": "/x", "version": 1, "text": ""}),
        "files.forget" => json!({"path": "/none"}),
        "mcp.registry.search" => json!({"query": "x"}),
        "mcp.registry.get" | "mcp.restart" | "mcp.test" | "mcp.logout" | "remotes.reconnect" | "plugins.disable"
        | "plugins.enable" | "plugins.profile" => {
            json!({"name": "none"})
        }
        "permissions.grant" => json!({"category": "shell", "pattern": "**", "scope": "always"}),
        "permissions.reply" | "questions.reply" => json!({"request_id": "none", "action": "allow"}),
        "fleet.grant" => json!({"action": "allow", "category": "shell", "pattern": "ls"}),
        "fleet.revoke" | "permissions.revoke" => json!({"id": "none"}),
        "permissions.set_mode" => json!({"mode": "yolo"}),
        "permissions.set_level" => json!({"level": "develop"}),
        "permissions.observe" => json!({"on": true}),
        "permissions.replay" => json!({"since": "1h"}),
        "plugins.evaluate" => json!({"name": "none", "source": "1"}),
        "plugins.trust" => json!({"path": "/"}),
        "mcp.login.begin" => json!({"name": "none", "redirect_uri": "http://127.0.0.1:1/"}),
        "mcp.login.finish" => json!({"redirected_to": "http://127.0.0.1:1/?state=none"}),
        "secrets.remove" | "secrets.give_back" => json!({"name": "NONE"}),
        "secrets.set" => json!({"name": "NONE", "value": "a value"}),
        "secrets.unlock" => json!({"passphrase": "a passphrase"}),
        "shells.kill" => json!({"shell_id": "none"}),
        "tools.provide" => json!({"tools": []}),
        "workspaces.allow" | "workspaces.forget" => json!({"path": "/"}),
        _ => json!({}),
    }
}

fn methods(wire: &mut Wire) -> BTreeSet<String> {
    let document = wire.result("rpc.discover", json!({}));
    let methods = document["methods"].as_array().unwrap().iter();
    methods.map(|method| method["name"].as_str().unwrap().to_owned()).collect()
}

fn agent(daemon: &TestDaemon) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    wire
}

#[test]
fn an_agent_may_do_nothing_that_is_a_persons() {
    let daemon = TestDaemon::start();
    let mut wire = agent(&daemon);
    let served = methods(&mut wire);
    for method in FOR_PERSONS {
        assert!(served.contains(*method), "there is no {method} any more");
        let error = wire.error(method, params_of(method));
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32002), &json!("permission_denied")), "{method}");
    }
    // Agents may call every method that is not in this list, new ones included.
    let skipped = ["rpc.discover", "session.open", "session.close", "tools.execute"];
    for method in served.iter().filter(|method| !FOR_PERSONS.contains(&method.as_str())) {
        if skipped.contains(&method.as_str()) || method.ends_with("subscribe") {
            continue;
        }
        let answer = wire.call(method, json!({}));
        assert_ne!(answer["error"]["code"], -32002, "{method} is refused to agents: add it to the list");
    }
}

#[test]
fn a_person_is_refused_nothing() {
    // Nothing outside of this machine is asked.
    let daemon = Setup::new().config("[mcp]\nregistry = \"http://127.0.0.1:9\"\n").start();
    let mut wire = daemon.connect();
    for method in
        FOR_PERSONS.iter().filter(|method| !["daemon.restart", "daemon.shutdown", "tools.provide"].contains(method))
    {
        let answer = wire.call(method, params_of(method));
        assert_ne!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
}

#[test]
fn a_page_may_call_what_the_table_says_and_no_more() {
    let daemon = Setup::new().config("[mcp]\nregistry = \"http://127.0.0.1:9\"\n").start();
    let served = methods(&mut daemon.connect());
    let mut page = Browser::signed_in(&daemon).connect();
    page.result("session.open", json!({"cwd": daemon.work()}));
    let refused = not_for_page();
    for method in &served {
        let answer = page.call(method, params_of(method));
        match refused.contains(&method.as_str()) {
            true => assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}"),
            false => assert_ne!(answer["error"]["code"], -32002, "{method}: {answer}"),
        }
    }
    assert_eq!(daemon.connect().result("daemon.status", json!({}))["pid"], daemon.pid());
}

#[test]
fn tool_started_process_may_do_nothing_reserved_to_people() {
    let script = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw")
for method, params in json.load(open("methods.json")):
    f.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"); f.flush()
    print(method, json.loads(f.readline()).get("error", {}).get("code"))
"#;
    let asked: Vec<Value> = FOR_PERSONS.iter().map(|method| json!([method, params_of(method)])).collect();
    let daemon = Setup::new()
        .config(ALLOW_ALL)
        .file("try.py", script)
        .file("methods.json", serde_json::to_vec(&asked).unwrap())
        .start();
    let mut wire = daemon.connect();
    let result = wire.tool("bash", json!({"command": format!("python3 try.py {}", daemon.socket().display())}));
    let text = result["content"][0]["text"].as_str().unwrap();
    for method in FOR_PERSONS {
        assert!(text.contains(&format!("{method} -32002")), "{method}: {text}");
    }
}

#[test]
fn session_ids_cannot_be_guessed() {
    let daemon = TestDaemon::start();
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        let mut wire = Wire::connect(&daemon.socket());
        let id = wire.result("session.open", json!({"cwd": daemon.work()}))["session_id"].as_str().unwrap().to_owned();
        // 128 bits are 32 hexadecimal digits.
        let digits = id.trim_start_matches("s-");
        assert!(digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
        assert!(ids.insert(id));
    }
}

#[test]
fn a_calls_folder_lies_within_its_sessions() {
    let daemon = Setup::new().file("p/deep/x", "").file("root/x", "").file("other/x", "").start();
    let work = daemon.work();
    std::os::unix::fs::symlink(work.join("other"), work.join("p/out")).unwrap();
    let mut wire = Wire::connect(&daemon.socket());
    wire.result("session.open", json!({"cwd": work.join("p"), "roots": [work.join("root")]}));
    let mut listed = |cwd: &str| wire.call("tools.execute", json!({"name": "list", "arguments": {}, "cwd": cwd}));
    let root = work.join("root").display().to_string();
    for inside in ["deep", ".", root.as_str()] {
        assert_eq!(listed(inside)["result"]["is_error"], false, "{inside}");
    }
    for outside in ["..", "out", "/", "../other"] {
        assert_eq!(listed(outside)["error"]["code"], -32602, "{outside}");
    }
}

#[test]
fn the_root_and_the_home_folder_are_not_read_without_being_asked() {
    let daemon = TestDaemon::start();
    let home = daemon.setup.path("home");
    std::fs::create_dir(home.join("project")).unwrap();
    for (name, below, verdict) in
        [("/", "etc/hostname", "ask"), ("home", "notes.txt", "ask"), ("home/project", "a.rs", "allow")]
    {
        let cwd = if name == "/" { "/".into() } else { daemon.setup.path(name) };
        let mut wire = Wire::connect(&daemon.socket());
        wire.result("session.open", json!({"cwd": cwd}));
        let target = cwd.join(below);
        let checked = wire.result("permissions.check", json!({"category": "file.read", "target": target}));
        assert_eq!(checked["verdict"], verdict, "{}", target.display());
    }
}

#[test]
fn grants_of_people_and_plugins_are_separate() {
    let plugin = "hygge.register_tool{name = 'runs', execute = function(ctx, input) \
                  return hygge.call_tool('bash', {command = [[sh -c 'echo spent$((1))']]}) end}\n";
    let daemon = Setup::new().plugin("spender.lua", plugin).start();
    let mut wire = daemon.connect();
    let grant = |chain: &[&str]| json!({"category": "shell", "pattern": "sh *", "scope": "always", "chain": chain});
    let plain = wire.result("permissions.grant", grant(&[]));
    assert_eq!(wire.tool("bash", json!({"command": "sh -c 'echo spent$((1))'"}))["is_error"], false);
    let refused = wire.tool("runs", json!({}));
    assert!(refused.to_string().contains("--chain spender"), "{refused}");
    wire.result("permissions.revoke", json!({"id": plain["id"]}));
    wire.result("permissions.grant", grant(&["spender"]));
    assert!(wire.tool("runs", json!({})).to_string().contains("spent"));
    assert_eq!(wire.tool("bash", json!({"command": "sh -c 'echo spent$((1))'"}))["is_error"], true);
}

#[test]
fn plan_mode_judges_needs_and_ignores_claims_of_plugins() {
    let plugin = "hygge.register_tool{name = 'harmless', annotations = {read_only = true}, permission = false, \
                  execute = function() hygge.fs.write('made', 'x') return 'done' end}\n\
                  hygge.register_tool{name = 'reads', execute = function() return hygge.fs.read('a.txt') end}\n";
    let daemon = Setup::new().plugin("p.lua", plugin).file("a.txt", "text").start();
    let mut wire = daemon.connect();
    wire.result("permissions.set_mode", json!({"mode": "plan"}));
    wire.tool("harmless", json!({}));
    assert!(!daemon.work().join("made").exists());
    assert_eq!(wire.tool("reads", json!({}))["content"][0]["text"], "text");
}

#[test]
fn an_agent_sees_the_asks_and_the_audit_log_of_its_own_session_only() {
    let daemon = TestDaemon::start();
    let mut person = daemon.connect();
    let mut other = daemon.connect();
    other.tool("list", json!({}));
    let mut wire = agent(&daemon);
    wire.tool("list", json!({}));
    let rows = wire.result("audit.query", json!({}));
    assert_eq!(rows["entries"].as_array().unwrap().len(), 1, "{rows}");
    let theirs = other.result("session.open", json!({"cwd": daemon.work()}))["session_id"].take();
    assert_eq!(wire.error("audit.query", json!({"session_id": theirs}))["code"], -32004);
    assert_eq!(person.result("audit.query", json!({}))["entries"].as_array().unwrap().len(), 2);
}

#[test]
fn secrets_are_redacted_from_stored_data() {
    let daemon = Setup::new().config(ALLOW_ALL).start();
    let mut wire = daemon.connect();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    wire.tool("bash", json!({"command": format!("echo {secret}")}));
    let audit = wire.result("audit.query", json!({}));
    assert!(audit.to_string().contains("echo") && !audit.to_string().contains(secret), "{audit}");
}

#[test]
fn an_outcome_counts_only_from_the_connection_that_got_the_invocation() {
    let daemon = TestDaemon::start();
    let mut lender = daemon.connect();
    lender.result(
        "tools.provide",
        json!({"tools": [{"name": "lent", "description": "d", "input_schema": {"type": "object"}}]}),
    );
    let (mut caller, mut thief) = (daemon.connect(), daemon.connect());
    caller.result("permissions.grant", json!({"category": "plugin", "pattern": "lent", "scope": "always"}));
    let id = caller.request("tools.execute", json!({"name": "lent"}));
    let invocation = lender.notification("tools.invocation")["result"]["invocation_id"].take();
    let answer = |result: &str| json!({"invocation_id": invocation, "result": result});
    assert_eq!(thief.error("tools.provide_result", answer("stolen"))["code"], -32004);
    lender.result("tools.provide_result", answer("mine"));
    assert_eq!(caller.answer(id)["result"]["content"][0]["text"], "mine");
}

/// A client with a token, on a WebSocket.
struct TokenClient(tungstenite::WebSocket<std::net::TcpStream>);

impl TokenClient {
    fn connect(daemon: &TestDaemon, file: &str) -> Self {
        let url = toold_tests::until("HTTP is served", || {
            daemon.connect().result("daemon.status", json!({}))["rpc_url"].as_str().map(str::to_owned)
        });
        let token = std::fs::read_to_string(daemon.state().join(file)).unwrap();
        let address = url.strip_prefix("ws://").unwrap().split('/').next().unwrap();
        let stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(toold_tests::PATIENCE)).unwrap();
        let mut request = tungstenite::client::IntoClientRequest::into_client_request(url.as_str()).unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Self(tungstenite::client(request, stream).unwrap().0)
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.0.send(tungstenite::Message::text(request.to_string())).unwrap();
        loop {
            if let tungstenite::Message::Text(text) = self.0.read().unwrap() {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["id"] == method {
                    return message;
                }
            }
        }
    }
}

fn with_tokens() -> TestDaemon {
    let setup = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n");
    let admin = setup.path("state/toold/admin-token");
    std::fs::create_dir_all(admin.parent().unwrap()).unwrap();
    std::fs::write(&admin, "0123456789abcdef0123456789abcdef").unwrap();
    for (path, mode) in [(admin.parent().unwrap(), 0o700), (admin.as_path(), 0o600)] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    setup.start()
}

#[test]
fn a_token_that_may_call_may_do_nothing_that_is_a_persons() {
    let daemon = with_tokens();
    let served = methods(&mut daemon.connect());
    let mut token = TokenClient::connect(&daemon, "mcp-token");
    for method in FOR_PERSONS {
        let answer = token.call(method, params_of(method));
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    for method in served.iter().filter(|method| !FOR_PERSONS.contains(&method.as_str())) {
        let answer = token.call(method, json!({}));
        assert_ne!(answer["error"]["code"], -32002, "{method} is refused to tokens: {answer}");
    }
}

#[test]
fn a_token_for_administrators_is_refused_nothing() {
    let daemon = with_tokens();
    let mut token = TokenClient::connect(&daemon, "admin-token");
    for method in FOR_LOCAL_PERSONS {
        assert_eq!(token.call(method, params_of(method))["error"]["code"], -32002, "{method}");
    }
    let ends = ["daemon.shutdown", "daemon.restart"];
    for method in FOR_PERSONS.iter().filter(|method| ![&ends, FOR_LOCAL_PERSONS].concat().contains(method)) {
        let answer = token.call(method, params_of(method));
        assert_ne!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    // Once it says that it acts for a model, it decides nothing.
    token.call("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    assert_eq!(token.call("permissions.set_mode", json!({"mode": "yolo"}))["error"]["code"], -32002);
}

#[test]
fn sessions_of_a_calling_token_are_separate_from_those_of_people() {
    let daemon = with_tokens();
    let mut person = daemon.connect();
    let theirs = person.result("session.open", json!({"cwd": daemon.work(), "session_id": "theirs"}));
    let mut token = TokenClient::connect(&daemon, "mcp-token");
    for (method, params) in [
        ("session.open", json!({"session_id": theirs["session_id"]})),
        ("session.close", json!({"session_id": theirs["session_id"]})),
        ("tools.execute", json!({"name": "list", "session_id": theirs["session_id"]})),
    ] {
        let answer = token.call(method, params);
        assert_eq!(answer["error"]["code"], -32004, "{method}: {answer}");
    }
    let own = token.call("session.open", json!({"cwd": daemon.work()}))["result"]["session_id"].take();
    let seen = token.call("session.list", json!({}))["result"]["sessions"].take();
    let seen: Vec<&Value> = seen.as_array().unwrap().iter().map(|session| &session["session_id"]).collect();
    assert_eq!(seen, [&own]);
    // A person sees the session and can narrow it.
    person.result("permissions.set_mode", json!({"mode": "plan", "session_id": own}));
    let mut admin = TokenClient::connect(&daemon, "admin-token");
    assert!(admin.call("session.list", json!({}))["result"]["sessions"].to_string().contains("theirs"));
}

#[test]
fn a_token_that_may_call_comes_back_to_no_session_of_an_earlier_daemon() {
    let mut daemon = with_tokens();
    daemon.connect().result("session.open", json!({"cwd": daemon.work(), "session_id": "before"}));
    daemon.restart("TERM");
    let mut token = TokenClient::connect(&daemon, "mcp-token");
    let answer = token.call("session.open", json!({"cwd": daemon.work(), "session_id": "before"}));
    assert_eq!(answer["error"]["code"], -32004, "{answer}");
    daemon.connect().result("session.open", json!({"session_id": "before"}));
}

#[test]
fn an_agent_hears_of_the_events_of_its_own_session_only() {
    let daemon = TestDaemon::start();
    let (mut person, mut wire, mut other) = (daemon.connect(), agent(&daemon), daemon.connect());
    for wire in [&mut person, &mut wire] {
        wire.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    }
    other.tool("list", json!({}));
    let theirs = person.notification("events.event")["result"]["session_id"].take();
    wire.tool("list", json!({}));
    let first = wire.notification("events.event")["result"]["session_id"].take();
    assert_ne!(first, theirs);
}
