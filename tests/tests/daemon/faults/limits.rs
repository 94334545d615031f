//! Too few descriptors, too little memory.

use std::os::unix::net::UnixStream;

use serde_json::json;
use toold_tests::{Setup, Wire, until};

use crate::faults::SHELL;

const ALLOW: &str = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";

#[test]
fn without_descriptors_new_clients_wait_and_the_others_go_on() {
    let limited = [SHELL[0], SHELL[1], "ulimit -n 80 && exec \"$@\"", "sh"];
    let daemon = Setup::new().config(ALLOW).file("a.txt", "here").through(&limited).start();
    let mut wire = daemon.connect();
    let idle: Vec<UnixStream> = (0..150).map(|_| UnixStream::connect(daemon.socket()).unwrap()).collect();
    until("no more are taken", || daemon.log().contains("few file descriptors are left").then_some(()));
    // The descriptors of a call are still available.
    for _ in 0..5 {
        let read = wire.tool("read", json!({"path": "a.txt"}));
        assert_eq!(read["is_error"], false, "{read}");
        let command = wire.tool("bash", json!({"command": "cat a.txt | cat"}));
        assert_eq!(command["is_error"], false, "{command}");
    }
    assert!(wire.result("daemon.status", json!({}))["connections"].as_u64().unwrap() < 80);
    let mut late = Wire::connect(&daemon.socket());
    let id = late.request("daemon.ping", json!({}));
    drop(idle);
    assert_eq!(late.answer(id)["result"], json!({}));
    until("those that left are forgotten", || {
        (wire.result("daemon.status", json!({}))["connections"] == 2).then_some(())
    });
}

#[test]
fn many_messages_that_are_never_whole_do_not_fill_the_memory() {
    let daemon = Setup::new().start();
    let mut wire = daemon.connect();
    let before = wire.result("daemon.status", json!({}))["memory_bytes"].as_u64().unwrap();
    let half = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.ping\",\"x\":\"{}", "y".repeat(15 << 20));
    let mut clients: Vec<Wire> = (0..48).map(|_| Wire::connect(&daemon.socket())).collect();
    std::thread::scope(|scope| {
        for client in &mut clients {
            let half = &half;
            scope.spawn(move || client.send_bytes(half.as_bytes()));
        }
    });
    // Freed memory goes back to the system a moment later.
    until("no more is kept than all may keep", || {
        let now = wire.result("daemon.status", json!({}))["memory_bytes"].as_u64().unwrap();
        (now < before + (512 << 20)).then_some(())
    });
    // Each connection is answered when its message ends, and stays open; refused messages get that reason.
    let mut refused = 0;
    for client in &mut clients {
        client.send_bytes(b"\"}\n");
        let answer = client.next_message().unwrap();
        if answer.get("error").is_some() {
            assert_eq!(answer["error"]["data"]["kind"], "overloaded", "{answer}");
            refused += 1;
        }
        assert_eq!(client.result("daemon.status", json!({}))["pid"], daemon.pid());
    }
    assert!((1..48).contains(&refused), "{refused} of 48 were refused");
}
