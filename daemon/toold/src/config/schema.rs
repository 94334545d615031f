//! The JSON Schema of the configuration: for editors, and for checking configurations.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::config::Config;

/// The schema, as the checked-in `config.schema.json` has it, which is written by `toold config schema`.
pub fn schema() -> &'static Value {
    // Without shared definitions, so that walking it needs no look-ups.
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let mut settings = SchemaSettings::draft07();
        settings.inline_subschemas = true;
        let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
        schema["title"] = "The configuration of toold".into();
        schema
    });
    &SCHEMA
}

/// A key that has a value of its own, by its whole path.
pub(super) struct Leaf {
    pub(super) key: String,
    pub(super) default: Value,
    /// It can be written as one word.
    pub(super) scalar: bool,
    /// Its value is text as written.
    pub(super) text: bool,
}

/// All of them, in the order of the schema. Tables with names that people choose are one key.
pub(super) fn leaf_keys() -> Vec<Leaf> {
    let mut all = Vec::new();
    collect(schema(), String::new(), &mut all);
    all
}

fn collect(schema: &Value, path: String, all: &mut Vec<Leaf>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let key = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if below.get("properties").is_some() {
            collect(below, key, all);
            continue;
        }
        let types = types(below);
        all.push(Leaf {
            key,
            default: below.get("default").cloned().unwrap_or(Value::Null),
            scalar: !types.contains(&"object") && !types.contains(&"array") || is_list_of_text(below),
            text: types.contains(&"string"),
        });
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        // Choices are texts.
        _ => vec!["string"],
    }
}

fn is_list_of_text(schema: &Value) -> bool {
    types(schema).contains(&"array") && schema["items"]["type"] == "string"
}

/// The schemas of the values of a key of a table; empty for an unknown key.
pub(super) fn below<'s>(schema: &'s Value, key: &str, value_is_table: bool) -> Vec<&'s Value> {
    let mut found = Vec::new();
    for schema in branches(schema) {
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(known), _) => found.push(known),
            (None, Value::Bool(true)) => found.push(&Value::Null),
            // User-chosen names have tables; anything else there is a misspelt key.
            (None, open @ Value::Object(_)) if value_is_table || open["type"] != "object" => found.push(open),
            (None, Value::Null) if schema["properties"].is_null() => found.push(&Value::Null),
            (None, _) => {}
        }
    }
    found
}

/// The keys that a table may have.
pub(super) fn keys(schema: &Value) -> Vec<&str> {
    branches(schema)
        .into_iter()
        .flat_map(|schema| schema["properties"].as_object().into_iter().flatten())
        .map(|(key, _)| key.as_str())
        .collect()
}

/// The texts that a value may be, where they are few.
pub(super) fn choices(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for schema in branches(schema) {
        found.extend(schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str));
        found.extend(schema["const"].as_str());
    }
    found
}

/// A schema and the alternatives in it.
pub(super) fn branches(schema: &Value) -> Vec<&Value> {
    let mut all = vec![schema];
    let mut at = 0;
    while let Some(schema) = all.get(at).copied() {
        for several in ["anyOf", "oneOf", "allOf"] {
            all.extend(schema[several].as_array().into_iter().flatten());
        }
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_schema_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config.schema.json");
        let checked_in: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(checked_in == *schema(), "run: cargo run -p toold -- config schema > daemon/toold/config.schema.json");
    }

    #[test]
    fn every_key_has_words_and_a_default() {
        let leaves = leaf_keys();
        let calls = leaves.iter().find(|leaf| leaf.key == "limits.calls").unwrap();
        assert_eq!(calls.default, 4_096);
        assert!(leaves.iter().any(|leaf| leaf.key == "permission.rules"));
    }
}
