//! Results of calls in the protocol's own types.

use rmcp::model::{
    CallToolResult, ContentBlock, EmbeddedResource, MetaObject, Resource, ResourceContents as Contents, Role,
};
use serde_json::Value;
use toold_engine::call::CallError;
use toold_proto::offer::{ResourceContents, Speaker};
use toold_proto::tool::{Block, ToolResult};

/// A result. `any_structure`: the revision allows structured content that is no object.
pub(super) fn result(result: ToolResult, any_structure: bool) -> CallToolResult {
    let mut content: Vec<ContentBlock> = result.content.into_iter().map(block).collect();
    let structured = result.structured.filter(|structured| any_structure || structured.is_object());
    let has_text = content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    if let Some(structured) = structured.as_ref().filter(|_| !has_text) {
        content.insert(0, ContentBlock::text(structured.to_string()));
    }
    let mut converted = CallToolResult::success(content);
    converted.is_error = Some(result.is_error);
    converted.structured_content = structured;
    if !result.metadata.is_empty() {
        let mut meta = MetaObject::new();
        meta.insert("toold/metadata".to_owned(), Value::Object(result.metadata));
        converted.meta = Some(meta);
    }
    converted
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
        Block::Resource { uri, mime_type, text: None, blob: None } => {
            let name = uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&uri).to_owned();
            let mut link = Resource::new(uri, name);
            link.mime_type = mime_type;
            ContentBlock::ResourceLink(link)
        }
        Block::Resource { uri, mime_type, text, blob } => {
            ContentBlock::Resource(EmbeddedResource::new(contents(ResourceContents { uri, mime_type, text, blob })))
        }
    }
}

pub(super) fn contents(contents: ResourceContents) -> Contents {
    let ResourceContents { uri, mime_type, text, blob } = contents;
    let made = match (text, blob) {
        (None, Some(blob)) => Contents::blob(blob, uri),
        (text, _) => Contents::text(text.unwrap_or_default(), uri),
    };
    match (mime_type, made) {
        (Some(mime_type), made) => made.with_mime_type(mime_type),
        (None, Contents::TextResourceContents { uri, text, meta, .. }) => {
            Contents::TextResourceContents { uri, mime_type: None, text, meta }
        }
        (None, made) => made,
    }
}

pub(super) fn role(speaker: Speaker) -> Role {
    match speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    }
}
