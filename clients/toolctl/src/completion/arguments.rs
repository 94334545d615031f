//! `key=value` for the arguments of the tool that the line names.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use serde_json::Value;
use toold_client::Client;
use toold_proto::call::ToolSchema;
use toold_proto::method::ToolsSchema;
use toold_proto::tool::Tool;

use crate::completion::line::words;
use crate::completion::values::{ask, offer};
use crate::output::first_sentence;
use crate::path_names;

/// How many references and combinations are followed: a schema may refer to itself.
const MAX_DEPTH: u8 = 8;

pub(super) fn pairs(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let Some(tool) = tool_on_the_line() else { return Vec::new() };
    match text.split_once('=') {
        None => offer(current, keys(&tool)),
        Some((key, value)) => {
            let property = &tool.input_schema["properties"][key];
            // The last item of a list is completed.
            let before = match (is_list(&tool.input_schema, property), value.rfind(',')) {
                (true, Some(comma)) => &value[..=comma],
                _ => "",
            };
            let item = &value[before.len()..];
            let mut found = values(&tool.input_schema, property, MAX_DEPTH);
            if found.is_empty() && path_names::is_path(key) {
                found = path_names::matching(item);
            }
            found.extend(path_names::contents_matching(item));
            offer(current, found.into_iter().map(|value| (format!("{key}={before}{value}"), String::new())))
        }
    }
}

/// Those that are not on the line yet, the required ones first.
fn keys(tool: &Tool) -> Vec<(String, String)> {
    let schema = &tool.input_schema;
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_given =
        |key: &str| words().iter().any(|word| word.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')));
    let mut keys: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    keys.retain(|(key, property)| !is_given(key) || is_list(schema, property));
    keys.sort_by_key(|(key, _)| !required.contains(&key.as_str()));
    let word = |(key, property): (&String, &Value)| {
        let about = first_sentence(property["description"].as_str().unwrap_or_default(), 80);
        let mark = if required.contains(&key.as_str()) { "(required) " } else { "" };
        (format!("{key}="), format!("{mark}{about}").trim_end().to_owned())
    };
    keys.into_iter().map(word).collect()
}

/// The values that a schema allows, if they are few; of a list, those of its items.
fn values(root: &Value, schema: &Value, depth: u8) -> Vec<String> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if depth == 0 {
        return Vec::new();
    }
    if let Some(all) = schema["enum"].as_array() {
        return all.iter().map(shown).collect();
    }
    if let Some(value) = schema.get("const") {
        return vec![shown(value)];
    }
    if schema["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?)) {
        return values(root, target, depth - 1);
    }
    let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten();
    let below = choices.chain(schema.get("items"));
    below.flat_map(|schema| values(root, schema, depth - 1)).collect()
}

fn is_list(root: &Value, property: &Value) -> bool {
    let target = property["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
    let property = target.unwrap_or(property);
    property["type"] == "array"
        || property["type"].as_array().is_some_and(|types| types.iter().any(|name| name == "array"))
}

/// The first word after `call` that is neither an option nor the value of one.
fn tool_on_the_line() -> Option<Tool> {
    let words = words();
    let call = words.iter().position(|word| word == "call")?;
    let given = words[..words.len() - 1].iter().skip(call + 1);
    // Values of options are skipped by their being no tool.
    let names: Vec<String> = given.filter(|word| !word.starts_with('-') && !word.contains('=')).cloned().collect();
    ask(async move |client: Client| {
        let mut found = None;
        for name in names {
            found = client.call::<ToolsSchema>(ToolSchema { name, session_id: None }).await.ok();
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_those_of_the_schema() {
        let root = json!({"$defs": {"level": {"enum": [1, 2]}}});
        let check = |schema: Value, expected: &[&str]| assert_eq!(values(&root, &schema, MAX_DEPTH), expected);
        check(json!({"enum": ["a", "b"]}), &["a", "b"]);
        check(json!({"type": "boolean"}), &["true", "false"]);
        check(json!({"$ref": "#/$defs/level"}), &["1", "2"]);
        check(json!({"type": "array", "items": {"enum": ["x"]}}), &["x"]);
        check(json!({"anyOf": [{"const": "none"}, {"type": "string"}]}), &["none"]);
        check(json!({"type": "string"}), &[]);
    }
}
