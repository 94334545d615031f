//! Arguments as models send them.

use futures_util::FutureExt;
use serde_json::{Value, json};
use toold_engine::call::CallError;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolOutput;
use toold_test_kit::SampleTool;

use crate::calls::test_engine::TestEngine;

/// A tool that returns the arguments that reach it.
fn echo(schema: Value) -> TestEngine {
    let tool = SampleTool::new("echo").run(|input, _| async move { Ok(ToolOutput::text(input.to_string())) }.boxed());
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
async fn null_for_a_required_argument_is_an_error_and_within_one_it_counts_as_absent() {
    let fixture = echo(json!({
        "type": "object",
        "properties": {
            "a/b": {"type": "string", "description": "The name. In full."},
            "nested": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"$ref": "#/$defs/y"}}},
            "list": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["a/b"],
        "$defs": {"y": {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}},
    }));
    for (arguments, said) in [
        (json!({"a/b": null}), "/a~1b: expected a string, got null; it is required, so null does not count as absent"),
        (Value::Null, "\"a/b\" is required: string, The name"),
        (
            json!({"a/b": "x", "nested": {"y": {"z": null}}}),
            "/nested/y/z: expected an integer, got null; it is required, so null does not count as absent",
        ),
        (json!({"a/b": "x", "list": ["a", null]}), "/list/1: expected a string, got null"),
        (json!({"a/b": "x", "free": {"any": null}}), "/free/any: expected a string, got null"),
    ] {
        let error = fixture.call("echo", arguments.clone()).await.unwrap_err();
        assert!(
            matches!(error, CallError::InvalidArgs { .. }) && error.to_string().ends_with(said),
            "{arguments}: {error}"
        );
    }
    let nested = json!({"a/b": "x", "nested": {"x": null}});
    assert_eq!(received(&fixture, nested).await, json!({"a/b": "x", "nested": {}}));
}

#[tokio::test]
async fn null_for_an_argument_that_the_schema_does_not_know_stays_an_error() {
    let fixture =
        echo(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}));
    let error = fixture.call("echo", json!({"b": null})).await.unwrap_err().to_string();
    assert!(error.contains("unknown argument \"b\": expected \"a\""), "{error}");
    assert_eq!(received(&fixture, json!({"a": null})).await, json!({}));
}

/// Schemas of one argument `a`, a value that is sent, and the value that arrives.
#[tokio::test]
async fn values_are_fitted_where_nothing_is_lost_and_the_schema_leaves_no_choice() {
    let string = || json!({"type": "string"});
    let integer = || json!({"type": "integer"});
    let or = |a: Value, b: Value| json!({"anyOf": [a, b]});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let shapes = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "id": {"type": "string"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "id": {"type": "integer"}}, "required": ["kind"]},
    ]});
    for (schema, sent, arrives) in [
        (integer(), json!(10.0), json!(10)),
        (integer(), json!(1e1), json!(10)),
        (integer(), json!(-0.0), json!(0)),
        (json!({"type": "number"}), json!(10.0), json!(10.0)),
        (string(), json!(1.25), json!("1.25")),
        (json!({}), json!(10.0), json!(10.0)),
        (or(integer(), string()), json!(10.0), json!(10)),
        (or(integer(), json!({"type": "number"})), json!(10.0), json!(10.0)),
        (json!({"type": ["integer", "null"]}), json!(2.0), json!(2)),
        (json!({"$ref": "#/$defs/count"}), json!(3.0), json!(3)),
        (json!({"type": "array", "items": integer()}), json!([1, 2.0, 3e0]), json!([1, 2, 3])),
        (
            object(json!({"n": integer(), "r": {"type": "number"}})),
            json!({"n": 1.0, "r": 1.0}),
            json!({"n": 1, "r": 1.0}),
        ),
        (string(), json!(1234567), json!("1234567")),
        (string(), json!(u64::MAX), json!("18446744073709551615")),
        (string(), json!(-5), json!("-5")),
        (json!({"type": ["string", "null"]}), json!(1234567), json!("1234567")),
        (or(string(), json!({"type": "null"})), json!(1234567), json!("1234567")),
        (or(string(), integer()), json!(5), json!(5)),
        (json!({"type": ["string", "integer"]}), json!(5), json!(5)),
        (or(string(), json!({"type": "array", "items": string()})), json!(5), json!("5")),
        (or(string(), json!({"type": "array", "items": string()})), json!([5]), json!(["5"])),
        (json!({"$ref": "#/$defs/name"}), json!(5), json!("5")),
        (json!({"allOf": [string(), {"minLength": 1}]}), json!(5), json!("5")),
        (json!({"type": "string", "enum": ["1", "2"]}), json!(1), json!("1")),
        (or(json!({"type": "string", "enum": ["1", "2"]}), json!({"type": "null"})), json!(1), json!("1")),
        (json!({"type": "array", "items": string()}), json!([1, "b"]), json!(["1", "b"])),
        (
            json!({"type": "array", "items": object(json!({"id": string(), "x": string()}))}),
            json!([{"id": 7, "x": null}]),
            json!([{"id": "7"}]),
        ),
        (or(object(json!({"id": string()})), json!({"type": "null"})), json!({"id": 7}), json!({"id": "7"})),
        (shapes.clone(), json!({"kind": "a", "id": 7}), json!({"kind": "a", "id": "7"})),
        (shapes, json!({"kind": "b", "id": 7.0}), json!({"kind": "b", "id": 7})),
        (json!({"type": "object", "additionalProperties": string()}), json!({"x": 1}), json!({"x": "1"})),
    ] {
        let fixture = echo(json!({
            "type": "object", "properties": {"a": schema},
            "$defs": {"count": {"type": "integer"}, "name": {"$ref": "#/$defs/text"}, "text": {"type": "string"}},
        }));
        let arrived = received(&fixture, json!({"a": sent})).await;
        assert_eq!(arrived.to_string(), json!({"a": arrives}).to_string(), "{schema} with {sent}");
        assert_eq!(received(&fixture, arrived.clone()).await.to_string(), arrived.to_string(), "fitted again");
    }
}

