//! The Responses API of OpenAI.
//!
//! Tools: `{"type": "function", name, description, parameters, strict}`
//! (<https://platform.openai.com/docs/api-reference/responses/create#responses-create-tools>).
//! `strict` is true when absent and then refuses optional arguments, so it is set to false. The
//! limits are those in `openai.rs`.
//!
//! Calls: `function_call`, arguments as JSON in a string. Results: `function_call_output`, a
//! string, or a list with `input_text` and `input_image`; errors begin with `Error: `.

use serde_json::{Value, json};
use toold_proto::tool::{Block, Tool};

use super::{
    ParsedBlock, ProviderAnswer, all_in_words, assemble, data_url, in_words, malformed, object_in_string, openai,
};

pub(super) fn tool(tool: &Tool) -> Value {
    let (description, parameters) = openai::function(tool);
    json!({
        "type": "function",
        "name": tool.name,
        "description": description,
        "parameters": parameters,
        "strict": false,
    })
}

pub(super) fn call(item: &Value) -> ParsedBlock {
    let id = item.get("call_id");
    match item.get("type").and_then(Value::as_str) {
        Some("function_call") => {
            let arguments = match id {
                None => Err("it has no call_id".to_owned()),
                Some(_) => object_in_string(item.get("arguments")),
            };
            Some(assemble(id, item.get("name"), arguments))
        }
        // It waits for an answer as well.
        Some("custom_tool_call") => {
            Some(assemble(id, item.get("name"), Err("custom tools, which take free text, are not offered".to_owned())))
        }
        Some(_) => None,
        None => malformed("it is not an item with a type"),
    }
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let blocks = answer.outcome.blocks();
    let has_image = blocks.iter().any(|block| matches!(block, Block::Image { .. }));
    let output = if has_image {
        let mut parts = Vec::new();
        if answer.outcome.is_error() {
            parts.push(json!({"type": "input_text", "text": "Error:"}));
        }
        parts.extend(blocks.iter().map(|block| match block {
            Block::Image { data, mime_type } => json!({
                "type": "input_image",
                "image_url": data_url(mime_type, data),
                "detail": "auto",
            }),
            other => json!({"type": "input_text", "text": in_words(other)}),
        }));
        Value::Array(parts)
    } else {
        openai::error_marked(answer, all_in_words(answer, |_| true)).into()
    };
    json!({"type": "function_call_output", "call_id": answer.call_id.unwrap_or_default(), "output": output})
}
