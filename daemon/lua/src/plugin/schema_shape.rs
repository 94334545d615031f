//! Values that a script made, or is given, in the shape that a JSON Schema wants: defaults are filled in, and an empty
//! table is a list where the schema has one.

use serde_json::Value;

/// How deep schemas are followed.
const MAX_DEPTH: usize = 32;

/// Whether the schema has a default for a property anywhere.
pub(crate) fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let of_property = |property: &Value| property.get("default").is_some();
            members.get("properties").and_then(Value::as_object).is_some_and(|of| of.values().any(of_property))
                || members.values().any(has_defaults)
        }
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

/// Adds the defaults of properties that are absent.
pub(crate) fn fill_defaults(value: &mut Value, schema: &Value) {
    walk(value, schema, 0, &|value, schema| {
        let (Value::Object(members), Some(properties)) = (value, schema.get("properties").and_then(Value::as_object))
        else {
            return;
        };
        for (name, property) in properties {
            if let Some(default) = property.get("default").filter(|_| !members.contains_key(name)) {
                members.insert(name.clone(), default.clone());
            }
        }
    });
}

/// Makes lists of empty objects where the schema wants a list and no object.
pub(crate) fn empty_lists(value: &mut Value, schema: &Value) {
    walk(value, schema, 0, &|value, schema| {
        if value.as_object().is_some_and(serde_json::Map::is_empty) && wants_list(schema) {
            *value = Value::Array(Vec::new());
        }
    });
}

fn wants_list(schema: &Value) -> bool {
    let is = |kind: &str| match schema.get("type") {
        Some(Value::String(text)) => text == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    let of_any = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let mut of_any = of_any.peekable();
    match of_any.peek() {
        Some(_) => {
            let all: Vec<&Value> = of_any.collect();
            let takes_object = |one: &&Value| one.get("type").is_some_and(|kind| kind == "object");
            all.iter().any(|one| wants_list(one)) && !all.iter().any(takes_object)
        }
        None => is("array") && !is("object"),
    }
}

/// Visits a value and its members with their schemas, the outer ones first.
fn walk(value: &mut Value, schema: &Value, depth: usize, visit: &impl Fn(&mut Value, &Value)) {
    if depth == MAX_DEPTH {
        return;
    }
    visit(value, schema);
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            for (name, member) in members {
                if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(others) {
                    walk(member, schema, depth + 1, visit);
                }
            }
        }
        Value::Array(items) => {
            let first = schema.get("prefixItems").and_then(Value::as_array);
            let rest = schema.get("items").filter(|rest| rest.is_object());
            for (place, item) in items.iter_mut().enumerate() {
                if let Some(schema) = first.and_then(|first| first.get(place)).or(rest) {
                    walk(item, schema, depth + 1, visit);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_objects_become_lists_only_where_a_list_is_wanted() {
        let schema = json!({"type": "object", "properties": {
            "list": {"type": "array"}, "either": {"type": ["array", "object"]}, "map": {"type": "object"},
            "any": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "deep": {"type": "array", "items": {"type": "object", "properties": {"l": {"type": "array"}}}}}});
        let mut value = json!({"list": {}, "either": {}, "map": {}, "any": {}, "deep": [{"l": {}}], "other": {}});
        empty_lists(&mut value, &schema);
        assert_eq!(value, json!({"list": [], "either": {}, "map": {}, "any": [], "deep": [{"l": []}], "other": {}}));
    }

    #[test]
    fn defaults_are_filled_in_at_any_depth() {
        let schema = json!({"properties": {
            "a": {"default": 1}, "b": {"default": 2}, "c": {"default": {}, "properties": {"d": {"default": [3]}}}}});
        assert!(has_defaults(&schema) && !has_defaults(&json!({"properties": {"a": {"type": "string"}}})));
        let mut value = json!({"b": 5});
        fill_defaults(&mut value, &schema);
        assert_eq!(value, json!({"a": 1, "b": 5, "c": {"d": [3]}}));
    }
}
