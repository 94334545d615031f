//! Messages that are small on the wire and large in memory.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

use crate::faults::peak;

/// The most that one message may cost; four at a time may cost twice that.
const ONE: u64 = 300 << 20;
const LENGTH: usize = 15 << 20;

fn filled(head: &str, piece: &str, tail: &str) -> String {
    format!("{head}{}{tail}", piece.repeat((LENGTH - head.len() - tail.len()) / piece.len()))
}

/// Fifteen MiB each: a batch, arguments of a call, unknown members, and text that ends as invalid JSON.
fn heavy() -> Vec<(&'static str, String)> {
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools.execute","params":{"name":"read","arguments":{"path":"#;
    let head = |inner: &str| format!("{call}{inner}");
    vec![
        ("a batch of numbers", filled("[", "1,", "1]")),
        ("a batch of batches", filled("[", "[],", "1]")),
        ("a batch of objects", filled("[", "{},", "1]")),
        ("numbers", filled(&head("["), "1,", "1]}}}")),
        ("empty objects", filled(&head("["), "{},", "1]}}}")),
        ("arrays of one", filled(&head("["), "[1],", "1]}}}")),
        ("objects of one", filled(&head("["), r#"{"a":1},"#, "1]}}}")),
        ("strings", filled(&head("["), r#""","#, "1]}}}")),
        ("one string", filled(&head("\""), "a", "\"}}}")),
        ("escapes", filled(&head("\""), "\\u0041", "\"}}}")),
        ("depth", filled(&head(""), "[", "}}}")),
        ("no end", filled(&head("["), "1,", "")),
        ("unknown members", filled(r#"{"jsonrpc":"2.0","id":7,"method":"daemon.ping","x":["#, "1,", "1]}")),
        ("the method", filled(r#"{"jsonrpc":"2.0","id":7,"method":["#, "1,", "1]}")),
        (
            "a name of a tool",
            filled(r#"{"jsonrpc":"2.0","id":7,"method":"tools.execute","params":{"name":""#, "a", "\"}}"),
        ),
        ("the id", filled(r#"{"jsonrpc":"2.0","method":"daemon.ping","id":["#, "1,", "1]}")),
    ]
}

#[test]
fn one_large_message_has_a_bound_whatever_is_in_it() {
    for (name, message) in heavy() {
        let daemon = TestDaemon::start();
        let before = peak(&daemon);
        let mut wire = daemon.connect();
        wire.send_bytes(message.as_bytes());
        wire.send_bytes(b"\n");
        let answer = wire.next_message().unwrap();
        assert!(answer.get("error").is_some() || answer.get("result").is_some(), "{name}: {answer}");
        let cost = peak(&daemon) - before;
        println!("{name}: {} MiB", cost >> 20);
        assert!(cost < ONE, "{name}: {} MiB", cost >> 20);
        // The connection stays open.
        assert_eq!(wire.result("daemon.ping", json!({})), json!({}), "{name}");
        assert_eq!(daemon.connect().result("daemon.status", json!({}))["message_memory"]["taken_bytes"], 0, "{name}");
    }
}

/// Each could be compared with what is there, compiled, and shown in the answer.
#[test]
fn names_that_nothing_can_have_are_refused_at_once_and_not_repeated() {
    let daemon = TestDaemon::start();
    let long = "a".repeat(LENGTH);
    let calls = [
        ("read", json!({"path": long}), "a path has at most 4095"),
        ("read", json!({"path": format!("folder/{long}")}), "a path has at most 4095"),
        ("list", json!({"path": long}), "a path has at most 4095"),
        ("grep", json!({"path": long, "pattern": "x"}), "a path has at most 4095"),
        ("write", json!({"path": long, "content": "x"}), "a path has at most 4095"),
        ("bash", json!({"cwd": long, "command": "true"}), "a path has at most 4095"),
        ("web_fetch", json!({"url": format!("http://{long}/")}), "a host has at most 254"),
        ("glob", json!({"pattern": long}), "the glob has"),
        ("glob", json!({"pattern": format!("{{{}}}", "a,".repeat(LENGTH / 2))}), "the glob has"),
        ("grep", json!({"pattern": "x", "include": long}), "the glob has"),
        (&long, json!({}), "there is no tool aaa"),
    ];
    for (tool, arguments, expected) in calls {
        let mut wire = daemon.connect();
        let before = peak(&daemon);
        let name = tool.get(..9).unwrap_or(tool);
        let answer = wire.call("tools.execute", json!({"name": tool, "arguments": arguments})).to_string();
        assert!(answer.contains(expected), "{name}: {}", &answer[..answer.len().min(500)]);
        assert!(answer.len() < 20_000, "{name}: an answer of {} bytes", answer.len());
        let cost = peak(&daemon) - before;
        assert!(cost < ONE, "{name}: {} MiB", cost >> 20);
    }
}

#[test]
fn four_large_messages_at_once_have_a_bound_and_others_are_served_meanwhile() {
    let daemon = TestDaemon::start();
    let before = peak(&daemon);
    let numbers = heavy().into_iter().find(|(name, _)| *name == "numbers").unwrap().1;
    // As much as one message may have, and more than that.
    let most = format!("{}1]}}}}}}", &numbers[..100 + 2 * 1_700_000]);
    let over = AtomicBool::new(false);
    let served = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|n| {
                let (daemon, message) = (&daemon, if n % 2 == 0 { &most } else { &numbers });
                scope.spawn(move || {
                    let mut wire = daemon.connect();
                    for _ in 0..3 {
                        wire.send_bytes(message.as_bytes());
                        wire.send_bytes(b"\n");
                        let answer = wire.next_message().unwrap();
                        assert!(answer.get("error").is_some() || answer.get("result").is_some(), "{answer}");
                    }
                })
            })
            .collect();
        let over = &over;
        let other = scope.spawn(|| {
            let (mut wire, mut served) = (daemon.connect(), 0_u64);
            while !over.load(Ordering::Relaxed) {
                assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
                served += 1;
            }
            served
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        over.store(true, Ordering::Relaxed);
        other.join().unwrap()
    });
    assert!(served > 0);
    assert!(peak(&daemon) - before < 2 * ONE, "{} MiB", (peak(&daemon) - before) >> 20);
}

fn members(answer: &Value) -> &Vec<Value> {
    answer.as_array().unwrap_or_else(|| panic!("{answer}"))
}

fn batch(wire: &mut Wire, requests: &[Value]) -> Value {
    wire.send(&json!(requests));
    wire.next_message().unwrap()
}

#[test]
fn the_answers_to_a_batch_have_a_bound_and_each_request_has_one() {
    let daemon = TestDaemon::start();
    let before = peak(&daemon);
    let mut wire = daemon.connect();
    let request = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools.list"});
    let requests: Vec<Value> = (1..=10_000).map(request).collect();
    let text = json!(requests).to_string();
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    writeln!(stream, "{text}").unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut line).unwrap();
    assert!(line.len() < 68 << 20, "{} MiB", line.len() >> 20);
    let cost = peak(&daemon) - before;
    assert!(cost < ONE, "{} MiB", cost >> 20);
    let answer: Value = serde_json::from_str(&line).unwrap();
    let (mut ids, mut whole, mut refused) = (vec![false; 10_001], 0, 0);
    for member in members(&answer) {
        let id = member["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut ids[id], true), "{id} is answered twice");
        match member.pointer("/error/data/kind") {
            None => whole += 1,
            Some(kind) => {
                assert_eq!(kind, "too_large");
                refused += 1;
            }
        }
    }
    assert_eq!(whole + refused, 10_000);
    assert!(whole > 100 && refused > 100, "{whole} whole, {refused} refused");
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
}

/// Eight clients that do not read, and one that does.
#[test]
fn answers_that_nobody_reads_have_a_bound_for_all_clients_together() {
    let daemon = TestDaemon::start();
    let before = peak(&daemon);
    let text =
        json!((1..=3_000).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools.list"})).collect::<Vec<_>>())
            .to_string();
    let mut streams: Vec<_> = (0..8).map(|_| UnixStream::connect(daemon.socket()).unwrap()).collect();
    for stream in &mut streams {
        writeln!(stream, "{text}").unwrap();
    }
    let mut wire = daemon.connect();
    until("their answers take all that there is", || {
        let status = wire.result("daemon.status", json!({}));
        (status["message_memory"]["unread_bytes"].as_u64().unwrap() > 200 << 20).then_some(())
    });
    let pings: Vec<Value> = (1..=100).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "daemon.ping"})).collect();
    let answer = batch(&mut wire, &pings);
    assert!(members(&answer).iter().all(|member| member["result"] == json!({})), "{answer}");
    assert!(peak(&daemon) - before < 2 * ONE, "{} MiB", (peak(&daemon) - before) >> 20);
    let mut refused = 0;
    for stream in streams {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(members(&answer).len(), 3_000);
        refused += members(&answer).iter().filter(|member| member["error"]["data"]["kind"] == "overloaded").count();
    }
    assert!(refused > 0, "some found no room");
    assert!(peak(&daemon) - before < 2 * ONE, "{} MiB", (peak(&daemon) - before) >> 20);
    until("nothing is left to read", || {
        (wire.result("daemon.status", json!({}))["message_memory"]["unread_bytes"] == 0).then_some(())
    });
}

const LOUD: &str = r#"
hygge.register_tool{name = "shout", description = "Tells much", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    local long = string.rep("x", 4 * 1024 * 1024)
    for _ = 1, 10 do
      hygge.log("info", "loud", {long = long})
      ctx.progress(long)
    end
    return "done"
  end}
"#;

#[test]
fn events_of_plugins_are_bounded_for_clients_that_do_not_read() {
    let daemon = Setup::new().plugin("loud.lua", LOUD).start();
    let mut deaf = daemon.connect();
    deaf.result("events.subscribe", json!({"kinds": ["log", "call.progress"]}));
    let mut wire = daemon.connect();
    until("the plugin is loaded", || wire.call("tools.schema", json!({"name": "shout"})).get("result").map(drop));
    // From here on, the plugin's own memory is part of the baseline.
    wire.tool("shout", json!({}));
    let before = peak(&daemon);
    // Only once: after that, its unread output makes the daemon stop reading from the connection.
    let shouted = deaf.request("tools.execute", json!({"name": "shout", "progress": true}));
    for _ in 1..=10 {
        wire.tool("shout", json!({}));
    }
    let cost = peak(&daemon) - before;
    assert!(cost < ONE / 2, "{} MiB", cost >> 20);
    // Waiting messages are read, and nothing of them is stored.
    assert_eq!(deaf.answer(shouted)["result"]["is_error"], json!(false));
    until("all of it is read", || {
        let last = deaf.request("daemon.ping", json!({}));
        deaf.answer(last);
        let outboxes = wire.result("daemon.status", json!({}))["queues"]["outboxes"].take();
        (outboxes["long_bytes"] == 0 && outboxes["messages"] == 0).then_some(())
    });
}

#[test]
fn a_batch_of_small_requests_is_answered_whole_and_too_many_are_refused_at_once() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let requests = |count: usize| -> Vec<Value> {
        (1..=count).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "daemon.ping"})).collect()
    };
    let answer = batch(&mut wire, &requests(20_000));
    assert_eq!(members(&answer).len(), 20_000);
    assert!(members(&answer).iter().all(|member| member["result"] == json!({})));
    let answer = batch(&mut wire, &requests(20_001));
    assert_eq!(answer["error"]["data"]["kind"], "too_large", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("20000"), "{answer}");
    // A request after a batch waits for its turn, and is answered.
    let first = json!(requests(5_000)).to_string();
    wire.send_bytes(format!("{first}\n").as_bytes());
    let id = wire.request("daemon.ping", json!({}));
    assert_eq!(members(&wire.next_message().unwrap()).len(), 5_000);
    assert_eq!(wire.answer(id)["result"], json!({}));
}

#[test]
fn requests_of_a_batch_that_wait_have_a_bound_and_can_be_cancelled() {
    let waits = "hygge.register_tool{name = \"wait\", description = \"Waits\", parallelizable = true,\n\
                 input_schema = {type = \"object\"}, execute = function() hygge.sleep(60000) return \"\" end}\n";
    let limits = "[limits]\ncalls = 5000\ncalls_per_connection = 5000\n";
    let daemon = Setup::new().config(limits).plugin("wait.lua", waits).start();
    let mut wire = daemon.connect();
    let work = daemon.work();
    let session = wire.result("session.open", json!({"cwd": work}))["session_id"].clone();
    until("the plugin is loaded", || {
        (wire.call("tools.schema", json!({"name": "wait"})).get("result").is_some()).then_some(())
    });
    let request =
        |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools.execute", "params": {"name": "wait"}});
    let requests: Vec<Value> = (10_001..=11_100).map(request).collect();
    wire.send(&json!(requests));
    // As many as a connection may have in flight: the daemon reads on when one has ended.
    let mut other = daemon.connect();
    until("they run", || (other.result("daemon.status", json!({}))["calls"]["in_flight"] == 1_024).then_some(()));
    other.result("session.close", json!({"session_id": session}));
    let answer = wire.next_message().unwrap();
    assert_eq!(members(&answer).len(), 1_100);
    let refused = members(&answer).iter().filter(|member| {
        let words = member["error"]["message"].as_str().unwrap_or_default();
        words.contains("1024 requests of this batch are in flight")
    });
    assert_eq!(refused.count(), 76);
    assert_eq!(wire.result("daemon.ping", json!({})), json!({}));
}
