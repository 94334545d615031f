//! Progress notifications per second, compared with subscriptions on jsonrpsee's WebSocket.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::served::ServedProgram;
use crate::stats::{Demand, goal, median_rate, rate_row};

pub(crate) fn run(quick: bool) {
    let (rounds, items) = if quick { (2, 2_000) } else { (15, 50_000) };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("run/toold.sock");
    // Building it takes longer than all else in a quick run.
    let websocket = (!quick).then(|| ServedProgram::start_jsonrpsee(&dir.path().join("port")));
    let _daemon = ServedProgram::start("serve-daemon", dir.path(), &socket);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        own.push(over_the_socket(&socket, items));
        other.extend(websocket.as_ref().map(|(_, port)| over_websocket(*port, items)));
    }
    let own = median_rate(own);
    println!("{:<44} {:>13}   {:>8}", "notifications that arrive, a second", "", "of floor");
    if other.is_empty() {
        rate_row("tools.progress", own, own);
    } else {
        let other = median_rate(other);
        rate_row("jsonrpsee's WebSocket, a subscription", other, other);
        rate_row("tools.progress", own, other);
        goal(16, "progress a second, of jsonrpsee's WebSocket", own / other, "x", Demand::AtLeast(2.0));
    }
    println!();
}

fn over_the_socket(socket: &Path, items: usize) -> f64 {
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools.execute", "params":
        {"name": "noop_progress", "arguments": {"items": items}, "progress": true}})
    .to_string();
    request.push('\n');
    (&stream).write_all(request.as_bytes()).unwrap();
    let (mut reader, mut buffer) = (stream, vec![0; 64 * 1024]);
    let (start, mut lines, mut last) = (Instant::now(), 0, Vec::new());
    // The answer is the line without a method.
    while !last.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1") {
        let read = reader.read(&mut buffer).unwrap();
        assert!(read > 0, "the daemon went");
        for line in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            if last.ends_with(b"\n") {
                last.clear();
            }
            // Only its beginning matters.
            last.extend_from_slice(if last.len() < 64 { line } else { &line[line.len() - 1..] });
            lines += usize::from(line.ends_with(b"\n"));
        }
    }
    assert!(lines > items / 100, "{lines} of {items} came");
    (lines - 1) as f64 / start.elapsed().as_secs_f64()
}

fn over_websocket(port: u16, items: usize) -> f64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let mut reader = BufReader::with_capacity(64 * 1024, stream.try_clone().unwrap());
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": [items]}).to_string();
    // A text frame with a mask of zeros, which leaves the text as it is (RFC 6455, section 5.2).
    let mut frame = vec![0x81, 0x80 | u8::try_from(request.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(request.as_bytes());
    stream.write_all(&frame).unwrap();
    let (start, mut payload) = (Instant::now(), Vec::new());
    // The answer to the subscription, and the items.
    for _ in 0..=items {
        let mut header = [0; 2];
        reader.read_exact(&mut header).unwrap();
        let length = match header[1] {
            126 => {
                let mut length = [0; 2];
                reader.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            length => usize::from(length),
        };
        payload.resize(length, 0);
        reader.read_exact(&mut payload).unwrap();
    }
    items as f64 / start.elapsed().as_secs_f64()
}
