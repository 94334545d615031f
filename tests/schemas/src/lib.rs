//! JSON Schemas of types, for unit tests.
//!
//! A crate derives `JsonSchema` for its types only in its own unit tests. They keep the schemas in a file, which the
//! programs embed, so that no program contains the derived code.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// The schema of `T` in the form that model APIs accept, without what strict providers refuse: `$schema`, `title`,
/// `format: uint64` and the like, `null` beside a type that is optional anyway. Definitions are inlined.
pub fn plain_schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(plain).transform(&mut schema);
    schema.to_value()
}

fn plain(schema: &mut Schema) {
    schema.remove("title");
    let Some(object) = schema.as_object_mut() else { return };
    let format = object.get("format").and_then(Value::as_str);
    if format.is_some_and(|f| f.starts_with("uint") || f.starts_with("int") || f == "double" || f == "float") {
        object.remove("format");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|t| t != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        if choices.len() == 1
            && let Value::Object(only) = choices.remove(0)
        {
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
}

/// The schema of a type of the configuration, for editors: draft 7, which they all know. Definitions are inlined, so that
/// walking it needs no look-ups.
pub fn config_schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Asserts that a file holds the document, with this indent; `UPDATE=1` in the environment writes it. The order of members
/// counts.
///
/// # Panics
/// The file differs, or cannot be written.
#[track_caller]
pub fn assert_current(path: impl AsRef<Path>, document: &Value, indent: &str) {
    let path = path.as_ref();
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    document.serialize(&mut Serializer::with_formatter(&mut text, formatter)).expect("JSON can be written to memory");
    text.push(b'\n');
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).unwrap_or_else(|error| panic!("can't write {}: {error}", path.display()));
    }
    let there = std::fs::read(path).unwrap_or_default();
    assert!(there == text, "{} is not what the types say: run this test with UPDATE=1", path.display());
}

/// The schema at a place in the description of a method, for types of the protocol in other schemas: these types derive
/// nothing outside of their own crate.
///
/// # Panics
/// There is no schema at this place.
#[track_caller]
pub fn schema_in(openrpc: &Value, method: &str, pointer: &str) -> Schema {
    let methods = openrpc["methods"].as_array().into_iter().flatten();
    let found = methods.filter(|known| known["name"] == method).find_map(|method| method.pointer(pointer));
    let schema = found.unwrap_or_else(|| panic!("{method} has nothing at {pointer}"));
    schema.clone().try_into().unwrap_or_else(|error| panic!("{method} has no schema at {pointer}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_lose_their_null() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct SchemaInput {
            /// Where.
            path: String,
            limit: Option<u32>,
        }
        assert_eq!(
            plain_schema_of::<SchemaInput>(),
            serde_json::json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where.", "type": "string"},
                    "limit": {"type": "integer", "minimum": 0}
                },
                "required": ["path"]
            })
        );
    }
}
