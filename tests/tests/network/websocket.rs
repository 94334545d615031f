//! Our own JSON-RPC over HTTP: authentication, WebSockets, and the limits of single requests.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, Request};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};
use toold_tests::{PATIENCE, Setup, TestDaemon, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "hello", description = "Says hello", permission = false,
  execute = function(ctx, input) ctx.progress("about to") return "hello" end,
}
hygge.register_tool{
  name = "forever", description = "Waits", permission = false,
  execute = function(ctx, input) ctx.progress("waiting") hygge.sleep(60000) return "never" end,
}
"#;

struct WebSocketDaemon {
    daemon: TestDaemon,
    address: String,
    token: String,
}

fn serve_in(setup: Setup) -> WebSocketDaemon {
    let daemon = setup.plugin("hello.lua", PLUGIN).start();
    let url = until("HTTP is served", || {
        daemon.connect().result("daemon.status", json!({}))["rpc_url"].as_str().map(str::to_owned)
    });
    let address = url.strip_prefix("ws://").unwrap().strip_suffix("/rpc").unwrap().to_owned();
    let token = std::fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    WebSocketDaemon { daemon, address, token }
}

fn serve(more: &str) -> WebSocketDaemon {
    serve_in(Setup::new().config(&format!("[mcp]\nlisten = \"127.0.0.1:0\"\n{more}")))
}

impl WebSocketDaemon {
    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Connects with these headers instead of the usual ones of the same name; an empty one is omitted.
    fn asking(&self, own: &[(&str, &str)]) -> Request<()> {
        let mut request = format!("ws://{}/rpc", self.address).into_client_request().unwrap();
        let token = format!("Bearer {}", self.token);
        for (name, value) in [("authorization", token.as_str())].iter().chain(own) {
            let name: HeaderName = name.parse().unwrap();
            match value.is_empty() {
                true => _ = request.headers_mut().remove(name),
                false => _ = request.headers_mut().insert(name, value.parse().unwrap()),
            }
        }
        request
    }

    fn open(&self, own: &[(&str, &str)]) -> Result<WebSocketClient, u16> {
        match tungstenite::client(self.asking(own), self.stream()) {
            Ok((socket, answer)) => {
                let protocol = answer.headers().get("sec-websocket-protocol").map(|p| p.to_str().unwrap().to_owned());
                Ok(WebSocketClient { socket, protocol, next_id: 1, set_aside: VecDeque::new() })
            }
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(refused))) => {
                Err(refused.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// With a session in the usual folder.
    fn client(&self) -> WebSocketClient {
        let mut client = self.open(&[]).unwrap();
        client.result("session.open", json!({"cwd": self.daemon.work(), "client": {"name": "socket"}}));
        client
    }

    /// One request by POST: the status and the body.
    fn post(&self, body: &str) -> (u16, String) {
        let mut stream = self.stream();
        let head = format!(
            "POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post_json(&self, body: &Value) -> Value {
        let (status, answer) = self.post(&body.to_string());
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }
}

struct WebSocketClient {
    socket: WebSocket<TcpStream>,
    protocol: Option<String>,
    next_id: u64,
    set_aside: VecDeque<Value>,
}

impl WebSocketClient {
    fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.socket.send(Message::text(request.to_string())).unwrap();
        id
    }

    fn next(&mut self) -> Value {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.set_aside.iter().position(&wanted) {
            return self.set_aside.remove(place).unwrap();
        }
        loop {
            let message = self.next();
            if wanted(&message) {
                return message;
            }
            self.set_aside.push_back(message);
        }
    }

    fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    fn notification(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)["params"].take()
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    fn error(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)["error"].take()
    }

    /// Reads to the end, and gives the messages and the code of the close frame.
    fn end(mut self) -> (Vec<Value>, Option<CloseCode>) {
        let (mut messages, mut code) = (Vec::new(), None);
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => messages.push(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => code = frame.map(|frame| frame.code),
                Ok(_) => {}
                Err(_) => return (messages, code),
            }
        }
    }
}

#[test]
fn only_those_with_the_token_get_in() {
    let served = serve("");
    assert_eq!(served.open(&[("authorization", "")]).err(), Some(401));
    assert_eq!(served.open(&[("authorization", "Bearer wrong")]).err(), Some(401));
    assert_eq!(served.open(&[("authorization", &format!("Basic {}", served.token))]).err(), Some(401));
    assert_eq!(served.open(&[("sec-websocket-version", "12")]).err(), Some(426));
    assert!(served.open(&[]).is_ok());
    // As web pages do, which cannot set headers.
    let offer = format!("toold, bearer.{}", served.token);
    let client = served.open(&[("authorization", ""), ("sec-websocket-protocol", &offer)]).unwrap();
    assert_eq!(client.protocol.as_deref(), Some("toold"));
    let offer = [("authorization", ""), ("sec-websocket-protocol", "toold, bearer.wrong")];
    assert_eq!(served.open(&offer).err(), Some(401));
}

#[test]
fn foreign_hosts_and_pages_are_refused() {
    let served = serve("origins = [\"http://app.example:*\"]\nhosts = [\"tools.example\"]\n");
    assert_eq!(served.open(&[("host", "evil.example")]).err(), Some(403));
    assert_eq!(served.open(&[("origin", "http://evil.example")]).err(), Some(403));
    assert_eq!(served.open(&[("origin", "null")]).err(), Some(403));
    assert!(served.open(&[("origin", "http://app.example:81")]).is_ok());
    assert!(served.open(&[("host", "tools.example")]).is_ok());
}

