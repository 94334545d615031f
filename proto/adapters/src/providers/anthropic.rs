//! The Messages API of Anthropic.
//!
//! Tools: `name` of `[a-zA-Z0-9_-]{1,64}`, `description`, `input_schema`, a JSON Schema whose root
//! is an object (<https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>).
//! The API also refuses `oneOf`, `allOf` and `anyOf` at the root, which that page does not say
//! (<https://github.com/anthropics/claude-code/issues/40075>), and property names other than
//! `[a-zA-Z0-9_.-]{1,64}`; both are said in the description instead.
//!
//! Calls: `tool_use`. Results: `tool_result`, with text, and images of four types; text must not
//! be empty, and an error must say something.

use serde_json::{Map, Value, json};
use toold_proto::tool::{Block, Tool};

use super::{ParsedBlock, ProviderAnswer, assemble, in_words, malformed, object, schema};

pub(super) fn tool(tool: &Tool) -> Value {
    let (mut input_schema, mut left) = schema::plain_root(&tool.input_schema);
    move_odd_keys(&mut input_schema, &mut left);
    json!({
        "name": tool.name,
        "description": schema::describe(&tool.description, left),
        "input_schema": input_schema,
    })
}

pub(super) fn call(block: &Value) -> ParsedBlock {
    match block.get("type").and_then(Value::as_str) {
        Some("tool_use") => {
            let input = match block.get("input") {
                None => Err("it has no input".to_owned()),
                input => object(input),
            };
            Some(match block.get("id") {
                Some(id) => assemble(Some(id), block.get("name"), input),
                None => assemble(None, block.get("name"), Err("it has no id".to_owned())),
            })
        }
        Some(_) => None,
        None => malformed("it is not a block with a type"),
    }
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let mut content: Vec<Value> = Vec::new();
    for block in answer.outcome.blocks().iter() {
        match block {
            Block::Image { data, mime_type } if IMAGES.contains(&mime_type.as_str()) => content.push(json!({
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            })),
            other => {
                let text = in_words(other);
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
            }
        }
    }
    let is_error = answer.outcome.is_error();
    if is_error && content.is_empty() {
        content.push(json!({"type": "text", "text": "the tool failed without a message"}));
    }
    json!({
        "type": "tool_result",
        "tool_use_id": answer.call_id.unwrap_or_default(),
        "content": content,
        "is_error": is_error,
    })
}

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

fn move_odd_keys(input_schema: &mut Map<String, Value>, left: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = input_schema.get_mut("properties") else { return };
    let fits = |key: &str| {
        (1..=64).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    let odd: Map<String, Value> =
        properties.iter().filter(|(key, _)| !fits(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    if odd.is_empty() {
        return;
    }
    properties.retain(|key, _| fits(key));
    if let Some(Value::Array(required)) = input_schema.get_mut("required") {
        let (moved, kept) = std::mem::take(required).into_iter().partition(|key| !key.as_str().is_some_and(fits));
        *required = kept;
        left.insert("required".to_owned(), Value::Array(moved));
    }
    // Or the schema would forbid what the description asks for.
    if input_schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        input_schema.shift_remove("additionalProperties");
        left.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    left.insert("properties".to_owned(), Value::Object(odd));
}