#[tokio::test]
async fn values_that_could_mean_two_things_are_refused_with_words_to_act_on() {
    let string = || json!({"type": "string"});
    let or = |a: Value, b: Value| json!({"anyOf": [a, b]});
    let modes = json!({"enum": ["content", "files", "count"]});
    let described = json!({"oneOf": [{"const": "fast", "description": "x"}, {"const": "slow", "description": "y"}]});
    let shape = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
            "required": ["kind", "side"], "additionalProperties": false},
    ]});
    for (schema, sent, said) in [
        (string(), json!(true), "expected a string, got true: send \"true\""),
        (json!({"type": ["string", "integer"]}), json!(1.5), "expected an integer or a string, got 1.5"),
        (or(string(), json!({"type": "integer", "minimum": 10})), json!(5), "expected at least 10, got 5"),
        (json!({"type": "integer"}), json!("ten"), "expected an integer, got \"ten\""),
        (json!({"type": "integer"}), json!(1.5), "expected an integer, got 1.5"),
        (
            json!({"type": "integer"}),
            json!(9_007_199_254_740_994.0_f64),
            "expected an integer of at most 9007199254740992, got 9007199254740994",
        ),
        (json!({"type": "array"}), json!("x"), "expected an array, got \"x\": send a single one as [\"x\"]"),
        (
            json!({"type": "array"}),
            json!("[1,]"),
            "expected an array, got \"[1,]\": it is a text that is not valid JSON (trailing comma at line 1 column 4): send a list",
        ),
        (json!({"type": "object"}), json!([1]), "expected an object, got an array of 1"),
        (json!({"type": "integer", "minimum": 1}), json!(0), "expected at least 1, got 0"),
        (
            modes.clone(),
            json!("file"),
            "expected one of \"content\", \"files\", \"count\", got \"file\": did you mean \"files\"?",
        ),
        (or(modes, json!({"type": "null"})), json!(7), "expected one of \"content\", \"files\", \"count\", got 7"),
        (described, json!("fats"), "expected one of \"fast\", \"slow\", got \"fats\": did you mean \"fast\"?"),
        (
            shape.clone(),
            json!({"kind": "circle", "radius": "x"}),
            "/a/radius: expected a number, got \"x\" (by the nearest of 2 forms, number 1)",
        ),
        (shape.clone(), json!({"kind": "square", "size": 1}), "unknown argument \"size\": did you mean \"side\"?"),
        (shape, json!(5), "expected an object, got 5"),
    ] {
        let fixture = echo(json!({"type": "object", "properties": {"a": schema}}));
        let error = fixture.call("echo", json!({"a": sent})).await.unwrap_err().to_string();
        assert!(error.contains(said), "{sent}: {error}");
    }
}

