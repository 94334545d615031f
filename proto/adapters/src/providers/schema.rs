//! JSON Schemas made fit for providers that do not take all of it.

use serde_json::{Map, Value, json};

/// Keywords that no provider's root schema may have.
const UNIONS: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// Whether the root has neither a union nor a reference.
pub(super) fn has_plain_root(schema: &Value) -> bool {
    UNIONS.iter().chain(&["$ref"]).all(|keyword| schema.get(keyword).is_none())
}

/// A schema whose root is an object with properties and without unions, and what has been taken
/// from its root. The properties that a union's branches name are kept, all of them optional, or
/// a model would not see them.
pub(super) fn plain_root(schema: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let mut plain = resolved(schema, schema);
    let mut left = Map::new();
    let mut properties = match plain.get("properties") {
        Some(Value::Object(properties)) => properties.clone(),
        _ => Map::new(),
    };
    for keyword in UNIONS {
        let Some(union) = plain.shift_remove(keyword) else { continue };
        if keyword != "not" {
            for branch in union.as_array().into_iter().flatten() {
                let branch = resolved(branch, schema);
                for (key, value) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
                    properties.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        left.insert(keyword.to_owned(), union);
    }
    plain.insert("type".to_owned(), "object".into());
    plain.insert("properties".to_owned(), Value::Object(properties));
    (plain, left)
}

/// Takes the examples of a root schema that are arguments.
pub(super) fn take_examples(root: &mut Map<String, Value>) -> Vec<Value> {
    match root.shift_remove("examples") {
        Some(Value::Array(examples)) => examples.into_iter().filter(Value::is_object).collect(),
        _ => Vec::new(),
    }
}

/// A description that also says what could not stay in the schema.
pub(super) fn describe(description: &str, left: Map<String, Value>) -> String {
    if left.is_empty() {
        return description.to_owned();
    }
    let gap = if description.is_empty() { "" } else { "\n\n" };
    format!("{description}{gap}Must also fit this JSON Schema: {}", Value::Object(left))
}

/// Gives each array `items`, which means the same without saying anything.
pub(super) fn add_items(schema: &mut Map<String, Value>) {
    let is_array = match schema.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    };
    if is_array && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({}));
    }
    parts_mut(schema).for_each(add_items);
}

const MAPS_OF_PARTS: [&str; 5] = ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];
const LISTS_OF_PARTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const PARTS: [&str; 7] = ["items", "additionalProperties", "not", "if", "then", "else", "contains"];

/// The schemas that stand directly within a schema.
pub(super) fn parts(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(key, value)| -> Vec<&Value> {
        match value {
            Value::Object(map) if MAPS_OF_PARTS.contains(&key.as_str()) => map.values().collect(),
            Value::Array(list) if LISTS_OF_PARTS.contains(&key.as_str()) => list.iter().collect(),
            Value::Object(_) if PARTS.contains(&key.as_str()) => vec![value],
            _ => Vec::new(),
        }
    })
}

pub(super) fn parts_mut(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let parts = schema.iter_mut().flat_map(|(key, value)| -> Vec<&mut Value> {
        let (key, none) = (key.as_str(), Vec::new);
        if MAPS_OF_PARTS.contains(&key) {
            value.as_object_mut().map_or_else(none, |map| map.values_mut().collect())
        } else if LISTS_OF_PARTS.contains(&key) {
            value.as_array_mut().map_or_else(none, |list| list.iter_mut().collect())
        } else if PARTS.contains(&key) {
            vec![value]
        } else {
            none()
        }
    });
    parts.filter_map(Value::as_object_mut)
}

/// The schemas of an array's items.
pub(super) fn of_items(array: &Value) -> impl Iterator<Item = &Value> {
    let first = array.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
    first.chain(array.get("items"))
}

/// The schema with its own `$ref`, if it has one that leads somewhere, replaced by what it names.
/// Keywords beside the `$ref` win.
pub(super) fn resolved(schema: &Value, root: &Value) -> Map<String, Value> {
    let mut map = schema.as_object().cloned().unwrap_or_default();
    // A chain of references may be a circle.
    for _ in 0..8 {
        let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|to| lookup(to, root)) else { break };
        map.shift_remove("$ref");
        for (key, value) in target.as_object().into_iter().flatten() {
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    map
}

/// The target of a reference within the document.
pub(super) fn lookup<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}
