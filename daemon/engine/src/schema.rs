//! JSON Schemas, compiled once; a check reports all errors.

mod mistakes;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toold_proto::error::ArgumentError;

use mistakes::{in_words, shortened};

/// How deep a schema may nest, and how long its text may be.
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 256 * 1024;
/// A value of more parts than these is only called wrong: a list of all mistakes could take far more memory than it.
const MAX_PARTS: usize = 20_000;

/// A compiled JSON Schema. Patterns run on a linear-time engine where they can, and nothing is ever fetched.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Arc<Value>,
    /// Compiled at the first check if the schema is known to be valid.
    validator: Arc<OnceLock<Result<jsonschema::Validator, SchemaError>>>,
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
        Ok(Self { value: Arc::new(value), validator: Arc::new(validator) })
    }

    /// A schema that was validated before, in an earlier run of the same program or in its tests:
    /// it is compiled at the first check, so that a start does not wait for it. If it is invalid
    /// after all, nothing matches it.
    pub fn compiled_before(value: Value) -> Self {
        Self { value: Arc::new(value), validator: Arc::default() }
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

    /// All mistakes of `instance`, in words; empty when it matches.
    pub fn check(&self, instance: &Value) -> Vec<ArgumentError> {
        let whole = |message: &str| vec![ArgumentError { path: String::new(), message: message.to_owned() }];
        match self.validator() {
            Err(error) => whole(&error.to_string()),
            Ok(validator) if validator.is_valid(instance) => Vec::new(),
            Ok(_) if parts(instance, MAX_PARTS).is_none() => {
                whole(&format!("does not match the schema, and has too many parts to say where: over {MAX_PARTS}"))
            }
            Ok(_) => in_words(&self.value, &self.errors(instance)),
        }
    }

    /// The places of `instance`, as JSON Pointers, that hold a text where a part of the schema takes none; of one that has too
    /// many parts, none.
    pub fn misplaced_texts(&self, instance: &Value) -> Vec<String> {
        fn collect(errors: &[ValidationError<'_>], found: &mut Vec<String>) {
            for error in errors {
                match error.kind() {
                    ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                        context.iter().for_each(|errors| collect(errors, found));
                    }
                    ValidationErrorKind::Type { .. } if error.instance().is_string() => {
                        found.push(error.instance_path().to_string());
                    }
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.errors(instance), &mut found);
        found
    }

    /// Whether `instance` matches.
    pub(crate) fn admits(&self, instance: &Value) -> bool {
        self.validator().is_ok_and(|validator| validator.is_valid(instance))
    }

    /// All errors of `instance`; none for one of too many parts.
    pub(crate) fn errors<'i>(&'i self, instance: &'i Value) -> Vec<ValidationError<'i>> {
        match self.validator() {
            Ok(validator) if parts(instance, MAX_PARTS).is_some() => validator.iter_errors(instance).collect(),
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    fn validator(&self) -> Result<&jsonschema::Validator, &SchemaError> {
        self.validator.get_or_init(|| build(&self.value)).as_ref()
    }
}

/// How many of `left` parts remain after those of a value; `None` if it has more.
fn parts(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().try_fold(left, |left, item| parts(item, left)),
        Value::Object(members) => members.values().try_fold(left, |left, member| parts(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(left),
    }
}

/// How far a pattern may be tried in vain that needs an engine with backtracking.
const BACKTRACK_LIMIT: usize = 100_000;
/// Patterns of one schema that may be left out.
const MAX_LEFT_OUT: usize = 100;

/// A pattern with lookaround or a back reference, which JSON Schema allows, takes an engine with backtracking. One that this
/// cannot compile either is not checked: the rest of the schema is.
fn build(value: &Value) -> Result<jsonschema::Validator, SchemaError> {
    let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
    if let Ok(validator) = options.build(value) {
        return Ok(validator);
    }
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT);
    let options = jsonschema::options().with_pattern_options(patterns);
    let mut checked = Cow::Borrowed(value);
    for _ in 0..MAX_LEFT_OUT {
        let (path, message) = match options.build(&checked) {
            Ok(validator) => return Ok(validator),
            Err(error) => (error.instance_path().to_string(), shortened(error.to_string())),
        };
        let error = SchemaError::Invalid { path: path.clone(), message };
        let Some((parent, keyword)) = path.rsplit_once('/') else { return Err(error) };
        let is_pattern = keyword == "pattern" && checked.pointer(&path).is_some_and(Value::is_string);
        if !is_pattern && keyword != "patternProperties" {
            return Err(error);
        }
        let Some(Value::Object(schema)) = checked.to_mut().pointer_mut(parent) else { return Err(error) };
        schema.remove(keyword);
    }
    options.build(&checked).map_err(|error| SchemaError::Invalid {
        path: error.instance_path().to_string(),
        message: shortened(error.to_string()),
    })
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
    use serde_json::json;

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
        assert!(text.iter().any(|t| t.contains("\"path\" is required")), "{text:?}");
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
    fn patterns_with_lookaround_are_checked_and_those_that_no_engine_takes_are_not() {
        let schema = |pattern: &str| {
            Schema::compile_input(json!({
                "type": "object",
                "properties": {"s": {"type": "string", "pattern": pattern, "maxLength": 9}}
            }))
            .unwrap()
        };
        for (pattern, good, bad) in [
            ("^(?!undefined$|null$)", "abc", "null"),
            (r"^(?=.*\d).{8,}$", "passw0rd", "password"),
            ("(?<!x)y", "ay", "xy"),
            (r"^(a)\1$", "aa", "ab"),
        ] {
            let schema = schema(pattern);
            assert!(schema.check(&json!({"s": good})).is_empty(), "{pattern}");
            assert_eq!(schema.check(&json!({"s": bad})).len(), 1, "{pattern}");
        }
        let unchecked = schema("(unclosed");
        assert!(unchecked.check(&json!({"s": "any"})).is_empty());
        assert_eq!(unchecked.check(&json!({"s": "longer than nine"})).len(), 1, "the rest is checked");
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
    fn mistakes_of_a_huge_value_are_not_listed() {
        let schema = Schema::compile(json!({"items": {"type": "string"}})).unwrap();
        let errors = schema.check(&json!(vec![1; MAX_PARTS + 1]));
        assert_eq!(errors.len(), 1);
        assert!(errors[0].message.contains("too many parts"), "{errors:?}");
        assert!(schema.check(&json!(vec!["a"; MAX_PARTS + 1])).is_empty());
    }

    #[test]
    fn references_to_the_network_are_not_followed() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}});
        assert!(Schema::compile_input(schema).is_err());
    }
}
