//! From the registry to a model and back, over the wire.

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon};

fn daemon() -> TestDaemon {
    let plugin = r#"
hygge.register_tool{
  name = "greet", description = "Greets", parallelizable = true,
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input) return "hello " .. input.name end,
}"#;
    Setup::new().plugin("greet.lua", plugin).start()
}

#[test]
fn tools_are_listed_as_each_provider_takes_them() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let name_at = [
        ("native", "/0/name"),
        ("anthropic", "/0/name"),
        ("openai", "/0/function/name"),
        ("openai_responses", "/0/name"),
        ("mcp", "/0/name"),
    ];
    for (format, place) in name_at {
        let listed = wire.result("tools.list", json!({"format": format, "names": ["greet"]}));
        assert_eq!(listed["tools"].pointer(place), Some(&json!("greet")), "{format}: {listed}");
        let again = wire.result("tools.list", json!({"format": format, "names": ["greet"]}));
        assert_eq!(listed.to_string(), again.to_string(), "the same bytes");
    }
    let gemini = wire.result("tools.list", json!({"format": "gemini", "names": ["greet"]}))["tools"].to_string();
    assert!(gemini.contains("greet"), "{gemini}");
    assert_eq!(wire.error("tools.list", json!({"format": "other"}))["code"], -32602);
}

#[test]
fn a_tool_that_declares_nothing_is_not_claimed_to_be_harmless() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let native = wire.result("tools.list", json!({"names": ["greet"]}));
    assert_eq!(native["tools"][0]["annotations"], json!({}));
    let mcp = wire.result("tools.list", json!({"format": "mcp", "names": ["greet"]}));
    assert_eq!(mcp["tools"][0].get("annotations"), None, "{mcp}");
}

#[test]
fn a_provider_s_calls_are_answered_in_its_own_blocks() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let answer = wire.result(
        "tools.execute_batch",
        json!({"format": "anthropic", "calls": [
            {"type": "text", "text": "I shall greet."},
            {"type": "tool_use", "id": "toolu_1", "name": "greet", "input": {"name": "you"}},
            {"type": "tool_use", "id": "toolu_2", "name": "greet", "input": {}},
            {"type": "tool_use", "id": "toolu_3"}
        ]}),
    );
    let results = answer["results"].as_array().unwrap();
    let ids: Vec<&Value> = results.iter().map(|result| &result["tool_use_id"]).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2", "toolu_3"]);
    assert!(results[0].to_string().contains("hello you"));
    assert!(results[1]["is_error"] == true && results[1].to_string().contains("required"), "{answer}");
    assert_eq!(results[2]["is_error"], true);

    let message = json!({"role": "assistant", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "greet", "arguments": "{\"name\": \"us\"}"}}
    ]});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai", "calls": message}));
    assert_eq!(answer["results"][0]["role"], "tool");
    assert_eq!(answer["results"][0]["tool_call_id"], "call_1");
    assert!(answer["results"][0]["content"].to_string().contains("hello us"), "{answer}");
}

#[test]
fn prompt_teaches_the_format_that_is_parsed() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let text = wire.result("prompt.render", json!({"names": ["greet"]}))["text"].as_str().unwrap().to_owned();
    assert!(text.contains("- greet(name): Greets"), "{text}");
    let answer = "<think>who?</think>Hi! <tool_call>{name: 'greet', args: {name: 'me',}}</tool_call>";
    let parsed = wire.result("prompt.parse", json!({"text": answer, "tools": ["greet"]}));
    assert_eq!(parsed["calls"], json!([{"name": "greet", "arguments": {"name": "me"}}]));
    assert_eq!(parsed["thinking"], "who?");
    assert_eq!(wire.error("prompt.render", json!({"format": "no such"}))["code"], -32602);
}

/// Names, descriptions and schemas of the built-ins, as each provider gets them, so that a change shows in review.
#[test]
fn built_ins_are_listed_to_each_provider_as_snapshots_say() {
    let daemon = TestDaemon::start();
    let mut wire = daemon.connect();
    for format in ["native", "anthropic", "openai", "openai_responses", "gemini", "mcp"] {
        let listed = wire.result("tools.list", json!({"format": format, "source": "builtin"}));
        let text = serde_json::to_string_pretty(&listed["tools"]).unwrap();
        insta::assert_snapshot!(format!("built_ins_for_{format}"), text);
    }
}

