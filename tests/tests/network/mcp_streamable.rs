//! Mounted MCP servers on Streamable HTTP: every call of them ends with an answer or a reason, whatever they send. The server
//! of these tests is `mcp/http_stand_in.py`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// The server, which ends with the test.
struct HttpServer {
    program: Child,
    /// `127.0.0.1:PORT`
    host: String,
}

impl HttpServer {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/http_stand_in.py");
        let mut program = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut base = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Self { program, host: base.trim().strip_prefix("http://").unwrap().to_owned() }
    }

    /// A daemon that mounts it once for each of these behaviors, as `s0`, `s1` and so on. A call may take ten minutes: one
    /// that is not answered fails the test.
    fn mounted(&self, behaviors: &[&str]) -> TestDaemon {
        let mut config = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n".to_owned();
        for (n, behavior) in behaviors.iter().enumerate() {
            let url = format!("http://{}/{behavior}/mcp", self.host);
            config += &format!("[mcp.servers.s{n}]\nurl = \"{url}\"\ntimeout_ms = 600000\nstart_timeout_ms = 60000\n");
        }
        Setup::new().config(&config).start()
    }

    /// Opens the streams of `late`.
    fn open_streams(&self) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "POST /open HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[track_caller]
fn learned(wire: &mut Wire, tool: &str) {
    until(&format!("{tool} is listed"), || wire.call("tools.schema", json!({"name": tool})).get("result").map(|_| ()));
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_call_waits_for_the_stream_on_which_a_server_asks() {
    let server = HttpServer::start();
    let daemon = server.mounted(&["late"]);
    let mut wire = daemon.connect();
    until("the server runs", || {
        (wire.result("mcp.servers", json!({}))["servers"][0]["state"] == "running").then_some(())
    });
    let id = wire.request("tools.execute", json!({"name": "s0_t", "progress": true}));
    loop {
        let said = wire.notification("tools.progress")["text"].take();
        if said.as_str().is_some_and(|said| said.contains("opened the stream")) {
            break;
        }
    }
    server.open_streams();
    assert_eq!(text(&wire.answer(id)["result"]), "good");
}

#[test]
fn an_answer_belongs_to_the_request_that_was_posted() {
    let server = HttpServer::start();
    let mut behaviors = Vec::new();
    for status in [200, 400, 413, 500, 502] {
        for kind in ["null", "foreign", "none", "plain"] {
            behaviors.push(format!("{status}-{kind}"));
        }
    }
    behaviors.extend(["sse-foreign".to_owned(), "sse-text".to_owned()]);
    let behaviors: Vec<&str> = behaviors.iter().map(String::as_str).collect();
    let daemon = server.mounted(&behaviors);
    let mut wire = daemon.connect();
    for (n, behavior) in behaviors.iter().enumerate() {
        learned(&mut wire, &format!("s{n}_t"));
        let result = wire.tool(&format!("s{n}_t"), json!({}));
        // The server's status is all that is known of a body in JSON that is no message.
        let expected = match *behavior {
            "500-plain" => "500",
            "502-plain" => "502",
            _ => "the words of the server",
        };
        assert!(result["is_error"] == true && text(&result).contains(expected), "{behavior}: {result}");
    }
}

#[test]
fn good_answers_on_a_stream_need_no_id() {
    let server = HttpServer::start();
    let daemon = server.mounted(&["sse-good", "sse-bare"]);
    let mut wire = daemon.connect();
    for tool in ["s0_t", "s1_t"] {
        learned(&mut wire, tool);
        assert_eq!(text(&wire.tool(tool, json!({}))), "good");
    }
}

#[test]
fn a_session_that_a_server_has_forgotten_is_made_again_once() {
    let server = HttpServer::start();
    let daemon = server.mounted(&["forgetful"]);
    let mut wire = daemon.connect();
    learned(&mut wire, "s0_t");
    // It forgets each session after its first call.
    for _ in 0..3 {
        assert_eq!(text(&wire.tool("s0_t", json!({}))), "good");
    }
}

#[test]
fn redirects_within_an_origin_are_followed_and_others_name_where_they_lead() {
    let server = HttpServer::start();
    let daemon = server.mounted(&["to307", "to308", "away", "to302"]);
    let mut wire = daemon.connect();
    for tool in ["s0_t", "s1_t"] {
        learned(&mut wire, tool);
        assert_eq!(text(&wire.tool(tool, json!({}))), "good");
    }
    for (name, target) in [("s2", "redirects to http://localhost:"), ("s3", "/good/mcp (status 302)")] {
        let error = until(&format!("{name} has failed"), || {
            let servers = wire.result("mcp.servers", json!({}))["servers"].take();
            let failed = servers.as_array().unwrap().iter().find(|server| server["name"] == name);
            failed.and_then(|server| server["error"].as_str().map(str::to_owned))
        });
        assert!(error.contains(target) && !error.contains("secret"), "{error}");
    }
}
