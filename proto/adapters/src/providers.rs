//! Tools, calls and results in the forms that providers' APIs take and give: one file a provider.
//!
//! Parts that a provider does not accept are rewritten or moved to a description, never dropped
//! silently. Order and bytes depend on the input alone, so that prompt caches hold.

mod anthropic;
mod gemini;
mod mcp;
mod names;
mod openai;
mod openai_responses;
mod schema;
mod strict;

use serde_json::{Map, Value, json};
use toold_proto::call::{ProviderOptions, ToolFormat};
use toold_proto::tool::{Block, CallId, Tool, ToolResult, only_text_argument};

/// A call in a provider's block.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderCall {
    /// `None` where the provider gives calls no id.
    pub call_id: Option<CallId>,
    pub name: String,
    /// An object, with the names that the tool's schema has.
    pub arguments: Value,
    pub form: CallForm,
}

/// The form of a call, which its result must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallForm {
    pub kind: CallKind,
    /// Where the call came from, if not from the model itself: to be repeated with the result.
    pub caller: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallKind {
    #[default]
    Function,
    /// A tool of OpenAI whose input is plain text.
    Custom,
    /// A search of OpenAI for tools, which the client runs.
    ToolSearch,
}

/// The name of the tool that finds deferred tools.
pub const SEARCH_TOOL: &str = "tools_search";

/// A tool of a list.
#[derive(Clone, Copy, Debug)]
pub struct OfferedTool<'a> {
    pub tool: &'a Tool,
    /// The model learns its arguments when it has found it with [`SEARCH_TOOL`].
    pub deferred: bool,
}

/// A list of tools for a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTools {
    /// The array that the provider's API takes.
    pub tools: Value,
    /// Options that could not be applied to all tools, as sentences.
    pub warnings: Vec<String>,
}

/// A block that cannot be read, in words for the model. Where its id could be read, a result
/// with it can be sent back, which providers demand for each call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid call: {reason}")]
pub struct MalformedCall {
    pub call_id: Option<CallId>,
    pub name: Option<String>,
    pub reason: String,
    pub form: Box<CallForm>,
}

/// The outcome of one call.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAnswer<'a> {
    /// As the provider gave it.
    pub call_id: Option<&'a str>,
    pub name: &'a str,
    /// That of the call.
    pub form: &'a CallForm,
    pub outcome: AnswerOutcome<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum AnswerOutcome<'a> {
    Result(&'a ToolResult),
    /// The tools that a search found.
    Found(&'a [Tool]),
    /// The call was refused or never ran; in words for the model.
    Error(&'a str),
}

/// The most tools that the provider's API takes in one request, if it has a limit.
pub fn most_tools(format: ToolFormat) -> Option<usize> {
    match format {
        ToolFormat::Native | ToolFormat::Mcp => None,
        ToolFormat::Anthropic => Some(anthropic::MOST_TOOLS),
        ToolFormat::Openai | ToolFormat::OpenaiResponses => Some(openai::MOST_TOOLS),
        ToolFormat::Gemini => Some(gemini::MOST_TOOLS),
    }
}

/// Whether the provider's API itself has deferred tools, so that a list shows them as such and a search loads them.
/// For the others, a list leaves deferred tools out.
pub fn loads_tools(format: ToolFormat) -> bool {
    match format {
        ToolFormat::Anthropic | ToolFormat::OpenaiResponses => true,
        ToolFormat::Native | ToolFormat::Openai | ToolFormat::Gemini | ToolFormat::Mcp => false,
    }
}

/// The array that the provider's API takes as its tools, sorted by name.
pub fn tools_as(format: ToolFormat, tools: &[Tool]) -> Value {
    let offered: Vec<OfferedTool> = tools.iter().map(|tool| OfferedTool { tool, deferred: false }).collect();
    offer(format, &offered, &ProviderOptions::default()).tools
}

/// The same with features of the provider's API. The tools come in order of importance, which decides where the API
/// takes only so many of a kind; the list is sorted by name.
pub fn offer(format: ToolFormat, offered: &[OfferedTool<'_>], options: &ProviderOptions) -> OfferedTools {
    let mut warnings = Vec::new();
    let mut sorted = offered.to_vec();
    sorted.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
    let shown: Vec<&Tool> = sorted.iter().filter(|one| !one.deferred).map(|one| one.tool).collect();
    let tools = match format {
        ToolFormat::Native => json!(shown),
        ToolFormat::Anthropic => {
            let strict = anthropic::strict_tools(offered, options, &mut warnings);
            sorted.iter().map(|one| anthropic::tool(*one, options, &strict)).collect()
        }
        ToolFormat::Openai => shown.iter().map(|tool| openai::tool(tool, options, &mut warnings)).collect(),
        ToolFormat::OpenaiResponses => openai_responses::tools(&sorted, options, &mut warnings),
        ToolFormat::Gemini => gemini::tools(&shown),
        ToolFormat::Mcp => shown.into_iter().map(mcp::tool).collect(),
    };
    OfferedTools { tools, warnings }
}

/// The calls in a provider's blocks, in their order: of the array that holds them, of the message
/// that holds that array, or of a single block. Blocks that are no calls are passed over.
/// `schema_of` returns the input schema of a tool, by its name.
pub fn calls_in(
    format: ToolFormat,
    blocks: &Value,
    schema_of: &dyn Fn(&str) -> Option<Value>,
) -> Vec<Result<ProviderCall, MalformedCall>> {
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
    let blocks = match held {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut calls: Vec<_> = blocks.iter().filter_map(read).collect();
    for call in calls.iter_mut().flatten() {
        to_own_arguments(format, call, schema_of);
    }
    calls
}

/// Undoes what the list of tools changed for the provider.
fn to_own_arguments(format: ToolFormat, call: &mut ProviderCall, schema_of: &dyn Fn(&str) -> Option<Value>) {
    let alphabet = match (format, call.form.kind) {
        (ToolFormat::Anthropic, _) => Some(anthropic::ARGUMENTS),
        (ToolFormat::Gemini, _) => Some(gemini::ARGUMENTS),
        (_, CallKind::Custom) => None,
        (ToolFormat::Native | ToolFormat::Openai | ToolFormat::OpenaiResponses | ToolFormat::Mcp, _) => return,
    };
    let Some(schema) = schema_of(&call.name) else { return };
    let arguments = call.arguments.take();
    call.arguments = match alphabet {
        Some(alphabet) => names::ArgumentNames::of(&schema, alphabet).in_arguments(arguments, &schema),
        None => match (only_text_argument(&schema), arguments) {
            (Some(argument), Value::Object(members)) => {
                members.into_iter().map(|(_, text)| (argument.to_owned(), text)).collect()
            }
            (_, arguments) => arguments,
        },
    };
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
            Self::Found(_) => false,
            Self::Error(_) => true,
        }
    }

    fn blocks(self) -> std::borrow::Cow<'a, [Block]> {
        match self {
            Self::Result(result) => (&*result.content).into(),
            Self::Found(tools) => vec![Block::text(found_in_words(tools))].into(),
            Self::Error(words) => vec![Block::text(words)].into(),
        }
    }
}

fn found_in_words(tools: &[Tool]) -> String {
    if tools.is_empty() {
        return "no tool matches".to_owned();
    }
    let one =
        |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema});
    json!({"tools": tools.iter().map(one).collect::<Vec<_>>()}).to_string()
}

