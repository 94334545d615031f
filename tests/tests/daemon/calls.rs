//! Calls on a real daemon: arguments, progress, cancel, time limits, batches, refusals.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const TOOLS: &str = r#"
hygge.register_tool{
  name = "greet", description = "Greets somebody", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {name = {type = "string"}, times = {type = "integer", minimum = 1}},
    required = {"name"}, additionalProperties = false,
  },
  execute = function(ctx, input)
    for i = 1, input.times or 1 do
      ctx.progress{message = "greeting", progress = i, total = input.times}
    end
    ctx.output("written\n")
    return "hello " .. input.name
  end,
}
hygge.register_tool{
  name = "wait_for_ever", description = "Waits until it is stopped", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "spin", description = "Never ends by itself", timeout = "2s", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.output("before the loop\n") while true do pcall(function() while true do end end) end end,
}
hygge.register_tool{
  name = "eat", description = "Eats memory", input_schema = {type = "object"},
  execute = function() return ("a"):rep(1e9) end,
}
hygge.register_tool{
  name = "fail", description = "Fails", input_schema = {type = "object"},
  execute = function() error("out of luck") end,
}
hygge.register_tool{
  name = "one_by_one", description = "A serial tool", input_schema = {type = "object", properties = {text = {type = "string"}}},
  execute = function(ctx, input) ctx.progress("running") hygge.sleep("20ms") return input.text end,
}
"#;

fn daemon() -> TestDaemon {
    Setup::new().plugin("tools.lua", TOOLS).start()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_call_answers_with_its_progress_before_it() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let id = wire.request(
        "tools.execute",
        json!({"name": "greet", "arguments": {"name": "you", "times": 3}, "progress": true, "call_id": "mine"}),
    );
    let mut seen = Vec::new();
    let answer = loop {
        let message = wire.next_message().unwrap();
        if message["id"] == id {
            break message;
        }
        assert_eq!((&message["method"], &message["params"]["call_id"]), (&json!("tools.progress"), &json!("mine")));
        assert_eq!(message["params"]["seq"], seen.len());
        seen.push(message["params"]["kind"].as_str().unwrap().to_owned());
    };
    assert_eq!(seen, ["update", "update", "update", "output"]);
    let result = &answer["result"];
    assert_eq!((text(result), &result["is_error"], &result["call_id"]), ("hello you", &json!(false), &json!("mine")));
    assert!(result["duration_ms"].is_u64() && result["metadata"].is_object() && result["cached"] == false);
}

#[test]
fn all_that_is_wrong_with_arguments_is_reported() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let error = wire.error("tools.execute", json!({"name": "greet", "arguments": {"times": 0, "nmae": "x"}}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32602), &json!("invalid_args")));
    let errors = error["data"]["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors.iter().any(|e| e["path"] == "/times"), "{errors:?}");
    // No arguments are an empty object.
    assert_eq!(wire.error("tools.execute", json!({"name": "greet", "arguments": null}))["code"], -32602);
    assert_eq!(wire.error("tools.execute", json!({"name": "greet", "arguments": [1]}))["code"], -32602);
}

#[test]
fn an_unknown_tool_is_answered_with_near_names() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let error = wire.error("tools.execute", json!({"name": "great"}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32001), &json!("unknown_tool")));
    assert_eq!(error["data"]["suggestions"][0], "greet");
    assert_eq!(wire.error("tools.schema", json!({"name": "great"}))["data"]["suggestions"][0], "greet");
}

#[test]
fn a_tool_that_fails_answers_with_the_place() {
    let daemon = daemon();
    let result = daemon.connect().tool("fail", json!({}));
    assert_eq!(result["is_error"], true);
    assert!(text(&result).contains("tools.lua:") && text(&result).contains("out of luck"), "{result}");
}

#[test]
fn loops_and_memory_use_end_only_their_own_call() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let spin = wire.request("tools.execute", json!({"name": "spin"}));
    let eat = wire.request("tools.execute", json!({"name": "eat"}));
    let greet = wire.tool("greet", json!({"name": "them"}));
    assert_eq!(text(&greet), "hello them");
    let spun = wire.answer(spin)["result"].take();
    assert_eq!((&spun["is_error"], &spun["metadata"]["timed_out"]), (&json!(true), &json!(true)), "{spun}");
    assert!(text(&spun).contains("before the loop"), "{spun}");
    let eaten = wire.answer(eat)["result"].take();
    assert_eq!(eaten["is_error"], true, "{eaten}");
    assert!(text(&eaten).contains("memory"), "{eaten}");
    assert_eq!(text(&wire.tool("greet", json!({"name": "us"}))), "hello us");
}

