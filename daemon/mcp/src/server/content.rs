//! Results of calls in the protocol's own types.

use rmcp::model::{
    CallToolResult, ContentBlock, EmbeddedResource, MetaObject, Resource, ResourceContents as Contents, Role,
};
use serde_json::Value;
use toold_engine::call::CallError;
use toold_proto::offer::{ResourceContents, Speaker};
use toold_proto::tool::{Block, ToolResult};

/// The key of metadata under which a mounted server's `_meta` of a result stands.
const MCP_META: &str = "mcp";

/// The key of metadata under which the members stand that the server's pieces of content have besides those of [`Block`].
pub(crate) const MORE_FIELDS: &str = "mcp_content";

/// A result. `any_structure`: the revision allows structured content that is no object.
pub(super) fn result(result: ToolResult, any_structure: bool) -> CallToolResult {
    let mut metadata = result.metadata;
    let more = metadata.remove(MORE_FIELDS);
    let mut content: Vec<ContentBlock> = result.content.into_iter().map(block).collect();
    if let Some(Value::Array(more)) = more {
        add_fields(&mut content, more);
    }
    let structured = result.structured.filter(|structured| any_structure || structured.is_object());
    let has_text = content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    if let Some(structured) = structured.as_ref().filter(|_| !has_text) {
        content.insert(0, ContentBlock::text(structured.to_string()));
    }
    let mut converted = CallToolResult::success(content);
    converted.is_error = Some(result.is_error);
    converted.structured_content = structured;
    // From a mounted server, for clients that show its results in its own user interface.
    let mut meta = match metadata.remove(MCP_META) {
        Some(Value::Object(own)) => MetaObject(own),
        Some(other) => {
            metadata.insert(MCP_META.to_owned(), other);
            MetaObject::new()
        }
        None => MetaObject::new(),
    };
    if !metadata.is_empty() {
        meta.insert("toold/metadata".to_owned(), Value::Object(metadata));
    }
    converted.meta = Some(meta).filter(|meta| !meta.is_empty());
    converted
}

/// Gives the pieces the further members that they had, unless the content was changed on its way.
fn add_fields(content: &mut [ContentBlock], more: Vec<Value>) {
    if content.len() != more.len() {
        return;
    }
    for (block, more) in content.iter_mut().zip(more) {
        let (Ok(Value::Object(mut whole)), Value::Object(more)) = (serde_json::to_value(&*block), more) else {
            continue;
        };
        whole.extend(more);
        if let Ok(read) = serde_json::from_value(Value::Object(whole)) {
            *block = read;
        }
    }
}

/// A call that could not run, as a result that a model can read.
pub(super) fn failed(error: &CallError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

pub(super) fn block(block: Block) -> ContentBlock {
    match block {
        Block::Text { text } => ContentBlock::text(text),
        Block::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Block::Audio { data, mime_type } => ContentBlock::audio(data, mime_type),
        // A resource without contents is a link, which must have a name.
        Block::Resource { uri, mime_type, text: None, blob: None, name, description, meta } => {
            let last = || uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&uri).to_owned();
            let name = name.unwrap_or_else(last);
            let mut link = Resource::new(uri, name);
            link.mime_type = mime_type;
            link.description = description;
            link.meta = meta.map(MetaObject);
            ContentBlock::ResourceLink(link)
        }
        Block::Resource { uri, mime_type, text, blob, meta, .. } => {
            let given = ResourceContents { uri, mime_type, text, blob, meta };
            ContentBlock::Resource(EmbeddedResource::new(contents(given)))
        }
    }
}

pub(super) fn contents(contents: ResourceContents) -> Contents {
    let ResourceContents { uri, mime_type, text, blob, meta } = contents;
    let meta = meta.map(MetaObject);
    match (text, blob) {
        (None, Some(blob)) => Contents::BlobResourceContents { uri, mime_type, blob, meta },
        (text, _) => Contents::TextResourceContents { uri, mime_type, text: text.unwrap_or_default(), meta },
    }
}

pub(super) fn role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    }
}
