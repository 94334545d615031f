//! MCP on Streamable HTTP: authentication, and clients that misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};
use toold_tests::{PATIENCE, Setup, TestDaemon, toold, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) return "hello" end,
}
hygge.register_tool{
  name = "forever", description = "Waits", permission = false,
  execute = function(ctx, input) ctx.progress("waiting") hygge.sleep("60s") return "never" end,
}
hygge.register_tool{
  name = "when_told", description = "Waits for a file", permission = false,
  execute = function(ctx, input)
    while not hygge.fs.exists(input.file) do hygge.sleep("10ms") end
    return "at last"
  end,
}
"#;

struct McpHttpDaemon {
    daemon: TestDaemon,
    address: String,
    token: String,
}

fn serve(more: &str) -> McpHttpDaemon {
    let config = format!("[mcp]\nlisten = \"127.0.0.1:0\"\n{more}");
    let daemon = Setup::new().config(&config).plugin("hello.lua", PLUGIN).start();
    let address = address(&daemon);
    let token = std::fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    McpHttpDaemon { daemon, address, token }
}

/// Where it serves HTTP.
fn address(daemon: &TestDaemon) -> String {
    let url = until("HTTP is served", || {
        daemon.connect().result("daemon.status", json!({}))["mcp_url"].as_str().map(str::to_owned)
    });
    url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned()
}

/// An answer: its status, its headers as they came, and its body.
struct McpHttpAnswer {
    status: u16,
    headers: String,
    body: String,
}

impl McpHttpAnswer {
    /// The messages of a stream of events.
    fn events(&self) -> Vec<Value> {
        let data =
            self.body.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl McpHttpDaemon {
    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends the head of a request with these header lines, which replace the usual ones of the same name.
    fn head(&self, method: &str, length: usize, own: &[(&str, &str)]) -> String {
        let token = format!("Bearer {}", self.token);
        let length = length.to_string();
        let usual = [
            ("Host", self.address.as_str()),
            ("Authorization", &token),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Content-Length", &length),
            ("Connection", "close"),
        ];
        let mut head = format!("{method} /mcp HTTP/1.1\r\n");
        let usual =
            usual.into_iter().filter(|(name, _)| own.iter().all(|(known, _)| !known.eq_ignore_ascii_case(name)));
        for (name, value) in usual.chain(own.iter().copied()).filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }

    fn send(&self, method: &str, body: &str, own: &[(&str, &str)]) -> McpHttpAnswer {
        let mut stream = self.stream();
        stream.write_all((self.head(method, body.len(), own) + body).as_bytes()).unwrap();
        read(stream)
    }

    /// A request of a stateless revision.
    fn request(&self, method: &str, params: Value, own: &[(&str, &str)]) -> McpHttpAnswer {
        let body = stateless(method, params).to_string();
        let name = serde_json::from_str::<Value>(&body).unwrap()["params"]["name"].as_str().map(str::to_owned);
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        headers.extend(own);
        self.send("POST", &body, &headers)
    }

    fn initialize(&self) -> McpHttpAnswer {
        self.initialize_as("2025-11-25")
    }

    fn initialize_as(&self, revision: &str) -> McpHttpAnswer {
        let params =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        self.send("POST", &body.to_string(), &[])
    }
}

fn stateless(method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "new", "version": "1"});
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn read(stream: TcpStream) -> McpHttpAnswer {
    let mut reader = BufReader::new(stream);
    let mut headers = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        headers.push_str(&line);
    }
    let status = headers.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    // A peer that refuses a body early may reset the connection after its answer.
    let _ = reader.read_to_end(&mut body);
    let mut body = String::from_utf8(body).unwrap();
    if headers.to_lowercase().contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    McpHttpAnswer { status, headers, body }
}