#[test]
fn a_call_is_cancelled_by_request_by_notification_and_by_disconnect() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let start = |wire: &mut Wire, call_id: &str| {
        let params = json!({"name": "wait_for_ever", "call_id": call_id, "progress": true});
        let id = wire.request("tools.execute", params);
        assert_eq!(wire.notification("tools.progress")["call_id"], call_id);
        id
    };
    let id = start(&mut wire, "a");
    assert_eq!(wire.result("tools.cancel", json!({"call_id": "a"})), json!({"cancelled": true}));
    assert_eq!(wire.answer(id)["error"]["code"], -32800);
    assert_eq!(wire.result("tools.cancel", json!({"call_id": "a"})), json!({"cancelled": false}));

    let id = start(&mut wire, "b");
    wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(wire.answer(id)["error"]["code"], -32800);

    let mut leaver = daemon.connect();
    start(&mut leaver, "c");
    drop(leaver);
    until("the call of the one that left has ended", || {
        let calls = wire.result("daemon.status", json!({}))["calls"].take();
        (calls["in_flight"] == 0 && calls["outcomes"]["cancelled"] == 3).then_some(())
    });
}

#[test]
fn a_request_may_limit_its_time() {
    let daemon = daemon();
    let result = daemon.connect().result("tools.execute", json!({"name": "wait_for_ever", "timeout_ms": 50}));
    assert_eq!((&result["is_error"], &result["metadata"]["timed_out"]), (&json!(true), &json!(true)));
}

#[test]
fn a_client_that_ends_its_side_is_answered_first() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let id = wire.request("tools.execute", json!({"name": "one_by_one", "arguments": {"text": "late"}}));
    wire.end_sending();
    assert_eq!(text(&wire.answer(id)["result"]), "late");
    assert!(wire.next_message().is_none());
}

#[test]
fn ids_of_calls_and_requests_in_flight_are_not_given_twice() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let params = json!({"name": "wait_for_ever", "call_id": "x", "progress": true});
    let id = wire.request("tools.execute", params.clone());
    wire.notification("tools.progress");
    assert_eq!(wire.error("tools.execute", params)["code"], -32602);
    wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "daemon.ping"}));
    assert_eq!(wire.answer(id)["error"]["code"], -32600);
    wire.result("tools.cancel", json!({"call_id": "x"}));
    assert_eq!(wire.answer(id)["error"]["code"], -32800);
}

#[test]
fn more_calls_than_the_limit_are_answered_overloaded() {
    let daemon = Setup::new().plugin("tools.lua", TOOLS).config("[limits]\ncalls_per_connection = 2\n").start();
    let mut wire = daemon.connect();
    for call_id in ["a", "b"] {
        wire.request("tools.execute", json!({"name": "wait_for_ever", "call_id": call_id, "progress": true}));
        wire.notification("tools.progress");
    }
    let error = wire.error("tools.execute", json!({"name": "greet", "arguments": {"name": "x"}}));
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32005), &json!("overloaded")));
    assert_eq!(text(&daemon.connect().tool("greet", json!({"name": "other"}))), "hello other");
}

#[test]
fn serial_calls_of_a_session_run_one_by_one_and_can_be_interrupted() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let first =
        wire.request("tools.execute", json!({"name": "one_by_one", "arguments": {"text": "1"}, "progress": true}));
    wire.notification("tools.progress");
    let waiting = wire.request("tools.execute", json!({"name": "one_by_one", "arguments": {"text": "2"}}));
    let skipped = wire.result("tools.interrupt", json!({}));
    let second = wire.answer(waiting)["result"].take();
    // The first call may have ended before the interrupt arrived; then there was nothing left to skip.
    match skipped["skipped"].as_u64().unwrap() {
        0 => assert_eq!(text(&second), "2"),
        n => assert_eq!((n, &second["metadata"]["skipped"]), (1, &json!(true))),
    }
    assert_eq!(text(&wire.answer(first)["result"]), "1");
}

