//! Sampling: a server may ask the model of the frontend whose call runs, if a person allows it each time.
#![expect(deprecated, reason = "sampling is deprecated in the newest revision only")]

use std::sync::Arc;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingContent, SamplingMessage,
    SamplingMessageContentBlock as SamplingBlock,
};
use serde_json::{Value, json};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::sampling::{SamplingRequest, SamplingResponse, has_model};
use toold_engine::tool::{Denial, ToolError};
use toold_proto::offer::{PromptMessage, Speaker};
use toold_proto::tool::{Block, Category};

use super::listing::is_hidden;

/// Requests of one call.
const MAX_REQUESTS: usize = 32;
const MAX_MESSAGES: usize = 1000;
/// Bytes of one request as JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Characters of the conversation, and of the system prompt, that the person who is asked sees.
const MAX_PREVIEW: usize = 600;

/// The sampling requests of one call.
#[derive(Default)]
pub(super) struct CallSampling(tokio::sync::Mutex<SamplingTally>);

#[derive(Default)]
struct SamplingTally {
    requests: usize,
    refused: Option<Arc<Denial>>,
}

/// Why there is no answer of a model.
#[derive(Debug, thiserror::Error)]
pub(super) enum SamplingError {
    /// The request cannot be passed on.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    NoAnswer(#[from] ToolError),
}

impl CallSampling {
    /// Asks a person, and then the model of the call's frontend. A call's requests are put to the person one by one; once
    /// one was refused, so are all that follow.
    ///
    /// # Errors
    /// `Invalid` for a request that is too large or has parts that are not supported; otherwise what `Cx::require` and
    /// `Cx::sample` return.
    pub(super) async fn answer(
        &self,
        server: &str,
        asked: CreateMessageRequestParams,
        cx: &Cx,
    ) -> Result<CreateMessageResult, SamplingError> {
        let request = read(asked).map_err(SamplingError::Invalid)?;
        // Otherwise a person would be asked for nothing. It fails, and says what is missing.
        if has_model(cx) {
            self.permit(server, &request, cx).await?;
        }
        Ok(result(cx.sample(request).await?))
    }

    async fn permit(&self, server: &str, request: &SamplingRequest, cx: &Cx) -> Result<(), ToolError> {
        let mut tally = self.0.lock().await;
        if let Some(denial) = &tally.refused {
            return Err(ToolError::Denied(denial.clone()));
        }
        if tally.requests == MAX_REQUESTS {
            let error =
                format!("MCP server {server} asked for more than {MAX_REQUESTS} answers of a model in one call");
            return Err(ToolError::Failed(error));
        }
        tally.requests += 1;
        let need = Need { always_asked: true, ..Need::new(Category::Mcp, format!("{server}/sampling")) };
        let permitted = cx.require(need.because(summary(server, request))).await;
        if let Err(ToolError::Denied(denial)) = &permitted {
            tally.refused = Some(denial.clone());
        }
        permitted
    }
}

/// The request as frontends understand it.
///
/// # Errors
/// What is wrong with it, as a sentence for the server.
fn read(asked: CreateMessageRequestParams) -> Result<SamplingRequest, String> {
    let bytes = serde_json::to_vec(&asked).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_BYTES {
        return Err(format!("the request has {bytes} bytes, and at most {MAX_BYTES} are passed on"));
    }
    if asked.messages.len() > MAX_MESSAGES {
        return Err(format!("{} messages were given, and at most {MAX_MESSAGES} are passed on", asked.messages.len()));
    }
    if asked.tools.is_some() || asked.tool_choice.is_some() {
        return Err("tools and toolChoice are not supported: the client did not declare sampling.tools".to_owned());
    }
    let mut messages = Vec::new();
    for (at, message) in asked.messages.into_iter().enumerate() {
        let role = match message.role {
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
        };
        for block in message.content.into_vec() {
            let content = match block {
                SamplingBlock::Text(text) => Block::text(text.text),
                SamplingBlock::Image(image) => Block::Image { data: image.data, mime_type: image.mime_type },
                SamplingBlock::Audio(audio) => Block::Audio { data: audio.data, mime_type: audio.mime_type },
                _ => return Err(format!("messages[{at}]: expected text, image or audio, and no use of tools")),
            };
            messages.push(PromptMessage { role, content });
        }
    }
    if messages.is_empty() {
        return Err("messages: expected at least one with content".to_owned());
    }
    Ok(SamplingRequest {
        messages,
        system_prompt: asked.system_prompt,
        max_tokens: asked.max_tokens,
        temperature: asked.temperature.map(f64::from),
        stop_sequences: asked.stop_sequences.unwrap_or_default(),
        model_preferences: asked.model_preferences.map(|preferences| json!(preferences)),
    })
}

/// The request in one line, for the person who is asked.
fn summary(server: &str, request: &SamplingRequest) -> String {
    let texts = || request.messages.iter().filter_map(|message| Some((message.role, message.content.as_text()?)));
    let characters: usize = texts().map(|(_, text)| text.chars().count()).sum();
    let media = request.messages.len() - texts().count();
    let media = if media > 0 { format!(" and {media} images or sounds") } else { String::new() };
    let mut words = format!(
        "MCP server {server} asks your model: {} messages with {characters} characters{media}, for at most {} tokens",
        request.messages.len(),
        request.max_tokens
    );
    if let Some(prompt) = &request.system_prompt {
        words.push_str(&format!("; system prompt: {}", preview(prompt.chars())));
    }
    let name = |role| if role == Speaker::User { "user" } else { "assistant" };
    let conversation: Vec<String> =
        texts().take(MAX_PREVIEW).map(|(role, text)| format!("{}: {text}", name(role))).collect();
    words.push_str(&format!("; it begins: {}", preview(conversation.join(" ").chars())));
    words
}

/// The start of a text, in one line and without characters that would hide a part of it.
fn preview(text: impl Iterator<Item = char>) -> String {
    let mut shown = text.map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c));
    let mut preview: String = shown.by_ref().take(MAX_PREVIEW).collect();
    if shown.next().is_some() {
        preview.push('…');
    }
    preview
}

/// The answer as servers expect it: texts are one block, since older revisions allow no more.
fn result(sampled: SamplingResponse) -> CreateMessageResult {
    let role = match sampled.role {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    };
    let texts: Option<Vec<&str>> = sampled.content.iter().map(Block::as_text).collect();
    let content = match texts {
        Some(texts) => SamplingContent::Single(SamplingBlock::text(texts.join("\n"))),
        None => SamplingContent::Multiple(sampled.content.iter().filter_map(block).collect()),
    };
    let mut message = SamplingMessage::new_multiple(role, Vec::new());
    message.content = match content {
        SamplingContent::Multiple(mut blocks) if blocks.len() == 1 => SamplingContent::Single(blocks.remove(0)),
        content => content,
    };
    let mut result = CreateMessageResult::new(message, sampled.model);
    result.stop_reason = sampled.stop_reason;
    result
}

/// `None` for a resource, which no answer of a model has.
fn block(block: &Block) -> Option<SamplingBlock> {
    let value: Value = match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
        Block::Audio { data, mime_type } => json!({"type": "audio", "data": data, "mimeType": mime_type}),
        Block::Resource { .. } => return None,
    };
    serde_json::from_value(value).ok()
}