fn unchunked(text: &str) -> String {
    let (mut rest, mut whole) = (text, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    whole
}

#[test]
fn both_eras_are_served_with_the_token() {
    let served = serve("");
    let answer = served.request("tools/call", json!({"name": "hello", "arguments": {}}), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");

    let opened = served.initialize();
    assert_eq!(opened.status, 200, "{}", opened.body);
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let own = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(served.send("POST", &initialized, &own).status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hello"}}).to_string();
    let called = served.send("POST", &call, &own);
    assert!(called.status == 200 && called.body.contains("hello"), "{} {}", called.status, called.body);
    // RFC 9110: there is nothing more to say, and the session is gone.
    let ended = served.send("DELETE", "", &own);
    assert_eq!((ended.status, ended.body.as_str()), (204, ""));
    assert_eq!(served.send("DELETE", "", &own).status, 404);
    assert_eq!(served.send("POST", &call, &own).status, 404);
}

/// A session of an older revision on HTTP.
struct OldHttpSession<'s> {
    served: &'s McpHttpDaemon,
    id: String,
    cwd: String,
}

impl<'s> OldHttpSession<'s> {
    fn open(served: &'s McpHttpDaemon) -> Self {
        let id = served.initialize().header("mcp-session-id").unwrap().to_owned();
        let session = Self { served, id, cwd: served.daemon.work().display().to_string() };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(served.send("POST", &initialized, &session.own()).status, 202);
        session
    }

    fn own(&self) -> [(&str, &str); 3] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", "2025-11-25"), ("Toold-Cwd", &self.cwd)]
    }

    /// Calls a tool, and loses the connection after the first event; returns its id and the time to reconnect.
    fn call_and_lose_it(&self, name: &str, arguments: Value) -> (String, u64) {
        let params = json!({"name": name, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
        let mut stream = self.served.stream();
        stream.write_all((self.served.head("POST", call.len(), &self.own()) + &call).as_bytes()).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut value_of = |member: &str| loop {
            let line = lines.next().expect("the stream goes on").unwrap();
            if let Some(value) = line.strip_prefix(member) {
                break value.trim().to_owned();
            }
        };
        let (id, retry) = (value_of("id:"), value_of("retry:"));
        stream.shutdown(Shutdown::Both).unwrap();
        (id, retry.parse().unwrap())
    }

    /// The rest of a stream, up to its end.
    fn resume(&self, event: &str) -> String {
        let mut own = self.own().to_vec();
        own.push(("Last-Event-ID", event));
        own.push(("Accept", "text/event-stream"));
        self.served.send("GET", "", &own).body
    }
}

#[test]
fn the_answer_of_a_call_that_ended_while_its_client_was_away_is_there_when_it_returns() {
    let served = serve("");
    let (session, other) = (OldHttpSession::open(&served), OldHttpSession::open(&served));
    let file = served.daemon.work().join("told");
    let (event, retry) = session.call_and_lose_it("when_told", json!({"file": file}));
    assert!(retry > 0);
    std::fs::write(&file, "").unwrap();
    until("the call has ended", || {
        (served.daemon.connect().result("daemon.status", json!({}))["calls"]["in_flight"] == 0).then_some(())
    });
    for _ in 0..2 {
        let rest = session.resume(&event);
        assert!(rest.contains("at last"), "{rest}");
    }
    // Another session that guesses the id gets nothing.
    let rest = other.resume(&event);
    assert!(!rest.contains("at last"), "{rest}");
    assert_eq!(served.send("DELETE", "", &session.own()).status, 204);
    assert!(!session.resume(&event).contains("at last"));
}

#[test]
fn a_client_that_returns_during_its_call_hears_its_end() {
    let served = serve("");
    let session = OldHttpSession::open(&served);
    let file = served.daemon.work().join("told");
    let (event, _) = session.call_and_lose_it("when_told", json!({"file": file}));
    let rest = std::thread::scope(|scope| {
        let resumed = scope.spawn(|| session.resume(&event));
        std::fs::write(&file, "").unwrap();
        resumed.join().unwrap()
    });
    assert!(rest.contains("at last"), "{rest}");
}

/// The error code for each id; 0 for a result.
fn codes(answers: &[Value]) -> Vec<(Value, i64)> {
    let mut codes: Vec<_> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap_or(0))).collect();
    codes.sort_by_key(|(id, _)| id.to_string());
    codes
}

#[test]
fn a_batch_is_answered_in_the_revision_that_has_batches() {
    let served = serve("");
    let id = served.initialize_as("2025-03-26").header("mcp-session-id").unwrap().to_owned();
    let own = [("Mcp-Session-Id", id.as_str())];
    let post = |body: Value| served.send("POST", &body.to_string(), &own);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let only_notifications = post(json!([initialized]));
    assert_eq!((only_notifications.status, only_notifications.body.as_str()), (202, ""));
    let call =
        |id: &str, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}});
    let mixed = post(json!([
        call("a", "hello"),
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": []},
        {"jsonrpc": "2.0", "id": "c"},
        {"jsonrpc": "2.0", "id": "d", "method": "initialize",
         "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "id": "e", "method": "no/such"},
        5,
        call("f", "hello"),
        initialized,
    ]));
    assert_eq!((mixed.status, mixed.header("content-type")), (200, Some("text/event-stream")), "{}", mixed.body);
    let answers = mixed.events();
    let expected = [
        (json!("a"), 0),
        (json!("b"), -32602),
        (json!("c"), -32600),
        (json!("d"), -32600),
        (json!("e"), -32601),
        (json!("f"), 0),
        (Value::Null, -32600),
    ];
    assert_eq!(codes(&answers), expected, "{}", mixed.body);
    assert_eq!(answers.iter().filter(|answer| answer.to_string().contains("\"hello\"")).count(), 2, "{}", mixed.body);
    let many: Vec<Value> = (0..1_000).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).collect();
    assert_eq!(post(json!(many)).events().len(), 1_000);
    assert_eq!(codes(&[post(json!([])).json()]), [(Value::Null, -32600)]);

    // Later revisions have none, and nobody who sent one waits for an answer without an end.
    for revision in ["2025-06-18", "2025-11-25"] {
        let id = served.initialize_as(revision).header("mcp-session-id").unwrap().to_owned();
        let batch = json!([call("a", "hello"), {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": 5}]);
        let refused = served.send("POST", &batch.to_string(), &[("Mcp-Session-Id", &id)]);
        assert_eq!(refused.status, 400, "{}", refused.body);
        let answers: Vec<Value> = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(codes(&answers), [(json!("a"), -32600), (json!("b"), -32602)], "{}", refused.body);
    }
}

#[test]
fn a_second_request_with_the_id_of_one_that_waits_is_refused() {
    let served = serve("");
    let session = OldHttpSession::open(&served);
    let file = served.daemon.work().join("told");
    // It waits on.
    let (event, _) = session.call_and_lose_it("when_told", json!({"file": file}));
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "hello"}}).to_string();
    let twice = served.send("POST", &call, &session.own());
    assert_eq!(codes(&twice.events()), [(json!(5), -32600)], "{}", twice.body);
    assert!(twice.body.contains("the id 5 waits for its answer"), "{}", twice.body);
    std::fs::write(&file, "").unwrap();
    let first =
        until("the first one is answered", || Some(session.resume(&event)).filter(|rest| rest.contains("at last")));
    assert!(first.contains("\"id\":5"), "{first}");
    until("the id is free again", || served.send("POST", &call, &session.own()).body.contains("hello").then_some(()));
}

