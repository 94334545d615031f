//! JSON Schemas of our own types, in the form that model APIs accept.

use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::Value;

/// The schema of `T`, without what strict providers refuse: `$schema`, `title`, `format: uint64`
/// and the like, `null` beside a type that is optional anyway. Definitions are inlined.
pub fn schema_of<T: JsonSchema>() -> Value {
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
        let schema = schema_of::<SchemaInput>();
        assert_eq!(
            schema,
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
