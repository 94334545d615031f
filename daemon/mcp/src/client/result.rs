//! From a server's answer to the result of a call.

use serde_json::{Map, Value};
use toold_engine::tool::ToolOutput;
use toold_proto::tool::Block;

use crate::server::content::MORE_FIELDS;

/// Pieces of one result; those beyond are left out.
pub(super) const MAX_BLOCKS: usize = 1000;
/// Bytes of the further members of all pieces; more are dropped.
const MAX_MORE: usize = 64 * 1024;

/// Reads an answer leniently: a piece of an unknown kind is shown as its JSON.
///
/// # Errors
/// The answer is not a result of a call.
pub(super) fn output(answer: Value) -> Result<ToolOutput, String> {
    let Value::Object(mut answer) = answer else { return Err("an answer that is no result of a tool".to_owned()) };
    let structured = answer.remove("structuredContent");
    // What is no boolean says that something was to be told of.
    let is_error = !matches!(answer.remove("isError"), None | Some(Value::Null | Value::Bool(false)));
    let given = match answer.remove("content") {
        Some(Value::Array(pieces)) => pieces,
        None | Some(Value::Null) if structured.is_some() => Vec::new(),
        Some(_) | None => return Err("an answer that is no result of a tool".to_owned()),
    };
    let many = given.len();
    let more: Vec<Value> = given.iter().take(MAX_BLOCKS).map(more_fields).collect();
    let mut content: Vec<Block> = given.into_iter().take(MAX_BLOCKS).map(block).collect();
    if many > MAX_BLOCKS {
        content.push(Block::text(format!("[{} more pieces are left out]", many - MAX_BLOCKS)));
    }
    if content.is_empty() {
        // Models read text.
        content.extend(structured.iter().map(|value| Block::text(value.to_string())));
    }
    let mut metadata = Map::new();
    let has_more = more.iter().any(|more| more.as_object().is_some_and(|more| !more.is_empty()));
    if has_more && more.iter().map(|more| more.to_string().len()).sum::<usize>() <= MAX_MORE {
        metadata.insert(MORE_FIELDS.to_owned(), more.into());
    }
    if let Some(meta @ Value::Object(_)) = answer.remove("_meta") {
        metadata.insert("mcp".into(), meta);
    }
    Ok(ToolOutput { content, is_error, metadata, structured })
}

/// The members of a piece that a block does not have: annotations, titles, icons, sizes. `_meta` of a link is in the block.
fn more_fields(piece: &Value) -> Value {
    let kind = piece.get("type").and_then(Value::as_str);
    let own: &[&str] = match kind {
        Some("text") => &["type", "text"],
        Some("image" | "audio") => &["type", "data", "mimeType"],
        Some("resource_link") => &["type", "uri", "name", "description", "mimeType", "_meta"],
        Some("resource") => &["type", "resource"],
        Some(_) | None => return Value::Object(Map::new()),
    };
    let members = piece.as_object().into_iter().flatten();
    Value::Object(
        members.filter(|(name, _)| !own.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect(),
    )
}

/// A piece of an unknown kind becomes its JSON.
pub(super) fn block(piece: Value) -> Block {
    let text = |of: &Value, member: &str| of.get(member).and_then(Value::as_str).map(str::to_owned);
    let meta = |of: &Value| of.get("_meta").and_then(Value::as_object).cloned();
    let read = match piece.get("type").and_then(Value::as_str) {
        Some("text") => text(&piece, "text").map(|text| Block::Text { text }),
        Some("image") => {
            text(&piece, "data").zip(text(&piece, "mimeType")).map(|(data, mime_type)| Block::Image { data, mime_type })
        }
        Some("audio") => {
            text(&piece, "data").zip(text(&piece, "mimeType")).map(|(data, mime_type)| Block::Audio { data, mime_type })
        }
        Some("resource_link") => text(&piece, "uri").map(|uri| Block::Resource {
            uri,
            mime_type: text(&piece, "mimeType"),
            text: None,
            blob: None,
            name: text(&piece, "name"),
            description: text(&piece, "description"),
            meta: meta(&piece),
        }),
        Some("resource") => piece.get("resource").and_then(|resource| {
            Some(Block::Resource {
                uri: text(resource, "uri")?,
                mime_type: text(resource, "mimeType"),
                text: text(resource, "text"),
                blob: text(resource, "blob"),
                name: None,
                description: None,
                meta: meta(resource),
            })
        }),
        Some(_) | None => None,
    };
    read.unwrap_or_else(|| Block::text(piece.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_piece_is_accepted() {
        let answer = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aQ==", "mimeType": "image/png"},
            {"type": "audio", "data": "aQ==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "x:1", "text": "t"}},
            {"type": "resource_link", "uri": "x:2", "name": "n"},
            {"type": "hologram", "of": 1}
        ], "isError": true, "_meta": {"a": 1}});
        let output = output(answer).unwrap();
        assert!(output.is_error);
        assert_eq!(output.metadata["mcp"], json!({"a": 1}));
        assert_eq!(output.content[2], Block::Audio { data: "aQ==".into(), mime_type: "audio/wav".into() });
        assert!(
            matches!(&output.content[4], Block::Resource { uri, text: None, name: Some(name), .. } if uri == "x:2" && name == "n")
        );
        assert_eq!(output.content[5], Block::text(r#"{"type":"hologram","of":1}"#));
    }

    #[test]
    fn further_members_of_pieces_are_kept_beside_them() {
        let link =
            json!({"type": "resource_link", "uri": "x:2", "name": "n", "title": "T", "size": 3, "_meta": {"a": 1}});
        let text = json!({"type": "text", "text": "t", "annotations": {"audience": ["user"]}});
        let output = output(json!({"content": [link, text]})).unwrap();
        let more = json!([{"title": "T", "size": 3}, {"annotations": {"audience": ["user"]}}]);
        assert_eq!(output.metadata[MORE_FIELDS], more);
        let plain = super::output(json!({"content": [{"type": "text", "text": "t"}]})).unwrap();
        assert!(plain.metadata.is_empty());
    }

    #[test]
    fn a_result_that_is_only_structured_becomes_text_too() {
        let read = output(json!({"structuredContent": {"n": 1}})).unwrap();
        assert_eq!((read.structured, read.content), (Some(json!({"n": 1})), vec![Block::text(r#"{"n":1}"#)]));
        assert!(output(json!({"tools": []})).is_err());
        assert!(output(json!({"content": [], "isError": "yes"})).unwrap().is_error);
        assert!(!output(json!({"content": [], "isError": null})).unwrap().is_error);
        assert!(output(json!([])).is_err());
        let many: Vec<Value> = (0..5000).map(|_| json!({"type": "text", "text": ""})).collect();
        assert_eq!(output(json!({"content": many})).unwrap().content.len(), MAX_BLOCKS + 1);
    }
}
