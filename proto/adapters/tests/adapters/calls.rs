//! A provider's call blocks in, its result blocks out.

use insta::assert_snapshot;
use serde_json::{Map, Value, from_value, json};
use toold_adapters::providers::{
    AnswerOutcome, CallForm, CallKind, MalformedCall, ProviderAnswer, ProviderCall, results_as,
};
use toold_proto::call::ToolFormat;
use toold_proto::tool::{Annotations, Block, CallId, Source, SourceKind, Tool, ToolName, ToolResult};

fn result(content: Vec<Block>, is_error: bool) -> ToolResult {
    ToolResult {
        call_id: CallId::parse("c1").unwrap(),
        content,
        is_error,
        metadata: Map::new(),
        structured: Some(json!({"n": 1})),
        duration_ms: 5,
        cached: false,
    }
}

/// Without the schemas of tools.
fn calls_in(format: ToolFormat, blocks: &Value) -> Vec<Result<ProviderCall, MalformedCall>> {
    toold_adapters::providers::calls_in(format, blocks, &|_| None)
}

static FUNCTION: CallForm = CallForm { kind: CallKind::Function, caller: None };

fn image() -> Block {
    Block::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() }
}

fn one(format: ToolFormat, result: &ToolResult) -> String {
    let answer =
        ProviderAnswer { call_id: Some("c1"), name: "read", form: &FUNCTION, outcome: AnswerOutcome::Result(result) };
    results_as(format, &[answer]).to_string()
}

