//! Mounted MCP servers of the older transport, HTTP with SSE. The server of these tests is `mcp/sse_stand_in.py`; the
//! official SDK's own is tested by `.ci/mcp_client`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// The server, which ends with the test.
struct OlderServer {
    program: Child,
    /// `127.0.0.1:PORT`
    host: String,
}

impl OlderServer {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/sse_stand_in.py");
        let mut program = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut base = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Self { program, host: base.trim().strip_prefix("http://").unwrap().to_owned() }
    }

    /// A daemon that mounts it with this behavior.
    fn mounted(&self, behavior: &str) -> TestDaemon {
        let config = format!(
            "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n\
             [mcp.servers.s]\nurl = \"http://{}/{behavior}/sse\"\nheaders = {{ X-Token = \"mine\" }}\n\
             start_timeout_ms = 60000\n",
            self.host
        );
        Setup::new().config(&config).start()
    }

    fn seen(&self) -> Value {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET /seen HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// How often this request was made.
    fn count(&self, request: &str) -> usize {
        self.seen()["requests"].as_array().unwrap().iter().filter(|seen| *seen == request).count()
    }
}

impl Drop for OlderServer {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn only(wire: &mut Wire) -> Value {
    wire.result("mcp.servers", json!({}))["servers"][0].take()
}

#[track_caller]
fn running(wire: &mut Wire) -> Value {
    until("the server runs", || Some(only(wire)).filter(|server| server["state"] == "running"))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Waits until the server has failed for a reason with these words.
#[track_caller]
fn fails(server: &OlderServer, behavior: &str, words: &[&str]) {
    let daemon = server.mounted(behavior);
    let mut wire = daemon.connect();
    let error = until(&format!("{behavior} has failed"), || only(&mut wire)["error"].as_str().map(str::to_owned));
    for word in words {
        assert!(error.contains(word), "{behavior}: {error}");
    }
}

#[test]
fn an_older_server_is_found_out_once_and_serves_calls_progress_and_questions() {
    let server = OlderServer::start();
    let mut daemon = server.mounted("good");
    let mut wire = daemon.connect();
    assert_eq!(running(&mut wire)["protocol"], "2024-11-05");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "x"}))), "x");
    let id = wire.request("tools.execute", json!({"name": "s_steps", "progress": true}));
    for step in ["step 1", "step 2", "step 3"] {
        assert_eq!(wire.notification("tools.progress")["message"], step);
    }
    assert_eq!(text(&wire.answer(id)["result"]), "done");
    wire.result("questions.subscribe", json!({}));
    let id = wire.request("tools.execute", json!({"name": "s_ask"}));
    let asked = wire.notification("questions.event")["result"]["request"].take();
    assert_eq!(asked["question"], "MCP server s asks: Which color?");
    wire.result("questions.reply", json!({"request_id": asked["request_id"], "content": {"color": "red"}}));
    assert!(text(&wire.answer(id)["result"]).contains("red"));

    assert!(server.count("POST /good/sse") > 0);
    daemon.restart("TERM");
    let tried = server.count("POST /good/sse");
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "again"}))), "again");
    assert_eq!((server.count("GET /good/sse"), server.count("POST /good/sse")), (2, tried), "it is remembered");
    let tokens = server.seen()["tokens"].take();
    assert!(tokens.as_array().unwrap().iter().all(|token| token == "mine"), "{tokens}");
}

#[test]
fn a_cancelled_call_ends_and_the_older_server_hears_of_it() {
    let server = OlderServer::start();
    let daemon = server.mounted("good");
    let mut wire = daemon.connect();
    running(&mut wire);
    let id = wire.request("tools.execute", json!({"name": "s_hang", "call_id": "c", "progress": true}));
    wire.notification("tools.progress");
    wire.result("tools.cancel", json!({"call_id": "c"}));
    assert_eq!(wire.answer(id)["error"]["code"], -32800);
    until("the server heard of it", || {
        (server.seen()["cancelled"] == json!(["the caller cancelled the call"])).then_some(())
    });
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "on"}))), "on");
}

#[test]
fn a_stream_that_ends_is_a_lost_connection_and_the_next_call_opens_another() {
    let server = OlderServer::start();
    let daemon = server.mounted("good");
    let mut wire = daemon.connect();
    running(&mut wire);
    let cut = wire.tool("s_cut", json!({}));
    assert!(cut["is_error"] == true && text(&cut).contains("closed the connection"), "{cut}");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "back"}))), "back");
    assert_eq!(server.count("GET /good/sse"), 2);
    // A message that the server does not take is an error of its call alone.
    let refused = wire.tool("s_refused", json!({}));
    assert!(refused["is_error"] == true && text(&refused).contains("404"), "{refused}");
    assert_eq!(text(&wire.tool("s_echo", json!({"text": "still there"}))), "still there");
    assert_eq!(server.count("GET /good/sse"), 2);
}

#[test]
fn servers_that_only_look_like_older_ones_are_refused_with_the_reason() {
    let server = OlderServer::start();
    fails(&server, "foreign", &["405", "another place, http://localhost"]);
    assert_eq!(server.count("POST /good/messages"), 0, "the token goes to no other origin");
    fails(&server, "endless", &["405", "event stream broke"]);
    fails(&server, "unnamed", &["405", "does not begin with an endpoint"]);
    fails(&server, "ended", &["405", "ended at once"]);
    fails(&server, "none", &["405"]);
    fails(&server, "login", &["toolctl mcp login s"]);
}

#[test]
fn a_stream_with_nothing_in_it_is_not_waited_for_until_the_time_to_start_is_over() {
    fails(&OlderServer::start(), "silent", &["405"]);
}
