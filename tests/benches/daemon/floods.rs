//! The cost of a client that sends and never reads, and how soon its calls end when it disconnects.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;
use toold_tests::Wire;

use crate::served::ServedProgram;
use crate::stats::{Demand, goal, median};

const CLIENTS: usize = 10;

pub(crate) fn run(quick: bool) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("run/toold.sock");
    let daemon = ServedProgram::start("serve-daemon", dir.path(), &socket);
    let mut wire = Wire::connect(&socket);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools.execute", "params":
        {"name": "noop_native", "arguments": {"text": "hello world 0123456789"}}});
    let flood = format!("{call}\n").repeat(1_000);

    let before = daemon.memory();
    let clients: Vec<UnixStream> = (0..CLIENTS).map(|_| unread(&socket, &flood)).collect();
    // A round trip through each core: everything that the floods sent has been read by then.
    wire.result("daemon.ping", json!({}));
    let each = daemon.memory().saturating_sub(before) as f64 / CLIENTS as f64 / 1e6;
    println!("{CLIENTS} clients that flood and do not read: {each:.2} MB each");
    goal(11, "memory of a client that floods and reads nothing", each, "MB", Demand::AtMost(1.0));
    drop(clients);

    let mut gone = Vec::new();
    for _ in 0..if quick { 3 } else { 30 } {
        gone.push(until_dropped(&socket, &mut wire));
    }
    let gone = median(gone).as_secs_f64() * 1e3;
    println!("100 calls of a client that went are dropped after {gone:.2} ms");
    goal(11, "from a disconnect to the end of its calls", gone, "ms", Demand::AtMost(10.0));
    println!();
}

/// A client that wrote until the daemon read no more.
fn unread(socket: &std::path::Path, flood: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    for _ in 0..1_000 {
        match stream.write_all(flood.as_bytes()) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return stream,
            Err(error) => panic!("a flood ends by waiting: {error}"),
        }
    }
    panic!("a million answers were taken in, unread");
}

fn until_dropped(socket: &std::path::Path, wire: &mut Wire) -> Duration {
    let mut client = UnixStream::connect(socket).unwrap();
    for id in 0..100 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools.execute", "params":
            {"name": "noop_wait", "arguments": {}}});
        writeln!(client, "{call}").unwrap();
    }
    let mut in_flight = || wire.result("daemon.status", json!({}))["calls"]["in_flight"].as_u64().unwrap();
    while in_flight() < 100 {}
    let start = Instant::now();
    drop(client);
    while in_flight() > 0 {}
    start.elapsed()
}