/// The provider's own example of a call, `read {"path": "a"}` with the id `c1`, and the same
/// without what it cannot do without.
fn block(format: ToolFormat) -> Value {
    match format {
        ToolFormat::Native => json!({"call_id": "c1", "name": "read", "arguments": {"path": "a"}}),
        ToolFormat::Mcp => json!({"name": "read", "arguments": {"path": "a"}}),
        ToolFormat::Anthropic => json!({"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}),
        ToolFormat::Openai => {
            json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}})
        }
        ToolFormat::OpenaiResponses => {
            json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"})
        }
        ToolFormat::Gemini => json!({"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}}),
    }
}

const ALL: [ToolFormat; 6] = [
    ToolFormat::Native,
    ToolFormat::Anthropic,
    ToolFormat::Openai,
    ToolFormat::OpenaiResponses,
    ToolFormat::Gemini,
    ToolFormat::Mcp,
];

#[test]
fn each_provider_s_call_is_read() {
    for format in ALL {
        let calls = calls_in(format, &json!([block(format), block(format)]));
        assert_eq!(calls.len(), 2, "{format:?}");
        let call = calls[0].as_ref().unwrap();
        assert_eq!(call.name, "read");
        assert_eq!(call.arguments, json!({"path": "a"}));
        if format != ToolFormat::Mcp {
            assert_eq!(call.call_id.as_ref().unwrap().as_str(), "c1", "{format:?}");
        }
    }
}

#[test]
fn a_message_or_a_single_block_will_do() {
    for (format, message) in [
        (ToolFormat::Anthropic, json!({"role": "assistant", "content": [block(ToolFormat::Anthropic)]})),
        (ToolFormat::Openai, json!({"role": "assistant", "content": null, "tool_calls": [block(ToolFormat::Openai)]})),
        (ToolFormat::OpenaiResponses, json!({"id": "r", "output": [block(ToolFormat::OpenaiResponses)]})),
        (ToolFormat::Gemini, json!({"content": {"role": "model", "parts": [block(ToolFormat::Gemini)]}})),
        (ToolFormat::Gemini, json!({"role": "model", "parts": [block(ToolFormat::Gemini)]})),
    ] {
        assert_eq!(calls_in(format, &message), calls_in(format, &block(format)), "{format:?}");
        assert!(calls_in(format, &message)[0].is_ok(), "{format:?}");
    }
}

#[test]
fn what_is_no_call_is_passed_over() {
    let texts = [
        (ToolFormat::Anthropic, json!([{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "x"}])),
        (ToolFormat::Openai, json!({"role": "assistant", "content": "x"})),
        (
            ToolFormat::OpenaiResponses,
            json!([{"type": "reasoning", "summary": []}, {"type": "message", "content": []}]),
        ),
        (ToolFormat::Gemini, json!([{"text": "x"}, {"text": "y", "thought": true}])),
    ];
    for (format, blocks) in texts {
        assert_eq!(calls_in(format, &blocks), [], "{format:?}");
    }
}

#[test]
fn arguments_may_be_absent_where_a_provider_says_so() {
    for (format, block) in [
        (ToolFormat::Gemini, json!([{"functionCall": {"name": "now"}}])),
        (ToolFormat::Openai, json!([{"id": "c1", "type": "function", "function": {"name": "now", "arguments": ""}}])),
        (ToolFormat::Native, json!([{"name": "now"}])),
    ] {
        let call = calls_in(format, &block).remove(0).unwrap();
        assert_eq!(call.arguments, json!({}), "{format:?}");
    }
}

#[track_caller]
fn check_malformed(format: ToolFormat, block: Value, id: Option<&str>, words: &str) {
    // A good sibling is not hurt.
    let good = self::block(format);
    let calls = calls_in(format, &json!([block, good]));
    assert_eq!(calls.len(), 2);
    assert!(calls[1].is_ok());
    let error = calls[0].as_ref().unwrap_err();
    assert_eq!(error.call_id.as_ref().map(CallId::as_str), id, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_malformed_block_is_an_error_of_its_own() {
    use ToolFormat::{Anthropic, Gemini, Mcp, Native, Openai, OpenaiResponses};
    let function =
        |name: Value, arguments: Value| json!({"id": "c1", "function": {"name": name, "arguments": arguments}});
    check_malformed(Anthropic, json!({"type": "tool_use", "id": "c1", "input": {}}), Some("c1"), "no name");
    check_malformed(Anthropic, json!({"type": "tool_use", "id": "c1", "name": "x"}), Some("c1"), "no input");
    check_malformed(Anthropic, json!({"type": "tool_use", "name": "x", "input": {}}), None, "no id");
    check_malformed(Anthropic, json!({"type": "tool_use", "id": 5, "name": "x", "input": {}}), None, "not a string");
    check_malformed(
        Anthropic,
        json!({"type": "tool_use", "id": "c1", "name": "x", "input": []}),
        Some("c1"),
        "not an object",
    );
    check_malformed(Anthropic, json!("text"), None, "not a block");
    check_malformed(Openai, function(json!("x"), json!("{\"a\": ")), Some("c1"), "not JSON");
    check_malformed(Openai, function(json!("x"), json!("[1]")), Some("c1"), "not an object");
    check_malformed(Openai, function(json!(""), json!("{}")), Some("c1"), "no name");
    check_malformed(Openai, json!({"id": "c1", "type": "other"}), Some("c1"), "no function");
    check_malformed(Openai, json!({"id": "c1", "type": "custom", "custom": {"name": "x"}}), Some("c1"), "no input");
    check_malformed(Openai, json!({"function": {"name": "x", "arguments": "{}"}}), None, "no id");
    check_malformed(Openai, json!(null), None, "not an object");
    check_malformed(
        OpenaiResponses,
        json!({"type": "function_call", "name": "x", "arguments": "{}"}),
        None,
        "no call_id",
    );
    check_malformed(
        OpenaiResponses,
        json!({"type": "custom_tool_call", "call_id": "c1", "name": "x"}),
        Some("c1"),
        "no input",
    );
    check_malformed(OpenaiResponses, json!({}), None, "not an item");
    check_malformed(Gemini, json!({"functionCall": {"args": {}}}), None, "no name");
    check_malformed(Gemini, json!({"functionCall": "x"}), None, "no name");
    check_malformed(Gemini, json!({"functioncall": {}}), None, "no functionCall");
    check_malformed(
        Gemini,
        json!({"functionCall": {"id": "c1", "name": "x", "args": "{}"}}),
        Some("c1"),
        "not an object",
    );
    check_malformed(Native, json!({"call_id": "a".repeat(50_000), "name": "x"}), None, "call id");
    check_malformed(Native, json!(1), None, "no name");
    check_malformed(Mcp, json!({"name": "x", "arguments": 1}), None, "not an object");
}

#[test]
fn text_comes_back_as_each_provider_takes_it() {
    let text = result(vec![Block::text("one"), Block::text("two")], false);
    assert_snapshot!(one(ToolFormat::Native, &text), @r#"[{"call_id":"c1","result":{"call_id":"c1","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"is_error":false,"metadata":{},"structured":{"n":1},"duration_ms":5,"cached":false}}]"#);
    assert_snapshot!(one(ToolFormat::Anthropic, &text), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"is_error":false}]"#);
    assert_snapshot!(one(ToolFormat::Openai, &text), @r#"[{"role":"tool","tool_call_id":"c1","content":"one\ntwo"}]"#);
    assert_snapshot!(one(ToolFormat::OpenaiResponses, &text), @r#"[{"type":"function_call_output","call_id":"c1","output":"one\ntwo"}]"#);
    assert_snapshot!(one(ToolFormat::Gemini, &text), @r#"[{"functionResponse":{"id":"c1","name":"read","response":{"output":"one\ntwo"}}}]"#);
    assert_snapshot!(one(ToolFormat::Mcp, &text), @r#"[{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"structuredContent":{"n":1},"isError":false}]"#);
}

#[test]
fn errors_are_marked_as_each_provider_marks_them() {
    let error = result(vec![Block::text("no such file")], true);
    assert_snapshot!(one(ToolFormat::Anthropic, &error), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"no such file"}],"is_error":true}]"#);
    assert_snapshot!(one(ToolFormat::Openai, &error), @r#"[{"role":"tool","tool_call_id":"c1","content":"Error: no such file"}]"#);
    assert_snapshot!(one(ToolFormat::OpenaiResponses, &error), @r#"[{"type":"function_call_output","call_id":"c1","output":"Error: no such file"}]"#);
    assert_snapshot!(one(ToolFormat::Gemini, &error), @r#"[{"functionResponse":{"id":"c1","name":"read","response":{"error":"no such file"}}}]"#);
    assert_snapshot!(one(ToolFormat::Mcp, &error), @r#"[{"content":[{"type":"text","text":"no such file"}],"structuredContent":{"n":1},"isError":true}]"#);
}

#[test]
fn an_error_without_a_result_is_one_too() {
    let answer = ProviderAnswer {
        call_id: Some("c1"),
        name: "read",
        form: &FUNCTION,
        outcome: AnswerOutcome::Error("denied by a rule"),
    };
    let shown = |format| results_as(format, &[answer]).to_string();
    assert_snapshot!(shown(ToolFormat::Native), @r#"[{"call_id":"c1","error":{"message":"denied by a rule"}}]"#);
    assert_snapshot!(shown(ToolFormat::Anthropic), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"denied by a rule"}],"is_error":true}]"#);
    assert_snapshot!(shown(ToolFormat::Gemini), @r#"[{"functionResponse":{"id":"c1","name":"read","response":{"error":"denied by a rule"}}}]"#);
    assert_snapshot!(shown(ToolFormat::Mcp), @r#"[{"content":[{"type":"text","text":"denied by a rule"}],"isError":true}]"#);
}

#[test]
fn an_error_never_says_nothing() {
    let silent = result(vec![], true);
    assert!(one(ToolFormat::Anthropic, &silent).contains("failed without a message"));
    assert!(one(ToolFormat::Openai, &silent).contains("failed without a message"));
}

#[test]
fn images_come_back_as_each_provider_takes_them() {
    let picture = result(vec![Block::text("a plot"), image()], false);
    assert_snapshot!(one(ToolFormat::Anthropic, &picture), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a plot"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"is_error":false}]"#);
    assert_snapshot!(one(ToolFormat::Openai, &picture), @r#"[{"role":"tool","tool_call_id":"c1","content":"a plot\n[its images follow]"},{"role":"user","content":[{"type":"text","text":"An image from read (c1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]"#);
    assert_snapshot!(one(ToolFormat::OpenaiResponses, &picture), @r#"[{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a plot"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}]}]"#);
    assert_snapshot!(one(ToolFormat::Gemini, &picture), @r#"[{"functionResponse":{"id":"c1","name":"read","response":{"output":"a plot"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}}]"#);
    assert_snapshot!(one(ToolFormat::Mcp, &picture), @r#"[{"content":[{"type":"text","text":"a plot"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"structuredContent":{"n":1},"isError":false}]"#);
}

#[test]
fn what_a_provider_cannot_show_is_said() {
    let odd = result(
        vec![
            Block::Image { data: "AAAA".to_owned(), mime_type: "image/tiff".to_owned() },
            Block::Audio { data: "AAAA".to_owned(), mime_type: "audio/wav".to_owned() },
            from_value(json!({"type": "resource", "uri": "file:///a.txt", "text": "content"})).unwrap(),
            from_value(json!({"type": "resource", "uri": "file:///b/c.bin", "name": "c", "description": "All of it"}))
                .unwrap(),
        ],
        false,
    );
    assert_snapshot!(one(ToolFormat::Anthropic, &odd), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"[an image of type image/tiff, 3 bytes, which cannot be shown here]"},{"type":"text","text":"[a sound of type audio/wav, 3 bytes, which cannot be shown here]"},{"type":"text","text":"file:///a.txt:\ncontent"},{"type":"text","text":"[the resource file:///b/c.bin: c: All of it]"}],"is_error":false}]"#);
    assert_snapshot!(one(ToolFormat::Gemini, &odd), @r#"[{"functionResponse":{"id":"c1","name":"read","response":{"output":"[a sound of type audio/wav, 3 bytes, which cannot be shown here]\nfile:///a.txt:\ncontent\n[the resource file:///b/c.bin: c: All of it]"},"parts":[{"inlineData":{"mimeType":"image/tiff","data":"AAAA"}}]}}]"#);
    assert_snapshot!(one(ToolFormat::Mcp, &odd), @r#"[{"content":[{"type":"image","data":"AAAA","mimeType":"image/tiff"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"file:///a.txt","text":"content"}},{"type":"resource_link","uri":"file:///b/c.bin","name":"c","description":"All of it"}],"structuredContent":{"n":1},"isError":false}]"#);
}

#[test]
fn empty_text_is_no_block_for_anthropic() {
    assert_snapshot!(one(ToolFormat::Anthropic, &result(vec![Block::text("")], false)), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[],"is_error":false}]"#);
}

#[test]
fn many_results_keep_their_order() {
    let (first, second) = (result(vec![image()], false), result(vec![Block::text("b")], false));
    for format in ALL {
        let answers = [
            ProviderAnswer {
                call_id: Some("c1"),
                name: "one",
                form: &FUNCTION,
                outcome: AnswerOutcome::Result(&first),
            },
            ProviderAnswer {
                call_id: Some("c2"),
                name: "two",
                form: &FUNCTION,
                outcome: AnswerOutcome::Result(&second),
            },
        ];
        let results = results_as(format, &answers);
        let length = if format == ToolFormat::Openai { 3 } else { 2 };
        assert_eq!(results.as_array().unwrap().len(), length, "{format:?}");
        if format != ToolFormat::Mcp {
            assert!(results[0].to_string().contains("c1"), "{format:?}");
            assert!(results[1].to_string().contains("c2"), "{format:?}");
        }
    }
}

#[test]
fn a_gemini_call_without_an_id_gets_a_response_without_one() {
    let answer = ProviderAnswer { call_id: None, name: "now", form: &FUNCTION, outcome: AnswerOutcome::Error("no") };
    assert_snapshot!(results_as(ToolFormat::Gemini, &[answer]), @r#"[{"functionResponse":{"name":"now","response":{"error":"no"}}}]"#);
}

fn found(name: &str, kind: SourceKind, source: &str) -> Tool {
    Tool {
        name: ToolName::parse(name).unwrap(),
        label: name.to_owned(),
        description: "Does.".to_owned(),
        input_schema: json!({"type": "object", "properties": {}}),
        output_schema: None,
        source: Source { kind, name: source.to_owned(), path: None },
        parallelizable: true,
        permissions: Vec::new(),
        cacheable: false,
        timeout_ms: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    }
}

#[test]
fn found_tools_come_back_in_the_form_that_loads_them() {
    let tools = [found("undo", SourceKind::Builtin, "toold"), found("gh_issues", SourceKind::Mcp, "git hub")];
    let shown = |format, form: &CallForm| {
        let outcome = AnswerOutcome::Found(&tools);
        results_as(format, &[ProviderAnswer { call_id: Some("c1"), name: "tools_search", form, outcome }]).to_string()
    };
    let search = CallForm { kind: CallKind::ToolSearch, caller: None };
    assert_snapshot!(shown(ToolFormat::Anthropic, &FUNCTION), @r#"[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"tool_reference","tool_name":"undo"},{"type":"tool_reference","tool_name":"gh_issues"}],"is_error":false}]"#);
    assert_snapshot!(shown(ToolFormat::OpenaiResponses, &search), @r#"[{"type":"tool_search_output","call_id":"c1","execution":"client","status":"completed","tools":[{"type":"function","name":"undo","description":"Does.","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true},{"type":"namespace","name":"git_hub","description":"Tools of the MCP server git hub","tools":[{"type":"function","name":"gh_issues","description":"Does.","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}]}]}]"#);
    assert_snapshot!(shown(ToolFormat::Openai, &FUNCTION), @r#"[{"role":"tool","tool_call_id":"c1","content":"{\"tools\":[{\"name\":\"undo\",\"description\":\"Does.\",\"input_schema\":{\"type\":\"object\",\"properties\":{}}},{\"name\":\"gh_issues\",\"description\":\"Does.\",\"input_schema\":{\"type\":\"object\",\"properties\":{}}}]}"}]"#);
}

#[test]
fn a_search_that_the_client_runs_is_a_call() {
    let by = |execution: &str| {
        json!([{"type": "tool_search_call", "id": "ts_1", "call_id": "c1", "execution": execution,
                "status": "completed", "arguments": {"query": "issues"}}])
    };
    let call = calls_in(ToolFormat::OpenaiResponses, &by("client")).remove(0).unwrap();
    assert_eq!((call.name.as_str(), &call.arguments), ("tools_search", &json!({"query": "issues"})));
    assert_eq!(call.form.kind, CallKind::ToolSearch);
    assert_eq!(calls_in(ToolFormat::OpenaiResponses, &by("server")), [], "the provider has run it");
    let answer =
        ProviderAnswer { call_id: Some("c1"), name: &call.name, form: &call.form, outcome: AnswerOutcome::Error("no") };
    assert_snapshot!(results_as(ToolFormat::OpenaiResponses, &[answer]), @r#"[{"type":"tool_search_output","call_id":"c1","execution":"client","status":"incomplete","tools":[]}]"#);
}
