//! Clocks that jump, and a machine that sleeps.

use std::process::Command;

use serde_json::{Value, json};
use toold_tests::{Setup, Wire, faketime_library, until};

fn verdict(wire: &mut Wire, target: &str) -> Value {
    wire.result("permissions.check", json!({"category": "shell", "target": target}))["verdict"].take()
}

#[test]
fn grants_end_by_the_clock_of_the_wall_and_calls_do_not() {
    let Some(library) = faketime_library() else { return };
    let setup = Setup::new().plugin("slow.lua", SLOW);
    let clock = setup.path("clock");
    std::fs::write(&clock, "+0").unwrap();
    let variable = format!("FAKETIME_TIMESTAMP_FILE={}", clock.display());
    let daemon = setup.clock(&library, &variable).start();
    let mut wire = daemon.connect();
    for (pattern, expires_in) in [("short", 3_600), ("long", 30 * 24 * 3_600)] {
        let params = json!({"category": "shell", "pattern": pattern, "scope": "always", "expires_in": expires_in});
        wire.result("permissions.grant", params);
    }
    wire.result("events.subscribe", json!({"kinds": ["session.opened"]}));
    let slow = wire.request("tools.execute", json!({"name": "slow", "timeout_ms": 600_000}));
    let mut other = daemon.connect();
    // Forward two hours, back one year, forward one week.
    for (jump, short, long) in
        [("+0", "allow", "allow"), ("+2h", "ask", "allow"), ("-1y", "allow", "allow"), ("+7d", "ask", "allow")]
    {
        std::fs::write(&clock, jump).unwrap();
        until("the clock has jumped", || (verdict(&mut other, "short") == short).then_some(()));
        assert_eq!(verdict(&mut other, "long"), long, "{jump}");
        let session = other.result("session.open", json!({"cwd": "/"}))["session_id"].take();
        until("the event comes", || {
            (wire.notification("events.event")["result"]["session_id"] == session).then_some(())
        });
        assert_eq!(other.tool("quick", json!({}))["is_error"], false);
    }
    wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": slow}}));
    assert_eq!(wire.answer(slow)["error"]["code"], -32800, "it ran until it was cancelled");
}

const SLOW: &str = r#"
local object = {type = "object"}
hygge.register_tool{name = "quick", description = "Answers at once", parallelizable = true, input_schema = object,
  execute = function() return "quick" end}
hygge.register_tool{name = "slow", description = "Waits", parallelizable = true, input_schema = object,
  execute = function() hygge.sleep("10m") end}
hygge.register_tool{name = "busy", description = "Counts for a while", parallelizable = true, input_schema = object,
  timeout = "6s", execute = function()
    local n = 0
    for i = 1, 300000 do n = n + i % 7 end
    return tostring(n)
  end}
hygge.register_tool{name = "nap", description = "Sleeps for a moment", parallelizable = true, input_schema = object,
  timeout = "6s", execute = function() hygge.sleep("1s") return "rested" end}
"#;

#[test]
fn a_machine_that_slept_ends_no_call_that_was_in_time() {
    let daemon = Setup::new().plugin("slow.lua", SLOW).start();
    let mut wire = daemon.connect();
    wire.result("tools.list", json!({}));
    wire.result("events.subscribe", json!({"kinds": ["call.started"]}));
    let mut calls = Vec::new();
    for _ in 0..5 {
        for name in ["nap", "busy"] {
            calls.push(wire.request("tools.execute", json!({"name": name})));
        }
    }
    for _ in 0..5 {
        wire.notification("events.event");
    }
    daemon.signal("STOP");
    // Longer than any of them may take. The test waits for the end of a process, not for a time.
    assert!(Command::new("sleep").arg("8").status().unwrap().success());
    daemon.signal("CONT");
    let failed: Vec<Value> =
        calls.iter().map(|id| wire.answer(*id)).filter(|answer| answer["result"]["is_error"] != false).collect();
    assert!(failed.is_empty(), "{} of {} failed: {}", failed.len(), calls.len(), failed[0]);
    assert_eq!(daemon.connect().tool("quick", json!({}))["is_error"], false);
}

#[test]
fn a_machine_that_slept_ends_no_load_that_was_in_time() {
    let daemon = Setup::new().start();
    let mut wire = daemon.connect();
    wire.result("tools.list", json!({}));
    wire.result("events.subscribe", json!({"kinds": ["log", "plugin.loaded", "plugin.failed"]}));
    let source = "hygge.log('info', 'loading') hygge.sleep('1s')";
    std::fs::write(daemon.plugins().join("late.lua"), source).unwrap();
    assert_eq!(wire.notification("events.event")["result"]["kind"], "log");
    daemon.signal("STOP");
    // Longer than a load may take. The test waits for the end of a process, not for a time.
    assert!(Command::new("sleep").arg("8").status().unwrap().success());
    daemon.signal("CONT");
    let event = wire.notification("events.event");
    assert_eq!(event["result"]["kind"], "plugin.loaded", "{event}");
}