/// Stops the daemon that has replaced the test's own.
struct StoppedDaemon<'s>(&'s TestDaemon);

impl Drop for StoppedDaemon<'_> {
    fn drop(&mut self) {
        self.0.toolctl(&["stop"]);
    }
}

#[test]
fn sessions_go_on_when_the_daemon_is_replaced() {
    let mut served = serve("");
    let (id, ended) = (OldHttpSession::open(&served).id, OldHttpSession::open(&served).id);
    let call = |served: &McpHttpDaemon, id: &str, name: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": name}});
        served.send("POST", &body.to_string(), &[("Mcp-Session-Id", id), ("MCP-Protocol-Version", "2025-11-25")])
    };
    // The number of the stream in the ids of its events.
    let stream = |answer: &McpHttpAnswer| {
        let event = answer.body.lines().find_map(|line| line.strip_prefix("id:")).expect("an event with an id");
        event.split('/').nth(1).expect("a number").trim().parse::<u64>().unwrap()
    };
    let before = call(&served, &id, "hello");
    assert!(before.body.contains("hello"), "{}", before.body);

    let replaced = served.daemon.toolctl(&["restart", "--program", toold().to_str().unwrap()]);
    assert!(replaced.status.success(), "{replaced:?}");
    served.address = address(&served.daemon);
    let _stopped = StoppedDaemon(&served.daemon);
    let after = call(&served, &id, "hello");
    assert!(after.status == 200 && after.body.contains("hello"), "{} {}", after.status, after.body);
    assert!(stream(&after) > stream(&before), "the ids of events are used once");
    // The stream on which the server reports news, which the client resumes after the last event that it has seen.
    let mut news = served.stream();
    let own = [("Mcp-Session-Id", id.as_str()), ("Accept", "text/event-stream"), ("Last-Event-ID", "7")];
    news.write_all(served.head("GET", 0, &own).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(news).read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");

    let end = [("Mcp-Session-Id", ended.as_str())];
    assert_eq!(served.send("DELETE", "", &end).status, 204);
    assert_eq!(call(&served, &ended, "hello").status, 404);
    assert_eq!(call(&served, "never-there", "hello").status, 404);
}

