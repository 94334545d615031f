//! Arguments as models send them, for tools of every source; calls that are repeated; ids of calls.

use std::path::Path;

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, until};

const ALLOW: &str = r#"
[[permission.rules]]
category = "mcp"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "plugin"
pattern = "**"
action = "allow"
"#;

/// The arguments of the tools of plugin, server and frontend.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": {"type": "integer", "description": "Where to stop. Counts up."},
            "id": {"type": "string"},
            "note": {"type": "string"},
            "mode": {"enum": ["fast", "slow"]},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        },
        "required": ["to"],
    })
}

const PLUGIN: &str = r#"
hygge.register_tool{
  name = "plain", description = "Shows its arguments", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {
      to = {type = "integer", description = "Where to stop. Counts up."}, id = {type = "string"}, note = {type = "string"},
      mode = {enum = {"fast", "slow"}},
      parts = {type = "array", items = {type = "object", properties = {n = {type = "integer"}}}},
    },
    required = {"to"},
  },
  execute = function(ctx, input)
    local note = input.note == nil and "absent" or "there"
    return ("%d %s %s %s"):format(input.to, type(input.id), tostring(input.id), note)
  end,
}
"#;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Arguments that need fixing, and their fixes.
fn sent_and_fixed() -> (Value, Value) {
    (
        json!({"to": 10.0, "id": 1234567, "note": null, "parts": [{"n": 1e1}], "too": 3}),
        json!([
            {"path": "/id", "from": 1234567, "to": "1234567"},
            {"path": "/note", "from": null},
            {"path": "/parts/0/n", "from": 10.0, "to": 10},
            {"path": "/to", "from": 10.0, "to": 10},
        ]),
    )
}

#[track_caller]
fn tells_of_fixes(result: &Value) {
    let (_, fixed) = sent_and_fixed();
    assert_eq!(result["metadata"]["arguments_fixed"], fixed, "{result}");
    let unknown = json!([{"name": "too", "hint": "unknown argument \"too\": did you mean \"to\"?"}]);
    assert_eq!(result["metadata"]["arguments_unknown"], unknown);
}