#[test]
fn a_batch_answers_in_the_order_of_its_calls() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    for strategy in [json!("auto"), json!("sequential"), json!("parallel"), json!({"batched": 2})] {
        let results = wire.result(
            "tools.execute_batch",
            json!({"strategy": strategy, "calls": [
                {"name": "one_by_one", "arguments": {"text": "first"}, "call_id": "1"},
                {"name": "greet", "arguments": {"name": "second"}, "call_id": "2"},
                {"name": "no_such_tool", "call_id": "3"},
                {"name": "fail", "call_id": "4"},
                {"name": "greet", "call_id": "5"},
            ]}),
        );
        let results = results["results"].as_array().unwrap();
        let ids: Vec<&str> = results.iter().map(|item| item["call_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "5"]);
        assert_eq!((text(&results[0]["result"]), text(&results[1]["result"])), ("first", "hello second"));
        assert_eq!((&results[2]["error"]["code"], &results[4]["error"]["code"]), (&json!(-32001), &json!(-32602)));
        assert_eq!(results[3]["result"]["is_error"], true);
    }
    assert_eq!(wire.error("tools.execute_batch", json!({"calls": [], "strategy": {"batched": 0}}))["code"], -32602);
    assert_eq!(wire.result("tools.execute_batch", json!({"calls": []})), json!({"results": []}));
    let error = wire.error("tools.execute_batch", json!({"calls": [{"name": "list"}, {"tool": "list"}]}));
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32602), &json!("invalid params: calls[1]: missing field `name`"))
    );
}

#[test]
fn every_call_has_one_start_and_one_end() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    wire.result("events.subscribe", json!({"kinds": ["call.started", "call.finished"]}));
    let mut other = daemon.connect();
    other.tool("greet", json!({"name": "x"}));
    other.tool("fail", json!({}));
    other.error("tools.execute", json!({"name": "greet"}));
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let started = wire.notification("events.event")["result"].take();
        let finished = wire.notification("events.event")["result"].take();
        assert_eq!((&started["kind"], &finished["kind"]), (&json!("call.started"), &json!("call.finished")));
        assert_eq!(started["call_id"], finished["call_id"]);
        outcomes.push(finished["outcome"].as_str().unwrap().to_owned());
    }
    assert_eq!(outcomes, ["ok", "error", "invalid_args"]);
}

#[test]
fn denied_call_says_how_to_allow_it() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let result = wire.tool("bash", json!({"command": "touch made"}));
    assert_eq!(result["is_error"], true);
    let permission = &result["metadata"]["permission"];
    assert_eq!((&permission["category"], &permission["target"]), (&json!("shell"), &json!("touch made")));
    assert!(text(&result).contains("toolctl permissions grant shell"), "{result}");
    assert!(!daemon.work().join("made").exists());
}

#[test]
fn a_rule_of_the_configuration_allows() {
    let config = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"echo *\"\naction = \"allow\"\n";
    let daemon = Setup::new().config(config).start();
    let mut wire = daemon.connect();
    let result = wire.tool("bash", json!({"command": "echo out; echo err >&2"}));
    assert_eq!(result["is_error"], false, "{result}");
    assert!(text(&result).contains("out") && text(&result).contains("err"), "{result}");
    let result = wire.tool("bash", json!({"command": "echo fine; touch made"}));
    assert_eq!(result["metadata"]["permission"]["target"], "touch made", "{result}");
}

#[test]
fn a_configuration_that_cannot_be_read_denies_and_says_so() {
    let config = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"alow\"\n";
    let daemon = Setup::new().config(config).file("a.txt", "text\n").start();
    let mut wire = daemon.connect();
    let result = wire.tool("bash", json!({"command": "echo hi"}));
    assert_eq!(result["is_error"], true, "{result}");
    assert_eq!(wire.tool("read", json!({"path": "a.txt"}))["is_error"], false, "the built-ins serve all the same");
    let problems = wire.result("daemon.status", json!({}))["problems"].to_string();
    assert!(problems.contains("config.toml") && problems.contains("alow"), "{problems}");
}