#[test]
fn requests_without_the_token_are_refused() {
    let served = serve("");
    for wrong in ["", "Bearer", "Bearer ", "Bearer wrong", "Basic dG9rZW4=", &format!("Bearer {}x", served.token)] {
        let answer = served.request("tools/list", json!({}), &[("Authorization", wrong)]);
        assert_eq!(answer.status, 401, "{wrong:?}");
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
        assert!(!answer.body.contains(&served.token));
    }
    // The scheme's name is not case-sensitive (RFC 9110, section 11.1).
    let scheme = format!("bearer {}", served.token);
    assert_eq!(served.request("tools/list", json!({}), &[("Authorization", &scheme)]).status, 200);
}

#[test]
fn the_token_is_for_its_owner_alone() {
    let served = serve("");
    let file = std::fs::metadata(served.daemon.state().join("mcp-token")).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
    assert_eq!(file.uid(), std::fs::metadata("/proc/self").unwrap().uid());
    assert_eq!(served.token.len(), 64);
    // No tool reveals it, in any mode.
    let mut person = served.daemon.connect();
    let path = served.daemon.state().join("mcp-token");
    person.result("permissions.grant", json!({"category": "file.read", "pattern": "/**", "scope": "always"}));
    let refused = person.tool("read", json!({"path": path}));
    assert_eq!(refused["is_error"], true);
    assert!(!refused.to_string().contains(&served.token));
}

