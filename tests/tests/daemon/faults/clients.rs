//! Clients that behave badly, many at once, while another one is served.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use toold_tests::{Dice, Setup, TestDaemon, Wire, until};

const CLIENTS: usize = 100;

fn memory(wire: &mut Wire) -> u64 {
    wire.result("daemon.status", json!({}))["memory_bytes"].as_u64().unwrap()
}

fn connect(daemon: &TestDaemon) -> UnixStream {
    UnixStream::connect(daemon.socket()).unwrap()
}

/// All of them are gone except this one, and nothing of them is left.
#[track_caller]
fn alone(wire: &mut Wire) -> Value {
    until("the others are gone", || {
        let status = wire.result("daemon.status", json!({}));
        (status["connections"] == 1 && status["calls"]["in_flight"] == 0).then_some(status)
    })
}

#[test]
fn half_a_frame_and_then_the_end_harms_nobody() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let halves: [&[u8]; 6] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\"},",
        b"Content-Len",
        b"Content-Length: 1000\r\n\r\n{\"jsonrpc\"",
        b"Content-Length: 16000000\r\n\r\n",
        b"\xff\xfe",
    ];
    for round in 0..CLIENTS {
        let mut client = connect(&daemon);
        client.write_all(halves[round % halves.len()]).unwrap();
        if round % 2 == 0 {
            // Answers, if any, end with the connection.
            client.shutdown(std::net::Shutdown::Write).unwrap();
            client.read_to_end(&mut Vec::new()).unwrap();
        }
    }
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
    alone(&mut wire);
}

#[test]
fn a_hundred_that_send_a_byte_at_a_time_are_all_answered() {
    let daemon = TestDaemon::start();
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\"}\n";
    let framed = [b"Content-Length: 47\r\n\r\n", &request[..47]].concat();
    let mut clients: Vec<(UnixStream, &[u8])> =
        (0..CLIENTS).map(|n| (connect(&daemon), if n % 2 == 0 { &request[..] } else { &framed })).collect();
    let mut wire = daemon.connect();
    for place in 0..framed.len() {
        for (client, bytes) in &mut clients {
            if let Some(byte) = bytes.get(place) {
                client.write_all(&[*byte]).unwrap();
            }
        }
        assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
    }
    for (client, _) in &mut clients {
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\"result\":{}"), "{answer}");
    }
    drop(clients);
    alone(&mut wire);
}

#[test]
fn a_hundred_that_flood_and_read_nothing_take_no_memory() {
    let daemon = Setup::new().file("a.txt", "text\n".repeat(1_000)).start();
    let mut wire = daemon.connect();
    let before = memory(&mut wire);
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools.list", "params": {}}).to_string() + "\n";
    let flood = line.repeat(1_000).into_bytes();
    let (over, stuck) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (flood, over, stuck) = (&flood, &over, &stuck);
            let mut client = connect(&daemon);
            scope.spawn(move || {
                client.set_nonblocking(true).unwrap();
                let (mut place, mut reported) = (0, false);
                while !over.load(Ordering::Relaxed) {
                    match client.write(&flood[place..]) {
                        Ok(written) => place = (place + written) % flood.len(),
                        // The daemon does not read from it, because it does not read.
                        Err(_) => {
                            if !std::mem::replace(&mut reported, true) {
                                stuck.fetch_add(1, Ordering::Relaxed);
                            }
                            std::thread::park_timeout(std::time::Duration::from_millis(20));
                        }
                    }
                }
            });
        }
        until("nothing more is taken of any", || {
            assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
            (stuck.load(Ordering::Relaxed) == CLIENTS as u64).then_some(())
        });
        assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
        // A megabyte each, at most.
        let after = memory(&mut wire);
        over.store(true, Ordering::Relaxed);
        assert!(after < before + CLIENTS as u64 * (1 << 20), "{before} to {after} bytes");
    });
    alone(&mut wire);
}

#[test]
fn subscribers_that_never_read_lose_events_and_take_no_memory() {
    let daemon = Setup::new().file("a.txt", "here").start();
    let mut wire = daemon.connect();
    let mut deaf: Vec<Wire> = (0..CLIENTS).map(|_| daemon.connect()).collect();
    for client in &mut deaf {
        client.result("events.subscribe", json!({}));
        client.result("permissions.subscribe", json!({"can_answer": false}));
    }
    let before = memory(&mut wire);
    for _ in 0..1_500 {
        assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
    }
    let after = memory(&mut wire);
    assert!(after < before + CLIENTS as u64 * (1 << 20), "{before} to {after} bytes");
    // A client that reads again receives the number of lost events, and then new ones.
    let late = &mut deaf[0];
    let mut lagged = false;
    wire.result("session.open", json!({"cwd": "/", "session_id": "last"}));
    loop {
        let event = late.notification("events.event")["result"].take();
        lagged |= event["kind"] == "lagged";
        if event["kind"] == "session.opened" && event["session_id"] == "last" {
            break;
        }
    }
    assert!(lagged);
    drop(deaf);
    alone(&mut wire);
}