#[tokio::test]
async fn fixes_and_unknown_arguments_are_told_in_the_metadata() {
    let fixture = echo(json!({
        "type": "object",
        "properties": {"to": {"type": "integer"}, "id": {"type": "string"}, "old": {"type": "string"}},
    }));
    let told = fixture.call("echo", json!({"to": 1.0, "id": 7, "old": null, "too": 3})).await.unwrap().metadata;
    assert_eq!(
        Value::Object(told),
        json!({
            "arguments_fixed": [
                {"path": "/id", "from": 7, "to": "7"},
                {"path": "/old", "from": null},
                {"path": "/to", "from": 1.0, "to": 1},
            ],
            "arguments_unknown": [{"name": "too", "hint": "unknown argument \"too\": did you mean \"to\"?"}],
        })
    );
    assert!(fixture.call("echo", json!({"to": 1})).await.unwrap().metadata.is_empty());

    // A schema that admits further arguments, or names none, is not second-guessed.
    for schema in [
        json!({"type": "object", "properties": {"to": {}}, "additionalProperties": true}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"to": {}}, "allOf": [{"properties": {"too": {}}}]}),
    ] {
        assert!(echo(schema).call("echo", json!({"too": 1})).await.unwrap().metadata.is_empty());
    }
}

#[tokio::test]
async fn texts_are_the_values_that_the_schema_leaves_as_their_only_reading() {
    let fixture = echo(json!({
        "type": "object",
        "properties": {
            "limit": {"type": "integer"},
            "all": {"type": "boolean"},
            "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
            "any": {"type": ["integer", "boolean"]},
        },
    }));
    let edits = json!([{"old": "a"}]);
    for (sent, fixes) in [
        (json!({"limit": "1", "all": "true"}), 2),
        (json!({"limit": "2.0", "all": "TRUE"}), 2),
        (json!({"edits": "{\"old\": \"a\"}"}), 1),
        (json!({"edits": "[{\"old\": \"a\"}]"}), 1),
        (json!({"edits": ["{\"old\": \"a\"}"]}), 1),
        (json!({"edits": {"old": "a"}}), 1),
    ] {
        let result = fixture.call("echo", sent.clone()).await.unwrap();
        assert_eq!(result.metadata["arguments_fixed"].as_array().unwrap().len(), fixes, "{sent}");
        if sent.get("edits").is_some() {
            assert!(result.text().contains(&edits.to_string()), "{}", result.text());
        }
    }
    for sent in [json!({"limit": "1.5"}), json!({"limit": "one"}), json!({"all": "yes"}), json!({"any": "1"})] {
        assert!(fixture.call("echo", sent.clone()).await.is_err(), "{sent}");
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// Schemas of a value, three levels deep.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string"})),
            Just(json!({"type": "integer"})),
            Just(json!({"type": "number"})),
            Just(json!({"type": "boolean"})),
            Just(json!({"type": ["string", "null"]})),
            Just(json!({"type": "integer", "minimum": 3})),
            Just(json!({"enum": ["1", "a"]})),
            Just(json!({"const": 1})),
            Just(json!({})),
            Just(json!({"$ref": "#/$defs/text"})),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"oneOf": [a, b, {"type": "null"}]})),
                (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(a, b, strict)| {
                    let required = if strict { json!(["a"]) } else { json!([]) };
                    json!({
                        "type": "object", "properties": {"a": a, "b": b}, "required": required,
                        "additionalProperties": !strict,
                    })
                }),
            ]
        })
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            Just(json!(1)),
            Just(json!(1.0)),
            Just(json!(1.5)),
            Just(json!(7)),
            Just(json!("1")),
            Just(json!("a")),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::btree_map("[abc]", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// JSON Schema compares numbers by their values.
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|((a, x), (b, y))| a == b && same(x, y))
            }
            _ => a == b,
        }
    }

    proptest! {
        #[test]
        fn valid_values_are_never_changed_and_fitted_values_are_valid_and_stay(schema in schemas(), value in values()) {
            let schema = json!({
                "type": "object", "properties": {"v": schema}, "$defs": {"text": {"type": "string"}},
            });
            let sent = json!({"v": value});
            let check = Schema::compile_input(schema.clone()).unwrap();
            let fixture = echo(schema);
            let fitted = fixture.call("echo", sent.clone()).now_or_never().expect("nothing waits");
            if check.check(&sent).is_empty() {
                let result = fitted.as_ref().expect("it is valid");
                prop_assert!(same(&serde_json::from_str(&result.text()).unwrap(), &sent));
            }
            if let Ok(result) = fitted {
                let once: Value = serde_json::from_str(&result.text()).unwrap();
                prop_assert!(check.check(&once).is_empty());
                let again = fixture.call("echo", once.clone()).now_or_never().expect("nothing waits").unwrap();
                prop_assert_eq!(again.text(), once.to_string());
            }
        }
    }
}
