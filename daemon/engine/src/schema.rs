//! JSON Schemas, compiled once; a check reports all errors.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};
use toold_proto::error::ArgumentError;

/// How deep a schema may nest, and how long its text may be.
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 256 * 1024;
/// More errors than these help nobody.
const MAX_ERRORS: usize = 50;

/// A compiled JSON Schema. Patterns run on a linear-time engine, and nothing is ever fetched.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Arc<Value>,
    /// Compiled at the first check if the schema is known to be valid.
    validator: Arc<OnceLock<Result<jsonschema::Validator, SchemaError>>>,
    /// Of the properties alone; compiled when an argument is null for the first time. `None` if they cannot be compiled
    /// apart from the rest.
    properties: Arc<OnceLock<Option<jsonschema::Validator>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("the schema has {0} bytes; the limit is {MAX_BYTES}")]
    TooLong(usize),
    #[error("an input schema must describe an object: expected type = \"object\" at its root")]
    NoObject,
    /// `path` is a JSON Pointer into the schema.
    #[error("at {}: {message}", if .path.is_empty() { "the root" } else { .path })]
    Invalid { path: String, message: String },
}

impl Schema {
    /// Compiles any schema.
    pub fn compile(value: Value) -> Result<Self, SchemaError> {
        if depth_over(&value, MAX_DEPTH) {
            return Err(SchemaError::TooDeep);
        }
        let length = value.to_string().len();
        if length > MAX_BYTES {
            return Err(SchemaError::TooLong(length));
        }
        let validator = OnceLock::from(Ok(build(&value)?));
        Ok(Self { value: Arc::new(value), validator: Arc::new(validator), properties: Arc::default() })
    }

    /// A schema that was validated before, in an earlier run of the same program or in its tests:
    /// it is compiled at the first check, so that a start does not wait for it. If it is invalid
    /// after all, nothing matches it.
    pub fn compiled_before(value: Value) -> Self {
        Self { value: Arc::new(value), validator: Arc::default(), properties: Arc::default() }
    }

    /// Compiles the schema of a tool's arguments, which are always an object.
    pub fn compile_input(value: Value) -> Result<Self, SchemaError> {
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::NoObject);
        }
        Self::compile(value)
    }

    pub fn as_value(&self) -> &Value {
        &self.value
    }

    /// Whether a property may be null, whatever else the schema says about the whole; `None` for a property that the
    /// schema does not name.
    pub fn property_admits_null(&self, name: &str) -> Option<bool> {
        self.value.get("properties")?.get(name)?;
        let validator = self.properties.get_or_init(|| build(&properties_alone(&self.value)).ok());
        Some(validator.as_ref()?.is_valid(&json!({name: null})))
    }

    /// All errors of `instance`; empty when it matches.
    pub fn check(&self, instance: &Value) -> Vec<ArgumentError> {
        let validator = match self.validator.get_or_init(|| build(&self.value)) {
            Ok(validator) => validator,
            Err(error) => return vec![ArgumentError { path: String::new(), message: error.to_string() }],
        };
        if validator.is_valid(instance) {
            return Vec::new();
        }
        validator
            .iter_errors(instance)
            .take(MAX_ERRORS)
            .map(|error| ArgumentError {
                path: error.instance_path().to_string(),
                message: shortened(error.to_string()),
            })
            .collect()
    }
}

/// The schema without rules about the object as a whole. Its definitions stay, for references.
fn properties_alone(schema: &Value) -> Value {
    let kept = ["$schema", "$id", "$defs", "definitions", "properties"];
    kept.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(key)?.clone()))).collect::<Map<_, _>>().into()
}

fn build(value: &Value) -> Result<jsonschema::Validator, SchemaError> {
    let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
    options.build(value).map_err(|error| SchemaError::Invalid {
        path: error.instance_path().to_string(),
        message: shortened(error.to_string()),
    })
}

/// A message quotes the wrong value, which may be a megabyte.
fn shortened(text: String) -> String {
    const MAX: usize = 400;
    if text.chars().nth(MAX).is_none() {
        return text;
    }
    let (head, tail): (String, String) =
        (text.chars().take(MAX / 2).collect(), text.chars().skip(text.chars().count() - MAX / 2).collect());
    format!("{head} … {tail}")
}

fn depth_over(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left == 0 || items.iter().any(|item| depth_over(item, left - 1)),
        Value::Object(members) => left == 0 || members.values().any(|member| depth_over(member, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_reported_at_once() {
        let schema = Schema::compile_input(json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
            "required": ["path"],
            "additionalProperties": false
        }))
        .unwrap();
        let errors = schema.check(&json!({"limit": 0, "paht": "x"}));
        let text: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.path, e.message)).collect();
        assert_eq!(errors.len(), 3, "{text:?}");
        assert!(text.iter().any(|t| t.starts_with("/limit:")), "{text:?}");
        assert!(text.iter().any(|t| t.contains("paht")), "{text:?}");
        assert!(text.iter().any(|t| t.contains("\"path\" is a required property")), "{text:?}");
    }

    #[test]
    fn bad_schemas_are_refused_with_their_path() {
        let bad = json!({"type": "object", "properties": {"a": {"type": "strng"}}});
        let error = Schema::compile_input(bad).unwrap_err();
        assert!(error.to_string().contains("/properties/a"), "{error}");
        assert_eq!(Schema::compile_input(json!({"type": "string"})).unwrap_err(), SchemaError::NoObject);
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        assert_eq!(Schema::compile(deep).unwrap_err(), SchemaError::TooDeep);
    }

    #[test]
    fn a_schema_of_before_is_checked_like_any_other() {
        let schema = Schema::compiled_before(json!({"type": "object", "required": ["a"]}));
        assert!(schema.check(&json!({"a": 1})).is_empty());
        assert_eq!(schema.check(&json!({})).len(), 1);
        let none = Schema::compiled_before(json!({"type": "strng"}));
        assert_eq!(none.check(&json!({})).len(), 1);
    }

    #[test]
    fn references_to_the_network_are_not_followed() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}});
        assert!(Schema::compile_input(schema).is_err());
    }
}
