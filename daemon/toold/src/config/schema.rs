//! The JSON Schema of the configuration: for editors, and for checking configurations.

use std::sync::LazyLock;

use serde_json::Value;

/// The schema as text, which a test makes from the types.
pub(super) const TEXT: &str = include_str!("../../config.schema.json");

/// The schema. It has no shared definitions, so that walking it needs no look-ups.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(TEXT).expect("a test writes the file as JSON"));
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

/// The schemas of types of other crates, which keep them in files too.
#[cfg(test)]
pub(super) mod foreign {
    use schemars::{Schema, SchemaGenerator, json_schema};
    use toold_proto::openrpc;
    use toold_schemas::schema_in;

    pub(in crate::config) fn rules(_: &mut SchemaGenerator) -> Schema {
        let rule: Schema = serde_json::from_str(include_str!("../../../engine/rule.schema.json")).unwrap();
        json_schema!({"type": "array", "items": rule})
    }

    pub(in crate::config) fn optional_listing(_: &mut SchemaGenerator) -> Schema {
        let pointer = "/result/schema/properties/clients/items/properties/listing";
        let listing = schema_in(&openrpc::document(), "tools.cost", pointer);
        json_schema!({"anyOf": [listing, {"type": "null"}]})
    }

    pub(in crate::config) fn optional_level(_: &mut SchemaGenerator) -> Schema {
        let level = schema_in(&openrpc::document(), "permissions.level", "/result/schema/properties/level");
        json_schema!({"anyOf": [level, {"type": "null"}]})
    }

    pub(in crate::config) fn instance_scope(_: &mut SchemaGenerator) -> Schema {
        schema_in(&openrpc::document(), "mcp.servers", "/result/schema/properties/servers/items/properties/scope")
    }
}

#[cfg(test)]
mod tests {
    use toold_schemas::{assert_current, config_schema_of};

    use super::*;
    use crate::config::Config;

    #[test]
    fn config_schema_is_current() {
        let mut schema = config_schema_of::<Config>();
        schema["title"] = "The configuration of toold".into();
        assert_current(concat!(env!("CARGO_MANIFEST_DIR"), "/config.schema.json"), &schema, "  ");
    }

    #[test]
    fn every_key_has_a_description() {
        let mut found = Vec::new();
        keys_without_description(schema(), "", &mut found);
        assert_eq!(found, Vec::<String>::new(), "fields without a doc comment");
    }

    fn keys_without_description(schema: &Value, path: &str, found: &mut Vec<String>) {
        for schema in branches(schema) {
            for (key, below) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{key}");
                if !below["description"].is_string() {
                    found.push(path.clone());
                }
                keys_without_description(below, &path, found);
            }
            for below in
                [&schema["items"], &schema["additionalProperties"]].into_iter().filter(|below| below.is_object())
            {
                keys_without_description(below, path, found);
            }
        }
    }

    #[test]
    fn what_holds_without_a_value_is_the_default_of_the_key() {
        let leaves = leaf_keys();
        let default = |key: &str| leaves.iter().find(|leaf| leaf.key == key).unwrap().default.clone();
        assert_eq!(default("limits.calls"), 4_096);
        assert_eq!(default("permission.level"), "read");
        assert_eq!(default("sandbox.mode"), "off");
        assert_eq!(default("sandbox.network"), false);
        assert_eq!(default("notify.after"), "30s");
        assert_eq!(default("log.filter"), "info");
        assert_eq!(default("mcp.listen"), Value::Null);
    }
}