#[test]
fn a_socket_lists_calls_cancels_and_subscribes() {
    let served = serve("");
    let mut client = served.client();
    let tools = client.result("tools.list", json!({"names": ["hello"]}));
    assert_eq!(tools["tools"][0]["name"], "hello");

    let call = client.request("tools.execute", json!({"name": "hello", "progress": true}));
    let progress = client.notification("tools.progress");
    assert_eq!((progress["seq"].as_u64(), progress["text"].as_str()), (Some(0), Some("about to")));
    assert_eq!(client.answer(call)["result"]["content"][0]["text"], "hello");

    client.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    let call = client.request("tools.execute", json!({"name": "forever", "progress": true}));
    client.notification("tools.progress");
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}});
    client.socket.send(Message::text(cancel.to_string())).unwrap();
    assert_eq!(client.answer(call)["error"]["code"], -32800);
    let event = client.notification("events.event");
    assert_eq!((&event["result"]["kind"], &event["result"]["tool"]), (&json!("call.finished"), &json!("forever")));

    // A message may have line breaks, and a batch is one message.
    let batch = "[\n{\"jsonrpc\": \"2.0\", \"id\": \"a\",\n\"method\": \"daemon.ping\"},\n\
                 {\"jsonrpc\": \"2.0\", \"id\": \"b\", \"method\": \"daemon.ping\"}]";
    client.socket.send(Message::text(batch)).unwrap();
    assert_eq!(client.next().as_array().map(Vec::len), Some(2));
    client.socket.send(Message::text("no JSON")).unwrap();
    assert_eq!(client.next()["error"]["code"], -32700);
    assert_eq!(client.result("daemon.ping", json!({})), json!({}));
}

#[test]
fn calls_end_with_their_socket() {
    let served = serve("");
    let mut watcher = served.daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.finished"]}));
    for is_closed in [true, false] {
        let mut client = served.client();
        client.request("tools.execute", json!({"name": "forever", "progress": true}));
        client.notification("tools.progress");
        if is_closed {
            client.socket.close(None).unwrap();
            client.end();
        } else {
            drop(client);
        }
        let event = watcher.notification("events.event");
        assert_eq!(event["result"]["outcome"], "cancelled", "{event}");
    }
}

#[test]
fn invalid_messages_are_refused() {
    let served = serve("\n[limits]\nmessage_bytes = 100000\n");
    let mut client = served.client();
    let _ = client.socket.send(Message::text("x".repeat(200_000)));
    let (messages, code) = client.end();
    assert_eq!(messages[0]["error"]["data"]["kind"], "too_large", "{messages:?}");
    assert_eq!(code, Some(CloseCode::Size));

    let mut client = served.client();
    client.socket.send(Message::Binary(b"{}".as_slice().into())).unwrap();
    assert_eq!(client.end().1, Some(CloseCode::Unsupported));
}

#[test]
fn client_that_does_not_read_is_not_read_from() {
    let served = serve("");
    let mut client = served.client();
    // Large answers that come at once: what is buffered on the way holds a few, and the daemon does not keep the others.
    client.socket.get_ref().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    while sent < 20_000 {
        let request = json!({"jsonrpc": "2.0", "id": sent, "method": "rpc.discover"});
        if client.socket.send(Message::text(format!("{request}{}", " ".repeat(4_000)))).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 20_000, "it is read from for ever");
    let memory = || served.daemon.connect().result("daemon.status", json!({}))["memory_bytes"].as_u64().unwrap();
    assert!(memory() < 600 << 20, "{} bytes", memory());
    drop(client);
}

#[test]
fn a_token_does_not_decide_unless_it_is_an_administrators() {
    let served = serve("");
    let mut client = served.client();
    let refused = client.error("permissions.set_mode", json!({"mode": "yolo"}));
    assert_eq!(refused["code"], -32002, "{refused}");
    let refused = client.error("daemon.shutdown", json!({}));
    assert_eq!(refused["code"], -32002, "{refused}");

    let setup = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n");
    std::fs::create_dir_all(setup.path("state/toold")).unwrap();
    let file = setup.path("state/toold/admin-token");
    std::fs::write(&file, "0123456789abcdef0123456789abcdef").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let served = serve_in(setup);
    let mut admin = served.open(&[("authorization", "Bearer 0123456789abcdef0123456789abcdef")]).unwrap();
    admin.result("session.open", json!({"cwd": served.daemon.work()}));
    admin.result("permissions.set_mode", json!({"mode": "accept_edits"}));
    let refused = served.client().error("permissions.set_mode", json!({"mode": "accept_edits"}));
    assert_eq!(refused["code"], -32002, "{refused}");
}

#[test]
fn one_request_can_be_posted() {
    let served = serve("");
    let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = served.post_json(&request("tools.execute", json!({"name": "hello"})));
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(7), &json!("hello")));
    let batch = json!([request("daemon.ping", json!({}))]);
    assert_eq!(served.post_json(&batch)[0]["result"], json!({}));
    let notified = json!({"jsonrpc": "2.0", "method": "daemon.ping"});
    assert_eq!(served.post(&notified.to_string()), (204, String::new()));
    assert_eq!(served.post_json(&json!("no request"))["error"]["code"], -32600);

    let answer = served.post_json(&request("events.subscribe", json!({})));
    assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(7), &json!("no_stream")));
    let answer = served.post_json(&request("tools.execute", json!({"name": "hello", "progress": true})));
    assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(7), &json!("no_stream")));
}

#[test]
fn a_call_ends_with_its_post() {
    let served = serve("");
    let mut watcher = served.daemon.connect();
    watcher.result("events.subscribe", json!({"kinds": ["call.started", "call.finished"]}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools.execute", "params": {"name": "forever"}}).to_string();
    let mut stream = served.stream();
    let head = format!(
        "POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        served.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(watcher.notification("events.event")["result"]["kind"], "call.started");
    drop(stream);
    assert_eq!(watcher.notification("events.event")["result"]["outcome"], "cancelled");
}
