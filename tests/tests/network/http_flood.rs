//! HTTP connections without a token: no number of them locks out clients with a token.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};
use toold_tests::{PATIENCE, Setup, TestDaemon, until};

/// The limit of open HTTP connections.
const LIMIT: usize = 256;
/// Longer than any answer takes, and shorter than a client without a token waits for a free connection.
const ANSWERED: Duration = Duration::from_secs(20);

struct FloodedDaemon {
    daemon: TestDaemon,
    address: String,
    token: String,
}

/// Timeouts for idle clients and slow bodies exceed any test, so a connection that is closed has another reason.
fn serve() -> FloodedDaemon {
    let daemon = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\nbody_timeout_ms = 600000\n").start();
    let url = until("HTTP is served", || {
        daemon.connect().result("daemon.status", json!({}))["rpc_url"].as_str().map(str::to_owned)
    });
    let address = url.strip_prefix("ws://").unwrap().strip_suffix("/rpc").unwrap().to_owned();
    let token = std::fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    FloodedDaemon { daemon, address, token }
}

impl FloodedDaemon {
    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The head of a POST; with no length, there is no body.
    fn head(&self, token: &str, more: &str) -> String {
        format!("POST /rpc HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{more}\r\n", self.address)
    }

    fn ping(&self) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.ping"}).to_string();
        self.head(&self.token, &format!("Content-Length: {}\r\n", body.len())) + &body
    }

    /// A connection without a token: depending on its number it is silent, begins a header, or announces a body that
    /// never comes.
    fn half_open(&self, number: usize) -> TcpStream {
        let mut stream = self.stream();
        let begin = match number % 3 {
            0 => String::new(),
            1 => "POST /rpc HTTP/1.1\r\nHost: x".to_owned(),
            _ => self.head("wrong", "Content-Length: 1000\r\n"),
        };
        stream.write_all(begin.as_bytes()).unwrap();
        stream
    }

    fn socket(&self) -> WebSocket<TcpStream> {
        let mut request = format!("ws://{}/rpc", self.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        tungstenite::client(request, self.stream()).unwrap().0
    }
}

/// Reads one answer of a connection that stays open.
fn answer(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(head + &String::from_utf8(body).unwrap())
}

/// Whether the daemon has not closed a connection on which it sends nothing.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Sends and waits for the answer to one message on a WebSocket.
fn call(socket: &mut WebSocket<TcpStream>, method: &str) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {}});
    socket.send(Message::text(request.to_string())).unwrap();
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == method {
                return message;
            }
        }
    }
}

#[test]
fn clients_with_a_token_are_served_during_a_flood_without_one() {
    let served = serve();
    let (mut idle, mut streaming) = (served.stream(), served.socket());
    idle.write_all(served.ping().as_bytes()).unwrap();
    assert!(answer(&mut idle).unwrap().starts_with("HTTP/1.1 200"));
    assert!(call(&mut streaming, "events.subscribe").get("error").is_none());

    // On a stalled machine the flood may end before the client's answer; then try once more.
    until("a client is answered while the flood is there", || {
        let flood: Vec<TcpStream> = (0..LIMIT + LIMIT / 2).map(|number| served.half_open(number)).collect();
        let mut client = served.stream();
        client.set_read_timeout(Some(ANSWERED)).unwrap();
        client.write_all(served.ping().as_bytes()).unwrap();
        let answered = answer(&mut client).expect("the client with a token is answered");
        assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
        // Requests with a whole header were answered, and connections before the last 256 made room.
        (flood.iter().filter(|stream| is_open(stream)).count() > LIMIT / 4).then_some(())
    });

    assert!(is_open(&idle));
    idle.write_all(served.ping().as_bytes()).unwrap();
    assert!(answer(&mut idle).unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(call(&mut streaming, "daemon.ping")["result"], json!({}));
    drop(served.daemon);
}

#[test]
fn connections_with_a_token_are_never_closed_for_others() {
    let served = serve();
    let mut proven: Vec<TcpStream> = (0..LIMIT)
        .map(|_| {
            let mut stream = served.stream();
            stream.write_all(served.ping().as_bytes()).unwrap();
            assert!(answer(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
            stream
        })
        .collect();
    // These are over the limit, and so is one more, until one of the others closes.
    let _flood: Vec<TcpStream> = (0..8).map(|number| served.half_open(number)).collect();
    for stream in &mut proven {
        stream.write_all(served.ping().as_bytes()).unwrap();
        assert!(answer(stream).unwrap().starts_with("HTTP/1.1 200"));
    }
    let mut waiting = served.stream();
    waiting.write_all(served.ping().as_bytes()).unwrap();
    proven.truncate(LIMIT / 2);
    assert!(answer(&mut waiting).unwrap().starts_with("HTTP/1.1 200"));
}

/// Sends a byte of a header each 50 ms until the daemon closes the connection.
#[track_caller]
fn trickle(mut stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut header = b"POST /rpc HTTP/1.1\r\nX-Slow: ".to_vec();
    header.resize(header.len() + 20 * PATIENCE.as_secs() as usize, b'x');
    for byte in header {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        match stream.read(&mut [0; 512]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // It may send the reason before it closes.
            Ok(_) | Err(_) => return,
        }
    }
    panic!("the daemon waits for a header for {PATIENCE:?} and more");
}

#[test]
fn a_header_that_trickles_in_does_not_keep_a_connection_open() {
    let served = serve();
    trickle(served.stream());
    let mut proven = served.stream();
    proven.write_all(served.ping().as_bytes()).unwrap();
    assert!(answer(&mut proven).unwrap().starts_with("HTTP/1.1 200"));
    trickle(proven);
}

#[test]
fn a_client_without_a_token_that_says_nothing_is_not_waited_for() {
    let served = serve();
    let mut rest = Vec::new();
    served.stream().read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn a_client_with_a_token_may_be_idle_between_its_requests() {
    let served = serve();
    let mut stream = served.stream();
    stream.write_all(served.ping().as_bytes()).unwrap();
    assert!(answer(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
    // Longer than a header may take.
    stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    let silent = stream.read(&mut [0]).unwrap_err();
    assert_eq!(silent.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(served.ping().as_bytes()).unwrap();
    assert!(answer(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_request_without_a_token_is_refused_before_its_body_and_ends_the_connection() {
    let served = serve();
    for more in ["", "Content-Length: 1000\r\n", "Content-Length: 1000\r\nExpect: 100-continue\r\n"] {
        let mut stream = served.stream();
        stream.write_all(served.head("wrong", more).as_bytes()).unwrap();
        let mut refused = String::new();
        stream.read_to_string(&mut refused).unwrap();
        assert!(refused.starts_with("HTTP/1.1 401"), "{more}: {refused}");
    }
}
