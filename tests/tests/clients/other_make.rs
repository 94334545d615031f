//! An independent client: PROTOCOL.md is enough to write one.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toold_tests::Setup;

const TOOLS: &str = r#"
hygge.register_tool{
  name = "greet", description = "Greets somebody", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {name = {type = "string"}, times = {type = "integer", minimum = 1}},
    required = {"name"},
  },
  execute = function(ctx, input)
    for i = 1, input.times do ctx.progress{message = "greeting", progress = i, total = input.times} end
    ctx.output("written\n")
    return "hello " .. input.name
  end,
}
hygge.register_tool{
  name = "wait_for_ever", description = "Waits until it is stopped", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
"#;

#[test]
fn a_script_without_packages_lists_calls_subscribes_and_cancels() {
    let daemon = Setup::new().plugin("tools.lua", TOOLS).start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/plain.py");
    let output = Command::new("python3")
        .arg(script)
        .args([daemon.socket(), daemon.work()])
        .stdin(Stdio::null())
        .output()
        .expect("python3 is installed");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words}", output.status);

    let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tools = summary["tools"].take();
    let tools: Vec<&str> = tools.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(tools.is_sorted(), "{tools:?}");
    assert!(["bash", "greet", "read", "wait_for_ever"].iter().all(|name| tools.contains(name)), "{tools:?}");
    let expected = json!({
        "cwd_is_ours": true,
        "protocol": 2,
        "tools": null,
        "text": "hello you",
        "progress": [[0, "update"], [1, "update"], [2, "output"]],
        "cancelled": true,
        "ended_with": -32800,
        "events": [
            ["call.started", "greet", null],
            ["call.finished", "greet", "ok"],
            ["call.started", "wait_for_ever", null],
            ["call.finished", "wait_for_ever", "cancelled"],
        ],
        "events_are_ours": true,
        "unsubscribed": true,
    });
    assert_eq!(summary, expected);
}