#[test]
fn an_answer_is_read_as_it_comes_in() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let opened = wire.result("prompt.parse_stream", json!({"action": "open", "text": "I gr", "thinking": false}));
    let id = opened["stream_id"].clone();
    assert_eq!(opened["pieces"], json!([{"kind": "text", "text": "I gr"}]));
    let push = |text: &str| json!({"action": "push", "stream_id": id, "text": text});
    let half = "<tool_call>greet\n<arg_key>name</arg_key>\n<arg_value>12";
    assert_eq!(wire.result("prompt.parse_stream", push("eet. "))["pieces"], json!([{"kind": "text", "text": "eet. "}]));
    assert_eq!(wire.result("prompt.parse_stream", push(half))["pieces"], json!([]));
    let call = json!({"name": "greet", "arguments": {"name": "12"}});
    let closed = wire.result("prompt.parse_stream", push("</arg_value></tool_call>"));
    assert_eq!(
        closed["pieces"],
        json!([{"kind": "call", "call": call}]),
        "the daemon's schema says that it is a string"
    );
    let ended = wire.result("prompt.parse_stream", json!({"action": "end", "stream_id": id, "text": "<|im_end|>"}));
    let whole = json!({"calls": [call], "text": "I greet.", "thinking": "", "errors": []});
    assert_eq!(ended["parsed"], whole);
    // It has ended, and another connection never had it.
    assert_eq!(wire.error("prompt.parse_stream", push("x"))["code"], -32602);
    let other = wire.result("prompt.parse_stream", json!({"action": "open", "tools": ["greet"], "thinking": true}));
    let steal = json!({"action": "push", "stream_id": other["stream_id"], "text": "x"});
    assert_eq!(daemon.connect().error("prompt.parse_stream", steal)["code"], -32602);
    let ended = wire
        .result("prompt.parse_stream", json!({"action": "end", "stream_id": other["stream_id"], "text": "a</think>b"}));
    assert_eq!(ended["parsed"], json!({"calls": [], "text": "b", "thinking": "a", "errors": []}));
}

#[test]
fn a_call_waits_while_it_may_still_be_thinking() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let call = "<tool_call>{\"name\": \"greet\", \"arguments\": {\"name\": \"you\"}}</tool_call>";
    for (rest, calls) in [("</think>No.", 0), ("", 1)] {
        let opened = wire.result("prompt.parse_stream", json!({"action": "open", "text": format!("Or {call}")}));
        assert_eq!(opened["pieces"], json!([{"kind": "text", "text": "Or "}]));
        let end = json!({"action": "end", "stream_id": opened["stream_id"], "text": rest});
        let ended = wire.result("prompt.parse_stream", end);
        assert_eq!(ended["parsed"]["calls"].as_array().unwrap().len(), calls, "{ended}");
        let given = ended["pieces"].as_array().unwrap().iter().filter(|piece| piece["kind"] == "call");
        assert_eq!(given.count(), calls, "{ended}");
    }
}

#[test]
fn a_connection_has_a_bounded_number_of_streams() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let ids: Vec<Value> =
        (0..64).map(|_| wire.result("prompt.parse_stream", json!({"action": "open"}))["stream_id"].clone()).collect();
    let error = wire.error("prompt.parse_stream", json!({"action": "open"}));
    assert!(error["message"].as_str().unwrap().contains("64 open streams"), "{error}");
    wire.result("prompt.parse_stream", json!({"action": "end", "stream_id": ids[0]}));
    wire.result("prompt.parse_stream", json!({"action": "open"}));
}

#[test]
fn an_answer_that_is_a_call_as_a_whole_is_one_of_a_known_tool() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let bare = r#"{"name": "greet", "parameters": {"name": "you"}}<|eot_id|>"#;
    let parsed = wire.result("prompt.parse", json!({"text": bare}));
    assert_eq!(parsed["calls"], json!([{"name": "greet", "arguments": {"name": "you"}}]));
    let other = r#"{"name": "Ada", "parameters": {"age": 3}}"#;
    let parsed = wire.result("prompt.parse", json!({"text": other}));
    assert_eq!((&parsed["calls"], &parsed["text"]), (&json!([]), &json!(other)));
}
