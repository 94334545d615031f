//! Tools, calls and results in the forms that providers' APIs take and give: one file a provider.
//!
//! Parts that a provider does not accept are rewritten or moved to a description, never dropped
//! silently. Order and bytes depend on the input alone, so that prompt caches hold.

mod anthropic;
mod gemini;
mod mcp;
mod openai;
mod openai_responses;
mod schema;

use serde_json::{Map, Value, json};
use toold_proto::call::ToolFormat;
use toold_proto::tool::{Block, CallId, Tool, ToolResult};

/// A call in a provider's block.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderCall {
    /// `None` where the provider gives calls no id.
    pub call_id: Option<CallId>,
    pub name: String,
    /// An object.
    pub arguments: Value,
}

/// A block that cannot be read, in words for the model. Where its id could be read, a result
/// with it can be sent back, which providers demand for each call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid call: {reason}")]
pub struct MalformedCall {
    pub call_id: Option<CallId>,
    pub name: Option<String>,
    pub reason: String,
}

/// The outcome of one call.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAnswer<'a> {
    /// As the provider gave it.
    pub call_id: Option<&'a str>,
    pub name: &'a str,
    pub outcome: AnswerOutcome<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum AnswerOutcome<'a> {
    Result(&'a ToolResult),
    /// The call was refused or never ran; in words for the model.
    Error(&'a str),
}

/// The array that the provider's API takes as its tools, sorted by name.
pub fn tools_as(format: ToolFormat, tools: &[Tool]) -> Value {
    let mut tools: Vec<&Tool> = tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    match format {
        ToolFormat::Native => json!(tools),
        ToolFormat::Anthropic => tools.into_iter().map(anthropic::tool).collect(),
        ToolFormat::Openai => tools.into_iter().map(openai::tool).collect(),
        ToolFormat::OpenaiResponses => tools.into_iter().map(openai_responses::tool).collect(),
        ToolFormat::Gemini => gemini::tools(&tools),
        ToolFormat::Mcp => tools.into_iter().map(mcp::tool).collect(),
    }
}

/// The calls in a provider's blocks, in their order: of the array that holds them, of the message
/// that holds that array, or of a single block. Blocks that are no calls are passed over.
pub fn calls_in(format: ToolFormat, blocks: &Value) -> Vec<Result<ProviderCall, MalformedCall>> {
    let (holders, read): (&[&str], fn(&Value) -> ParsedBlock) = match format {
        ToolFormat::Native => (&["calls"], native_call),
        ToolFormat::Anthropic => (&["content"], anthropic::call),
        ToolFormat::Openai => (&["tool_calls"], openai::call),
        ToolFormat::OpenaiResponses => (&["output"], openai_responses::call),
        ToolFormat::Gemini => (&["content", "parts"], gemini::call),
        ToolFormat::Mcp => (&["calls"], native_call),
    };
    let mut held = blocks;
    for holder in holders {
        held = held.get(holder).unwrap_or(held);
    }
    match held {
        Value::Array(items) => items.iter().filter_map(read).collect(),
        one => read(one).into_iter().collect(),
    }
}

/// The blocks that the provider takes as results, one for each answer and in their order.
/// Chat completions take no images there: see `openai.rs` for what follows the results then.
pub fn results_as(format: ToolFormat, answers: &[ProviderAnswer<'_>]) -> Value {
    match format {
        ToolFormat::Native => answers.iter().map(native_result).collect(),
        ToolFormat::Anthropic => answers.iter().map(anthropic::result).collect(),
        ToolFormat::Openai => openai::results(answers),
        ToolFormat::OpenaiResponses => answers.iter().map(openai_responses::result).collect(),
        ToolFormat::Gemini => answers.iter().map(gemini::result).collect(),
        ToolFormat::Mcp => answers.iter().map(mcp::result).collect(),
    }
}

/// The call of a block; `None` when it is not a call.
type ParsedBlock = Option<Result<ProviderCall, MalformedCall>>;

impl<'a> AnswerOutcome<'a> {
    fn is_error(self) -> bool {
        match self {
            Self::Result(result) => result.is_error,
            Self::Error(_) => true,
        }
    }

    fn blocks(self) -> std::borrow::Cow<'a, [Block]> {
        match self {
            Self::Result(result) => (&*result.content).into(),
            Self::Error(words) => vec![Block::text(words)].into(),
        }
    }
}

fn native_call(block: &Value) -> ParsedBlock {
    Some(assemble(block.get("call_id"), block.get("name"), object(block.get("arguments"))))
}

fn native_result(answer: &ProviderAnswer<'_>) -> Value {
    let mut item = Map::new();
    if let Some(id) = answer.call_id {
        item.insert("call_id".to_owned(), id.into());
    }
    match answer.outcome {
        AnswerOutcome::Result(result) => item.insert("result".to_owned(), json!(result)),
        AnswerOutcome::Error(words) => item.insert("error".to_owned(), json!({"message": words})),
    };
    Value::Object(item)
}

/// Checks what every provider's block has.
fn assemble(
    call_id: Option<&Value>,
    name: Option<&Value>,
    arguments: Result<Value, String>,
) -> Result<ProviderCall, MalformedCall> {
    let parsed_id = match call_id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => CallId::parse(id).map(Some).map_err(|error| error.to_string()),
        Some(_) => Err("its id is not a string".to_owned()),
    };
    let call_id = parsed_id.as_ref().ok().cloned().flatten();
    let name = name.and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    let malformed = |reason: String| MalformedCall { call_id: call_id.clone(), name: name.clone(), reason };
    parsed_id.map_err(malformed)?;
    let arguments = arguments.map_err(malformed)?;
    match name.clone() {
        Some(name) => Ok(ProviderCall { call_id, name, arguments }),
        None => Err(malformed("it has no name".to_owned())),
    }
}