#[test]
fn short_lived_clients_leave_nothing_behind() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let crowd = || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for round in 0..50 {
                        let mut client = daemon.connect();
                        let list = json!({"name": "list", "arguments": {"path": "."}});
                        match round % 3 {
                            0 => drop(client),
                            1 => _ = client.request("tools.execute", list),
                            _ => _ = client.result("events.subscribe", json!({})),
                        }
                    }
                });
            }
        });
    };
    // The daemon opens some files only when it first needs them.
    crowd();
    let before = alone(&mut wire)["open_files"].as_u64().unwrap();
    crowd();
    // A cancelled call is over before the thread that reads the folder for it has closed it.
    until("no file is left open", || (alone(&mut wire)["open_files"].as_u64().unwrap() <= before).then_some(()));
}

/// Parameters with which a method begins what it does; without an entry, none.
fn params_of(method: &str) -> Value {
    match method {
        "session.open" => json!({"cwd": "/"}),
        "events.subscribe" => json!({"since": 0}),
        "tools.execute" => json!({"name": "bash", "arguments": {"command": "sleep 60 # unknown"}}),
        "tools.execute_batch" => {
            json!({"calls": [{"name": "list", "arguments": {"path": "/"}}, {"name": "ask", "arguments": {"question": "?"}}]})
        }
        "tools.provide" => json!({"tools": [{"name": "own", "description": "d", "input_schema": {"type": "object"}}]}),
        "commands.run" => json!({"name": "nothing"}),
        _ => json!({}),
    }
}

/// Sends requests at once, reads nothing, and leaves.
fn burst(daemon: &TestDaemon, methods: &[&str]) {
    let requests: String = methods
        .iter()
        .enumerate()
        .map(|(id, method)| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params_of(method)}).to_string() + "\n"
        })
        .collect();
    connect(daemon).write_all(requests.as_bytes()).unwrap();
}

#[test]
fn clients_that_send_every_method_in_a_burst_and_leave_are_forgotten() {
    let config = "[daemon]\nsession_idle_ms = 100\n[permission]\nread_only_commands = \"ask\"\n";
    let mut daemon = Setup::new().config(config).file("a.txt", "here").start();
    let mut wire = daemon.connect();
    // More events than wait for one client.
    for _ in 0..200 {
        assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false);
    }
    // The daemon's own.
    let before = wire.result("daemon.status", json!({}))["queues"]["events"]["subscribers"].take();
    let discovered = wire.result("rpc.discover", json!({}));
    let methods: Vec<&str> =
        discovered["methods"].as_array().unwrap().iter().map(|method| method["name"].as_str().unwrap()).collect();
    // All but those that end the daemon, open something on the screen, or are meant to outlive a hook's connection.
    let left_out = ["daemon.restart", "daemon.shutdown", "page.open", "notify.test", "permissions.request"];
    let mut methods: Vec<&str> = methods.into_iter().filter(|method| !left_out.contains(method)).collect();
    assert!(methods.len() > 90, "{methods:?}");
    let lasting =
        |method: &&&str| method.ends_with(".subscribe") || ["tools.provide", "shells.attach"].contains(*method);
    let subscriptions: Vec<&str> = methods.iter().filter(lasting).copied().collect();
    // Every method behind a full outbox, every two subscriptions in either order, and all methods in many orders.
    for method in &methods {
        burst(&daemon, &["session.open", "events.subscribe", method]);
    }
    for first in &subscriptions {
        for second in &subscriptions {
            burst(&daemon, &["session.open", first, second, "events.subscribe", second, "questions.subscribe"]);
        }
    }
    let mut dice = Dice::new(7);
    for _ in 0..20 {
        for place in 1..methods.len() {
            methods.swap(place, dice.roll(place as u64 + 1) as usize);
        }
        burst(&daemon, &methods);
    }
    let nothing = json!({"capacity": 256, "messages": 0, "most": 0, "full": 0, "long_bytes": 0});
    until("nothing of them is left", || {
        let status = wire.result("daemon.status", json!({}));
        let queues = &status["queues"];
        let left = (&status["connections"], &status["sessions"], &status["calls"]["in_flight"]);
        (left == (&json!(1), &json!(1), &json!(0))
            && queues["outboxes"] == nothing
            && queues["events"]["subscribers"] == before)
            .then_some(())
    });
    daemon.signal("TERM");
    assert!(daemon.wait().success());
}
