//! Arguments as models send them.

use futures_util::FutureExt;
use serde_json::{Value, json};
use toold_engine::call::CallError;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolOutput;

use crate::test_engine::{Fake, TestEngine};

/// A tool that returns the arguments that reach it.
fn echo(schema: Value) -> TestEngine {
    let tool = Fake::new("echo").run(|input, _| async move { Ok(ToolOutput::text(input.to_string())) }.boxed());
    TestEngine::new(vec![tool.spec(|spec| spec.input = Schema::compile_input(schema).unwrap())])
}

async fn received(fixture: &TestEngine, arguments: Value) -> Value {
    serde_json::from_str(&fixture.call("echo", arguments).await.unwrap().text()).unwrap()
}

#[tokio::test]
async fn null_for_an_optional_argument_counts_as_absent_if_the_schema_does_not_admit_it() {
    let fixture = echo(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "kind": {"enum": ["a", "b"]},
            "by_reference": {"$ref": "#/$defs/limit"},
            "nullable": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "null_by_reference": {"$ref": "#/$defs/maybe"},
            "anything": {},
            "nested": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        "required": ["path"],
        "minProperties": 1,
        "$defs": {"limit": {"type": "integer"}, "maybe": {"type": ["integer", "null"]}},
    }));
    let sent = json!({
        "path": "x", "limit": null, "kind": null, "by_reference": null, "nullable": null, "either": null,
        "null_by_reference": null, "anything": null, "unknown": null, "nested": null,
    });
    let expected = json!({
        "path": "x", "nullable": null, "either": null, "null_by_reference": null, "anything": null, "unknown": null,
    });
    assert_eq!(received(&fixture, sent).await, expected);
    assert_eq!(received(&fixture, json!({"path": "x", "limit": 3})).await, json!({"path": "x", "limit": 3}));
}

#[tokio::test]
async fn null_for_a_required_argument_or_within_one_is_an_error() {
    let fixture = echo(json!({
        "type": "object",
        "properties": {
            "a/b": {"type": "string"},
            "nested": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        "required": ["a/b"],
    }));
    for (arguments, said) in [
        (
            json!({"a/b": null}),
            "/a~1b: null is not of type \"string\"; it is required, so null does not count as absent",
        ),
        (json!({"a/b": "x", "nested": {"x": null}}), "/nested/x: null is not of type \"string\""),
        (Value::Null, "\"a/b\" is a required property"),
    ] {
        let error = fixture.call("echo", arguments.clone()).await.unwrap_err();
        assert!(
            matches!(error, CallError::InvalidArgs { .. }) && error.to_string().ends_with(said),
            "{arguments}: {error}"
        );
    }
}

#[tokio::test]
async fn null_for_an_argument_that_the_schema_does_not_know_stays_an_error() {
    let fixture =
        echo(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}));
    let error = fixture.call("echo", json!({"b": null})).await.unwrap_err().to_string();
    assert!(error.contains("'b' was unexpected"), "{error}");
    assert_eq!(received(&fixture, json!({"a": null})).await, json!({}));
}