#[test]
fn two_sessions_do_not_wait_for_each_other() {
    let daemon = daemon();
    let (mut one, mut two) = (daemon.connect(), daemon.connect());
    let id = one.request("tools.execute", json!({"name": "wait_for_ever", "call_id": "w", "progress": true}));
    one.notification("tools.progress");
    assert_eq!(text(&two.tool("one_by_one", json!({"text": "free"}))), "free");
    one.result("tools.cancel", json!({"call_id": "w"}));
    one.answer(id);
}

#[test]
fn the_log_names_the_call_in_its_lines() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    wire.result("tools.execute", json!({"name": "greet", "arguments": {"name": "x"}, "call_id": "traced"}));
    let log = daemon.log();
    assert!(log.lines().filter(|line| line.contains("traced")).count() >= 2, "{log}");
}

#[test]
fn progress_that_nobody_reads_is_dropped_and_counted() {
    let flood = r#"
hygge.register_tool{
  name = "flood", description = "Tells much", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx) for i = 1, 20000 do ctx.progress(("x"):rep(1000)) end return "done" end,
}"#;
    let daemon = Setup::new().plugin("flood.lua", flood).start();
    let mut wire = daemon.connect();
    let id = wire.request("tools.execute", json!({"name": "flood", "progress": true}));
    // Not read until the call is over, as another client sees it.
    let mut other = daemon.connect();
    until("the flood is over", || (other.result("daemon.status", json!({}))["calls"]["finished"] == 1).then_some(()));
    let (mut got, mut dropped, mut next) = (0, 0, 0);
    loop {
        let message = wire.next_message().unwrap();
        if message["id"] == id {
            assert_eq!(text(&message["result"]), "done");
            break;
        }
        let lost = message["params"]["dropped"].as_u64().unwrap_or(0);
        assert_eq!(message["params"]["seq"].as_u64().unwrap(), next + lost);
        next = message["params"]["seq"].as_u64().unwrap() + 1;
        dropped += lost;
        got += 1;
    }
    assert!(got > 0 && got + dropped <= 20_000, "{got} came, {dropped} were dropped");
}

#[test]
fn a_long_result_keeps_its_ends_and_the_whole_can_be_read() {
    let long = r#"
hygge.register_tool{
  name = "long", description = "Says much", input_schema = {type = "object"},
  execute = function()
    local lines = {}
    for i = 1, 20000 do lines[i] = "line " .. i end
    return table.concat(lines, "\n")
  end,
}"#;
    let daemon = Setup::new().plugin("long.lua", long).start();
    let mut wire = daemon.connect();
    let result = wire.tool("long", json!({}));
    let shown = text(&result);
    assert!(shown.starts_with("line 1\n") && shown.contains("line 20000\n") && shown.len() < 70_000);
    assert!(shown.contains("bytes cut"), "{}", &shown[shown.len() - 200..]);
    let spool = result["metadata"]["spool"].as_str().unwrap();
    let read = wire.tool("read", json!({"path": spool, "offset": 10000, "limit": 1}));
    assert!(text(&read).contains("line 10000"), "{read}");
    // It belongs to the session.
    let other = daemon.connect().tool("read", json!({"path": spool}));
    assert_eq!(other["is_error"], true, "{other}");
}

#[test]
fn calls_in_flight_are_cancelled_when_the_daemon_stops() {
    let mut daemon = daemon();
    let (mut wire, mut person) = (daemon.connect(), daemon.connect());
    person.result("permissions.subscribe", json!({}));
    let waiting = wire.request("tools.execute", json!({"name": "wait_for_ever", "progress": true}));
    wire.notification("tools.progress");
    let mut other = daemon.connect();
    let asking = other.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch x"}}));
    person.notification("permissions.event");
    person.result("daemon.shutdown", json!({"drain_ms": 0}));
    assert_eq!(wire.answer(waiting)["error"]["code"], -32800);
    let answer = other.answer(asking);
    let code = answer["error"]["code"].as_i64();
    let is_told = text(&answer["result"]).starts_with("not run: the daemon was restarted or stopped");
    assert!(matches!(code, Some(-32800 | -32002)) || is_told, "{answer}");
    assert!(daemon.wait().success());
}