fn malformed(reason: &str) -> ParsedBlock {
    Some(Err(MalformedCall { call_id: None, name: None, reason: reason.to_owned() }))
}

/// `null` and absent are `{}`.
fn object(arguments: Option<&Value>) -> Result<Value, String> {
    match arguments {
        None | Some(Value::Null) => Ok(json!({})),
        Some(Value::Object(map)) => Ok(Value::Object(map.clone())),
        Some(_) => Err("its arguments are not an object".to_owned()),
    }
}

/// Arguments as JSON within a string; an empty one is `{}`.
fn object_in_string(arguments: Option<&Value>) -> Result<Value, String> {
    match arguments {
        Some(Value::String(text)) if text.trim().is_empty() => Ok(json!({})),
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(value) => object(Some(&value)),
            Err(error) => Err(format!("its arguments are not JSON: {error}")),
        },
        // Some servers that speak this dialect send the object itself.
        other => object(other),
    }
}

/// A description of a block, for providers that do not accept the block itself.
fn in_words(block: &Block) -> String {
    let data = |what: &str, mime_type: &str, data: &str| {
        format!("[{what} of type {mime_type}, {} bytes, which cannot be shown here]", data.len() / 4 * 3)
    };
    match block {
        Block::Text { text } => text.clone(),
        Block::Image { data: bytes, mime_type } => data("an image", mime_type, bytes),
        Block::Audio { data: bytes, mime_type } => data("a sound", mime_type, bytes),
        Block::Resource { uri, text: Some(text), .. } => format!("{uri}:\n{text}"),
        Block::Resource { uri, mime_type, blob: Some(blob), .. } => {
            data(&format!("the resource {uri}"), mime_type.as_deref().unwrap_or("application/octet-stream"), blob)
        }
        Block::Resource { uri, .. } => format!("[the resource {uri}]"),
    }
}

/// All blocks as one text, for providers that take nothing else.
fn all_in_words(answer: &ProviderAnswer<'_>, take: impl Fn(&Block) -> bool) -> String {
    let blocks = answer.outcome.blocks();
    let texts: Vec<String> = blocks.iter().filter(|block| take(block)).map(in_words).collect();
    texts.join("\n")
}

fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}
