//! Many tools: ranked search, the short list with `tools_search` and `tools_call`, and tools that are disabled or renamed.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, until};

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "greet", label = "Greet somebody", description = "Says hello. In any language.",
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input) ctx.progress("greeting") return "hello " .. input.name end,
}
hygge.register_tool{
  name = "relay", description = "Passes a call on", permission = false,
  execute = function(ctx, input) return hygge.call_tool("greet", {name = "relay"}).content end,
}
hygge.register_tool{
  name = "forever", description = "Waits", permission = false,
  execute = function(ctx, input) ctx.progress("waiting") hygge.sleep("60s") return "never" end,
}
"#;
const ALLOW: &str = "[[permission.rules]]\ncategory = \"plugin\"\npattern = \"greet\"\naction = \"allow\"\n";
const DENY: &str = "[[permission.rules]]\ncategory = \"plugin\"\npattern = \"greet\"\naction = \"deny\"\n";
const SHORT: [&str; 10] =
    ["bash", "edit", "glob", "grep", "list", "read", "todo", "tools_call", "tools_search", "write"];

fn daemon(config: &str) -> TestDaemon {
    Setup::new().plugin("greet.lua", PLUGIN).config(config).start()
}

fn client(daemon: &TestDaemon, name: &str, tools: Value) -> Wire {
    let mut wire = Wire::connect(&daemon.socket());
    let params = json!({"cwd": daemon.work(), "client": {"name": name}, "tools": tools});
    wire.result("session.open", params);
    wire
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn listed(wire: &mut Wire, params: Value) -> Vec<String> {
    names(&wire.result("tools.list", params)).into_iter().map(str::to_owned).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn refusal(wire: &mut Wire, name: &str) -> String {
    let error = wire.error("tools.execute", json!({"name": name}));
    assert_eq!(error["data"]["kind"], "unknown_tool", "{error}");
    error["message"].as_str().unwrap().to_owned()
}

fn write_config(daemon: &TestDaemon, text: &str) {
    std::fs::write(daemon.setup.path("config/toold/config.toml"), text).unwrap();
    let reloaded = daemon.connect().result("daemon.reload", json!({}));
    assert_eq!(reloaded["applied"], true, "{reloaded}");
}

#[test]
fn a_search_returns_names_and_one_line_each_and_schemas_on_request() {
    let daemon = daemon("");
    let mut wire = daemon.connect();
    let found = wire.result("tools.search", json!({"query": "saying hello"}));
    assert_eq!(found["tools"][0]["name"], "greet");
    assert_eq!(found["tools"][0]["description"], "Says hello");
    assert!(found["tools"][0].get("input_schema").is_none(), "{found}");
    let found = wire.result("tools.search", json!({"query": "read file", "limit": 1, "schemas": true}));
    assert_eq!(names(&found), ["read"]);
    assert!(found["tools"][0]["input_schema"]["properties"]["path"].is_object(), "{found}");
    assert!(found["more"].as_u64().unwrap() > 0, "{found}");
    let found = wire.result("tools.search", json!({"query": "", "source": "plugin"}));
    assert_eq!(names(&found), ["forever", "greet", "relay"]);
    let mut narrow = client(&daemon, "narrow", json!({"disable": ["greet"]}));
    assert!(!names(&narrow.result("tools.search", json!({"query": "greet hello"}))).contains(&"greet"));
}

#[test]
fn a_search_follows_the_registry() {
    let daemon = daemon("");
    let mut wire = daemon.connect();
    assert_eq!(wire.result("tools.search", json!({"query": "marmalade"}))["tools"], json!([]));
    let late = "hygge.register_tool{name = 'late', description = 'Makes marmalade', execute = function() end}";
    std::fs::write(daemon.plugins().join("late.lua"), late).unwrap();
    until("it is found", || {
        (names(&wire.result("tools.search", json!({"query": "marmalade"}))) == ["late"]).then_some(())
    });
}

#[test]
fn the_short_list_has_the_pinned_tools_and_two_that_reach_the_others() {
    let daemon = daemon("[mcp.clients.thin]\nlisting = \"deferred\"\n");
    let mut wire = daemon.connect();
    assert_eq!(listed(&mut wire, json!({"mode": "deferred"})), SHORT);
    let all = listed(&mut wire, json!({}));
    assert!(all.contains(&"greet".to_owned()) && !all.contains(&"tools_call".to_owned()), "{all:?}");
    let openai = wire.result("tools.list", json!({"mode": "deferred", "format": "openai"}));
    assert_eq!(openai["tools"].as_array().unwrap().len(), SHORT.len());
    let prompt = wire.result("prompt.render", json!({"mode": "deferred"}))["text"].take();
    assert!(prompt.as_str().unwrap().contains("tools_search") && !prompt.as_str().unwrap().contains("greet"));

    let mut thin = client(&daemon, "thin", Value::Null);
    assert_eq!(listed(&mut thin, json!({})), SHORT);
    assert_eq!(listed(&mut thin, json!({"mode": "all"})), all);
    assert_eq!(listed(&mut thin, json!({"names": ["greet"]})), ["greet"], "a tool that was asked for is shown");
    assert_eq!(thin.result("tools.schema", json!({"name": "tools_call"}))["name"], "tools_call");
}

#[test]
fn pinned_tools_are_configured_and_a_change_is_a_new_revision() {
    let daemon = daemon("[tools]\npinned = [\"gr*\"]\n");
    let mut wire = daemon.connect();
    let list = wire.result("tools.list", json!({"mode": "deferred"}));
    assert_eq!(names(&list), ["greet", "grep", "tools_call", "tools_search"]);
    write_config(&daemon, "[tools]\npinned = [\"read\"]\n");
    let params = json!({"mode": "deferred", "if_revision": list["revision"], "if_epoch": list["epoch"]});
    assert_eq!(listed(&mut wire, params), ["read", "tools_call", "tools_search"]);
}

#[test]
fn tools_call_is_a_call_of_the_tool_that_it_names() {
    let daemon = daemon(ALLOW);
    let mut wire = daemon.connect();
    let arguments = json!({"name": "greet", "arguments": {"name": "you"}});
    let params = json!({"name": "tools_call", "arguments": arguments, "progress": true, "call_id": "c"});
    let id = wire.request("tools.execute", params);
    assert_eq!(wire.notification("tools.progress")["text"], "greeting");
    assert_eq!(text(&wire.answer(id)["result"]), "hello you");
    // Models write nested objects as text, too.
    let as_text = json!({"name": "greet", "arguments": "{\"name\": \"two\"}"});
    assert_eq!(text(&wire.tool("tools_call", as_text)), "hello two");
    let batch = json!({"calls": [{"name": "tools_call", "arguments": arguments}, {"name": "tools_search", "arguments": {"query": "greet"}}]});
    let results = wire.result("tools.execute_batch", batch);
    assert_eq!(text(&results["results"][0]["result"]), "hello you");
    assert_eq!(results["results"][1]["result"]["structured"]["tools"][0]["name"], "greet");
    let audited = until("the calls are in the audit log", || {
        let entries = wire.result("audit.query", json!({}))["entries"].take();
        (entries.as_array().unwrap().len() == 4).then_some(entries)
    });
    let mut tools: Vec<&str> =
        audited.as_array().unwrap().iter().map(|entry| entry["tool"].as_str().unwrap()).collect();
    tools.sort_unstable();
    assert_eq!(tools, ["greet", "greet", "greet", "tools_search"]);

    for (arguments, words) in [
        (json!({}), "/name"),
        (json!({"name": "greet", "arguments": [1]}), "/arguments"),
        (json!({"name": "greet", "who": "you"}), "arguments of greet belong into `arguments`"),
    ] {
        let error = wire.error("tools.execute", json!({"name": "tools_call", "arguments": arguments}));
        let shown = error.to_string();
        assert!(error["data"]["kind"] == "invalid_args" && shown.contains(words), "{shown}");
    }
    let error = wire.error("tools.execute", json!({"name": "tools_call", "arguments": {"name": "greet"}}));
    assert!(error.to_string().contains("greet"), "its own schema is checked: {error}");
    let error = wire.error("tools.execute", json!({"name": "tools_call", "arguments": {"name": "tools_call"}}));
    assert_eq!(error["data"]["kind"], "unknown_tool");
}

#[test]
fn tools_call_gives_nobody_more_than_a_direct_call() {
    let daemon = daemon(DENY);
    let arguments = json!({"name": "greet", "arguments": {"name": "you"}});
    let denied = daemon.connect().tool("tools_call", arguments.clone());
    assert_eq!(denied["metadata"]["permission"]["target"], "greet");
    for filter in [json!({"disable": ["greet"]}), json!({"enable": ["read"]}), json!({"sources": ["builtin"]})] {
        let mut narrow = client(&daemon, "narrow", filter);
        let error = narrow.error("tools.execute", json!({"name": "tools_call", "arguments": arguments}));
        assert_eq!(error["data"]["kind"], "unknown_tool");
        let found = narrow.tool("tools_search", json!({"query": "greet"}));
        assert!(!found["structured"].to_string().contains("greet"), "{found}");
    }
}

#[test]
fn a_call_by_tools_call_is_cancelled_like_any_other() {
    let daemon = daemon("");
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    let session = wire.result("session.list", json!({}))["sessions"][0]["session_id"].take();
    let params = json!({"name": "tools_call", "arguments": {"name": "forever"}, "progress": true, "call_id": "c"});
    let id = wire.request("tools.execute", params);
    wire.notification("tools.progress");
    let calls = wire.result("calls.list", json!({}));
    assert_eq!(calls["calls"][0]["tool"], "forever", "{session} {calls}");
    assert_eq!(other.result("tools.cancel", json!({"call_id": "c"}))["cancelled"], false);
    assert_eq!(wire.result("tools.cancel", json!({"call_id": "c"}))["cancelled"], true);
    assert_eq!(wire.answer(id)["error"]["data"]["kind"], "cancelled");
    let detached = json!({"name": "tools_call", "arguments": {"name": "relay"}, "detach": true, "call_id": "d"});
    wire.result("tools.execute", detached);
    assert_eq!(wire.result("calls.get", json!({"call_id": "d"}))["tool"], "relay");
}

#[test]
fn a_disabled_tool_is_neither_listed_nor_callable_and_the_error_names_the_setting() {
    let daemon = daemon("[tools]\ndisable = [\"web_*\", \"greet\"]\n");
    let mut wire = daemon.connect();
    let all = listed(&mut wire, json!({}));
    assert!(!all.iter().any(|name| name.starts_with("web_") || name == "greet"), "{all:?}");
    let words = refusal(&mut wire, "web_fetch");
    assert!(words.contains("disabled") && words.contains("\"web_*\"") && words.contains("config.toml:2"), "{words}");
    assert!(refusal(&mut wire, "greet").contains("\"greet\" in tools.disable"));
    let relayed = wire.tool("relay", json!({}));
    assert!(relayed["is_error"] == true && relayed.to_string().contains("disabled"), "plugins too: {relayed}");
    assert_eq!(wire.result("tools.search", json!({"query": "greet hello"}))["tools"], json!([]));
    // A session that would not see the tool does not learn about it.
    let mut narrow = client(&daemon, "narrow", json!({"sources": ["builtin"]}));
    assert!(!refusal(&mut narrow, "greet").contains("disabled"));

    write_config(&daemon, "[tools]\ndisable = [\"read\"]\n");
    let all = listed(&mut wire, json!({}));
    assert!(all.contains(&"greet".to_owned()) && !all.contains(&"read".to_owned()), "{all:?}");
    write_config(&daemon, "");
    assert!(listed(&mut wire, json!({})).contains(&"read".to_owned()));
}

#[test]
fn a_renamed_tool_answers_to_its_new_name_alone() {
    let daemon = daemon(&format!("{ALLOW}[tools.rename]\ngreet = \"hello\"\nread = \"write\"\nwrite = \"read\"\n"));
    let mut wire = daemon.connect();
    let all = listed(&mut wire, json!({}));
    assert!(all.contains(&"hello".to_owned()) && !all.contains(&"greet".to_owned()), "{all:?}");
    assert_eq!(text(&wire.tool("hello", json!({"name": "you"}))), "hello you");
    let words = refusal(&mut wire, "greet");
    assert!(words.contains("it is called hello here") && words.contains("config.toml:6"), "{words}");
    assert_eq!(wire.tool("relay", json!({}))["content"][0]["text"], "hello relay", "plugins call it by its own name");
    let required =
        |wire: &mut Wire, name| wire.result("tools.schema", json!({"name": name}))["input_schema"]["required"].take();
    assert_eq!(required(&mut wire, "write"), json!(["path"]), "two tools can swap their names");
    assert_eq!(wire.result("tools.search", json!({"query": "hello"}))["tools"][0]["name"], "hello");
    let error = wire.error("tools.execute", json!({"name": "hello"}));
    assert!(error["message"].as_str().unwrap().contains("hello"), "{error}");

    write_config(&daemon, ALLOW);
    assert_eq!(text(&wire.tool("greet", json!({"name": "you"}))), "hello you");
}

#[test]
fn a_rename_gives_nobody_more() {
    let hook = "[[hooks]]\nevent = \"pre_tool\"\ncommand = [\"sh\", \"-c\", \"exit 2\"]\ntools = [\"todo\"]\nfail = \"closed\"\n";
    let daemon = daemon(&format!("{DENY}{hook}[tools.rename]\ngreet = \"hello\"\ntodo = \"notes\"\n"));
    let mut wire = daemon.connect();
    let denied = wire.tool("hello", json!({"name": "you"}));
    assert_eq!(denied["metadata"]["permission"]["target"], "greet", "rules are for the tool: {denied}");
    let denied = wire.tool("notes", json!({"items": []}));
    assert!(denied["is_error"] == true && denied.to_string().contains("denied"), "hooks are for the tool: {denied}");
    // Filters leave a tool out by either name, and take it in only by its own.
    for filter in [json!({"disable": ["greet"]}), json!({"disable": ["hello"]}), json!({"enable": ["hello"]})] {
        assert!(!listed(&mut client(&daemon, "narrow", filter), json!({})).contains(&"hello".to_owned()));
    }
    assert_eq!(listed(&mut client(&daemon, "narrow", json!({"enable": ["greet"]})), json!({})), ["hello"]);
    let audited = until("the calls are in the audit log", || {
        let entries = wire.result("audit.query", json!({}))["entries"].take();
        (entries.as_array().unwrap().len() == 2).then_some(entries)
    });
    assert!(audited.to_string().contains("\"greet\"") && !audited.to_string().contains("\"hello\""), "{audited}");
}

#[test]
fn provided_and_mounted_tools_are_disabled_and_renamed_too() {
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let config = format!(
        "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n\
         [mcp.servers.s]\ncommand = \"python3\"\nargs = [{stand_in:?}]\n\
         [tools]\ndisable = [\"s_[!e]*\", \"editor_close\"]\n[tools.rename]\ns_echo = \"echo\"\neditor_open = \"open\"\n"
    );
    let daemon = daemon(&config);
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    let tool = |name: &str| json!({"name": name, "description": "", "input_schema": {"type": "object"}});
    editor.result("tools.provide", json!({"tools": [tool("editor_open"), tool("editor_close"), tool("echo")]}));
    until("the tools are listed", || {
        let schema = |agent: &mut Wire, name: &str| agent.call("tools.schema", json!({"name": name}))["result"].take();
        (schema(&mut agent, "echo")["source"]["kind"] == "mcp" && !schema(&mut agent, "open").is_null()).then_some(())
    });
    let all = listed(&mut agent, json!({}));
    assert!(!all.iter().any(|name| name.starts_with("s_") || name.starts_with("editor_")), "{all:?}");
    assert!(refusal(&mut agent, "editor_close").contains("tools.disable"));
    // The configuration names tools of frontends that are not there while it is checked.
    until("their names are remembered", || {
        (daemon.toolctl(&["config", "check"]).status.code() == Some(0)).then_some(())
    });
    // A frontend does not get the name that a person gave to another tool.
    assert_eq!(agent.result("tools.schema", json!({"name": "echo"}))["source"]["kind"], "mcp");
    assert!(text(&agent.tool("echo", json!({"text": "tea"}))).contains("tea"));
}

#[track_caller]
fn check_config(config: &str, words: &[&str]) {
    let setup = Setup::new().plugin("greet.lua", PLUGIN).config(config);
    let output = setup.command(toolctl()).args(["config", "check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(if words.is_empty() { 0 } else { 1 }), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn names_that_conflict_and_names_that_nothing_has_are_errors_of_the_configuration() {
    check_config("[tools]\ndisable = [\"greet\", \"web_*\"]\n[tools.rename]\nbash = \"shell\"\n", &[]);
    check_config("[tools.rename]\nread = \"write\"\nwrite = \"read\"\n", &[]);
    check_config("[mcp.servers.github]\ncommand = \"x\"\n[tools]\ndisable = [\"github_delete_*\"]\n", &[]);
    check_config(
        "[tools]\ndisable = [\"gret\"]\n",
        &["config.toml:2: ", "no tool is called gret", "did you mean greet"],
    );
    check_config("[tools]\npinned = [\"nothing_*\"]\n", &["no tool is called nothing_*"]);
    check_config("[tools]\ndisable = [\"[\"]\n", &["config.toml:2: tools.disable: "]);
    check_config("[tools.rename]\nnothing = \"other\"\n", &["config.toml:2: ", "no tool is called nothing"]);
    check_config("[tools.rename]\nbash = \"grep\"\n", &["config.toml:2: ", "a built-in tool is called grep"]);
    check_config("[tools.rename]\nbash = \"x\"\ngrep = \"x\"\n", &["config.toml:3: ", "bash is called x already"]);
    check_config("[tools.rename]\nbash = \"Shell\"\n", &["config.toml:2: ", "is not a tool name"]);
    check_config("[tools.rename]\nbash = \"tools_call\"\n", &["finds and calls others"]);
    check_config("[tools]\ndisable = [\"ba*\"]\n[tools.rename]\nbash = \"x\"\n", &["bash is disabled by"]);
    check_config("[tools]\ndisable = [\"x\"]\n[tools.rename]\nbash = \"x\"\n", &["it is the new name of bash"]);
}

#[test]
fn a_pattern_that_cannot_be_read_denies_rather_than_allows() {
    let daemon = daemon("[tools]\ndisable = [\"[\"]\n");
    let denied = daemon.connect().tool("bash", json!({"command": "touch x"}));
    assert!(denied["is_error"] == true && denied.to_string().contains("tools.disable"), "{denied}");
}

#[test]
fn the_cost_of_lists_is_shown_by_source_and_client() {
    let daemon = daemon("[mcp.clients.thin]\nlisting = \"deferred\"\n");
    let mut wire = daemon.connect();
    let _thin = client(&daemon, "thin", json!({"enable": ["read"]}));
    let costs = wire.result("tools.cost", json!({}));
    let sum = |key: &str| -> u64 {
        costs["sources"].as_array().unwrap().iter().map(|source| source[key]["tokens"].as_u64().unwrap()).sum()
    };
    let total = |list: &str| costs[list]["tokens"].as_u64().unwrap();
    assert_eq!(sum("all"), total("all"));
    assert!(sum("deferred") < total("deferred") && total("deferred") < total("all"), "{costs}");
    let thin = costs["clients"].as_array().unwrap().iter().find(|client| client["client"] == "thin").unwrap();
    assert_eq!((&thin["listing"], &thin["list"]["tools"]), (&json!("deferred"), &json!(3)));

    let shown = daemon.toolctl(&["tools", "cost"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("plugin greet") && shown.contains('█') && shown.contains("4 bytes"), "{shown}");
    let json = daemon.toolctl(&["tools", "cost", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).unwrap()["all"], costs["all"]);
    let found = daemon.toolctl(&["tools", "search", "say", "hello"]);
    assert!(String::from_utf8_lossy(&found.stdout).trim_start().starts_with("greet"), "{found:?}");
}
