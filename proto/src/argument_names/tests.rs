//! The names of arguments that models send.

use crate::argument_names::{KnownArguments, explain_unknown};
use serde_json::json;

#[track_caller]
fn explained(name: &str, known: &[&str], expected: &str) {
    let found = explain_unknown(name, known);
    assert_eq!(found, format!("unknown argument {name:?}: {expected}"));
}

#[test]
fn names_of_other_agents_are_recognised() {
    let read = ["path", "offset", "limit"];
    for name in ["file_path", "filePath", "filepath", "filename", "absolute_path", "target_file"] {
        explained(name, &read, "use \"path\"");
    }
    explained("start_line", &read, "use \"offset\"");
    explained("end_line", &read, "use \"offset\" for the first line and \"limit\" for how many lines");
    let edit = ["path", "edits", "old", "new", "replace_all"];
    explained("old_string", &edit, "use \"old\"");
    explained("old_str", &edit, "use \"old\"");
    explained("newString", &edit, "use \"new\"");
    explained("replaceAll", &edit, "use \"replace_all\"");
    let bash = ["command", "timeout_ms", "description", "cwd", "background", "tty", "cols", "rows"];
    explained("timeout", &bash, "use \"timeout_ms\", which is in milliseconds");
    explained("timeout_seconds", &bash, "use \"timeout_ms\", which is in milliseconds");
    explained("run_in_background", &bash, "use \"background\"");
    explained("workdir", &bash, "use \"cwd\"");
    explained("cmd", &bash, "use \"command\"");
    let grep = [
        "pattern",
        "path",
        "include",
        "type",
        "output_mode",
        "before",
        "after",
        "context",
        "ignore_case",
        "multiline",
        "fixed",
        "max_results",
        "offset",
    ];
    explained("head_limit", &grep, "use \"max_results\"");
    explained("-i", &grep, "use \"ignore_case\"");
    explained("-n", &grep, "leave it out, lines are always numbered");
    explained("-A", &grep, "use \"after\"");
    explained("-B", &grep, "use \"before\"");
    explained("-C", &grep, "use \"context\"");
    explained("glob", &grep, "use \"include\"");
    explained("glob", &["pattern", "path", "max_results"], "use \"pattern\"");
    explained("append", &["path", "content", "mode"], "use \"mode\" with \"append\"");
    explained("dir_path", &grep, "use \"path\"");
    explained("todos", &["items"], "use \"items\"");
    explained("activeForm", &["content", "status", "priority", "active_form"], "use \"active_form\"");
    explained("subagent_type", &["type", "description", "prompt"], "use \"type\"");
    explained("bash_id", &["shell_id", "filter", "wait_ms"], "use \"shell_id\"");
    explained("path", &["file_path"], "use \"file_path\"");
}

#[test]
fn misspelt_names_are_recognised_and_others_are_told_what_there_is() {
    explained("too", &["to"], "did you mean \"to\"?");
    explained("paht", &["path", "limit"], "did you mean \"path\"?");
    explained("xyz", &["path", "limit"], "expected \"path\", \"limit\"");
    explained("xyz", &[], "no arguments are expected here");
    let many: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(explain_unknown("xyz", &many), "unknown argument \"xyz\"");
}

#[test]
fn a_schema_knows_the_names_of_its_parts() {
    let schema = json!({
        "type": "object", "properties": {"a": {}},
        "allOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/c"}],
        "$defs": {"c": {"properties": {"c": {}}, "anyOf": [{"$ref": "#/$defs/c"}]}},
    });
    let known = KnownArguments::of(&schema, &schema);
    // The reference to itself ends nowhere.
    assert!(known.names() == ["a", "b", "c"] && known.admits("z"));
    for (schema, admitted) in [
        (json!({"properties": {"a": {}}}), false),
        (json!({"properties": {}}), false),
        (json!({"properties": {"a": {}}, "additionalProperties": false}), false),
        (json!({"additionalProperties": false}), false),
        (json!({"type": "object"}), true),
        (json!({"properties": {"a": {}}, "additionalProperties": true}), true),
        (json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}), true),
        (json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}), true),
        (json!({"$ref": "#/nowhere"}), true),
    ] {
        assert_eq!(KnownArguments::of(&schema, &schema).admits("z"), admitted, "{schema}");
    }
}