impl CallForm {
    /// Whether a program that the model wrote reads the result, and not the model.
    fn is_from_program(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.get("type").is_some_and(|kind| kind != "direct"))
    }
}

/// The value that a program gets as the result, if the tool returned one.
fn for_program<'a>(answer: &ProviderAnswer<'a>) -> Option<&'a Value> {
    match answer.outcome {
        AnswerOutcome::Result(result) if answer.form.is_from_program() && !result.is_error => {
            result.structured.as_ref()
        }
        AnswerOutcome::Result(_) | AnswerOutcome::Found(_) | AnswerOutcome::Error(_) => None,
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
        AnswerOutcome::Found(tools) => item.insert("result".to_owned(), json!({"tools": tools})),
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
        // Some servers give every call an empty one.
        Some(Value::String(id)) if id.is_empty() => Ok(None),
        Some(Value::String(id)) => CallId::parse(id).map(Some).map_err(|error| error.to_string()),
        Some(_) => Err("its id is not a string".to_owned()),
    };
    let call_id = parsed_id.as_ref().ok().cloned().flatten();
    let name = name.and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    let form = CallForm::default();
    let malformed = |reason: String| MalformedCall {
        call_id: call_id.clone(),
        name: name.clone(),
        reason,
        form: Box::new(form.clone()),
    };
    parsed_id.map_err(malformed)?;
    let arguments = arguments.map_err(malformed)?;
    match name.clone() {
        Some(name) => Ok(ProviderCall { call_id, name, arguments, form }),
        None => Err(malformed("it has no name".to_owned())),
    }
}

fn malformed(reason: &str) -> ParsedBlock {
    Some(Err(MalformedCall { call_id: None, name: None, reason: reason.to_owned(), form: Box::default() }))
}

fn with_form(mut call: Result<ProviderCall, MalformedCall>, form: CallForm) -> Result<ProviderCall, MalformedCall> {
    match &mut call {
        Ok(call) => call.form = form,
        Err(call) => *call.form = form,
    }
    call
}

/// The only argument of a call whose input is plain text. Its name is that of the tool's own argument in the end.
fn text_input(input: Option<&Value>) -> Result<Value, String> {
    match input {
        Some(Value::String(text)) => Ok(json!({"input": text})),
        Some(_) => Err("its input is not a string".to_owned()),
        None => Err("it has no input".to_owned()),
    }
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
        Block::Resource { uri, name, description, .. } => {
            let words: Vec<&str> = name.iter().chain(description).map(String::as_str).collect();
            let about = if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) };
            format!("[the resource {uri}{about}]")
        }
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
