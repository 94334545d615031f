//! Mounted MCP servers whose answers are not quite messages, and calls that wait for them. The server of these tests is
//! `mcp/odd_lines.py`.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

/// A daemon with two such servers, `s` and `o`. A call may take ten minutes, unless `more` says otherwise.
fn mounted(more: &str) -> TestDaemon {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/odd_lines.py").display().to_string();
    let mut config = "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n".to_owned();
    for name in ["s", "o"] {
        config += &format!("[mcp.servers.{name}]\ncommand = \"python3\"\nargs = {}\n{more}\n", json!([script]));
    }
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    until("both servers run", || {
        let servers = wire.result("mcp.servers", json!({}))["servers"].take();
        servers.as_array().unwrap().iter().all(|server| server["state"] == "running").then_some(())
    });
    daemon
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[track_caller]
fn begin(wire: &mut Wire, tool: &str) -> u64 {
    let id = wire.request("tools.execute", json!({"name": tool, "progress": true}));
    while wire.notification("tools.progress")["message"] != "hanging" {}
    id
}

#[test]
fn bytes_and_surrogates_are_repaired_and_output_before_a_message_is_skipped() {
    let daemon = mounted("timeout_ms = 600000");
    let mut wire = daemon.connect();
    for (tool, expected) in [("s_lone", "half \u{fffd} emoji"), ("s_latin", "caf\u{fffd}"), ("s_glued", "works")] {
        assert_eq!(text(&wire.tool(tool, json!({}))), expected, "{tool}");
    }
    assert!(daemon.log().contains("Processing..."), "what was skipped is in the log");
}

#[test]
fn an_error_without_a_usable_id_ends_the_only_call() {
    let daemon = mounted("timeout_ms = 600000");
    let mut wire = daemon.connect();
    for tool in ["s_null", "s_foreign"] {
        let result = wire.tool(tool, json!({}));
        assert!(result["is_error"] == true && text(&result).contains("the words of the server"), "{tool}: {result}");
    }
}

#[test]
fn an_answer_that_is_too_long_ends_its_call_with_the_reason() {
    let daemon = mounted("timeout_ms = 600000");
    let mut wire = daemon.connect();
    // Beside it, another call is open: the id decides.
    let mut other = daemon.connect();
    let held = begin(&mut other, "s_hang");
    for tool in ["s_head", "s_tail"] {
        let result = wire.tool(tool, json!({}));
        assert!(result["is_error"] == true && text(&result).contains("longer than 16 MiB"), "{tool}: {result}");
    }
    assert_eq!(text(&wire.tool("s_release", json!({}))), "good");
    assert_eq!(text(&other.answer(held)["result"]), "released");
}

#[test]
fn an_answer_that_cannot_be_read_ends_its_call_with_the_reason() {
    let daemon = mounted("timeout_ms = 600000");
    let result = daemon.connect().tool("s_deep", json!({}));
    assert!(result["is_error"] == true && text(&result).contains("recursion limit"), "{result}");
}

#[test]
fn a_call_that_is_over_time_names_the_setting_and_what_was_discarded() {
    let daemon = mounted("timeout_ms = 2000");
    let mut wire = daemon.connect();
    let result = wire.tool("s_log", json!({}));
    for expected in ["2000 ms", "timeout_ms in [mcp.servers.s]", "Traceback: the words of the server"] {
        assert!(text(&result).contains(expected), "{expected}: {result}");
    }
    let logs = daemon.toolctl(&["mcp", "logs", "s"]);
    let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
    assert!(logs.contains("discarded, since it is no message: Traceback"), "{logs}");
}

#[test]
fn progress_renews_the_time_of_a_call() {
    let daemon = mounted("timeout_ms = 5000");
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("s_steps", json!({}))), "done");
}

#[test]
fn a_call_of_one_server_delays_no_call_of_another() {
    let daemon = mounted("timeout_ms = 600000");
    let mut wire = daemon.connect();
    let held = begin(&mut wire, "s_hang");
    assert_eq!(text(&wire.tool("o_good", json!({}))), "good");
    assert_eq!(text(&daemon.connect().tool("s_release", json!({}))), "good");
    assert_eq!(text(&wire.answer(held)["result"]), "released");
}

#[test]
fn lists_of_many_pages_are_read_to_the_end() {
    let daemon = mounted("");
    let server = daemon.connect().result("mcp.servers", json!({}))["servers"][0].take();
    let tools = server["tools"].as_array().unwrap();
    assert!(tools.len() == 163 && tools.contains(&json!("o_t149")), "{server}");
    assert_eq!(server["problems"], json!([]));
}