#[track_caller]
fn lists_all_mistakes(error: &Value) {
    let all: Vec<&str> =
        error["data"]["errors"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    let required = all.contains(&"\"to\" is required: integer, Where to stop");
    let mode = all.contains(&"expected one of \"fast\", \"slow\", got \"fats\": did you mean \"fast\"?");
    assert!(required && mode && all.len() == 2, "{error}");
}

#[test]
fn a_plugin_s_tool_gets_fitted_arguments() {
    let daemon = Setup::new().plugin("plain.lua", PLUGIN).start();
    let mut wire = daemon.connect();
    let result = wire.tool("plain", sent_and_fixed().0);
    assert_eq!(text(&result), "10 string 1234567 absent");
    tells_of_fixes(&result);
    lists_all_mistakes(&wire.error("tools.execute", json!({"name": "plain", "arguments": {"mode": "fats"}})));
}

#[test]
fn a_mounted_server_s_tool_gets_fitted_arguments() {
    let setup = Setup::new();
    let list = setup.path("list.json");
    std::fs::write(&list, json!([{"name": "given", "description": "x", "inputSchema": schema()}]).to_string()).unwrap();
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/stand_in.py");
    let server = format!("[mcp.servers.s]\ncommand = \"python3\"\nargs = {}\n", json!([stand_in, "--list", list]));
    let daemon = setup.config(&(ALLOW.to_owned() + &server)).start();
    let mut wire = daemon.connect();
    until("the tool is listed", || wire.call("tools.schema", json!({"name": "s_given"})).get("result").map(|_| ()));
    let result = wire.tool("s_given", sent_and_fixed().0);
    let got: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(got.to_string(), json!({"to": 10, "id": "1234567", "parts": [{"n": 10}], "too": 3}).to_string());
    tells_of_fixes(&result);
    lists_all_mistakes(&wire.error("tools.execute", json!({"name": "s_given", "arguments": {"mode": "fats"}})));
}

#[test]
fn a_provided_tool_gets_fitted_arguments() {
    let daemon = Setup::new().config(ALLOW).start();
    let (mut editor, mut agent) = (daemon.connect(), daemon.connect());
    let tool = json!({"name": "given", "description": "x", "input_schema": schema(), "parallelizable": true});
    editor.result("tools.provide", json!({"tools": [tool]}));
    let id = agent.request("tools.execute", json!({"name": "given", "arguments": sent_and_fixed().0}));
    let asked = editor.notification("tools.invocation")["result"].take();
    let expected = json!({"to": 10, "id": "1234567", "parts": [{"n": 10}], "too": 3});
    assert_eq!(asked["arguments"].to_string(), expected.to_string());
    editor.result("tools.provide_result", json!({"invocation_id": asked["invocation_id"], "result": "done"}));
    tells_of_fixes(&agent.answer(id)["result"]);
    lists_all_mistakes(&agent.error("tools.execute", json!({"name": "given", "arguments": {"mode": "fats"}})));
}

#[test]
fn a_built_in_gets_fitted_arguments_and_refuses_unknown_ones_with_what_was_meant() {
    let daemon = Setup::new().file("notes.txt", "one\ntwo\n").start();
    let mut wire = daemon.connect();
    let read = wire.tool("read", json!({"path": "notes.txt", "offset": 2.0, "limit": null}));
    assert_eq!(text(&read).trim(), "2: two");
    let fixed = json!([{"path": "/limit", "from": null}, {"path": "/offset", "from": 2.0, "to": 2}]);
    assert_eq!(read["metadata"]["arguments_fixed"], fixed);
    let grep = wire.tool("grep", json!({"pattern": 2, "path": "."}));
    assert_eq!(grep["metadata"]["arguments_fixed"], json!([{"path": "/pattern", "from": 2, "to": "2"}]));

    for (tool, arguments, said) in [
        ("read", json!({"file_path": "notes.txt"}), "unknown argument \"file_path\": use \"path\""),
        ("read", json!({"filePath": "notes.txt"}), "unknown argument \"filePath\": use \"path\""),
        ("edit", json!({"path": "x", "old_string": "a", "new_string": "b"}), "\"old_string\": use \"old\""),
        ("edit", json!({"path": "x", "old_string": "a", "new_string": "b"}), "\"new_string\": use \"new\""),
        (
            "edit",
            json!({"path": "x", "edits": [{"old_str": "a", "new": "b"}]}),
            "/edits/0: unknown argument \"old_str\": use \"old\"",
        ),
        ("bash", json!({"command": "x", "timeout": 5}), "\"timeout\": use \"timeout_ms\", which is in milliseconds"),
        ("grep", json!({"pattern": "x", "-i": true}), "\"-i\": use \"ignore_case\""),
        ("grep", json!({"pattern": "x", "head_limit": 5}), "\"head_limit\": use \"max_results\""),
        (
            "grep",
            json!({"pattern": "x", "output_mode": "file"}),
            "expected one of \"content\", \"files\", \"count\", got \"file\": did you mean \"files\"?",
        ),
        ("todo", json!({"todos": []}), "\"todos\": use \"items\""),
        (
            "write",
            json!({"path": "x", "content": "y", "mode": "a"}),
            "expected one of \"overwrite\", \"create\", \"append\", got \"a\"",
        ),
        ("read", json!({"path": "x", "offset": "two"}), "/offset: expected an integer, got \"two\""),
    ] {
        let error = wire.error("tools.execute", json!({"name": tool, "arguments": arguments}));
        assert_eq!(error["data"]["kind"], "invalid_args");
        assert!(error["message"].as_str().unwrap().contains(said), "{tool} {arguments}: {error}");
    }
}

#[test]
fn toolctl_refuses_keys_that_a_tool_does_not_know() {
    let daemon = Setup::new().plugin("plain.lua", PLUGIN).start();
    let misspelt = daemon.toolctl(&["call", "plain", "to=1", "too=3"]);
    assert_eq!(misspelt.status.code(), Some(2));
    let said = String::from_utf8(misspelt.stderr).unwrap();
    assert!(said.contains("unknown argument \"too\": did you mean \"to\"?"), "{said}");
    let built_in = daemon.toolctl(&["call", "read", "file_path=x"]);
    let said = String::from_utf8(built_in.stderr).unwrap();
    assert!(said.contains("unknown argument \"file_path\": use \"path\""), "{said}");
    let json = daemon.toolctl(&["call", "plain", "--json", r#"{"to": 1, "too": 3}"#]);
    assert_eq!(json.status.code(), Some(2));
    let said = String::from_utf8(json.stderr).unwrap();
    assert!(said.contains("unknown argument \"too\": did you mean \"to\"?"), "{said}");
}

fn repeated(wire: &mut Wire, arguments: Value) -> (Value, usize) {
    let result = wire.tool("plain", arguments);
    (result["metadata"]["repeated"].clone(), result["content"].as_array().unwrap().len())
}

#[test]
fn a_repeated_call_is_told_and_from_the_configured_time_on_to_the_model() {
    let configured = |line: &str| -> TestDaemon { Setup::new().plugin("plain.lua", PLUGIN).config(line).start() };
    let daemon = configured("");
    let mut wire = daemon.connect();
    let runs: Vec<_> = (0..4).map(|_| repeated(&mut wire, json!({"to": 1, "id": "a"}))).collect();
    assert_eq!(runs, [(Value::Null, 1), (json!(2), 1), (json!(3), 1), (json!(4), 1)]);
    assert_eq!(repeated(&mut wire, json!({"to": 2})), (Value::Null, 1));
    assert_eq!(repeated(&mut daemon.connect(), json!({"to": 2})), (Value::Null, 1), "another session");

    for (line, first) in [("[results]\nwarn_repeats = true\n", 3), ("[results]\nwarn_repeats = 2\n", 2)] {
        let daemon = configured(line);
        let mut wire = daemon.connect();
        let blocks: Vec<usize> = (0..4).map(|_| repeated(&mut wire, json!({"to": 1})).1).collect();
        let expected: Vec<usize> = (1..=4).map(|time| if time < first { 1 } else { 2 }).collect();
        assert_eq!(blocks, expected, "{line}");
        let result = wire.tool("plain", json!({"to": 1}));
        assert!(result["content"][1]["text"].as_str().unwrap().contains("5 times in a row"), "{result}");
    }
}

#[test]
fn ids_of_any_length_keep_their_pairing() {
    let daemon = Setup::new().plugin("plain.lua", PLUGIN).start();
    let mut wire = daemon.connect();
    let odd = [
        "x",
        "toolu_01/+=",
        "a b",
        "ü→😀",
        "a\nb\t\0c",
        "\u{202e}\u{1b}[2J",
        "\"'`{}<|tool_call|>",
        "../../etc/passwd",
    ];
    let long =
        [64, 128, 129, 1_000, 10_000].into_iter().flat_map(|length| ["x".repeat(length), "é😀".repeat(length / 2)]);
    let ids: Vec<String> = odd.into_iter().map(str::to_owned).chain(long).collect();
    for id in &ids {
        let result = wire
            .result("tools.execute", json!({"name": "plain", "arguments": {"to": 1}, "call_id": id, "progress": true}));
        assert!(result["call_id"] == json!(id), "{} bytes", id.len());
    }
    // In one batch, in each provider's form.
    let arguments = json!({"to": 1});
    type Form = (&'static str, fn(&str, &Value) -> Value, &'static str);
    let forms: [Form; 5] = [
        ("native", |id, given| json!({"call_id": id, "name": "plain", "arguments": given}), "call_id"),
        (
            "anthropic",
            |id, given| json!({"type": "tool_use", "id": id, "name": "plain", "input": given}),
            "tool_use_id",
        ),
        (
            "openai",
            |id, given| json!({"type": "function", "id": id, "function": {"name": "plain", "arguments": given.to_string()}}),
            "tool_call_id",
        ),
        (
            "openai_responses",
            |id, given| json!({"type": "function_call", "call_id": id, "name": "plain", "arguments": given.to_string()}),
            "call_id",
        ),
        (
            "gemini",
            |id, given| json!({"functionCall": {"id": id, "name": "plain", "args": given}}),
            "/functionResponse/id",
        ),
    ];
    for (format, block, key) in forms {
        let calls: Vec<Value> = ids.iter().map(|id| block(id, &arguments)).collect();
        let answer = wire.result("tools.execute_batch", json!({"format": format, "calls": calls}));
        let results = answer["results"].as_array().unwrap();
        let id_of = |result: &Value| match key.starts_with('/') {
            true => result.pointer(key).cloned(),
            false => result.get(key).cloned(),
        };
        let paired: Vec<Option<Value>> = results.iter().map(id_of).collect();
        assert_eq!(paired.len(), ids.len());
        assert!(paired.iter().zip(&ids).all(|(found, id)| *found == Some(json!(id))), "{format}");
        assert!(results.iter().all(|result| result.to_string().contains("1 nil nil absent")), "{format}: all ran");
    }
    // An empty id is none: the call runs, and its result has the id that the provider gave.
    let empty = [block_with_empty_id(), block_with_empty_id()];
    let answer = wire.result("tools.execute_batch", json!({"format": "anthropic", "calls": empty}));
    for result in answer["results"].as_array().unwrap() {
        assert!(result["tool_use_id"] == "" && result.to_string().contains("1 nil nil absent"), "{answer}");
    }
}

fn block_with_empty_id() -> Value {
    json!({"type": "tool_use", "id": "", "name": "plain", "input": {"to": 1}})
}

/// The schema takes integers of any size, and the tools read them as integers of this machine.
#[test]
fn every_integer_of_a_built_in_tool_is_refused_by_name_if_it_is_too_large() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    let tools = wire.result("tools.list", json!({"source": "builtin"}))["tools"].take();
    let mut tried = 0;
    for tool in tools.as_array().unwrap() {
        let schema = &tool["input_schema"];
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let given: serde_json::Map<String, Value> = required
            .map(|name| match schema["properties"][name]["type"].as_str() {
                Some("array") => (name.to_owned(), json!([])),
                Some("integer") => (name.to_owned(), json!(1)),
                _ => (name.to_owned(), json!("x")),
            })
            .collect();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if property["type"] != "integer" {
                continue;
            }
            for huge in [json!(1e20), json!(1e300), json!(-1e20)] {
                let mut arguments = given.clone();
                arguments.insert(name.clone(), huge.clone());
                let error = wire.error("tools.execute", json!({"name": tool["name"], "arguments": arguments}));
                let words = error["message"].as_str().unwrap();
                let named = format!("invalid arguments for {}: ", tool["name"].as_str().unwrap());
                assert!(words.starts_with(&named) && words.contains(&format!("/{name}: expected ")), "{words}");
                assert!(!words.contains("u64") && !words.contains("usize"), "{words}");
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
}