#[test]
fn another_user_of_the_machine_reads_no_token_and_reaches_no_socket() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let served = serve("");
    // Only root can become another user.
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    const NOBODY: u32 = 65_534;
    // Open all other folders of the setup to everybody, so that only the daemon can refuse.
    let (token, socket) = (served.daemon.state().join("mcp-token"), served.daemon.socket());
    let of_the_daemon = [served.daemon.state(), socket.parent().unwrap().to_owned()];
    for folder in token.ancestors().chain(socket.ancestors()).skip(1) {
        let is_ours = folder.starts_with(served.daemon.setup.path("")) && !of_the_daemon.contains(&folder.to_owned());
        if is_ours && folder.is_dir() {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let as_nobody = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/").stdin(Stdio::null());
        command.output().unwrap()
    };
    let read = as_nobody("cat", &[token.to_str().unwrap()]);
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
    let connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    let connected = as_nobody("python3", &["-c", connect, socket.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&connected.stderr).contains("PermissionError"), "{connected:?}");
    // Everybody can reach the port, but it is of no use without the token.
    let ask = "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], data=b'{}'), timeout=30)";
    let asked = as_nobody("python3", &["-c", ask, &format!("http://{}/mcp", served.address)]);
    assert!(String::from_utf8_lossy(&asked.stderr).contains("401"), "{asked:?}");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let served = serve("origins = [\"http://app.example:*\"]\nhosts = [\"tools.example\"]\n");
    let list = |own: &[(&str, &str)]| served.request("tools/list", json!({}), own).status;
    assert_eq!(list(&[("Host", "evil.example")]), 403);
    assert_eq!(list(&[("Host", "evil.example:80")]), 403);
    assert_eq!(list(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(list(&[("Origin", "null")]), 403);
    assert_eq!(list(&[("Origin", "http://localhost:1")]), 403);
    assert_eq!(list(&[("Origin", "http://app.example:81")]), 200);
    assert_eq!(list(&[("Host", "tools.example")]), 200);
    assert_eq!(list(&[("Host", "localhost")]), 200);
}

#[test]
fn with_no_origins_configured_every_web_page_is_refused() {
    let served = serve("");
    assert_eq!(served.request("tools/list", json!({}), &[("Origin", "http://127.0.0.1")]).status, 403);
}

#[test]
fn large_bodies_are_refused() {
    let served = serve("\n[limits]\nmessage_bytes = 100000\n");
    let params = json!({"name": "hello", "arguments": {"x": "x".repeat(200_000)}});
    let response = served.request("tools/call", params.clone(), &[]);
    assert_eq!(response.status, 413, "{}", response.body);
    // The same without a length in advance.
    let body = stateless("tools/call", params).to_string();
    let own = [("Content-Length", ""), ("Transfer-Encoding", "chunked"), ("MCP-Protocol-Version", "2026-07-28")];
    let mut stream = served.stream();
    stream.write_all(served.head("POST", 0, &own).as_bytes()).unwrap();
    // The daemon may answer and close before everything is sent.
    let _ = stream.write_all(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes());
    assert_eq!(read(stream).status, 413);
    assert_eq!(served.request("tools/list", json!({}), &[]).status, 200);
}

#[test]
fn slow_bodies_are_given_up() {
    let served = serve("body_timeout_ms = 2000\n");
    let mut stream = served.stream();
    stream.write_all((served.head("POST", 1_000, &[]) + "{").as_bytes()).unwrap();
    assert_eq!(read(stream).status, 408);
    // It does not wait for slow headers either.
    let mut stream = served.stream();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\n").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn headers_narrow_the_tools_to_some_sources_and_to_the_short_list() {
    let served = serve("");
    let names = |own: &[(&str, &str)]| -> Vec<String> {
        let listed = served.request("tools/list", json!({}), own).json();
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    // The tools that search for tools and call them have no source.
    assert_eq!(
        names(&[("Toold-Sources", "plugin, nobody")]),
        ["forever", "hello", "tools_call", "tools_search", "when_told"]
    );
    let short = names(&[("Toold-Listing", "deferred")]);
    assert!(short.contains(&"tools_call".to_owned()) && !short.contains(&"hello".to_owned()), "{short:?}");
    assert!(names(&[("Toold-Without-Sources", "plugin")]).contains(&"read".to_owned()));
    assert!(!names(&[("Toold-Without-Sources", "builtin, plugin")]).contains(&"hello".to_owned()));
    let hello = |own: &[(&str, &str)]| served.request("tools/call", json!({"name": "hello", "arguments": {}}), own);
    assert_eq!(hello(&[("Toold-Sources", "plugin")]).json()["result"]["content"][0]["text"], "hello");
    // A tool that is left out does not exist for the client.
    let left_out = hello(&[("Toold-Sources", "builtin")]).json();
    assert!(left_out.to_string().contains("no tool hello"), "{left_out}");
}

#[test]
fn sessions_have_an_upper_bound() {
    let served = serve("max_sessions = 3\n");
    let opened: Vec<McpHttpAnswer> = (0..3).map(|_| served.initialize()).collect();
    assert!(opened.iter().all(|answer| answer.status == 200));
    assert_eq!(served.initialize().status, 503);
    let session = opened[0].header("mcp-session-id").unwrap();
    assert_eq!(served.send("DELETE", "", &[("Mcp-Session-Id", session)]).status, 204);
    until("the place is free", || (served.initialize().status == 200).then_some(()));
}

#[test]
fn calls_of_a_disconnected_client_are_cancelled() {
    let served = serve("");
    let mut watcher = served.daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.started", "call.finished"]}));
    let body = stateless("tools/call", json!({"name": "forever", "arguments": {}})).to_string();
    let own = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "forever")];
    let mut stream = served.stream();
    stream.write_all((served.head("POST", body.len(), &own) + &body).as_bytes()).unwrap();
    assert_eq!(watcher.notification("events.event")["result"]["kind"], "call.started");
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    let finished = watcher.notification("events.event");
    assert_eq!(finished["result"]["outcome"], "cancelled", "{finished}");
}

#[test]
fn other_paths_and_methods_are_refused() {
    let served = serve("");
    assert_eq!(served.send("PUT", "{}", &[]).status, 405);
    let mut stream = served.stream();
    stream.write_all(served.head("POST", 0, &[]).replace("/mcp", "/other").as_bytes()).unwrap();
    assert_eq!(read(stream).status, 404);
}

#[test]
fn socket_is_served_when_the_http_address_cannot_be_bound() {
    let daemon = Setup::new().config("[mcp]\nlisten = \"0.0.0.0:0\"\n").start();
    let status = until("it is reported", || {
        let status = daemon.connect().result("daemon.status", json!({}));
        status.get("problems").is_some().then_some(status)
    });
    assert!(status["problems"][0].as_str().unwrap().contains("allow_remote"), "{status}");
    assert!(status.get("mcp_url").is_none());
}

#[test]
fn an_open_stream_does_not_keep_the_daemon_from_stopping() {
    let served = serve("");
    let body = stateless("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).to_string();
    let own = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")];
    let mut listening = served.stream();
    listening.write_all((served.head("POST", body.len(), &own) + &body).as_bytes()).unwrap();
    let mut first = BufReader::new(listening.try_clone().unwrap());
    let mut line = String::new();
    while !line.contains("acknowledged") {
        line.clear();
        assert!(first.read_line(&mut line).unwrap() > 0, "the stream ended");
    }
    let opened = served.initialize();
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut waiting = served.stream();
    let head = served.head("GET", 0, &[("Mcp-Session-Id", &session), ("Accept", "text/event-stream")]);
    waiting.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    waiting.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    served.daemon.stop();
    let mut rest = String::new();
    first.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"result\""), "the subscription has a proper end: {rest}");
}
