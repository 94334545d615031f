//! Many clients that use everything at once; afterwards the counters agree and nothing is left behind.
//!
//! A few seconds by default; `TOOLD_SOAK_SECONDS` and `TOOLD_SOAK_CLIENTS` make it longer and wider.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toold_tests::{Dice, Setup, TestDaemon, Wire, setting, until};

const TOOLS: &str = r#"
local object = {type = "object"}
hygge.register_tool{name = "quick", description = "Answers at once", parallelizable = true, input_schema = object,
  execute = function(ctx, input) ctx.progress("here") return "quick" end}
hygge.register_tool{name = "serial", description = "One at a time", input_schema = object,
  execute = function() hygge.sleep("1ms") return "serial" end}
hygge.register_tool{name = "slow", description = "Waits", parallelizable = true, input_schema = object,
  execute = function(ctx) ctx.progress("here") hygge.sleep("10m") end}
hygge.register_tool{name = "loop", description = "Never ends", parallelizable = true, timeout = "20ms", input_schema = object,
  execute = function() while true do end end}
hygge.register_tool{name = "fail", description = "Fails", parallelizable = true, input_schema = object,
  execute = function() error("bad luck") end}
hygge.register_tool{name = "strict", description = "Wants a number", parallelizable = true,
  input_schema = {type = "object", properties = {n = {type = "integer"}}, required = {"n"}},
  execute = function(ctx, input) return tostring(input.n) end}
"#;

/// The actions of the clients, by their own count.
#[derive(Default)]
struct CallTally {
    calls: AtomicU64,
    requests: AtomicU64,
    answers: AtomicU64,
}

impl CallTally {
    fn call(&self, n: u64) {
        self.calls.fetch_add(n, Ordering::Relaxed);
    }

    fn ask(&self, wire: &mut Wire, method: &str, params: Value) -> Value {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = wire.call(method, params);
        self.answers.fetch_add(1, Ordering::Relaxed);
        answer
    }
}

fn client(daemon: &TestDaemon, tally: &CallTally, number: u64, end: Instant) {
    let mut dice = Dice::new(number);
    let mut wire = daemon.connect();
    while Instant::now() < end {
        match dice.roll(12) {
            kind @ 0..=4 => {
                let name = ["quick", "serial", "fail", "loop", "read"][kind as usize];
                let arguments = if name == "read" { json!({"path": "a.txt"}) } else { json!({}) };
                tally.call(1);
                let params = json!({"name": name, "arguments": arguments, "progress": dice.roll(2) == 0});
                let answer = tally.ask(&mut wire, "tools.execute", params);
                assert!(answer["result"].is_object(), "{answer}");
            }
            5 => {
                tally.call(1);
                assert_eq!(tally.ask(&mut wire, "tools.execute", json!({"name": "strict"}))["error"]["code"], -32602);
            }
            6 => {
                // A request for an unknown tool does not count as a call.
                assert_eq!(tally.ask(&mut wire, "tools.execute", json!({"name": "none"}))["error"]["code"], -32001);
            }
            7 => {
                tally.call(4);
                let calls = json!([{"name": "serial"}, {"name": "quick"}, {"name": "fail"}, {"name": "strict"}]);
                let answer = tally.ask(&mut wire, "tools.execute_batch", json!({"calls": calls}));
                assert_eq!(answer["result"]["results"].as_array().unwrap().len(), 4);
            }
            8 => {
                tally.call(1);
                tally.requests.fetch_add(1, Ordering::Relaxed);
                let id = wire.request("tools.execute", json!({"name": "slow"}));
                wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
                assert_eq!(wire.answer(id)["error"]["code"], -32800);
                tally.answers.fetch_add(1, Ordering::Relaxed);
            }
            9 => {
                // Disconnects in the middle of a call.
                tally.call(1);
                let params = json!({"name": "slow", "progress": true});
                wire.request("tools.execute", params);
                // A call that has not begun when its client leaves does not begin.
                wire.notification("tools.progress");
                wire = daemon.connect();
            }
            10 => {
                let subscription = tally.ask(&mut wire, "events.subscribe", json!({}))["result"].take();
                tally.ask(&mut wire, "events.unsubscribe", json!({"subscription": subscription}));
            }
            _ => {
                assert!(tally.ask(&mut wire, "tools.list", json!({}))["result"]["tools"].is_array());
            }
        }
    }
}

fn run(daemon: &TestDaemon, tally: &CallTally, clients: u64, time: Duration) {
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        for number in 0..clients {
            scope.spawn(move || client(daemon, tally, number, end));
        }
    });
}

fn settled(wire: &mut Wire) -> Value {
    until("all calls have ended and all clients have left", || {
        let status = wire.result("daemon.status", json!({}));
        (status["calls"]["in_flight"] == 0 && status["connections"] == 1).then_some(status)
    })
}

fn audit_rows(wire: &mut Wire) -> u64 {
    let (mut rows, mut after) = (0, 0);
    loop {
        let entries = wire.result("audit.query", json!({"after": after, "limit": 1000}))["entries"].take();
        let entries = entries.as_array().unwrap();
        let Some(last) = entries.last() else { return rows };
        rows += entries.len() as u64;
        after = last["id"].as_u64().unwrap();
    }
}

#[test]
fn the_counters_agree_after_everything_at_once() {
    let seconds = setting("TOOLD_SOAK_SECONDS", 5);
    let clients = setting("TOOLD_SOAK_CLIENTS", 40);
    let audit = "[audit]\nmax_rows = 100000000\n";
    let daemon = Setup::new().config(audit).plugin("soak.lua", TOOLS).file("a.txt", "text\n").start();
    let tally = Arc::new(CallTally::default());
    let mut wire = daemon.connect();
    wire.result("tools.list", json!({}));

    // Warm up: Lua states are created, caches filled.
    run(&daemon, &tally, clients, Duration::from_secs(1));
    let before = settled(&mut wire);
    run(&daemon, &tally, clients, Duration::from_secs(seconds));
    let after = settled(&mut wire);

    let calls = tally.calls.load(Ordering::Relaxed);
    assert_eq!(tally.requests.load(Ordering::Relaxed), tally.answers.load(Ordering::Relaxed));
    assert_eq!(after["calls"]["started"], calls, "{after}");
    assert_eq!(after["calls"]["finished"], calls, "{after}");
    // A query first writes all pending rows.
    assert_eq!(audit_rows(&mut wire), calls);
    assert_eq!(after["open_files"], before["open_files"]);
    let memory = |status: &Value| status["memory_bytes"].as_u64().unwrap();
    let (was, is) = (memory(&before), memory(&after));
    assert!(is < was * 2 + (64 << 20), "memory grew from {was} to {is} bytes");
    let outcomes = &after["calls"]["outcomes"];
    println!("{clients} clients, {seconds} s: {calls} calls, {outcomes}; memory {was} to {is} bytes");
    daemon.stop();
}
