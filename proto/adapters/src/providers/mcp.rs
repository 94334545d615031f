//! The Model Context Protocol: <https://modelcontextprotocol.io/specification/2025-06-18/server/tools>.
//!
//! Tools: as `tools/list` gives them; `title` is our label, and an `outputSchema` must be one of
//! an object. Hosts pass the input schema on to the API of their model, and some of those refuse the whole request when one
//! tool has a union or a reference at its root: these are said in the description instead, and toold checks the arguments
//! by the schema as it is. Calls: the params of `tools/call`. Results: `CallToolResult`.

use serde_json::{Map, Value, json};
use toold_proto::tool::{Block, Tool};

use super::{AnswerOutcome, ProviderAnswer, schema};

pub(super) fn tool(tool: &Tool) -> Value {
    let annotations = &tool.annotations;
    let mut out = json!({"name": tool.name, "title": tool.label});
    match schema::has_plain_root(&tool.input_schema) {
        true => {
            out["description"] = tool.description.clone().into();
            out["inputSchema"] = tool.input_schema.clone();
        }
        false => {
            let (plain, left) = schema::plain_root(&tool.input_schema);
            out["description"] = schema::describe(&tool.description, left).into();
            out["inputSchema"] = plain.into();
        }
    }
    if let Some(schema) = &tool.output_schema
        && schema.get("type").and_then(Value::as_str) == Some("object")
    {
        out["outputSchema"] = schema.clone();
    }
    // The protocol has defaults for the others: only what the tool declares is claimed.
    let hints = [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ];
    let declared: Map<String, Value> =
        hints.into_iter().filter_map(|(hint, claim)| Some((hint.to_owned(), claim?.into()))).collect();
    if !declared.is_empty() {
        out["annotations"] = Value::Object(declared);
    }
    out
}

pub(super) fn result(answer: &ProviderAnswer<'_>) -> Value {
    let content: Vec<Value> = answer.outcome.blocks().iter().map(content).collect();
    let mut out = Map::new();
    out.insert("content".to_owned(), content.into());
    if let AnswerOutcome::Result(result) = answer.outcome
        && let Some(structured) = result.structured.as_ref().filter(|structured| structured.is_object())
    {
        out.insert("structuredContent".to_owned(), structured.clone());
    }
    out.insert("isError".to_owned(), answer.outcome.is_error().into());
    Value::Object(out)
}

fn content(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
        Block::Audio { data, mime_type } => json!({"type": "audio", "data": data, "mimeType": mime_type}),
        // An embedded resource has contents; one without is a link, which needs a name.
        Block::Resource { uri, mime_type, text: None, blob: None, name, description, meta } => {
            let last = || uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(uri);
            let mut link = json!({"type": "resource_link", "uri": uri, "name": name.as_deref().unwrap_or_else(last)});
            add(&mut link, "description", description);
            add(&mut link, "mimeType", mime_type);
            add(&mut link, "_meta", meta);
            link
        }
        Block::Resource { uri, mime_type, text, blob, meta, .. } => {
            let mut resource = json!({"uri": uri});
            add(&mut resource, "mimeType", mime_type);
            add(&mut resource, "_meta", meta);
            match (text, blob) {
                (Some(text), _) => resource["text"] = json!(text),
                (None, blob) => resource["blob"] = json!(blob),
            }
            json!({"type": "resource", "resource": resource})
        }
    }
}

fn add(to: &mut Value, member: &str, value: &Option<impl serde::Serialize>) {
    if let Some(value) = value {
        to[member] = json!(value);
    }
}
