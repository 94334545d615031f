//! Hooks of plugins and of the configuration, around every call and for a frontend's own messages.

use serde_json::{Value, json};
use toold_tests::Setup;

const ECHO: &str = r#"
hygge.register_tool{
  name = "echo", description = "Gives its text back", parallelizable = true,
  input_schema = {type = "object", properties = {text = {type = "string"}}, required = {"text"}},
  execute = function(ctx, input) return input.text end,
}
hygge.register_tool{
  name = "outer", description = "Calls echo", parallelizable = true,
  input_schema = {type = "object"},
  execute = function() return hygge.call_tool("echo", {text = "inner"}) end,
}
"#;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// A hook of the configuration that runs this shell script.
fn hook(event: &str, script: &str, more: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n{more}\n")
}

#[test]
fn a_command_may_deny_change_and_withhold() {
    let config = [
        hook("pre_tool", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; exit 0", "tools = [\"echo\"]"),
        hook("pre_tool", "if grep -q polite; then echo '{\"modified_tool_input\": {\"text\": \"please\"}}'; fi", ""),
        hook("post_tool", "if grep -q loud; then echo '{\"modified_tool_result\": \"HUSH\"}'; fi", ""),
    ];
    let daemon = Setup::new().config(&config.concat()).plugin("echo.lua", ECHO).start();
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("echo", json!({"text": "plain"}))), "plain");
    let denied = wire.tool("echo", json!({"text": "a secret"}));
    assert!(denied["is_error"] == true && text(&denied).contains("no secrets"), "{denied}");
    assert_eq!(text(&wire.tool("echo", json!({"text": "polite"}))), "please");
    assert_eq!(text(&wire.tool("echo", json!({"text": "loud"}))), "HUSH");
    let listed = wire.result("hooks.list", json!({}));
    assert_eq!(listed["hooks"].as_array().unwrap().len(), 3);
    assert_eq!(listed["hooks"][0]["event"], "pre_tool");
}

#[test]
fn arguments_changed_by_a_hook_are_checked_again() {
    let config = hook("pre_tool", "echo '{\"modified_tool_input\": {\"text\": true}}'", "");
    let daemon = Setup::new().config(&config).plugin("echo.lua", ECHO).start();
    let error = daemon.connect().error("tools.execute", json!({"name": "echo", "arguments": {"text": "x"}}));
    assert_eq!((&error["code"], &error["data"]["errors"][0]["path"]), (&json!(-32602), &json!("/text")));
}

#[test]
fn a_hook_that_fails_lets_go_on_or_not_as_it_says() {
    for (fail, script, denied) in [
        ("open", "exit 1", false),
        ("closed", "echo broken >&2; exit 1", true),
        ("open", "echo not json", false),
        ("closed", "sleep 60", true),
    ] {
        let config = hook("pre_tool", script, &format!("timeout_ms = 300\nfail = \"{fail}\""));
        let daemon = Setup::new().config(&config).plugin("echo.lua", ECHO).start();
        let result = daemon.connect().tool("echo", json!({"text": "through"}));
        assert_eq!(result["is_error"], denied, "{fail} {script}: {result}");
    }
}

#[test]
fn hooks_see_calls_that_plugins_make_and_run_in_order() {
    let plugin = r#"
hygge.register_hook("pre_tool", {name = "second", priority = 5, tools = {"ech*"}}, function(e)
  return {decision = "modify", modified_tool_input = {text = e.tool_input.text .. " second"}}
end)
hygge.register_hook("pre_tool", {name = "first", priority = -5, tools = {"echo"}}, function(e)
  return {decision = "modify", modified_tool_input = {text = e.tool_input.text .. " first"}}
end)
"#;
    let daemon = Setup::new().plugin("echo.lua", ECHO).plugin("hooks.lua", plugin).start();
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("outer", json!({}))), "inner first second");
    let names: Vec<Value> =
        wire.result("hooks.list", json!({}))["hooks"].as_array().unwrap().iter().map(|h| h["name"].clone()).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn no_call_slips_by_a_hook_that_is_still_being_loaded() {
    let slow = r#"
hygge.sleep("2s")
hygge.register_hook("pre_tool", function(e) return {decision = "deny", reason = "not before breakfast"} end)
"#;
    let batch = json!({"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]});
    let read = json!({"name": "read", "arguments": {"path": "a.txt"}});
    for (method, params) in [("tools.execute", read), ("tools.execute_batch", batch)] {
        let daemon = Setup::new().file("a.txt", "here").plugin("slow.lua", slow).start();
        let result = daemon.connect().result(method, params);
        assert!(result.to_string().contains("not before breakfast"), "{method}: {result}");
    }
}

#[test]
fn message_hooks_are_run_for_a_frontend() {
    let plugin = r#"
hygge.register_hook("pre_message", function(e)
  if e.message.text == "stop" then return {decision = "deny", reason = "said stop"} end
  return {decision = "modify", modified_message = {text = e.message.text .. "!"}, system_prompt_append = "Be brief."}
end)
"#;
    let daemon = Setup::new().plugin("hooks.lua", plugin).start();
    let mut wire = daemon.connect();
    wire.result("plugins.list", json!({}));
    let run = |text: &str| json!({"event": "pre_message", "message": {"text": text}});
    let action = wire.result("hooks.run", run("hi"));
    assert_eq!(
        action,
        json!({
            "decision": "modify", "modified_message": {"text": "hi!"}, "system_prompt_append": "Be brief."
        })
    );
    assert_eq!(wire.result("hooks.run", run("stop")), json!({"decision": "deny", "reason": "said stop"}));
    let other = wire.result("hooks.run", json!({"event": "post_message", "message": {}}));
    assert_eq!(other, json!({"decision": "allow"}));
    assert_eq!(wire.error("hooks.run", json!({"event": "pre_tool", "message": {}}))["code"], -32602);
}

#[test]
fn an_asynchronous_hook_never_delays_the_call() {
    // It ends only after the call; a call that waited for it would never end.
    let config = hook("pre_tool", "while [ ! -e go ]; do sleep 0.05; done; touch seen", "mode = \"async\"");
    let daemon = Setup::new().config(&config).plugin("echo.lua", ECHO).start();
    assert_eq!(text(&daemon.connect().tool("echo", json!({"text": "x"}))), "x");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    toold_tests::until("the hook has run", || daemon.work().join("seen").exists().then_some(()));
}

#[test]
fn a_hook_that_cannot_be_read_closes_the_policy() {
    let rule = "[[permission.rules]]\ncategory = \"shell\"\npattern = \"**\"\naction = \"allow\"\n";
    let config = format!("{}{rule}", hook("before_tool", "true", ""));
    let daemon = Setup::new().config(&config).start();
    let mut wire = daemon.connect();
    assert_eq!(wire.tool("bash", json!({"command": "true"}))["is_error"], true);
    let problems = wire.result("daemon.status", json!({}))["problems"].to_string();
    assert!(problems.contains("before_tool") && problems.contains("pre_tool"), "{problems}");
}
